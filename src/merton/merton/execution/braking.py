"""The trajectory that stops a moving arm, for a controller that joins every trajectory to its own state.

A joint_trajectory_controller has no command that stops it: it takes a new trajectory at its next cycle, and joins it by
a cubic to the joints and speeds it has then. A goal where the arm was seen last would turn it around.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from merton.world.geometry import Array

BRAKE_S = 0.18
"""Time in which a halted arm comes to rest [s]. Ours: with it a stop from the highest joint speed of a mode stays
within its highest acceleration, even if the controller is `DELAY_ERROR_S` earlier or later than expected."""
DELAY_S, DELAY_ERROR_S = 0.005, 0.02
"""Time from a decision to the controller's cycle that takes the command, and how much it may differ [s]. Ours: half a
cycle of 8 ms, and a message."""
LEAST_S = 0.01
"""Shortest duration of a trajectory [s]."""


def braking(
    joints_rad: ArrayLike,
    velocities_rad_s: ArrayLike,
    accelerations_rad_s2: ArrayLike | None = None,
    *,
    age_s: float = 0.0,
    scaling: float = 1.0,
) -> tuple[Array, float]:
    """The goal of an arm in motion, and the time to it by the controller's clock, so that it only slows down.

    A controller that takes the trajectory `DELAY_S` later slows every joint down evenly, to rest after `BRAKE_S`. If it
    does so up to `DELAY_ERROR_S` earlier or later, no joint at even speed turns around, and accelerations differ by
    6 v `DELAY_ERROR_S` over the square of `BRAKE_S`.

    Args:
        joints_rad: (6,) of the controller's reference, or as measured [rad].
        velocities_rad_s: (6,) by the controller's clock [rad/s]; one that is not finite counts as 0.
        accelerations_rad_s2: (6,) by the controller's clock [rad/s2], as the velocities; None for 0. Only joints that
            get faster need them: one that slows down faster than expected does not turn around.
        age_s: real time since then [s].
        scaling: share of real time with which the controller's clock passes, 0 .. 1: the pendant's speed slider.

    Returns:
        Joints (6,) [rad], to be reached at rest, and the duration [s] of the trajectory.
    """
    speeds, accelerations = (
        np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        for values in (velocities_rad_s, np.zeros(6) if accelerations_rad_s2 is None else accelerations_rad_s2)
    )
    accelerations = np.where(accelerations * speeds > 0, accelerations, 0.0)
    delay_s = (age_s + DELAY_S) * scaling
    taken_rad = np.asarray(joints_rad, dtype=np.float64) + speeds * delay_s + accelerations * delay_s**2 / 2
    duration_s = max(BRAKE_S * scaling, LEAST_S)
    # a cubic from speed v to rest has constant acceleration over v T / 2
    return taken_rad + (speeds + accelerations * delay_s) * duration_s / 2, duration_s
