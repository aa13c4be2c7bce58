"""The trajectory that stops a moving arm, for a controller that joins every trajectory to the state it measures.

A joint_trajectory_controller has no command that stops it: it takes a new trajectory at its next cycle, and joins it by
a cubic to the joints and speeds it measures then. A goal where the arm was seen last would turn it around.
"""

from __future__ import annotations

import numpy as np

from merton.world.geometry import Array

BRAKE_S = 0.18
"""Time in which a halted arm comes to rest [s]. Ours: with it a stop from the highest joint speed of a mode stays
within its highest acceleration, even if the controller is `DELAY_ERROR_S` earlier or later than `DELAY_S`."""
DELAY_S, DELAY_ERROR_S = 0.012, 0.02
"""Time from a measurement to the controller's cycle that takes the command, and how much it may differ [s]. Ours: two
cycles of 4 ms on average, at 125 Hz, and two messages."""
LEAST_S = 0.01
"""Shortest duration of a trajectory [s]."""


def braking(
    joints_rad: Array, velocities_rad_s: Array, delay_s: float = DELAY_S, scaling: float = 1.0
) -> tuple[Array, float]:
    """The goal of an arm in motion, and the time to it by the controller's clock, so that it only slows down.

    A controller that joins the trajectory `delay_s` later slows every joint down evenly, to rest after `BRAKE_S`. If it
    does so up to `DELAY_ERROR_S` earlier or later, no joint turns around, and accelerations differ by
    6 v `DELAY_ERROR_S` / `BRAKE_S`^2.

    Args:
        joints_rad: (6,) as measured [rad].
        velocities_rad_s: (6,) as measured [rad/s]; one that is not finite counts as 0.
        delay_s: time from the measurement to the controller's cycle that takes the trajectory [s].
        scaling: share of real time with which the controller's clock passes, 0 .. 1: the pendant's speed slider.

    Returns:
        Joints (6,) [rad], to be reached at rest, and the duration [s] of the trajectory.
    """
    speeds = np.nan_to_num(np.asarray(velocities_rad_s, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    duration_s = max(BRAKE_S * scaling, LEAST_S)
    # A cubic from speed v to rest has constant acceleration over v T / 2, and does not turn around beyond v T / 3.
    travel_s = max(delay_s + duration_s / 2, delay_s + DELAY_ERROR_S + duration_s / 3)
    return np.asarray(joints_rad, dtype=np.float64) + speeds * travel_s, duration_s
