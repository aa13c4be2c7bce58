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
from merton.simulation.varied import Layout, make_layout, verbs_of
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Array
from merton.world.tasks import COLORS, DIRECTIONS, PLAIN, SHAPES, TASKS, Command, scene_of, split_and_verb

_OBJECTS = 3
_MAX_CUBE_YAW_RAD = math.radians(30)
# Ours: the open fingers reach 0.095 m to either side of what they grasp, an object's corner 0.032 m.
_OBJECT_SPACING_M = 0.14
_MAT_SPACING_M = 0.16
# The lane of a push, relative to the object: behind it the closed gripper comes down, ahead of it the object slides.
_LANE_HALF_WIDTH_M = 0.09
_LANE_BEHIND_M = 0.15
_LANE_AHEAD_M = 0.24
_MAX_DRAWS = 10_000

_CASTS = {
    "move": ("", "", ""),
    "press": ("button", "", ""),
    "pull": ("drawer", "", ""),
    "twist": ("knob", "", ""),
    "cover": ("", "lid", ""),
    "insert": ("peg", "socket", ""),
    "pour": ("cup", "bowl", ""),
}
"""Shapes in the scene of a task: its object, then its target if it has one, then distractors; "" is any shape."""
_ROOM_M = {"": 0.07, "lid": 0.095, "socket": 0.095, "cup": 0.09, "bowl": 0.12, "drawer": 0.11, "knob": 0.085}
"""Half the distance between two of a kind; kinds that are not listed have that of an object, ""."""
_DIRECTED = ("move", "twist")
MOVE_M = 0.09
"""How far beside the target of a move the scene has room for the object."""
# The drawer opens towards the robot, and the hand goes with it.
_DRAWER_MIN_X_M, _DRAWER_AHEAD_M = 0.50, 0.22
# Ours: tilting a cup above a bowl that is nearer would fold the arm into itself.
_BOWL_MIN_X_M, _BOWL_MAX_X_M = 0.50, 0.62


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
        """How much of the picture the instruction needs, 1 to 5 (`merton.simulation.varied`); 1 in a plain scene."""
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
    can be grasped: objects are at least 0.14 m apart, a mat at least 0.16 m from any object, props as in `_ROOM_M`, and
    the lane of a push is empty. Cubes and props are turned by at most 30 degrees.

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
    """Whether the scene of this seed has the task: every plain one; of a split, those whose tasks it is one of."""
    split, verb = split_and_verb(task)
    return split == PLAIN or verb in verbs_of(seed)


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
    rng = generator("scene", verb, seed)
    if verb in _CASTS:
        return _cast(rng, verb, seed)
    colors = [COLORS[index] for index in rng.permutation(len(COLORS))]
    names = [f"{color} {SHAPES[rng.integers(len(SHAPES))]}" for color in colors[:_OBJECTS]]
    yaws = [rng.uniform(-_MAX_CUBE_YAW_RAD, _MAX_CUBE_YAW_RAD) if name.endswith("cube") else 0.0 for name in names]
    direction = str(rng.choice(list(DIRECTIONS))) if verb == "push" else None
    mat = f"{colors[_OBJECTS]} mat" if verb == "place" else None

    spots = _spots(rng, direction, with_mat=mat is not None)
    placements = {
        name: (float(x), float(y), float(yaw)) for name, (x, y), yaw in zip(names, spots[:_OBJECTS], yaws, strict=True)
    }
    mats = {mat: (float(spots[-1][0]), float(spots[-1][1]))} if mat else {}
    return Scene(verb, seed, Command(verb, names[0], direction, mat), placements, mats)


def _cast(rng: np.random.Generator, verb: str, seed: int) -> Scene:
    """The scene of a task that needs more than objects and mats."""
    kinds = _CASTS[verb]
    colors = [COLORS[index] for index in rng.permutation(len(COLORS))]
    shapes = [kind or str(rng.choice(SHAPES)) for kind in kinds]
    names = [f"{color} {shape}" for color, shape in zip(colors, shapes, strict=False)]
    round_ones = ("cylinder", "peg", "button")
    yaws = [
        0.0 if shape in round_ones else float(rng.uniform(-_MAX_CUBE_YAW_RAD, _MAX_CUBE_YAW_RAD)) for shape in shapes
    ]
    direction = str(rng.choice(list(DIRECTIONS))) if verb in _DIRECTED else None
    target = names[1] if TASKS[verb].targets else None

    area = _cell().objects.area
    room = np.array([_ROOM_M.get(kind, _ROOM_M[""]) for kind in kinds])
    for _ in range(_MAX_DRAWS):
        spots = rng.uniform(area.min, area.max, size=(len(kinds), 2))
        distances = np.linalg.norm(spots[:, None] - spots, axis=2)
        if (distances + np.diag(2 * room) >= room[:, None] + room).all() and _fits(verb, spots, yaws, direction):
            placements = {name: (float(x), float(y), yaw) for name, (x, y), yaw in zip(names, spots, yaws, strict=True)}
            return Scene(verb, seed, Command(verb, names[0], direction, target), placements)
    raise MertonError(f"objects.area {area.min}..{area.max} of the cell is too small for the task {verb!r}")


def _fits(verb: str, spots: Array, yaws: list[float], direction: str | None) -> bool:
    """Whether a task can be done with its things at these places (n, 2)."""
    if verb == "move":
        area, goal = _cell().objects.area, spots[1] + MOVE_M * np.array(DIRECTIONS[str(direction)])
        others = np.linalg.norm(spots[[0, 2]] - goal, axis=1)
        return bool((goal >= area.min).all() and (goal <= area.max).all() and (others >= _OBJECT_SPACING_M).all())
    if verb == "pour":
        return bool(_BOWL_MIN_X_M <= spots[1, 0] <= _BOWL_MAX_X_M)
    if verb == "pull":
        opening = -np.array([math.cos(yaws[0]), math.sin(yaws[0])])
        offsets = spots[1:] - spots[0]
        ahead, beside = offsets @ opening, np.abs(offsets @ np.array([-opening[1], opening[0]]))
        blocked = (ahead > 0) & (ahead < _DRAWER_AHEAD_M + _OBJECT_SPACING_M / 2) & (beside < _OBJECT_SPACING_M)
        return bool(spots[0, 0] >= _DRAWER_MIN_X_M and not blocked.any())
    return True


def _spots(rng: np.random.Generator, direction: str | None, *, with_mat: bool) -> Array:
    """Centres (n, 2) of the target, the distractors and, last, the mat: drawn until they fit."""
    area = _cell().objects.area
    for _ in range(_MAX_DRAWS):
        spots = rng.uniform(area.min, area.max, size=(_OBJECTS + with_mat, 2))
        if _apart(spots, with_mat) and (direction is None or _lane_is_free(spots, direction)):
            return spots
    raise MertonError(f"objects.area {area.min}..{area.max} of the cell is too small for {_OBJECTS} objects")


def _apart(spots: Array, with_mat: bool) -> bool:
    distances = np.linalg.norm(spots[:, None] - spots, axis=2)
    needed = np.full(distances.shape, _OBJECT_SPACING_M)
    if with_mat:
        needed[-1, :] = needed[:, -1] = _MAT_SPACING_M
    np.fill_diagonal(needed, 0.0)
    return bool((distances >= needed).all())


def _lane_is_free(spots: Array, direction: str) -> bool:
    along = np.array(DIRECTIONS[direction])
    offsets = spots[1:] - spots[0]
    ahead = offsets @ along
    beside = np.abs(offsets @ np.array([-along[1], along[0]]))
    blocked = (beside < _LANE_HALF_WIDTH_M) & (ahead > -_LANE_BEHIND_M) & (ahead < _LANE_AHEAD_M)
    return not blocked.any()


@lru_cache(maxsize=1)
def _cell() -> CellConfig:
    return load_cell()
