"""Whether the arm is at rest: one rule and one threshold for every program that waits for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from merton.world.geometry import Array

STILL_RAD = 5e-4
"""Largest movement of a joint while the arm counts as standing still [rad]. Ours: above a UR5's encoder noise."""


def is_still(before_rad: ArrayLike, after_rad: ArrayLike) -> bool:
    """Whether no joint differs by more than `STILL_RAD` between two measurements (6,) [rad]; False if one is NaN."""
    return bool(np.abs(np.asarray(after_rad) - np.asarray(before_rad)).max() <= STILL_RAD)


class Stillness:
    """The time for which the arm has stood still, from its measured joints. Not thread safe.

    Attributes:
        joints_rad: (6,) the joints when the measurement began; every later one is compared with them.
        duration_s: how long it has stood there, by the stamps of the measurements [s].
        clock_duration_s: the same by the clock of `update`'s `now_s` [s].
    """

    def __init__(self) -> None:
        self.joints_rad = np.full(6, np.nan)
        self._latest: tuple[Array, int, float] = (self.joints_rad, 0, 0.0)
        self._since_ns, self._since_s = 0, 0.0

    @property
    def duration_s(self) -> float:
        return (self._latest[1] - self._since_ns) / 1e9

    @property
    def clock_duration_s(self) -> float:
        return self._latest[2] - self._since_s

    def update(self, joints_rad: Array, stamp_ns: int, now_s: float = 0.0) -> None:
        """Joints (6,) [rad] were measured at `stamp_ns`; a movement beyond `STILL_RAD` restarts the measurement."""
        self._latest = (joints_rad, stamp_ns, now_s)
        if not is_still(self.joints_rad, joints_rad):
            self.restart()

    def restart(self) -> None:
        """Count from the newest joints on."""
        self.joints_rad, self._since_ns, self._since_s = self._latest
