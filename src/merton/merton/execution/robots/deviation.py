"""The check that an arm which another program drives follows its trajectory, at the speed its pendant allows."""

from __future__ import annotations

import numpy as np

from merton.execution.trajectory import JointSpline
from merton.world.geometry import Array

START_TOLERANCE_RAD, END_TOLERANCE_RAD = 0.02, 0.02
"""Largest distance of a joint from a trajectory's start, as in `rtde_driver`, and from its end [rad]."""
PATH_TOLERANCE_RAD = 0.1
"""Largest distance of a joint from the nearest point of the path that it may have reached [rad]. Ours: half of what
UR's controllers tolerate, and more than a real arm cuts its corners."""
LATE_S, EARLY_S = 1.0, 0.1
"""Largest delay and lead of the arm against the plan, by the controller's clock [s]. Ours: a controller's lag, and
the delay of its messages."""
SLOWEST_SCALING = 0.05
"""The least speed scaling with which a motion is carried out; below it the robot counts as paused. Ours."""
PAUSE_S = 1.0
"""Longest pause of the robot during a motion [s]. Ours: shorter than the standstill that ends a motion early."""
_SAMPLES = 64


class DeviationMonitor:
    """One motion at a time, compared with the measured joints.

    Args:
        why_full_speed: why a motion is only carried out while `scaling` is 1; empty if slower ones are safe, too.

    Attributes:
        scaling: share of real time with which the controller's clock passes, 0 .. 1: the pendant's speed slider.
        changes: how often a motion began or ended, or the scaling changed: until the next time a copy of this object
            in another process knows the same.
    """

    def __init__(self, why_full_speed: str = "") -> None:
        self.scaling, self.changes, self._why_full_speed = 1.0, 0, why_full_speed
        self._spline: JointSpline | None = None
        self._elapsed_s = self._updated_s = self._running_s = 0.0

    @property
    def moving(self) -> bool:
        """Whether a motion is under way."""
        return self._spline is not None

    def begin(self, spline: JointSpline, joints_rad: Array, now_s: float) -> str:
        """Begin a motion; returns the reason against it, or an empty text.

        `joints_rad` (6,) are measured; `now_s` is of a monotonic clock.
        """
        if reason := self._too_slow():
            return reason
        if self.scaling < SLOWEST_SCALING:
            return f"{self._speed()}, less than {SLOWEST_SCALING:.0%}"
        away_rad = float(np.abs(spline.joints_rad[0] - joints_rad).max())
        if spline.times_s[0] == 0 and away_rad > START_TOLERANCE_RAD:
            return f"it begins {away_rad:.3f} rad from where the arm is"
        self._set(spline.starting_from(joints_rad, np.zeros(6)))
        self._elapsed_s, self._updated_s, self._running_s = 0.0, now_s, now_s
        return ""

    def scale(self, scaling: float, now_s: float) -> None:
        """The controller's clock passes with another share of real time from now on; not finite: as before."""
        self._update(now_s)
        scaling = min(max(scaling, 0.0), 1.0) if np.isfinite(scaling) else self.scaling
        if scaling != self.scaling:
            self.scaling, self.changes = scaling, self.changes + 1

    def expected(self, now_s: float) -> tuple[Array, Array] | None:
        """Joints (6,) [rad] of the motion under way at this moment, and their speeds by the controller's clock [rad/s].

        None if no motion is under way.
        """
        if self._spline is None:
            return None
        self._update(now_s)
        return self._spline.at(self._elapsed_s)

    def end(self) -> None:
        """The motion was halted on purpose."""
        self._set(None)

    def deviation(self, joints_rad: Array, now_s: float) -> str:
        """The fault of the motion under way, from the joints (6,) measured now; empty for none.

        A motion that has ended, at its goal or elsewhere, is no longer under way.
        """
        spline = self._spline
        if spline is None:
            return ""
        self._update(now_s)
        fault = ""
        to_goal_rad = float(np.abs(spline.joints_rad[-1] - joints_rad).max())
        if too_slow := self._too_slow():
            fault = too_slow
        elif now_s - self._running_s > PAUSE_S:
            fault = f"{self._speed()} for {PAUSE_S:g} s"
        elif self._elapsed_s >= spline.duration_s and to_goal_rad < END_TOLERANCE_RAD:
            self.end()
        elif self._elapsed_s > spline.duration_s + LATE_S:
            fault = f"it ended {to_goal_rad:.3f} rad from its goal"
        elif (away_rad := self._away_rad(spline, joints_rad)) > PATH_TOLERANCE_RAD:
            fault = f"the arm is {away_rad:.3f} rad from its path"
        if fault:
            self.end()
        return fault

    def _set(self, spline: JointSpline | None) -> None:
        """Another motion is under way, or none."""
        self._spline, self.changes = spline, self.changes + 1

    def _update(self, now_s: float) -> None:
        """Let the controller's clock pass up to `now_s` on the monotonic one."""
        self._elapsed_s += (now_s - self._updated_s) * self.scaling
        self._updated_s = now_s
        if self.scaling >= SLOWEST_SCALING:
            self._running_s = now_s

    def _away_rad(self, spline: JointSpline, joints_rad: Array) -> float:
        """Distance [rad] to the nearest point of the path at which an arm may be that is on time, early or late."""
        if len(spline.times_s) < 2:
            return float(np.abs(spline.joints_rad[0] - joints_rad).max())
        first_s, last_s = np.clip([self._elapsed_s - LATE_S, self._elapsed_s + EARLY_S], 0.0, spline.duration_s)
        path_rad, _ = spline.sampled(np.linspace(first_s, last_s, _SAMPLES))
        return float(np.abs(path_rad - joints_rad).max(axis=1).min())

    def _too_slow(self) -> str:
        """The reason against the scaling, where motions need the full speed; empty for none."""
        return f"{self._speed()}: {self._why_full_speed}" if self._why_full_speed and self.scaling < 1 else ""

    def _speed(self) -> str:
        return f"the robot's speed is scaled to {self.scaling:.0%}"
