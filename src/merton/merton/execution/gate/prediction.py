"""Collisions predicted along the spline the arm will follow, also of the object it holds."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from merton.errors import ErrorCode
from merton.execution.gate.collision import Clearance, Guard, HeldObject
from merton.execution.gate.peaks import Peaks, positions
from merton.execution.gate.safety import Verdict
from merton.execution.robots.gripper import HELD_CLEARANCE_M
from merton.world.cell import CellConfig
from merton.world.geometry import Array

TOOL_SPACING_M = 0.01
JOINT_SPACING_RAD = 0.02
"""Collisions are checked at least this densely: the joint spacing moves no point of the arm further than about 2 cm."""

NEAR_M = 0.02
FINER = 4
"""Closer than `NEAR_M` to an obstacle, checks are `FINER` times as dense: every 5 mm, so that between two checks the
arm approaches by half the stopping margin at most."""

NOWHERE = Clearance(inf, "", "")

CREEP = 0.1
"""Largest further approach of an arm that stands at the stopping margin, as a fraction of the margin. Servos miss their
target slightly, and a straight way up begins with a dip."""
CREEP_AT_END = 0.02
"""The same for the end of a motion of an arm that is too close already, after a contact."""


class Predictor:
    """Predicts collisions of a motion that begins where the arm stands.

    Args:
        start: (6,) joint angles there [rad].
        gripper: (k,) 0 closed .. 1 open: now, NaN if unknown, and on the way to each waypoint.
        stopping_margin_m: distance to keep from table, walls and itself [m]; see `margins_m` for an arm that is closer.
        held: the object in the gripper, until it opens wider than that.
    """

    def __init__(
        self, start: Array, gripper: Array, cell: CellConfig, stopping_margin_m: float, held: HeldObject | None
    ) -> None:
        self._stroke_m, self._held = cell.gripper.stroke, held
        self._guard = Guard(cell, held)
        here = self._clearances(start[None], self._openings(gripper[:1]), np.array([True]))[0]
        self.clearance_m = here[0].distance_m
        """Distance of the arm to table and walls at the start [m]."""
        self._margins_m = tuple(margins_m(stopping_margin_m, one.distance_m) for one in here)

    def first_hit(
        self, joints: Array, gripper: Array, speeds: Array, step_s: float, peak: Peaks
    ) -> tuple[Verdict | None, float]:
        """The first predicted collision along the spline, or None, and the least clearance to table and walls [m].

        The verdict's message is the end of a sentence on the delta it names.

        Args:
            joints, speeds: (k, 6) the spline's waypoints [rad], [rad/s].
            gripper: (k,) as above.
            step_s: time between waypoints [s].
            peak: the peaks of that spline, which bound how far it gets between two samples.
        """
        reach = np.maximum(peak.joint_speed / JOINT_SPACING_RAD, peak.tcp_speed / TOOL_SPACING_M) * step_s
        counts = np.ceil(reach).astype(int) + 1
        at = np.concatenate([index + np.arange(1, count + 1) / count for index, count in enumerate(counts)])
        found = self._along(joints, gripper, speeds, step_s, at)
        near = np.array([min(one.distance_m for one in clearances) < NEAR_M for clearances in found])
        near |= np.concatenate([[True], near[:-1]])
        begin = np.concatenate([[0.0], at[:-1]])
        parts = np.arange(1, FINER) / FINER
        between = (begin[near, None] + parts * (at - begin)[near, None]).ravel()
        found += self._along(joints, gripper, speeds, step_s, between)
        at = np.concatenate([at, between])
        least = inf
        for sample in np.argsort(at).tolist():
            least = min(least, found[sample][0].distance_m)
            at_end = int(at[sample] == len(joints) - 1)
            for code, clearance, margins in zip(
                (ErrorCode.COLLISION, ErrorCode.SELF_COLLISION, ErrorCode.COLLISION),
                found[sample],
                self._margins_m,
                strict=True,
            ):
                if clearance.distance_m < margins[at_end]:
                    one, other, distance = clearance.link_a, clearance.link_b, clearance.distance_m
                    message = f"would bring {one} {_how_near(distance, other)}"
                    return Verdict(code, message, ceil(at[sample]) - 1, one, other, distance), distance
        return None, least

    def _along(
        self, joints: Array, gripper: Array, speeds: Array, step_s: float, at: Array
    ) -> list[tuple[Clearance, Clearance, Clearance]]:
        """Clearances as of `_clearances` at the points (n,) of the spline.

        A point is a piece's number plus the phase in it, more than 0 and up to 1.
        """
        piece = np.ceil(at).astype(int) - 1
        samples = positions(joints, speeds, step_s, piece, at - piece)
        return self._clearances(samples, self._openings(gripper)[piece + 1], piece < self._pieces_held(gripper))

    def _clearances(
        self, joints: Array, openings_m: Array, held: NDArray[np.bool_]
    ) -> list[tuple[Clearance, Clearance, Clearance]]:
        """Of each configuration: arm to table and walls, arm to itself, and held object to table and walls."""
        carried = [NOWHERE] * len(joints)
        for row, clearance in zip(np.flatnonzero(held), self._guard.held_clearances(joints[held]), strict=True):
            carried[row] = clearance
        around = self._guard.clearances(joints, openings_m)
        return list(zip(around, self._guard.self_clearances(joints, openings_m), carried, strict=True))

    def _openings(self, gripper: Array) -> Array:
        """Opening of the fingers [m] on the way to each waypoint; fully open where unknown, which takes most room."""
        sent = np.nan_to_num(gripper, nan=1.0) * self._stroke_m
        return sent if self._held is None else np.maximum(sent, self._held.width_m)

    def _pieces_held(self, gripper: Array) -> int:
        """Number of pieces of the motion before the held object is released; 0 without a held object."""
        if self._held is None:
            return 0
        released = self._openings(gripper[1:]) > self._held.width_m + HELD_CLEARANCE_M
        return int(released.argmax()) if released.any() else len(released)


def _how_near(distance_m: float, other: str) -> str:
    """Such as "within 3.1 mm of table"; below 0 they overlap by so much."""
    millimetres = f"{abs(distance_m) * 1000:.1f} mm"
    return f"within {millimetres} of {other}" if distance_m >= 0.0 else f"{millimetres} into {other}"


def margins_m(stopping_margin_m: float, distance_m: float) -> tuple[float, float]:
    """Distances that an arm at `distance_m` has to keep [m]: on its way, and where it comes to rest.

    An arm at the margin may approach by a tenth of it, once: the next chunk may not go on from there, else a model
    could spend the margin in many small deltas. An arm that is closer still may move away, but not into an obstacle
    that it touches.
    """
    creep = CREEP * stopping_margin_m
    if distance_m >= stopping_margin_m - creep:
        margin = min(stopping_margin_m, max(distance_m - creep, stopping_margin_m - creep))
        return margin, margin
    deepest = min(0.0, distance_m)
    return max(distance_m - creep, deepest), max(distance_m - CREEP_AT_END * stopping_margin_m, deepest)
