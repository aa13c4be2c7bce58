"""Success and progress of a task of `merton.world.tasks`, from the poses of things and their contacts with the robot.

The geometry of a verb is written once, as a `_Rest`: the way that remains to success, and whether all further
conditions hold. Success is a rest of nothing; progress compares the rest now with the rest at the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from merton.simulation.model import PAD_LINKS
from merton.simulation.shapes import half_width_m
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

UNMET_SHARE = 0.9
"""Ours: a condition that is no length (upright, held, released) and does not hold costs a tenth of the progress."""

_BELOW_1 = math.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class Situation:
    """The inputs of a judgement; poses (4, 4) are in `base_link`.

    Attributes:
        start: name to pose of every thing of the scene at the start of the trial.
        now: the same now, and the mats.
        beads: centres (n, 3) of the beads [m]; none unless the task has any.
        start_tcp: position (3,) of the tool centre point [m] at the start of the trial.
        tcp: the same now.
        touching: the names of the robot's links that touch a thing.
        scales: name to how many times larger than usual a thing is, of those that are.
    """

    start: Mapping[str, Matrix]
    now: Mapping[str, Matrix]
    beads: Array
    start_tcp: Array
    tcp: Array
    touching: Callable[[str], Set[str]]
    scales: Mapping[str, float] = field(default_factory=dict)

    @property
    def at_start(self) -> Situation:
        """The start of the trial, when nothing touched anything and no bead was poured."""
        now = {**self.now, **self.start}
        return replace(self, now=now, beads=self.beads[:0], tcp=self.start_tcp, touching=lambda name: frozenset())


class Judged(NamedTuple):
    """The judgement of a situation.

    Attributes:
        success: the command has been carried out.
        progress: the share of the way from the start of the trial to success, 0..1; 1 exactly if `success`.
    """

    success: bool
    progress: float


class _Rest(NamedTuple):
    """The difference between a situation and success.

    Attributes:
        way: the sum of all lengths that are still to go [m; rad for a turn; beads], 0 if none is.
        met: every condition holds that is no length.
    """

    way: float
    met: bool = True


def judged(command: Command, situation: Situation, cell: CellConfig) -> Judged:
    """Success by the conditions in `merton.world.tasks.TASKS`, and progress towards them.

    With r the way that remains, progress is 1 - r(now) / r(start), at least 0, and `UNMET_SHARE` of that if a
    condition is not met that is no length. Ours: the paper has no such score.
    """
    rest_of = _RESTS[command.verb]
    rest = rest_of(command, situation, cell)
    if rest.way == 0 and rest.met:
        return Judged(True, 1.0)
    whole = rest_of(command, situation.at_start, cell).way
    gone = max(0.0, 1 - rest.way / whole) if whole > 0 else 0.0
    return Judged(False, float(min(gone * (1.0 if rest.met else UNMET_SHARE), _BELOW_1)))


def _reach(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    goal = situation.start[command.object][:3, 3] + (0.0, 0.0, REACH_ABOVE_M)
    return _Rest(_above(np.linalg.norm(situation.tcp - goal), REACH_TOLERANCE_M))


def _push(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    moved = _moved(command, situation)[:2] @ np.array(DIRECTIONS[str(command.direction)])
    return _Rest(_below(float(moved), PUSH_M), _stands(command.object, situation))


def _pick(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    held = situation.touching(command.object) >= set(PAD_LINKS)
    return _Rest(_below(_moved(command, situation)[2], PICK_M), held)


def _place(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    position = situation.now[command.object][:3, 3]
    aside = np.linalg.norm((position - situation.now[str(command.target)][:3, 3])[:2])
    clear = np.linalg.norm(situation.tcp - position) > RELEASED_M and not situation.touching(command.object)
    return _Rest(_above(aside, cell.objects.mat_radius) + _off_table(command.object, situation), bool(clear))


def _press(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    return _Rest(_below(-_moved(command, situation)[2], PRESS_SHARE * cell.objects.props.button.travel))


def _pull(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    opens = -situation.start[command.object][:3, 0]
    return _Rest(_below(float(_moved(command, situation) @ opens), PULL_M))


def _twist(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    turn = situation.start[command.object][:3, :3].T @ situation.now[command.object][:3, :3]
    left = math.atan2(turn[1, 0], turn[0, 0])
    return _Rest(_below(left if command.direction == "left" else -left, TWIST_RAD))


def _move(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    target = str(command.target)
    offset = (situation.now[command.object] - situation.now[target])[:2, 3]
    beyond = offset @ np.array(DIRECTIONS[str(command.direction)])
    disturbed = np.linalg.norm(situation.now[target][:3, 3] - situation.start[target][:3, 3])
    way = (
        _below(beyond, MOVE_MIN_M)
        + _above(beyond, MOVE_MAX_M)
        + _above(abs(offset[0]), MOVE_ASIDE_M)
        + _above(disturbed, UNDISTURBED_M)
        + _off_table(command.object, situation)
    )
    return _Rest(way, _upright(command.object, situation) and not situation.touching(command.object))


def _cover(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    lid = str(command.target)
    offset = (inverse(situation.now[lid]) @ situation.now[command.object])[:2, 3]
    half = half_width_m(command.object.split()[-1], situation.scales.get(command.object, 1.0), cell)
    play = cell.objects.props.lid.inner_width / 2 - half + 0.001
    way = sum(_above(abs(part), play) for part in offset) + _off_table(lid, situation)
    met = _upright(lid, situation) and _stands(command.object, situation) and not situation.touching(lid)
    return _Rest(way, met)


def _insert(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    peg, socket = cell.objects.props.peg, cell.objects.props.socket
    offset = (inverse(situation.now[str(command.target)]) @ situation.now[command.object])[:3, 3]
    play = (socket.hole_width - peg.diameter) / 2 + 0.001
    above = _above(offset[2] - peg.height / 2, (1 - INSERT_SHARE) * socket.height)
    way = sum(_above(abs(part), play) for part in offset[:2]) + above
    return _Rest(way, _upright(command.object, situation) and not situation.touching(command.object))


def _pour(command: Command, situation: Situation, cell: CellConfig) -> _Rest:
    props = cell.objects.props
    within = [
        (np.hypot(spots[:, 0], spots[:, 1]) <= vessel.inner_width / 2 + vessel.wall)
        & (spots[:, 2] >= 0)
        & (spots[:, 2] <= vessel.height)
        for vessel, name in ((props.bowl, str(command.target)), (props.cup, command.object))
        for spots in [(np.c_[situation.beads, np.ones(len(situation.beads))] @ inverse(situation.now[name]).T)[:, :3]]
    ]
    return _Rest(_below(int(np.count_nonzero(within[0] & ~within[1])), POUR_SHARE * props.beads.number))


_RESTS: dict[str, Callable[[Command, Situation, CellConfig], _Rest]] = {
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


def _above(value: float | np.floating, most: float) -> float:
    """By how much a value is too large; 0 exactly if it is not."""
    return max(0.0, float(value) - most)


def _below(value: float | np.floating, least: float) -> float:
    """By how much a value is too small; 0 exactly if it is not."""
    return max(0.0, least - float(value))


def _moved(command: Command, situation: Situation) -> Array:
    """How far (3,) the command's object is from where it was [m]."""
    return np.asarray(situation.now[command.object][:3, 3] - situation.start[command.object][:3, 3])


def _off_table(name: str, situation: Situation) -> float:
    """How much higher or lower a thing is than at the start, when all stand on the table [m], beyond a tolerance."""
    lift = situation.now[name][2, 3] - situation.start[name][2, 3]
    return _above(abs(lift), RESTING_TOLERANCE_M)


def _upright(name: str, situation: Situation) -> bool:
    return bool(situation.now[name][2, 2] > UPRIGHT_COSINE)


def _stands(name: str, situation: Situation) -> bool:
    """Upright on the table."""
    return _off_table(name, situation) == 0 and _upright(name, situation)
