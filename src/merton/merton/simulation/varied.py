"""The scenes of splits: what is on the table, where, and the five tasks that rise in difficulty.

A scene is a function of split and seed alone. Its layout (this module) decides all physics; its look (`look`) none.
The difficulty of a task says how much of the picture its instruction needs:

1. nothing else has the colour of the thing
2. another thing has its colour: the shape decides
3. another thing has its colour and shape: the size decides ("small red cube")
4. the same, and the place decides ("left red cube")
5. the same, and a neighbour decides ("red cube nearest to the blue ball")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np

from merton.errors import MertonError
from merton.seeding import generator
from merton.simulation.places import Need, Placing, Spot
from merton.world.nouns import COLORS, PLACES, SHAPES, Noun, meant
from merton.world.tasks import DIRECTIONS, TASKS, VERBS, Command

DIFFICULTIES = (1, 2, 3, 4, 5)
_OBJECT_VERBS, *_KITS = (
    tuple(verb for verb in VERBS if TASKS[verb].kit == kit) for kit in dict.fromkeys(TASKS[verb].kit for verb in VERBS)
)
"""Verbs of objects alone, of which three are in a scene; and pairs of verbs whose props stand in one scene."""
_TRIOS = tuple(combinations(_OBJECT_VERBS, 3))
_BY_PROP = tuple(verb for verb in VERBS if TASKS[verb].objects != SHAPES)
"""Verbs that handle a prop."""

_TRAINED_SHAPES = (*SHAPES, "ball", "mug", "bottle")
SHAPES_OF = {
    "train": _TRAINED_SHAPES,
    "val": _TRAINED_SHAPES,
    "test": _TRAINED_SHAPES,
    "shift": (*SHAPES, "brick", "spool", "cone"),
}
"""Split to the shapes of its objects; cubes and cylinders are in all, as the things of which two look alike."""
_SMALL, _LARGE = 0.80, 1.12
"""Sizes of two objects that are told apart by size; of others it is between `_SCALES`."""
_SCALES = (0.90, 1.06)
_CLEARLY_M = 0.05
"""Least difference between two like things in the coordinate, or the distance to a neighbour, that tells them apart."""
_LAYOUTS = 10_000
"""Layouts that are tried for a scene; each is drawn anew from its number, so that it depends on no other."""


@dataclass(frozen=True)
class Thing:
    """A thing on the table that has a name.

    Attributes:
        name: as in `merton.world.nouns`, unique in the scene.
        scale: how many times larger it is than usual.
        spot: (x, y [m], yaw [rad]) in `base_link`; x, y of its middle.
    """

    name: str
    scale: float
    spot: Spot = (0.0, 0.0, 0.0)

    @property
    def shape(self) -> str:
        """The kind of thing, the last word of its name."""
        return self.name.split()[-1]

    @property
    def color(self) -> str:
        """The colour in its name."""
        return self.name.split()[-2]


@dataclass(frozen=True)
class Job:
    """One of the tasks of a scene.

    Attributes:
        difficulty: one of `DIFFICULTIES`.
        command: the instruction.
        meant: the same with the names of the things in place of the nouns.
    """

    difficulty: int
    command: Command
    meant: Command


@dataclass(frozen=True)
class Layout:
    """The things on the table in the scene of a split and a seed, and the tasks with them.

    Attributes:
        things: everything that has a name, mats included.
        jobs: verb to the task, in rising difficulty.
        clutter: kind and spot of the things without names, which stand around the others.
    """

    split: str
    seed: int
    things: tuple[Thing, ...]
    jobs: Mapping[str, Job]
    clutter: tuple[tuple[str, Spot], ...] = ()

    @property
    def cup(self) -> Thing | None:
        """The cup with the beads in it, if a task has beads."""
        cups = [job.meant.object for verb, job in self.jobs.items() if TASKS[verb].beads]
        return next((thing for thing in self.things if thing.name in cups), None)


def verbs_of(seed: int) -> tuple[str, ...]:
    """The verbs of a scene in rising difficulty: the same in all splits.

    Ours: 150 scenes in a row have every verb of `_OBJECT_VERBS` 90 times, every other 50 times, and each of them
    equally often at each difficulty; the first eight scenes of a verb have it at all five.
    """
    verbs = (*_TRIOS[seed % len(_TRIOS)], *_KITS[seed % len(_KITS)])
    turn = (4 * seed + seed // 3 + seed // 30) % len(verbs)
    return (*verbs[turn:], *verbs[:turn])


@lru_cache(maxsize=64)
def make_layout(split: str, seed: int) -> Layout:
    """The layout of a scene; see the module."""
    for attempt in range(_LAYOUTS):
        rng = generator("layout", split, seed, attempt)
        cast = _Cast(rng, split, verbs_of(seed))
        spots = Placing(rng, [thing.shape for thing in cast.things], cast.needs).spots
        if spots is None:
            continue
        things = tuple(replace(thing, spot=spot) for thing, spot in zip(cast.things, spots, strict=True))
        if (jobs := cast.jobs(things)) is not None:
            return Layout(split, seed, things, jobs, Placing.clutter(rng))
    raise MertonError(
        f"the table is too small for scene {seed} of the split {split!r}: none of {_LAYOUTS} layouts fits"
    )


class _Cast:
    """The things of a scene, before they have places, and what each verb does with which of them."""

    def __init__(self, rng: np.random.Generator, split: str, verbs: Sequence[str]) -> None:
        self.rng, self.shapes, self.verbs = rng, SHAPES_OF[split], verbs
        self.things: list[Thing] = []
        self.handled: dict[str, int] = {}
        """Verb to the number of the thing that it handles."""
        self.targets: dict[str, int] = {}
        self.directions: dict[str, str] = {}
        self.needs: list[Need] = []
        colors = [COLORS[number] for number in rng.permutation(len(COLORS))]
        self.alone, self.shared, self.others = colors[0], colors[1], colors[1:]
        self._companion()
        self._objects()
        self._props()
        if [thing.color for thing in self.things].count(self.shared) < 2:
            self._add(self._shape(unlike=[self.things[self.companion].shape]), [self.shared])
        while len([thing for thing in self.things if thing.shape in self.shapes]) < 3:
            self._add(self._shape(), self.others)
        for verb in verbs:
            if TASKS[verb].directed:
                self.directions[verb] = str(rng.choice(list(DIRECTIONS)))
            along = np.array(DIRECTIONS[self.directions[verb]]) if verb in self.directions else None
            self.needs.append(Need(TASKS[verb], self.handled[verb], self.targets.get(verb), along))

    def _difficulty(self, verb: str) -> int:
        return self.verbs.index(verb) + 1

    def _shape(self, verbs: Sequence[str] = (), unlike: Sequence[str] = ()) -> str:
        """A shape of the split with which some verbs can be done."""
        shapes = [shape for shape in self.shapes if shape not in unlike]
        fit = [shape for shape in shapes if not any(shape in TASKS[verb].unfit for verb in verbs)]
        return str(self.rng.choice(fit))

    def _add(self, shape: str, colors: Sequence[str], scale: float | None = None, size: str | None = None) -> int:
        """Add a thing of a colour in which no other of its shape is, and return its number."""
        used = {(thing.color, thing.shape) for thing in self.things}
        free = [color for color in colors if (color, shape) not in used] if size is None else list(colors)
        if not free:
            return self._add(self._shape(unlike=[shape]), colors, scale)
        color = str(self.rng.choice(free))
        name = Noun(color, shape, size).name
        self.things.append(Thing(name, float(self.rng.uniform(*_SCALES)) if scale is None else scale))
        return len(self.things) - 1

    def _pair(self, shape: str, sizes: tuple[float, float]) -> tuple[int, int]:
        """Two things of one colour and shape, the small one first."""
        used = {(thing.color, thing.shape) for thing in self.things}
        color = str(self.rng.choice([color for color in self.others if (color, shape) not in used]))
        small, large = (
            self._add(shape, [color], scale, word) for scale, word in zip(sizes, ("small", "large"), strict=True)
        )
        return small, large

    def _companion(self) -> None:
        """An object that stands by: it has the colour of the thing of the second difficulty, or is that thing."""
        second = self.verbs[1]
        handles = second in _OBJECT_VERBS
        self.companion = self._add(self._shape([second] if handles else []), [self.shared])
        if handles:
            self.handled[second] = self.companion

    def _objects(self) -> None:
        """The objects that are handled."""
        by_object = [verb for verb in self.verbs if verb not in _BY_PROP and verb not in self.handled]
        alike = [verb for verb in by_object if self._difficulty(verb) >= 3]
        beside = self.things[self.companion].shape
        for verb in by_object:
            if verb not in alike:
                colors = [self.alone] if self._difficulty(verb) == 1 else [self.shared]
                self.handled[verb] = self._add(self._shape([verb], [beside]), colors)
        if alike:
            pair = self._pair(self._shape(alike, [beside]), (_SMALL, _LARGE))
            for verb in alike:
                self.handled[verb] = pair[int(self.rng.integers(2))]
        with_target = [verb for verb in VERBS if verb in self.handled and TASKS[verb].targets]
        for verb in (verb for verb in with_target if TASKS[verb].targets != SHAPES):
            self.targets[verb] = self._add(TASKS[verb].targets[0], self.others, 1.0)
        for verb in (verb for verb in with_target if TASKS[verb].targets == SHAPES):
            self.targets[verb] = self.companion
            if self.handled[verb] == self.companion:
                others = [number for number in range(1, len(self.things)) if self.things[number].shape in self.shapes]
                self.targets[verb] = others[0] if others else self._add(self._shape(), self.others)

    def _props(self) -> None:
        for verb in (verb for verb in self.verbs if verb in _BY_PROP):
            task, difficulty = TASKS[verb], self._difficulty(verb)
            prop = next(prop for prop in task.props if prop.name in task.objects)
            if difficulty <= 2:
                self.handled[verb] = self._add(prop.name, [self.alone if difficulty == 1 else self.shared], 1.0)
            else:  # the handled one has its usual size
                other = float(self.rng.choice(prop.decoy_scales))
                pair = self._pair(prop.name, (min(other, 1.0), max(other, 1.0)))
                self.handled[verb] = pair[int(other < 1.0)]
            if task.targets:
                self.targets[verb] = self._add(task.targets[0], self.others, 1.0)

    def jobs(self, things: tuple[Thing, ...]) -> dict[str, Job] | None:
        """The tasks, once the things have places; None if an instruction would not be clear."""
        jobs = {}
        for verb in self.verbs:
            thing = things[self.handled[verb]]
            difficulty = self._difficulty(verb)
            noun = self._noun(thing, things, difficulty)
            if noun is None:
                return None
            target = things[self.targets[verb]].name if verb in self.targets else None
            command = Command(verb, str(noun), self.directions.get(verb), target)
            jobs[verb] = Job(difficulty, command, replace(command, object=thing.name))
        return jobs

    def _noun(self, thing: Thing, things: tuple[Thing, ...], difficulty: int) -> Noun | None:
        """The noun by which an instruction of a difficulty names a thing; None if it cannot."""
        noun = Noun(thing.color, thing.shape)
        if difficulty == 3:
            return replace(noun, size=thing.name.split()[0])
        if difficulty < 3:
            return noun
        like = next(
            other for other in things if other is not thing and other.name.split()[-2:] == thing.name.split()[-2:]
        )
        here, there = np.array(thing.spot[:2]), np.array(like.spot[:2])
        if difficulty == 4:
            words = [word for word, along in PLACES.items() if (here - there) @ along >= _CLEARLY_M]
            return replace(noun, place=max(words, key=lambda word: (here - there) @ PLACES[word])) if words else None
        places = {other.name: other.spot[:2] for other in things}
        for mark in things:
            at = np.array(mark.spot[:2])
            clear = np.hypot(*(there - at)) - np.hypot(*(here - at)) >= _CLEARLY_M
            if clear and mark.shape in self.shapes and len(mark.name.split()) == 2:
                found = replace(noun, landmark=mark.name)
                assert meant(str(found), places) == thing.name
                return found
        return None
