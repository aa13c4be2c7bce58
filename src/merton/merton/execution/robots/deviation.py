"""The check that an arm which another program drives follows its trajectory."""

from __future__ import annotations

import numpy as np

from merton.execution.trajectory import JointSpline
from merton.world.geometry import Array

START_TOLERANCE_RAD, END_TOLERANCE_RAD = 0.02, 0.02
"""How far the arm may be from a trajectory's start and from its end; as in `rtde_driver`."""
LATE_S = 1.0
"""How much later than planned a motion may end [s]. Ours: a controller's lag, and the delay of its messages."""


class DeviationMonitor:
    """One motion at a time, compared with the measured joints."""

    def __init__(self) -> None:
        self._spline: JointSpline | None = None
        self._begin_s = 0.0

    @property
    def moving(self) -> bool:
        """Whether a motion is under way."""
        return self._spline is not None

    def begin(self, spline: JointSpline, joints_rad: Array, now_s: float) -> str:
        """Begin a motion; returns the reason against it, or an empty text.

        `joints_rad` (6,) are measured; `now_s` is of a monotonic clock.
        """
        away_rad = float(np.abs(spline.joints_rad[0] - joints_rad).max())
        if spline.times_s[0] == 0 and away_rad > START_TOLERANCE_RAD:
            return f"it begins {away_rad:.3f} rad from where the arm is"
        self._spline, self._begin_s = spline, now_s
        return ""

    def expected(self, now_s: float) -> Array | None:
        """Joints (6,) [rad] on the path of the motion under way at this moment; None if nothing moves."""
        return None if self._spline is None else self._spline.at(now_s - self._begin_s)[0]

    def end(self) -> None:
        """The motion was halted on purpose."""
        self._spline = None

    def deviation(self, joints_rad: Array, now_s: float) -> str:
        """The fault of the motion under way, from the joints (6,) measured now; empty for none.

        A motion that has ended, at its goal or elsewhere, is no longer under way.
        """
        if self._spline is None:
            return ""
        end_s = self._begin_s + self._spline.duration_s
        away_rad = float(np.abs(self._spline.joints_rad[-1] - joints_rad).max())
        if away_rad < END_TOLERANCE_RAD:
            if now_s >= end_s:
                self._spline = None
        elif now_s > end_s + LATE_S:
            self._spline = None
            return f"it ended {away_rad:.3f} rad from its goal"
        return ""
