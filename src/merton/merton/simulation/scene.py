"""What stands where: a function of the task and the seed alone, so that any process can work it out for itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from merton.cell import CellConfig, load_cell
from merton.errors import InputError, MertonError
from merton.seeding import generator
from merton.simulation.model import cell_file
from merton.tasks import COLORS, DIRECTIONS, SHAPES, TASKS, Command

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


@dataclass(frozen=True)
class Scene:
    """The scene of a task and a seed.

    Attributes:
        task: name of the task.
        seed: number of the scene.
        command: what the robot is told; its object and target are in the scene.
        placements: object name to (x, y [m], yaw [rad]) in `base_link`, target first; they stand on the table.
        mats: mat name to its centre (x, y) [m] in `base_link`; empty unless the task needs one.
    """

    task: str
    seed: int
    command: Command
    placements: Mapping[str, tuple[float, float, float]]
    mats: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def make_scene(task: str, seed: int) -> Scene:
    """The scene of (task, seed): a target and two distractors of other colours, and a mat of a fourth to place on.

    Everything can be grasped: objects are at least 0.14 m apart, a mat at least 0.16 m from any object, and the lane of
    a push is empty. Cubes are turned by at most 30 degrees.

    Raises:
        UnknownNameError: no such task.
        InputError: a seed that is not a number >= 0.
    """
    verb = TASKS[task].name
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError(f"the seed of a scene must be a whole number >= 0, got {seed!r}")
    rng = generator("scene", verb, int(seed))
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
    return Scene(verb, int(seed), Command(verb, names[0], direction, mat), placements, mats)


def _spots(rng: np.random.Generator, direction: str | None, *, with_mat: bool) -> NDArray[np.float64]:
    """Centres (n, 2) of the target, the distractors and, last, the mat: drawn until they fit."""
    area = _cell().objects.area
    for _ in range(_MAX_DRAWS):
        spots = rng.uniform(area.min, area.max, size=(_OBJECTS + with_mat, 2))
        if _apart(spots, with_mat) and (direction is None or _lane_is_free(spots, direction)):
            return spots
    raise MertonError(f"objects.area {area.min}..{area.max} of the cell is too small for {_OBJECTS} objects")


def _apart(spots: NDArray[np.float64], with_mat: bool) -> bool:
    distances = np.linalg.norm(spots[:, None] - spots, axis=2)
    needed = np.full(distances.shape, _OBJECT_SPACING_M)
    if with_mat:
        needed[-1, :] = needed[:, -1] = _MAT_SPACING_M
    np.fill_diagonal(needed, 0.0)
    return bool((distances >= needed).all())


def _lane_is_free(spots: NDArray[np.float64], direction: str) -> bool:
    along = np.array(DIRECTIONS[direction])
    offsets = spots[1:] - spots[0]
    ahead = offsets @ along
    beside = np.abs(offsets @ np.array([-along[1], along[0]]))
    blocked = (beside < _LANE_HALF_WIDTH_M) & (ahead > -_LANE_BEHIND_M) & (ahead < _LANE_AHEAD_M)
    return not blocked.any()


@lru_cache(maxsize=1)
def _cell() -> CellConfig:
    return load_cell(cell_file())
