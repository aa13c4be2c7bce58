"""The present and the recent past of a simulated cell, for pictures that are older than the motion they lead to."""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merton.world.geometry import Array

if TYPE_CHECKING:
    from merton.simulation.cell import SimulatedCell


LONGEST_LATENCY_S = 10.0
"""Largest age of the seen instant of an experiment [s]."""


@dataclass(frozen=True)
class Instant:
    """All that cameras and joint sensors show of one instant.

    Attributes:
        time_ns: on the cell's clock [ns].
        qpos: MuJoCo's configuration vector, as of `SimulatedCell.qpos`.
        joints_rad: (6,) joint angles of the arm.
        joint_velocities: (6,) [rad/s].
        gripper_opening_m: distance between the finger pads.
    """

    time_ns: int
    qpos: Array
    joints_rad: Array
    joint_velocities: Array
    gripper_opening_m: float

    @classmethod
    def of(cls, cell: SimulatedCell) -> Instant:
        """The present one of a cell."""
        return cls(cell.time_ns, cell.qpos, cell.joints_rad, cell.joint_velocities, cell.gripper_opening_m)


class DelayLine:
    """The instants of one motion, as far back as the latency reaches.

    Args:
        latency_s: >= 0, how old the seen instant is at least.
        start: the beginning of the motion: no older instant is seen.
    """

    def __init__(self, latency_s: float, start: Instant) -> None:
        self._latency_ns = round(latency_s * 1e9)
        self._instants = deque([start])

    @property
    def seen(self) -> Instant:
        """The newest instant that is `latency_s` older than the last one, or else the start."""
        return self._instants[0]

    def at(self, time_ns: int) -> Instant:
        """The newest instant that is not later than `time_ns`, or else the oldest that is kept."""
        return next((instant for instant in reversed(self._instants) if instant.time_ns <= time_ns), self._instants[0])

    def add(self, instant: Instant) -> None:
        """Add the present instant, which is not earlier than any before."""
        self._instants.append(instant)
        while len(self._instants) > 1 and self._instants[1].time_ns <= instant.time_ns - self._latency_ns:
            self._instants.popleft()

    def fork(self) -> DelayLine:
        """A line that goes on from here by itself."""
        forked = copy(self)
        forked._instants = self._instants.copy()
        return forked
