"""The scene of a trial: a function of task and seed alone, so that any process can compute it (docs/use/scenes.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, islice

import numpy as np

from merton.errors import InputError, MertonError
from merton.seeding import generator
from merton.simulation.places import MAX_YAW_RAD, is_round, stand_of
from merton.simulation.varied import Layout, make_layout, verbs_of
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Array
from merton.world.tasks import (
    COLORS,
    DIRECTIONS,
    MAT,
    PLAIN,
    SHAPES,
    SPLITS,
    TASKS,
    VERBS,
    Command,
    Neighbour,
    Site,
    Task,
    scene_of,
    split_and_verb,
)

_THINGS = 3
"""Things that stand on the table of a plain scene, at least."""
_MAX_DRAWS = 10_000


@dataclass(frozen=True)
class Scene:
    """The scene of a task and a seed.

    Attributes:
        task: such as "pick", or "test-pick" for that of a split.
        command: the instruction; its object and target are in the scene.
        placements: name to (x, y [m], yaw [rad]) in `base_link` of all things on the table but mats; in a plain scene
            the command's object is the first. A drawer opens towards -x of its frame.
        mats: mat name to its centre (x, y) [m] in `base_link`; a plain scene has one if the task needs it.
        layout: of a varied scene; None for a plain one.
    """

    task: str
    seed: int
    command: Command
    placements: Mapping[str, tuple[float, float, float]]
    mats: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    layout: Layout | None = None

    @property
    def meant(self) -> Command:
        """The command with the names of its things, which in a plain scene are those of the instruction."""
        return self.command if self.layout is None else self.layout.jobs[self.command.verb].meant

    @property
    def difficulty(self) -> int:
        """Amount of the picture that the instruction needs, 1 to 5 (`merton.simulation.varied`); 1 in a plain scene."""
        return 1 if self.layout is None else self.layout.jobs[self.command.verb].difficulty

    @property
    def world(self) -> str:
        """Scenes of the same world have the same things in the same places, such as "test.7"."""
        return scene_of(self.task, self.seed)

    @property
    def props(self) -> tuple[str, ...]:
        """Names of the placed things that are props of single tasks, not objects of the pool."""
        return tuple(name for name in self.placements if name.split()[-1] not in SHAPES)


def make_scene(task: str, seed: int) -> Scene:
    """The scene of (task, seed).

    In plain scenes there are the things of the task and one or two distractors, all of different colours. Everything
    can be grasped: objects are at least 0.14 m apart, a mat at least 0.16 m from any object, props as `Prop.plain`
    says, and the task has the room that it needs (`Task.room`). Cubes and props are turned by at most 30 degrees.

    Raises:
        UnknownNameError: no such task.
        InputError: a seed that is not a number >= 0, or one of a scene of a split without a task of this verb.
    """
    split, verb = split_and_verb(task)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"the seed of a scene must be a whole number >= 0, got {seed!r}")
    return _plain(verb, int(seed)) if split == PLAIN else _varied(task, split, verb, int(seed))


def make_plain_scene(task: str, seed: int, cell: str) -> Scene:
    """As `make_scene`, for a cell that has nothing but the plain scenes; raises InputError for a task of a split."""
    if split_and_verb(task)[0] != PLAIN:
        raise InputError(
            f"{cell} has the things of plain scenes only, not those of {task!r}; the embedded cell has both"
        )
    return make_scene(task, seed)


def scene_has(task: str, seed: int) -> bool:
    """Whether the scene of this seed has the task: every plain one; of a split, those whose tasks it is one of.

    A task of a finished run, whose file is not here, is plain: Merton alone has tasks in splits.
    """
    split, _, verb = task.rpartition("-")
    return split not in SPLITS or verb not in VERBS or verb in verbs_of(seed)


def scene_seeds(task: str, number: int) -> list[int]:
    """The seeds of the first scenes of a task: 0, 1, ... of a plain one."""
    return list(islice((seed for seed in count() if scene_has(task, seed)), number))


def _varied(task: str, split: str, verb: str, seed: int) -> Scene:
    if verb not in verbs_of(seed):
        raise InputError(
            f"scene {seed} of the split {split!r} has no task {verb!r}; it has: {', '.join(verbs_of(seed))}"
        )
    layout = make_layout(split, seed)
    mats = {thing.name: thing.spot[:2] for thing in layout.things if thing.shape == "mat"}
    placements = {thing.name: thing.spot for thing in layout.things if thing.name not in mats}
    return Scene(task, seed, layout.jobs[verb].command, placements, mats, layout)


def _plain(verb: str, seed: int) -> Scene:
    rng, task = generator("scene", verb, seed), TASKS[verb]
    kinds = _kinds(task)
    colors = [COLORS[index] for index in rng.permutation(len(COLORS))]
    shapes = [kind or str(rng.choice(SHAPES)) for kind in kinds]
    names = [f"{color} {shape}" for color, shape in zip(colors, shapes, strict=False)]
    yaws = [0.0 if is_round(shape) else float(rng.uniform(-MAX_YAW_RAD, MAX_YAW_RAD)) for shape in shapes]
    direction = str(rng.choice(list(DIRECTIONS))) if task.directed else None
    target = None if not task.targets else len(kinds) - 1 if MAT in task.targets else 1
    command = Command(verb, names[0], direction, None if target is None else names[target])

    area = _cell().objects.area
    stands = [stand_of(kind, plain=True) for kind in kinds]
    room = np.array([stand.room_m for stand in stands])
    for _ in range(_MAX_DRAWS):
        spots = rng.uniform(area.min, area.max, size=(len(kinds), 2))
        distances = np.linalg.norm(spots[:, None] - spots, axis=2)
        if not (distances + np.diag(2 * room) >= room[:, None] + room).all():
            continue
        allowed = all(stand.allows(spot) for stand, spot in zip(stands, spots, strict=True))
        if allowed and (task.room is None or task.room(_site(command, kinds, spots, yaws[0], target))):
            places = {name: (float(x), float(y), yaw) for name, (x, y), yaw in zip(names, spots, yaws, strict=True)}
            mats = {name: (x, y) for name, (x, y, _) in places.items() if name.endswith(MAT)}
            placements = {name: place for name, place in places.items() if name not in mats}
            return Scene(verb, seed, command, placements, mats)
    raise MertonError(f"objects.area {area.min}..{area.max} of the cell is too small for the task {verb!r}")


def _kinds(task: Task) -> list[str]:
    """The kinds of things in a plain scene: the task's object, its target, others; last its mat. "" is any object."""
    kinds = ["" if shapes == SHAPES else shapes[0] for shapes in (task.objects, task.targets) if shapes]
    standing = [kind for kind in kinds if kind != MAT]
    return [*standing, *[""] * (_THINGS - len(standing)), *[kind for kind in kinds if kind == MAT]]


def _site(command: Command, kinds: list[str], spots: Array, yaw_rad: float, target: int | None) -> Site:
    """The places (n, 2) of the things, as the task of a plain scene sees them; `target` is the number of its target."""
    area = _cell().objects.area
    others = [
        Neighbour(spots[number], stand_of(kind, plain=True).room_m)
        for number, kind in enumerate(kinds)
        if number not in (0, target) and kind != MAT
    ]
    return Site(
        thing=spots[0],
        yaw_rad=yaw_rad,
        target=None if target is None else spots[target],
        along=command.along if command.direction else None,
        others=others,
        area=(np.array(area.min), np.array(area.max)),
        far_m=math.inf,
        plain=True,
    )


@lru_cache(maxsize=1)
def _cell() -> CellConfig:
    return load_cell()
