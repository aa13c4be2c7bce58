"""A stop slows the arm down, whenever the controller takes it: the cubic that a joint_trajectory_controller follows."""

from __future__ import annotations

import numpy as np
import pytest

from merton.execution.braking import BRAKE_S, DELAY_ERROR_S, DELAY_S, LEAST_S, braking
from merton.execution.gate.safety import MODES
from merton.execution.trajectory import JointSpline

RNG = np.random.default_rng(14)
DELAYS_S = (0.0, DELAY_S, DELAY_S + DELAY_ERROR_S)


def followed(
    speeds: np.ndarray, delay_s: float, scaling: float = 1.0, accelerations: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times [s], travel since the reference (n, 6) [rad] and speeds by the wall clock (n, 6) [rad/s] of a stop.

    The controller takes it after `delay_s`. Its clock passes with `scaling`; so do `speeds` and `accelerations`.
    """
    bend, passed_s = np.zeros(6) if accelerations is None else accelerations, delay_s * scaling
    goal, duration_s = braking(np.zeros(6), speeds, accelerations, scaling=scaling)
    taken, taken_speeds = speeds * passed_s + bend * passed_s**2 / 2, speeds + bend * passed_s
    joined = JointSpline([0.0, duration_s], [taken, goal], [taken_speeds, np.zeros(6)])
    times = np.linspace(0.0, duration_s, 400)
    travel, velocities = joined.sampled(times)
    return times / scaling, travel, velocities * scaling


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_a_stop_neither_turns_around_nor_exceeds_the_acceleration_of_its_mode(mode: str, delay_s: float) -> None:
    limits = MODES[mode]
    for _ in range(200):
        speeds = RNG.uniform(-1, 1, 6) * limits.peak_joint_speed_rad_s
        times, _, velocities = followed(speeds, delay_s)
        assert (velocities * np.sign(speeds) >= -1e-9).all(), "no joint turns around"
        accelerations = np.diff(velocities, axis=0) / np.diff(times)[:, None]
        assert np.abs(accelerations).max() <= limits.peak_joint_acceleration_rad_s2
        assert times[-1] == pytest.approx(BRAKE_S)


@pytest.mark.parametrize("scaling", [0.05, 0.1, 0.5, 0.8])
@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_a_stop_below_full_speed_slows_down_too(scaling: float, delay_s: float) -> None:
    limits = MODES["reduced"]
    for _ in range(100):
        speeds = RNG.uniform(-1, 1, 6) * limits.peak_joint_speed_rad_s
        times, _, velocities = followed(speeds, delay_s, scaling)
        np.testing.assert_allclose(velocities[0], speeds * scaling, err_msg="the arm goes on as fast as it was")
        assert (velocities * np.sign(speeds) >= -1e-9).all(), "no joint turns around"
        accelerations = np.diff(velocities, axis=0) / np.diff(times)[:, None]
        assert np.abs(accelerations).max() <= limits.peak_joint_acceleration_rad_s2
        assert times[-1] <= max(BRAKE_S, LEAST_S / scaling) + 1e-9


def test_an_arm_taken_as_expected_slows_down_evenly() -> None:
    _, travel, velocities = followed(np.full(6, 1.0), DELAY_S)
    assert np.diff(velocities, axis=0) == pytest.approx(np.full((399, 6), -1.0 / 399))
    assert travel[-1] == pytest.approx(DELAY_S + BRAKE_S / 2)


def test_an_arm_that_changes_its_speed_is_taken_as_it_will_be() -> None:
    speeds, accelerations = np.full(6, 0.5), np.full(6, 7.0)
    _, _, velocities = followed(speeds, DELAY_S, accelerations=accelerations)
    reached = 0.5 + 7.0 * DELAY_S
    assert np.diff(velocities, axis=0) == pytest.approx(np.full((399, 6), -reached / 399))
    older, _ = braking(np.zeros(6), speeds, accelerations, age_s=0.01)
    time_s = DELAY_S + 0.01
    assert older == pytest.approx(0.5 * time_s + 3.5 * time_s**2 + (0.5 + 7.0 * time_s) * BRAKE_S / 2)


@pytest.mark.parametrize("early_s", [0.0, DELAY_S])
def test_a_stop_of_an_arm_that_already_slows_down_does_not_turn_it_around(early_s: float) -> None:
    """As the second of two stops: the first one slows the arm down by 5.6 rad/s2."""
    for speed in np.linspace(0.001, 1.0, 200):
        braked = -5.6
        goal, duration_s = braking(np.zeros(6), np.full(6, speed), np.full(6, braked))
        time_s = min(DELAY_S - early_s, speed / -braked)
        joined = JointSpline(
            [0.0, duration_s],
            [np.full(6, speed * time_s + braked * time_s**2 / 2), goal],
            [np.full(6, speed + braked * time_s), np.zeros(6)],
        )
        _, velocities = joined.sampled(np.linspace(0.0, duration_s, 400))
        assert (velocities >= -1e-9).all()


def test_an_arm_at_rest_or_of_unknown_speed_is_held_where_it_is() -> None:
    here = RNG.uniform(-3, 3, 6)
    for speeds in (np.zeros(6), np.array([np.nan, np.inf, -np.inf, 0.0, 0.0, 0.0])):
        goal, _ = braking(here, speeds)
        np.testing.assert_array_equal(goal, here)
    goal, duration_s = braking(here, np.ones(6), scaling=0.0)
    assert duration_s == LEAST_S
    assert np.abs(goal - here).max() < 0.05
