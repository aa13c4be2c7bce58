"""Whether an arm that somebody else drives does what it was told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from merton.execution.trajectory import JointSpline

START_TOLERANCE_RAD, END_TOLERANCE_RAD = 0.02, 0.02
"""A trajectory begins where the arm is, and ends where it was told to; as `RtdeRobot` has it."""
LATE_S = 1.0
"""By which a motion may end later than planned [s]. Ours: a controller's lag, and the way of its messages."""


class Following:
    """One motion at a time, watched from outside: by where the joints are."""

    def __init__(self) -> None:
        self._goal: NDArray[np.float64] | None = None
        self._spline: JointSpline | None = None
        self._begun_s = self._late_s = 0.0

    @property
    def moving(self) -> bool:
        """Whether a motion is under way."""
        return self._goal is not None

    def begin(self, spline: JointSpline, joints_rad: NDArray[np.float64], now_s: float) -> str:
        """A motion is to begin; returns why it must not, or an empty text.

        Args:
            spline: what the arm is told.
            joints_rad: (6,) where it is.
            now_s: on a monotonic clock [s].
        """
        away_rad = float(np.abs(spline.joints_rad[0] - joints_rad).max())
        if spline.times_s[0] == 0 and away_rad > START_TOLERANCE_RAD:
            return f"it begins {away_rad:.3f} rad from where the arm is"
        self._goal, self._late_s = spline.joints_rad[-1], now_s + spline.duration_s + LATE_S
        self._spline, self._begun_s = spline, now_s
        return ""

    def expected(self, now_s: float) -> NDArray[np.float64] | None:
        """Joints (6,) [rad] on the path of the motion under way at this moment; None if nothing moves."""
        return None if self._goal is None or self._spline is None else self._spline.at(now_s - self._begun_s)[0]

    def end(self) -> None:
        """The motion was halted on purpose."""
        self._goal = None

    def look(self, joints_rad: NDArray[np.float64], now_s: float) -> str:
        """Where the arm is now; returns what is wrong with the motion under way, or an empty text."""
        if self._goal is None:
            return ""
        away_rad = float(np.abs(self._goal - joints_rad).max())
        if away_rad < END_TOLERANCE_RAD:
            if now_s >= self._late_s - LATE_S:
                self._goal = None
        elif now_s > self._late_s:
            self._goal = None
            return f"it ended {away_rad:.3f} rad from its goal"
        return ""
