"""The motion that the gate makes of a chunk, without a robot: how far it goes, and whether it leaves another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import MODEL_ERRORS
from merton.execution.gate.carrying import Carrying, Grip, Hand, Move
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.kinematics import base_from_tcp
from merton.execution.robots.gripper import Gripper
from merton.execution.score import angle_rad, path_deviation_m
from merton.world.action import ActionChunk
from merton.world.cell import CellConfig
from merton.world.geometry import Matrix

TOLERANCE_M = 0.02
"""A motion has left another one if it is farther from it than this [m]. Ours, and set before anything was compared:
just under half the edge of the cell's cubes, 4.5 cm, so that fingers which are off by more miss the middle of one."""

CARRIED_OUT, CUT_SHORT, REFUSED, STOPPED = "carried out", "cut short", "refused", "stopped"
VERDICTS = (CARRIED_OUT, CUT_SHORT, REFUSED, STOPPED)
"""Of the gate on a chunk: all of it; its beginning; nothing of it; its beginning, and then the stop would latch."""


@dataclass(frozen=True)
class Motion:
    """The motion that the gate lets through of a chunk.

    Attributes:
        path: (n, 3) positions of the tool [m] in `base_link`, the start first; one point if nothing moves.
        end: (4, 4) final pose of the tool.
        executed: deltas that would be carried out.
        deltas: of the chunk.
        verdict: one of `VERDICTS`.
        code: 0, or why not all of it: a `merton.errors.ErrorCode`.
        why: one sentence, empty if all of it.
        gripper_open: the last command to the gripper, 0 closed .. 1 open; its opening at the start if there was none.
    """

    path: NDArray[np.float64]
    end: Matrix
    executed: int
    deltas: int
    verdict: str
    code: int
    why: str
    gripper_open: float


@dataclass(frozen=True)
class Departure:
    """Distances and angle between a motion and another one of the same start.

    Attributes:
        end_m: between the two ends [m].
        path_m: the largest distance of a point of either path from the other path [m].
        angle_rad: between the two orientations at the end.
    """

    end_m: float
    path_m: float
    angle_rad: float

    @property
    def distance_m(self) -> float:
        """The larger of both lengths [m]: a path that goes back and forth may end elsewhere and deviate little."""
        return max(self.end_m, self.path_m)

    @property
    def has_left(self) -> bool:
        """Whether the distance is beyond `TOLERANCE_M`."""
        return self.distance_m > TOLERANCE_M


def departure(path: ArrayLike, end: Matrix, other_path: ArrayLike, other_end: Matrix) -> Departure:
    """Of a path (n, 3) [m] with its final pose (4, 4) from another one; planned or executed ones alike."""
    apart = float(np.linalg.norm(np.asarray(end)[:3, 3] - np.asarray(other_end)[:3, 3]))
    return Departure(apart, path_deviation_m(other_path, path), angle_rad(other_end, end))


class PaperRobot:
    """The gate of the cell with an arm that goes where it is sent, and fingers that meet what they met before.

    Args:
        cell: geometry of the cell, as the robot's gate has it.
    """

    def __init__(self, cell: CellConfig) -> None:
        self.cell, self.limits, self.gripper = cell, Limits(), Gripper.from_cell(cell)

    def motion(
        self, chunk: ActionChunk, joints_rad: ArrayLike, opening_m: float, least_opening_m: float = 0.0
    ) -> Motion:
        """The motion of a chunk.

        Args:
            joints_rad: (6,) the arm at the start.
            opening_m: between the pads at the start [m].
            least_opening_m: fingers do not close further than this, and hold a thing of that width then [m].
        """
        joints = np.array(joints_rad, dtype=np.float64)
        at = [base_from_tcp(joints, self.cell)]
        last = self.gripper.gripper_open(opening_m)
        opened = [opening_m]
        hand = Hand(self.gripper, lambda: opened[0], lambda: at[-1])
        carrying = Carrying(chunk, joints, hand, self.cell, self.limits)
        for step in carrying.steps(lambda: False):
            if isinstance(step, Grip) and step.segment.gripper is not None:
                last = step.segment.gripper
                wanted_m = self.gripper.opening_m(step.segment.gripper)
                opened[0] = max(wanted_m, min(least_opening_m, opened[0]))
            elif isinstance(step, Move):
                first = step.segment.first
                at += list(carrying.motion.base_from_tcp[first + 1 : first + 1 + step.segment.deltas])
        plan = carrying.motion
        path = np.array([pose[:3, 3] for pose in at])
        verdict = _verdict(plan.verdict, plan.executed)
        return Motion(path, at[-1], plan.executed, len(chunk.deltas), verdict, int(plan.verdict.code),
                      plan.verdict.message, last)  # fmt: skip

    def stillness(self, joints_rad: ArrayLike, opening_m: float, code: int, why: str, deltas: int = 0) -> Motion:
        """No motion at all, since the policy or the gate of images refused."""
        at = base_from_tcp(np.array(joints_rad, dtype=np.float64), self.cell)
        return Motion(at[None, :3, 3], at, 0, deltas, REFUSED, code, why, self.gripper.gripper_open(opening_m))


def _verdict(verdict: Verdict, executed: int) -> str:
    if verdict.ok:
        return CARRIED_OUT
    if verdict.stops:
        return STOPPED
    return REFUSED if verdict.code in MODEL_ERRORS or not executed else CUT_SHORT
