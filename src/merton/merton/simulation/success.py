"""The success of a task of `merton.world.tasks`, from the poses of things and their contacts with the robot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

import numpy as np

from merton.simulation.model import PAD_LINKS, rest_height_m
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix, inverse
from merton.world.tasks import DIRECTIONS, Command

REACH_ABOVE_M, REACH_TOLERANCE_M = 0.10, 0.03
PUSH_M = 0.06
PICK_M = 0.08
RELEASED_M = 0.04
PRESS_SHARE = 0.8
PULL_M = 0.06
TWIST_RAD = math.radians(45)
MOVE_MIN_M, MOVE_MAX_M, MOVE_ASIDE_M = 0.05, 0.13, 0.03
UNDISTURBED_M = 0.02
INSERT_SHARE = 0.75
POUR_SHARE = 0.75
RESTING_TOLERANCE_M = 0.008
UPRIGHT_COSINE = math.cos(math.radians(10))


@dataclass(frozen=True)
class Situation:
    """The inputs of success; poses (4, 4) are in `base_link`.

    Attributes:
        start: name to pose of every thing of the scene at the start of the trial.
        now: the same now, and the mats.
        beads: centres (n, 3) of the beads [m]; none unless the task has any.
        tcp: position (3,) of the tool centre point [m].
        touching: the names of the robot's links that touch a thing.
    """

    start: Mapping[str, Matrix]
    now: Mapping[str, Matrix]
    beads: Array
    tcp: Array
    touching: Callable[[str], Set[str]]


def succeeded(command: Command, situation: Situation, cell: CellConfig) -> bool:
    """Whether the command has been carried out, by the conditions in `merton.world.tasks.TASKS`."""
    return bool(_JUDGES[command.verb](command, situation, cell))


def _reach(command: Command, situation: Situation, cell: CellConfig) -> bool:
    goal = situation.start[command.object][:3, 3] + (0.0, 0.0, REACH_ABOVE_M)
    return bool(np.linalg.norm(situation.tcp - goal) <= REACH_TOLERANCE_M)


def _push(command: Command, situation: Situation, cell: CellConfig) -> bool:
    moved = _moved(command, situation)[:2] @ np.array(DIRECTIONS[str(command.direction)])
    return bool(moved >= PUSH_M and _stands(command.object, situation, cell))


def _pick(command: Command, situation: Situation, cell: CellConfig) -> bool:
    held = situation.touching(command.object) >= set(PAD_LINKS)
    return bool(_moved(command, situation)[2] >= PICK_M and held)


def _place(command: Command, situation: Situation, cell: CellConfig) -> bool:
    position = situation.now[command.object][:3, 3]
    aside = np.linalg.norm((position - situation.now[str(command.target)][:3, 3])[:2])
    clear = np.linalg.norm(situation.tcp - position) > RELEASED_M and not situation.touching(command.object)
    return bool(aside <= cell.objects.mat_radius and _rests(command.object, situation, cell) and clear)


def _press(command: Command, situation: Situation, cell: CellConfig) -> bool:
    return bool(-_moved(command, situation)[2] >= PRESS_SHARE * cell.objects.props.button.travel)


def _pull(command: Command, situation: Situation, cell: CellConfig) -> bool:
    opens = -situation.start[command.object][:3, 0]
    return bool(_moved(command, situation) @ opens >= PULL_M)


def _twist(command: Command, situation: Situation, cell: CellConfig) -> bool:
    turn = situation.start[command.object][:3, :3].T @ situation.now[command.object][:3, :3]
    left = math.atan2(turn[1, 0], turn[0, 0])
    return (left if command.direction == "left" else -left) >= TWIST_RAD


def _move(command: Command, situation: Situation, cell: CellConfig) -> bool:
    target = str(command.target)
    offset = (situation.now[command.object] - situation.now[target])[:2, 3]
    beyond = offset @ np.array(DIRECTIONS[str(command.direction)])
    disturbed = np.linalg.norm(situation.now[target][:3, 3] - situation.start[target][:3, 3])
    return bool(
        MOVE_MIN_M <= beyond <= MOVE_MAX_M
        and abs(offset[0]) <= MOVE_ASIDE_M
        and disturbed <= UNDISTURBED_M
        and _stands(command.object, situation, cell)
        and not situation.touching(command.object)
    )


def _cover(command: Command, situation: Situation, cell: CellConfig) -> bool:
    lid = str(command.target)
    offset = (inverse(situation.now[lid]) @ situation.now[command.object])[:2, 3]
    sizes = cell.objects
    half = (sizes.cube_edge if command.object.endswith("cube") else sizes.cylinder_diameter) / 2
    return bool(
        (np.abs(offset) <= sizes.props.lid.inner_width / 2 - half + 0.001).all()
        and _stands(lid, situation, cell)
        and _stands(command.object, situation, cell)
        and not situation.touching(lid)
    )


def _insert(command: Command, situation: Situation, cell: CellConfig) -> bool:
    peg, socket = cell.objects.props.peg, cell.objects.props.socket
    offset = (inverse(situation.now[str(command.target)]) @ situation.now[command.object])[:3, 3]
    inside = (np.abs(offset[:2]) <= (socket.hole_width - peg.diameter) / 2 + 0.001).all()
    deep = offset[2] - peg.height / 2 <= (1 - INSERT_SHARE) * socket.height
    upright = situation.now[command.object][2, 2] > UPRIGHT_COSINE
    return bool(inside and deep and upright and not situation.touching(command.object))


def _pour(command: Command, situation: Situation, cell: CellConfig) -> bool:
    props = cell.objects.props
    within = [
        (np.hypot(spots[:, 0], spots[:, 1]) <= vessel.inner_width / 2 + vessel.wall)
        & (spots[:, 2] >= 0)
        & (spots[:, 2] <= vessel.height)
        for vessel, name in ((props.bowl, str(command.target)), (props.cup, command.object))
        for spots in [(np.c_[situation.beads, np.ones(len(situation.beads))] @ inverse(situation.now[name]).T)[:, :3]]
    ]
    return bool(np.count_nonzero(within[0] & ~within[1]) >= POUR_SHARE * props.beads.number)


_JUDGES: dict[str, Callable[[Command, Situation, CellConfig], bool]] = {
    "reach": _reach,
    "push": _push,
    "pick": _pick,
    "place": _place,
    "press": _press,
    "pull": _pull,
    "twist": _twist,
    "move": _move,
    "cover": _cover,
    "insert": _insert,
    "pour": _pour,
}


def _moved(command: Command, situation: Situation) -> Array:
    """How far (3,) the command's object is from where it was [m]."""
    return np.asarray(situation.now[command.object][:3, 3] - situation.start[command.object][:3, 3])


def _rests(name: str, situation: Situation, cell: CellConfig) -> bool:
    return bool(abs(situation.now[name][2, 3] - rest_height_m(name, cell)) < RESTING_TOLERANCE_M)


def _stands(name: str, situation: Situation, cell: CellConfig) -> bool:
    """Upright on the table."""
    return _rests(name, situation, cell) and bool(situation.now[name][2, 2] > UPRIGHT_COSINE)
