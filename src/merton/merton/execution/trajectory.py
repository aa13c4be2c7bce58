"""Joint trajectories: times, joints and velocities checked, and the cubic Hermite spline through them.

The planner checks collisions along this spline; the embedded cell and a joint trajectory controller follow it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InputError
from merton.world.geometry import Array


class JointSpline:
    """A cubic Hermite spline through joint angles; before its first and after its last point the joints rest there.

    Args:
        times_s: (n,) rising times [s], the first 0 or later, n >= 1.
        joints_rad: (n, 6) joint angles [rad].
        velocities_rad_s: (n, 6) [rad/s]; if None, central differences, and rest at both ends.

    Raises:
        InputError: shapes that do not fit, times that do not rise, or a number that is not finite.
    """

    def __init__(self, times_s: ArrayLike, joints_rad: ArrayLike, velocities_rad_s: ArrayLike | None = None) -> None:
        try:
            times, joints = np.array(times_s, dtype=np.float64), np.array(joints_rad, dtype=np.float64)
            velocities = None if velocities_rad_s is None else np.array(velocities_rad_s, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("a trajectory must be made of numbers, the same count at each time") from error
        if times.ndim != 1 or times.size == 0 or joints.shape != (times.size, 6):
            raise InputError(f"a trajectory needs times (n,) and joints (n, 6), got {times.shape} and {joints.shape}")
        if velocities is not None and velocities.shape != joints.shape:
            raise InputError(f"velocities must have the shape of the joints, {joints.shape}, got {velocities.shape}")
        if not all(np.isfinite(values).all() for values in (times, joints, velocities) if values is not None):
            raise InputError("a trajectory must be finite")
        if times[0] < 0 or (np.diff(times) <= 0).any():
            raise InputError("the times of a trajectory must rise, from 0 or later")
        if velocities is None:
            velocities = np.gradient(joints, times, axis=0) if times.size > 1 else np.zeros_like(joints)
            velocities[[0, -1]] = 0.0
        self.times_s, self.joints_rad, self.velocities_rad_s = times, joints, velocities

    @property
    def duration_s(self) -> float:
        """Time of the last point [s]."""
        return float(self.times_s[-1])

    def starting_from(self, joints_rad: Array, velocities_rad_s: Array) -> JointSpline:
        """This spline with a point at time 0 put before it; itself if it has one already."""
        if self.times_s[0] == 0:
            return self
        return JointSpline(
            np.concatenate([[0.0], self.times_s]),
            np.vstack([joints_rad, self.joints_rad]),
            np.vstack([velocities_rad_s, self.velocities_rad_s]),
        )

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Joint angles (6,) [rad] and velocities (6,) [rad/s] at a time [s]."""
        times = self.times_s
        if not times[0] < time_s < times[-1]:
            return self.joints_rad[0 if time_s <= times[0] else -1], np.zeros(6)
        joints, velocities = self.sampled(np.array([time_s]))
        return joints[0], velocities[0]

    def sampled(self, times_s: Array) -> tuple[Array, Array]:
        """Joint angles and velocities, (m, 6) each, at times (m,) [s] from its first point to its last (two or more).

        Ours: equal to scipy's CubicHermiteSpline bit for bit; `merton.world.geometry` says why.
        """
        last = len(self.times_s) - 2
        piece = np.clip(np.searchsorted(self.times_s, times_s, side="right") - 1, 0, last)
        start_s, p, v = self.times_s[piece][:, None], self.joints_rad[piece], self.velocities_rad_s[piece]
        step = self.times_s[piece + 1][:, None] - start_s
        mean = (self.joints_rad[piece + 1] - p) / step
        bend = (v + self.velocities_rad_s[piece + 1] - 2 * mean) / step
        square, cube = (mean - v) / step - bend, bend / step
        s = times_s[:, None] - start_s
        ss = s * s
        return p + v * s + square * ss + cube * (ss * s), v + square * s * 2 + cube * ss * 3

    def peak_speeds_rad_s(self) -> Array:
        """Highest speed of each joint on the spline, (6,) [rad/s]: at a piece's ends, or where its slope peaks."""
        if len(self.times_s) < 2:
            return np.zeros(6)
        steps = np.diff(self.times_s)[:, None]
        mean = np.diff(self.joints_rad, axis=0) / steps
        v0, v1 = self.velocities_rad_s[:-1], self.velocities_rad_s[1:]
        # velocity over a piece: v0 + (6 m - 4 v0 - 2 v1) u + 3 (v0 + v1 - 2 m) u^2
        linear, square = 6 * mean - 4 * v0 - 2 * v1, 3 * (v0 + v1 - 2 * mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = np.nan_to_num(np.clip(-linear / (2 * square), 0.0, 1.0))
        inside = v0 + linear * u + square * u**2
        return np.asarray(np.maximum(np.abs(self.velocities_rad_s).max(axis=0), np.abs(inside).max(axis=0)))
