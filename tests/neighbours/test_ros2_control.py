"""The UR driver's way before real controllers: motions, the pendant's slider, controllers that end, other programs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import SafetyState
from rclpy.action import ActionClient
from trajectory_msgs.msg import JointTrajectory

from merton.execution.robots.deviation import END_TOLERANCE_RAD
from merton.world.cell import ARM_JOINTS, load_cell
from merton_nodes.cell.ur_driver_reports import why_full_speed
from merton_nodes.ros import names
from ros import Probe, Ros, trigger
from ros2_control import NEEDED, PLAIN, SCALED, Bench

pytestmark = [pytest.mark.needs(*NEEDED), pytest.mark.timeout(900)]
CONTROLLERS = [pytest.param(PLAIN), pytest.param(SCALED, marks=pytest.mark.needs("ur_controllers"))]
SCALED_ONLY = pytest.mark.needs("ur_controllers")
HOME = load_cell().home_joints
NEEDS_FULL_SPEED = why_full_speed()


@pytest.fixture
def make(ros: Ros, probe: Probe, processes: Any, tmp_path: Path) -> Any:
    return lambda controller, **options: Bench(ros, probe, processes, tmp_path, controller, **options)


def held_up(bench: Bench, duration_s: float) -> None:
    """Let a cycle of the controller come late."""
    end_s = time.monotonic() + duration_s
    os.kill(bench.manager.process.pid, signal.SIGSTOP)
    try:
        bench.ros.until(lambda: time.monotonic() > end_s)
    finally:
        os.kill(bench.manager.process.pid, signal.SIGCONT)


def released(bench: Bench) -> None:
    """After a fault."""
    assert trigger(bench.ros, bench.probe, names.CELL_RELEASE).success
    bench.ros.until(lambda: bench.safety[-1].mode == SafetyState.NORMAL)


def under_way(bench: Bench) -> np.ndarray:
    """A motion of 1 rad in 4 s, a tenth of which is done; returns its start (6,) [rad]."""
    start = bench.joints_rad
    bench.move(start + np.where(start > HOME, -1.0, 1.0), 4.0)
    bench.ros.until(lambda: np.abs(bench.joints_rad - start).max() > 0.1 or bench.safety[-1].mode != SafetyState.NORMAL)
    assert bench.safety[-1].mode == SafetyState.NORMAL, bench.safety[-1].message
    return start


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_motions_and_controllers_that_end_or_stall(make: Any, ros: Ros, controller: str) -> None:
    bench = make(controller)
    goal = HOME + 0.2
    bench.move(goal, 1.0)
    ros.until(lambda: np.abs(bench.joints_rad - goal).max() < 1e-3)
    assert bench.safety[-1].mode == SafetyState.NORMAL

    under_way(bench)
    bench.switch([], [controller])
    bench.wait_for_fault("the controller was deactivated during a motion")
    released(bench)
    bench.move(bench.joints_rad + 0.1, 1.0)
    bench.wait_for_fault("no active controller listens")
    bench.switch([controller], [])
    released(bench)

    under_way(bench)
    bench.switch([], [controller])
    bench.switch([controller], [])
    where = bench.joints_rad
    bench.wait_for_fault("a motion was not carried out", "the controller was deactivated during a motion")
    np.testing.assert_allclose(bench.joints_rad, where, atol=0.05, err_msg="a restarted controller stays where it is")
    released(bench)

    under_way(bench)
    os.kill(bench.manager.process.pid, signal.SIGSTOP)
    try:
        bench.wait_for_fault("joint_state_broadcaster/joint_states from the UR driver")
        where = bench.joints_rad
    finally:
        os.kill(bench.manager.process.pid, signal.SIGCONT)
    released(bench)
    bench.wait_for_rest()
    assert np.abs(bench.joints_rad - where).max() < 0.6, "it did not go on to the end"


@SCALED_ONLY
@pytest.mark.parametrize(("controller", "other"), [(SCALED, PLAIN), (PLAIN, SCALED)])
def test_a_controller_that_takes_the_place_of_another_is_a_fault(make: Any, controller: str, other: str) -> None:
    bench = make(controller, every_controller=True)
    under_way(bench)
    bench.switch([other], [controller])
    where = bench.joints_rad
    bench.wait_for_fault("the controller was deactivated during a motion")
    np.testing.assert_allclose(bench.joints_rad, where, atol=0.05)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_a_controller_that_gives_a_motion_up_is_a_fault(make: Any, controller: str) -> None:
    """At its own path tolerance: here so small that no arm stays within it."""
    bench = make(controller, path_tolerance_rad=1e-9)
    bench.move(HOME + 1.0, 4.0)
    bench.wait_for_fault("rad from its path", "rad from its goal")
    np.testing.assert_allclose(bench.joints_rad, HOME, atol=0.05)


def test_tolerances_that_another_program_has_left_behind_end_a_motion(make: Any, ros: Ros, probe: Probe) -> None:
    """joint_trajectory_controller applies them until a goal without tolerances comes: the warning says so."""
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance

    bench = make(PLAIN)
    client = ActionClient(probe, FollowJointTrajectory, f"{PLAIN}/follow_joint_trajectory")
    ros.until(client.server_is_ready)
    warning = "another program has moved the arm"

    def send(tolerances: list[Any]) -> None:
        told = bench.node.output.count(warning)
        goal = FollowJointTrajectory.Goal(trajectory=bench.motion(bench.joints_rad + 0.05, 1.0))
        goal.path_tolerance = tolerances
        ros.executor.create_task(lambda: client.send_goal_async(goal))
        ros.until(lambda: bench.node.output.count(warning) > told)
        bench.wait_for_rest()

    send([JointTolerance(name=name, position=1e-9) for name in ARM_JOINTS])
    start = bench.joints_rad
    bench.move(start + 1.0, 4.0)
    bench.wait_for_fault("rad from its path", "rad from its goal")
    np.testing.assert_allclose(bench.joints_rad, start, atol=0.05)
    send([])
    released(bench)
    start = under_way(bench)
    ros.until(lambda: np.abs(bench.joints_rad - start).max() > 0.999)
    assert bench.safety[-1].mode == SafetyState.NORMAL


@SCALED_ONLY
@pytest.mark.skipif(bool(NEEDS_FULL_SPEED), reason=NEEDS_FULL_SPEED)
@pytest.mark.parametrize("scaling", [0.5, 0.1])
def test_a_slow_slider_stretches_motions(make: Any, ros: Ros, scaling: float) -> None:
    bench = make(SCALED)
    bench.slide(scaling)
    goal = HOME + 0.1
    bench.move(goal, 1.0 if scaling < 0.5 else 3.0)
    ros.until(lambda: np.abs(bench.joints_rad - goal).max() < END_TOLERANCE_RAD / 4, 120)
    assert bench.safety[-1].mode == SafetyState.NORMAL
    bench.move(HOME, 3.0)
    ros.until(lambda: np.abs(bench.joints_rad - HOME).max() < 0.08)
    bench.stop()
    bench.wait_for_rest()
    assert np.abs(bench.joints_rad - HOME).max() > 0.02, "it stopped on the way"


@SCALED_ONLY
@pytest.mark.skipif(bool(NEEDS_FULL_SPEED), reason=NEEDS_FULL_SPEED)
def test_a_late_cycle_of_a_slow_motion_throws_the_arm_nowhere(make: Any, ros: Ros) -> None:
    bench = make(SCALED)
    bench.slide(0.1)
    bench.move(HOME + 0.5, 3.0)
    ros.until(lambda: np.abs(bench.joints_rad - HOME).max() > 0.02)
    held_up(bench, 0.3)
    heard = len(bench.raw)
    ros.until(lambda: len(bench.raw) > heard + 50)
    assert np.abs(bench.joints_rad - HOME).max() < 0.1
    assert bench.safety[-1].mode == SafetyState.NORMAL, bench.safety[-1].message


@SCALED_ONLY
@pytest.mark.skipif(not NEEDS_FULL_SPEED, reason="ur_controllers is 3.3.0 or newer")
def test_a_slow_slider_is_refused_before_controllers_that_jump(make: Any, ros: Ros, probe: Probe) -> None:
    """They do so after a late cycle, which the last lines show: with a motion that Merton did not begin."""
    bench = make(SCALED)
    bench.slide(0.1)
    bench.move(HOME + 0.5, 3.0)
    bench.wait_for_fault(f"the robot's speed is scaled to 10%: {NEEDS_FULL_SPEED}")
    np.testing.assert_allclose(bench.joints_rad, HOME, atol=1e-6)
    straight = probe.create_publisher(JointTrajectory, names.DRIVER_TRAJECTORY, names.RELIABLE_QOS)
    ros.until(lambda: straight.get_subscription_count() == 1)
    straight.publish(bench.motion(HOME + 0.5, 3.0))
    ros.until(lambda: np.abs(bench.joints_rad - HOME).max() > 0.02)
    held_up(bench, 0.3)
    heard = len(bench.raw)
    ros.until(lambda: len(bench.raw) > heard + 50)
    np.testing.assert_allclose(bench.joints_rad, HOME + 0.5, err_msg="half a second after the first tenth")


@SCALED_ONLY
def test_a_slider_at_zero_is_a_fault(make: Any, ros: Ros) -> None:
    bench = make(SCALED)
    bench.move(HOME + 0.5, 3.0)
    ros.until(lambda: np.abs(bench.joints_rad - HOME).max() > 0.1)
    bench.slide(0.0)
    bench.wait_for_fault("the robot's speed is scaled to 0%")
    assert np.abs(bench.joints_rad - HOME).max() < 0.4


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_goals_of_other_programs(make: Any, ros: Ros, probe: Probe, controller: str) -> None:
    from control_msgs.action import FollowJointTrajectory

    bench = make(controller)
    client = ActionClient(probe, FollowJointTrajectory, f"{controller}/follow_joint_trajectory")
    ros.until(client.server_is_ready)

    def send(goal: np.ndarray, duration_s: float) -> None:
        trajectory = bench.motion(goal, duration_s)
        ros.executor.create_task(lambda: client.send_goal_async(FollowJointTrajectory.Goal(trajectory=trajectory)))

    send(HOME + 0.3, 3.0)
    ros.until(lambda: np.abs(bench.joints_rad - HOME).max() > 0.02)
    bench.move(bench.joints_rad + 0.1, 1.0)
    bench.wait_for_fault("the controller carries out a goal of another program")
    bench.wait_for_rest()
    assert np.abs(bench.joints_rad - HOME).max() < 0.29, "a fault brakes the arm, a goal of another program included"
    until_free = "another program has moved the arm"
    ros.until(lambda: until_free in bench.node.output)
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.safety[-1].mode == SafetyState.NORMAL)
    start = bench.joints_rad
    bench.move(start + 0.8, 4.0)
    ros.until(lambda: np.abs(bench.joints_rad - start).max() > 0.1)
    send(start, 3.0)
    bench.wait_for_fault("another program has sent the controller a goal")


def test_an_active_controller_of_the_driver_takes_no_command_of_the_cell(make: Any, ros: Ros, probe: Probe) -> None:
    """The topic of Merton's commands was that of joint_trajectory_controller once: it took them past the node."""
    bench = make(PLAIN)
    for pid in bench.node.session():
        os.kill(pid, signal.SIGKILL)
    ros.until(lambda: bench.trajectories.get_subscription_count() == 0)
    count = len(bench.raw)
    bench.move(HOME + 0.3, 0.5)
    ros.until(lambda: len(bench.raw) > count + 125)
    np.testing.assert_allclose(bench.joints_rad, HOME, atol=1e-6)
