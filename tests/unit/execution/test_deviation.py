"""A motion that another program carries out, at the speed its pendant allows, or not at all."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from merton.execution.robots.deviation import LATE_S, PATH_TOLERANCE_RAD, PAUSE_S, SLOWEST_SCALING, DeviationMonitor
from merton.execution.trajectory import JointSpline

PERIOD_S = 0.02
START, GOAL = np.zeros(6), np.array([1.5, -1.0, 0.5, 0.0, 0.3, -0.2])


def motion(duration_s: float = 3.0) -> JointSpline:
    times = np.linspace(0.0, duration_s, 13)
    share = 0.5 - 0.5 * np.cos(np.pi * times / duration_s)
    return JointSpline(times, START + share[:, None] * (GOAL - START))


def first_fault(monitor: DeviationMonitor, follow, duration_s: float, begin_s: float = 100.0) -> tuple[str, float]:
    """The first fault and its time since the beginning; `follow` is the arm: seconds to joints."""
    for elapsed_s in np.arange(0.0, duration_s, PERIOD_S):
        if fault := monitor.deviation(follow(elapsed_s), begin_s + elapsed_s):
            return fault, elapsed_s
    return "", duration_s


@pytest.mark.parametrize("scaling", [1.0, 0.5, 0.1, SLOWEST_SCALING])
@pytest.mark.parametrize("duration_s", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("lag_s", [0.0, 0.2])
def test_a_motion_arrives_at_any_speed_of_the_slider(scaling: float, duration_s: float, lag_s: float) -> None:
    monitor, spline = DeviationMonitor(), motion(duration_s)
    monitor.scale(scaling, 99.0)
    assert monitor.begin(spline, START, 100.0) == ""
    arm = lambda t: spline.at(max(t - lag_s, 0.0) * scaling)[0]  # noqa: E731
    assert first_fault(monitor, arm, duration_s / scaling + lag_s + 0.1) == ("", duration_s / scaling + lag_s + 0.1)
    assert not monitor.moving, "it has ended"


def test_a_controller_that_is_unsafe_below_full_speed_gets_no_scaled_motion() -> None:
    monitor, spline = DeviationMonitor("the controller jumps"), motion()
    monitor.scale(0.99, 99.0)
    assert monitor.begin(spline, START, 100.0) == "the robot's speed is scaled to 99%: the controller jumps"
    assert not monitor.moving
    monitor.scale(1.0, 100.0)
    assert monitor.begin(spline, START, 100.0) == ""
    assert monitor.deviation(spline.at(0.1)[0], 100.1) == ""
    monitor.scale(0.5, 100.2)
    assert monitor.deviation(spline.at(0.2)[0], 100.2) == "the robot's speed is scaled to 50%: the controller jumps"
    assert not monitor.moving


def test_a_slider_that_is_moved_in_mid_motion_is_followed() -> None:
    monitor, spline = DeviationMonitor(), motion()
    assert monitor.begin(spline, START, 0.0) == ""
    passed_s, joints = 0.0, START
    for number in range(2000):
        scaling = (1.0, 0.1, 0.6, 0.02)[number // 40 % 4]  # 0.8 s each: the last is a pause, and short
        now_s = number * PERIOD_S
        monitor.scale(scaling, now_s)
        assert monitor.deviation(joints, now_s) == ""
        passed_s += PERIOD_S * scaling
        joints = spline.at(passed_s)[0]
        if not monitor.moving:
            break
    assert passed_s == pytest.approx(spline.duration_s, abs=0.1)


def test_an_arm_that_stands_still_or_goes_elsewhere_is_noticed_on_the_way() -> None:
    spline = motion()
    for arm in (lambda t: START, lambda t: spline.at(min(t, 1.0))[0], lambda t: spline.at(t)[0] + [0, 0, t, 0, 0, 0]):
        monitor = DeviationMonitor()
        assert monitor.begin(spline, START, 100.0) == ""
        fault, when_s = first_fault(monitor, arm, 10.0)
        assert "from its path" in fault
        assert when_s < 3.0, "before the end of the motion"
        assert not monitor.moving


def test_an_arm_that_ends_short_of_its_goal_is_noticed() -> None:
    monitor, spline = DeviationMonitor(), motion()
    assert monitor.begin(spline, START, 100.0) == ""
    short = GOAL - [PATH_TOLERANCE_RAD / 2, 0, 0, 0, 0, 0]
    fault, when_s = first_fault(monitor, lambda t: np.minimum(spline.at(t)[0], np.maximum(short, START)), 10.0)
    assert "it ended 0.050 rad from its goal" in fault
    assert when_s == pytest.approx(3.0 + LATE_S, abs=2 * PERIOD_S)


def test_a_paused_robot_begins_nothing_and_holds_up_no_motion_unnoticed() -> None:
    monitor, spline = DeviationMonitor(), motion()
    monitor.scale(0.0, 0.0)
    assert "speed is scaled to 0 %" in monitor.begin(spline, START, 1.0).replace("0%", "0 %")
    assert not monitor.moving
    monitor.scale(1.0, 2.0)
    assert monitor.begin(spline, START, 100.0) == ""
    assert first_fault(monitor, lambda t: spline.at(t)[0], 1.0) == ("", 1.0)
    monitor.scale(0.0, 101.0)
    there = spline.at(1.0)[0]
    fault, when_s = first_fault(monitor, lambda _: there, 10.0, 101.0)
    assert "scaled to 0% for 1 s" in fault
    assert when_s == pytest.approx(PAUSE_S, abs=2 * PERIOD_S)


def test_speeds_that_are_no_share_are_not_believed() -> None:
    monitor = DeviationMonitor()
    for told, kept in ((0.4, 0.4), (float("nan"), 0.4), (-3.0, 0.0), (7.0, 1.0), (float("inf"), 1.0)):
        monitor.scale(told, 0.0)
        assert monitor.scaling == kept


def test_the_expected_state_is_that_of_the_scaled_clock() -> None:
    monitor, spline = DeviationMonitor(), motion()
    assert monitor.expected(0.0) is None
    monitor.scale(0.5, 0.0)
    assert monitor.begin(spline, START, 10.0) == ""
    found = monitor.expected(12.0)
    assert found is not None
    joints, velocities = spline.at(1.0)
    np.testing.assert_allclose(found[0], joints)
    np.testing.assert_allclose(found[1], velocities, err_msg="by the controller's clock")


def test_a_copy_knows_what_follows_until_the_next_change() -> None:
    """The guard of ur_driver_node gets a copy at each change, and nothing between."""
    monitor, spline, arm = DeviationMonitor(), motion(), START
    known, copies = -1, 0
    for number in range(400):
        now_s = 10.0 + number * PERIOD_S
        if number == 20:
            monitor.begin(spline, START, now_s)
        monitor.scale(0.5 if number >= 60 else 1.0, now_s)
        monitor.deviation(arm, now_s)
        if monitor.changes != known:
            known, copies, copy = monitor.changes, copies + 1, pickle.loads(pickle.dumps(monitor))
        expected, of_copy = monitor.expected(now_s), copy.expected(now_s)
        assert (expected is None) == (of_copy is None)
        if expected is not None:
            arm = expected[0]
            np.testing.assert_allclose(of_copy, expected, atol=1e-12)
    assert copies == 4, "at first, and when it begins, slows down and ends"


def test_a_motion_without_a_point_at_its_start_begins_where_the_arm_is() -> None:
    monitor, here = DeviationMonitor(), np.full(6, 0.3)
    assert monitor.begin(JointSpline([1.0], [here + 0.5]), here, 0.0) == ""
    assert monitor.deviation(here, 0.1) == ""
    assert monitor.deviation(here + 0.5, 1.0) == ""
    assert not monitor.moving
