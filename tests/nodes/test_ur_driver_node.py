"""ur_driver_node on a stand-in for the UR ROS 2 driver that speaks its topics; the gripper's socket is simulated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from action_msgs.msg import GoalStatus, GoalStatusArray
from merton_interfaces.msg import SafetyState
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import InfrastructureError
from merton.execution.braking import BRAKE_S
from merton.execution.robots.deviation import DeviationMonitor
from merton.execution.trajectory import JointSpline
from merton.world.cell import ARM_JOINTS, load_cell
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cell import ur_driver_node
from merton_nodes.cell.ur_driver_guard import UrDriverGuard
from merton_nodes.cell.ur_driver_node import UrDriverNode
from merton_nodes.cell.ur_driver_reports import SILENCE_S, DriverMessages, why_full_speed
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Permits, Probe, Ros, trigger, up
from simulated_ur import free_address

pytestmark = pytest.mark.timeout(120)
ORDER = (*ARM_JOINTS[2::-1], *ARM_JOINTS[3:])
"""The driver publishes the joints in another order than the arm's."""
INDICES = [ARM_JOINTS.index(name) for name in ORDER]


# config/ur_controllers.yaml of ur_robot_driver 3.0.2, which its launch file loads.
CONTROLLERS = {
    "force_mode_controller",
    "force_torque_sensor_broadcaster",
    "forward_position_controller",
    "forward_velocity_controller",
    "freedrive_mode_controller",
    "io_and_status_controller",
    "joint_state_broadcaster",
    "joint_trajectory_controller",
    "passthrough_trajectory_controller",
    "scaled_joint_trajectory_controller",
    "speed_scaling_state_broadcaster",
    "tcp_pose_broadcaster",
    "ur_configuration_controller",
}


def stand_in_messages() -> DriverMessages:
    """The driver's are not among the wheels: one with a `mode`, and a trajectory whose one point is the reference."""
    return DriverMessages(SafetyState, JointTrajectory, lambda state: state.points[0])


class NoGuard:
    """In the place of the process that brakes the arm if the node dies."""

    braked, ready = False, True

    def __init__(self, topic: str, silence_s: float) -> None:
        self.told: list[bool] = []
        """At each call of `tell`, whether a motion was under way: a short one may be over before a test looks."""

    def tell(self, monitor: DeviationMonitor) -> None:
        if not self.ready:
            raise InfrastructureError("no guard")
        self.told.append(monitor.moving)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Driver:
    """Joint states at 100 Hz, a controller that refuses empty trajectories, a safety mode, a slider, a dashboard.

    The controller joins every trajectory to its reference, which the joints follow `lag_s` later by the controller's
    clock. The slider slows this clock down.
    """

    def __init__(self, probe: Probe) -> None:
        self.joints, self.velocities = load_cell().home_joints.copy(), np.zeros(6)
        self.reference, self.lag_s = (self.joints, self.velocities), 0.0
        self.spline, self.elapsed_s, self.ticked_s = None, 0.0, time.monotonic()
        self.scaling, self.active = 1.0, True
        self.follows, self.silent, self.refused, self.unlocked = True, False, 0, 0
        self.probe = probe
        self.states = probe.create_publisher(JointState, names.DRIVER_JOINT_STATES, 10)
        self.safety = probe.create_publisher(SafetyState, names.DRIVER_SAFETY, names.LATCHED_QOS)
        self.speed = probe.create_publisher(Float64, names.DRIVER_SPEED_SCALING, 10)
        self.controller = probe.create_publisher(JointTrajectory, names.DRIVER_CONTROLLER_STATE, 10)
        self.goals = probe.create_publisher(GoalStatusArray, names.DRIVER_GOALS, names.LATCHED_QOS)
        probe.create_subscription(JointTrajectory, names.DRIVER_TRAJECTORY, self.on_trajectory, 10)
        probe.create_service(Trigger, names.DRIVER_UNLOCK, self.on_unlock)
        self.timer = probe.create_timer(0.01, self.tick)
        self.mode(1)

    def mode(self, number: int) -> None:
        self.safety.publish(SafetyState(mode=number))

    def goal(self, status: int) -> None:
        """A goal of another program."""
        self.goals.publish(GoalStatusArray(status_list=[GoalStatus(status=status)]))

    def on_trajectory(self, message: JointTrajectory) -> None:
        if not self.active:
            return
        if not message.points:
            self.refused += 1
            return
        times = [convert.nanoseconds_of(point.time_from_start) / 1e9 for point in message.points]
        positions = [list(point.positions) for point in message.points]
        velocities = [list(point.velocities) for point in message.points]
        self.spline = JointSpline(times, positions, velocities).starting_from(*self.reference)
        self.elapsed_s, self.ticked_s = 0.0, time.monotonic()

    def on_unlock(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.unlocked += 1
        self.mode(1)
        response.success = True
        return response

    def tick(self) -> None:
        now_s = time.monotonic()
        self.elapsed_s += (now_s - self.ticked_s) * self.scaling
        self.ticked_s = now_s
        if self.spline is not None and self.follows and self.active:
            self.reference = self.spline.at(self.elapsed_s)
            self.joints, velocities = self.spline.at(self.elapsed_s - self.lag_s)
            self.velocities = velocities * self.scaling
        if self.silent:
            return
        position, velocity = (
            dict(zip(ARM_JOINTS, values.tolist(), strict=True)) for values in (self.joints, self.velocities)
        )
        message = JointState(
            name=list(ORDER), position=[position[name] for name in ORDER], velocity=[velocity[name] for name in ORDER]
        )
        message.header.stamp = self.probe.get_clock().now().to_msg()
        self.states.publish(message)
        self.speed.publish(Float64(data=100 * self.scaling))
        if self.active:
            point = JointTrajectoryPoint(
                positions=self.reference[0][INDICES].tolist(), velocities=self.reference[1][INDICES].tolist()
            )
            state = JointTrajectory(header=message.header, joint_names=list(ORDER), points=[point])
            self.controller.publish(state)


@pytest.fixture
def gripper() -> Iterator[str]:
    """The address of the simulated gripper, as lab.launch.py starts it."""
    address = free_address()
    process = subprocess.Popen(
        [sys.executable, "-m", "merton.simulation.urcap_server", "--address", address],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"ready {address}\n"
    yield address
    process.kill()
    process.wait()
    process.stdout.close()


class Bench:
    """The node with its driver, and a commander; `arm` is an arm_node that is up before."""

    def __init__(
        self, ros: Ros, probe: Probe, gripper: str, arm: ArmNode | None = None, make_guard: Any = NoGuard
    ) -> None:
        self.ros, self.driver = ros, Driver(probe)
        self.node = up(
            ros,
            lambda **options: UrDriverNode(stand_in_messages, make_guard, **options),
            gripper_hostname=gripper,
            heartbeat_timeout_s=1.0,
            connect_timeout_s=60.0,
        )
        self.states = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        if arm is not None:  # its state is kept for late subscribers: after that of the commander it would hold
            ros.until(lambda: self.node.guarded.rule.permit == arm.stop.latch.permit)
        self.permits = Permits(probe, arm and arm.stop.safety)
        self.trajectories = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.fingers = probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
        heartbeat = probe.create_publisher(Header, names.HEARTBEAT, names.RELIABLE_QOS)
        self.beating = probe.create_timer(0.05, lambda: heartbeat.publish(Header()))
        for publisher in (self.trajectories, self.fingers, heartbeat):
            ros.until(lambda publisher=publisher: publisher.get_subscription_count() == 1)
        ros.until(lambda: self.states and self.mode == SafetyState.NORMAL)

    @property
    def mode(self) -> int:
        return self.safety[-1].mode if self.safety else -1

    @property
    def joints(self) -> np.ndarray:
        return np.array(self.states[-1].position[:6])

    def move(self, goal: np.ndarray, duration_s: float) -> None:
        message = JointTrajectory(joint_names=list(ARM_JOINTS))
        for time_s, joints in ((0.0, self.joints), (duration_s, goal)):
            message.points.append(
                JointTrajectoryPoint(
                    positions=joints.tolist(), velocities=[0.0] * 6, time_from_start=convert.duration_message(time_s)
                )
            )
        self.trajectories.publish(self.permits.given(message))

    def begin(self) -> np.ndarray:
        """A long motion, seen to have begun; returns its goal."""
        start = self.joints
        self.move(start + 1.0, 20.0)
        self.ros.until(lambda: np.abs(self.joints - start).max() > 0.01)
        return start + 1.0


@pytest.fixture
def bench(ros: Ros, probe: Probe, gripper: str) -> Bench:
    return Bench(ros, probe, gripper)


@pytest.mark.parametrize("command", [names.TRAJECTORY, names.GRIPPER])
def test_no_controller_of_the_driver_listens_to_the_commands_of_the_cell(command: str) -> None:
    """One that did would carry them out past ur_driver_node, and refuse the empty trajectory, which is the stop."""
    assert command.split("/")[0] not in CONTROLLERS


def test_motions_gripper_and_stop_pass_through(ros: Ros, bench: Bench) -> None:
    assert bench.states[-1].name[:6] == list(ARM_JOINTS)
    assert np.allclose(bench.joints, load_cell().home_joints), "in the arm's order, not in the driver's"
    goal = bench.joints + 0.2
    bench.move(goal, 0.5)
    ros.until(lambda: np.allclose(bench.joints, goal, atol=1e-3))
    bench.fingers.publish(bench.permits.given(Float64MultiArray(data=[0.030])))
    ros.until(lambda: abs(bench.states[-1].position[6] - 0.030) < 0.001)
    far = bench.begin()
    bench.trajectories.publish(JointTrajectory())
    ros.until(lambda: bench.driver.spline is not None and bench.driver.spline.duration_s < 1.0)
    ros.until(lambda: len(bench.states) > 30 and bench.states[-1].position == bench.states[-30].position)
    assert np.abs(bench.joints - far).min() > 0.5, "it stopped well before the end"
    assert bench.driver.refused == 0, "the driver never sees what it does not understand"
    assert bench.mode == SafetyState.NORMAL

    bench.begin()
    bench.node.look_at_gripper = lambda: None
    bench.node.closing.close()
    ros.until(lambda: bench.driver.spline is not None and bench.driver.spline.duration_s < 1.0)


def test_a_trajectory_not_followed_or_begun_elsewhere_is_a_fault(ros: Ros, probe: Probe, bench: Bench) -> None:
    bench.driver.follows = False
    bench.move(bench.joints + 0.08, 0.2)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "rad from its goal" in bench.safety[-1].message
    bench.driver.follows = True
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    here = bench.joints
    message = JointTrajectory(joint_names=list(ARM_JOINTS))
    for time_s, joints in ((0.0, here + 0.1), (0.5, here + 0.2)):
        message.points.append(
            JointTrajectoryPoint(positions=joints.tolist(), time_from_start=convert.duration_message(time_s))
        )
    bench.trajectories.publish(bench.permits.given(message))
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "from where the arm is" in bench.safety[-1].message
    assert np.allclose(bench.joints, here, atol=1e-3)


def test_a_silent_commander_or_driver_is_a_fault(ros: Ros, probe: Probe, bench: Bench) -> None:
    goal = bench.begin()
    bench.beating.cancel()
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "no arm/heartbeat for 1 s during a motion" in bench.safety[-1].message
    assert np.abs(bench.joints - goal).min() > 0.5
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    bench.driver.timer.cancel()
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "no joint_state_broadcaster/joint_states" in bench.safety[-1].message


@pytest.mark.parametrize(
    ("version", "jumps"), [("3.0.2", True), ("3.2.1", True), ("3.3.0", False), ("3.10.0", False), ("4.0.0", False)]
)
def test_ur_controllers_that_jump_need_the_full_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, jumps: bool
) -> None:
    marker = tmp_path / "share" / "ament_index" / "resource_index" / "packages" / "ur_controllers"
    package = tmp_path / "share" / "ur_controllers" / "package.xml"
    for file, text in ((marker, ""), (package, f"<package><version>{version}</version></package>")):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert (f"ur_controllers {version} may throw the arm" in why_full_speed()) is jumps
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "share"))
    assert why_full_speed() == "", "it is not on this machine"


def test_a_slow_slider_before_controllers_that_jump_is_a_fault(
    ros: Ros, probe: Probe, gripper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ur_driver_node, "why_full_speed", lambda: "the controller jumps")
    bench = Bench(ros, probe, gripper)
    bench.begin()
    bench.driver.scaling = 0.5
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert bench.safety[-1].message.endswith("the robot's speed is scaled to 50%: the controller jumps")
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    bench.move(bench.joints + 0.1, 1.0)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "a motion was refused: the robot's speed is scaled to 50%" in bench.safety[-1].message


def test_an_arm_without_joint_states_is_held_where_it_should_be(ros: Ros, bench: Bench) -> None:
    """And not where it was last measured: half a second ago at up to 0.5 rad/s."""
    start, asked_s = bench.joints, time.monotonic()
    bench.move(start + 1.5, 8.0)
    ros.until(lambda: np.abs(bench.joints - start).max() > 0.1)
    moving, begun_s, bench.driver.silent = bench.driver.spline, time.monotonic() - bench.driver.elapsed_s, True
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    ros.until(lambda: bench.driver.spline is not moving)
    assert moving is not None
    assert bench.driver.spline is not None
    end = bench.driver.spline.joints_rad[-1]
    earliest, _ = moving.at(bench.node.reports.joints_time_s + SILENCE_S - begun_s)
    latest, _ = moving.at(time.monotonic() - asked_s + BRAKE_S)
    assert (end >= earliest - 0.01).all(), "no jump back to where it was seen last"
    assert (end <= latest + 0.01).all(), "nor ahead"
    assert (end > bench.joints + 0.03).all(), "it went on meanwhile"


@pytest.mark.parametrize("scaling", [1.0, 0.25])
def test_a_stop_is_ahead_of_the_controllers_reference(ros: Ros, bench: Bench, scaling: float) -> None:
    """And not of the joints, which lag behind it: it would turn around."""
    lag_s = bench.driver.lag_s = 0.5
    bench.driver.scaling = scaling
    ros.until(lambda: bench.node.monitor.scaling == scaling)
    goal = bench.begin()
    moving = bench.driver.spline
    bench.trajectories.publish(JointTrajectory())
    ros.until(lambda: bench.driver.spline is not moving)
    stop = bench.driver.spline
    assert stop is not None
    assert (np.abs(stop.velocities_rad_s[0]) > 0.001).all(), "it was moving"
    assert stop.duration_s == pytest.approx(BRAKE_S * scaling)
    speed, travel = stop.velocities_rad_s[0], stop.joints_rad[-1] - stop.joints_rad[0]
    # by the controller's clock; a busy machine delays the command. `braking` says how late it may be
    late_s = stop.duration_s / 2 - travel / speed
    assert (np.abs(late_s) < lag_s / 2).all(), "it begins at the reference"
    ros.until(lambda: (bench.driver.velocities == 0).all())
    assert np.abs(bench.joints - goal).min() > 0.5


def test_a_motion_has_a_guard(ros: Ros, probe: Probe, bench: Bench) -> None:
    goal = bench.joints + 0.1
    bench.move(goal, 0.5)
    ros.until(lambda: True in bench.node.guard.told and not bench.node.guard.told[-1])
    ros.until(lambda: np.allclose(bench.joints, goal, atol=1e-3))
    bench.begin()
    bench.node.guard.ready = False
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert bench.safety[-1].message == "no guard"
    ros.until(lambda: (bench.driver.velocities == 0).all())
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    start = bench.joints
    bench.move(start + 0.1, 0.5)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert bench.safety[-1].message == "a motion was refused: no guard"
    assert np.allclose(bench.joints, start, atol=1e-3)
    bench.node.guard.ready = True
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)  # a fault that is there already would stay the reason
    bench.node.guard.braked = True
    ros.until(lambda: "its guard braked it" in bench.safety[-1].message)


def test_the_guard_is_sent_a_motion_once() -> None:
    """And after that only that the node works, until the motion changes or another process watches."""
    guard, monitor, sent = UrDriverGuard("commands", 1.0), DeviationMonitor(), []
    guard.ready, guard._process = True, SimpleNamespace(pid=1, send=lambda message, wait: sent.append(message))
    here = np.zeros(6)
    steps = (
        lambda: monitor.begin(JointSpline([0.0, 9.0], [here, here + 1.0]), here, 0.0),
        lambda: monitor.scale(0.5, 1.0),
        lambda: setattr(guard._process, "pid", 2),
        monitor.end,
    )
    for step in steps:
        step()
        for _ in range(3):
            guard.tell(monitor)
    assert sent == [monitor, None, None] * len(steps)


def test_the_guard_brakes_the_arm_of_a_node_that_says_no_more(ros: Ros, probe: Probe, gripper: str) -> None:
    """The real process; it is replaced if it ends."""
    bench = Bench(ros, probe, gripper, make_guard=UrDriverGuard)
    guard = bench.node.guard
    first = guard.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    ros.until(lambda: guard.pid != first and guard.ready)
    goal = bench.begin()
    moving, bench.node.tell_guard = bench.driver.spline, lambda: None
    ros.until(lambda: bench.driver.spline is not moving)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "silent for 1 s during a motion: its guard braked it" in bench.safety[-1].message
    ros.until(lambda: (bench.driver.velocities == 0).all())
    assert np.abs(bench.joints - goal).min() > 0.5
    bench.node.closing.close()
    ros.until(lambda: probe.count_publishers(names.DRIVER_TRAJECTORY) <= 1)


def test_nothing_is_sent_to_a_controller_that_is_not_active(ros: Ros, probe: Probe, bench: Bench) -> None:
    """It has its topic all the same, and would drop what comes."""
    goal = bench.begin()
    bench.driver.active = False
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "the controller was deactivated during a motion" in bench.safety[-1].message
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    bench.move(goal, 1.0)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "no active controller listens to /scaled_joint_trajectory_controller/" in bench.safety[-1].message
    bench.driver.active = True
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    ros.until(lambda: bench.node.reports.controller_is_active)
    bench.move(bench.joints + 0.1, 0.5)
    goal = bench.joints + 0.1
    ros.until(lambda: np.abs(bench.joints - goal).max() < 0.1)


def test_a_slow_slider_is_no_fault_and_a_paused_robot_is_one(ros: Ros, probe: Probe, bench: Bench) -> None:
    bench.driver.scaling = 0.25
    ros.until(lambda: bench.node.monitor.scaling == 0.25)
    goal = bench.joints + 0.2
    bench.move(goal, 1.0)  # four seconds: more than the time in which a motion may be late
    ros.until(lambda: np.allclose(bench.joints, goal, atol=1e-3) and not bench.node.monitor.moving)
    assert bench.mode == SafetyState.NORMAL
    bench.driver.scaling = 1.0
    bench.begin()
    bench.driver.scaling = 0.0
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "the robot's speed is scaled to 0% for 1 s" in bench.safety[-1].message
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    bench.move(bench.joints + 0.1, 0.5)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "a motion was refused: the robot's speed is scaled to 0%" in bench.safety[-1].message


def test_goals_of_other_programs_are_noticed(ros: Ros, probe: Probe, bench: Bench, capfd: Any) -> None:
    bench.driver.goal(GoalStatus.STATUS_EXECUTING)
    ros.until(lambda: bench.node.reports.foreign_goal)
    assert bench.mode == SafetyState.NORMAL, "the arm is free"
    bench.move(bench.joints + 0.1, 0.5)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "a motion was refused: the controller carries out a goal of another program" in bench.safety[-1].message
    bench.driver.goal(GoalStatus.STATUS_SUCCEEDED)
    ros.until(lambda: not bench.node.reports.foreign_goal)
    said: list[str] = []  # after the flag is down
    ros.until(lambda: said.append(capfd.readouterr().err) or "another program has moved the arm" in "".join(said))
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    goal = bench.begin()
    bench.driver.goal(GoalStatus.STATUS_ACCEPTED)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "another program has sent the controller a goal" in bench.safety[-1].message
    assert np.abs(bench.joints - goal).min() > 0.5


def test_a_motion_that_cannot_be_made_is_a_fault(ros: Ros, bench: Bench) -> None:
    bench.trajectories.publish(
        bench.permits.given(JointTrajectory(joint_names=["elbow"], points=[JointTrajectoryPoint()]))
    )
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "a motion was refused" in bench.safety[-1].message


def test_a_driver_that_starts_late_is_no_fault(ros: Ros, probe: Probe, gripper: str) -> None:
    node = up(ros, lambda **options: UrDriverNode(stand_in_messages, NoGuard, **options), gripper_hostname=gripper)
    safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
    looks: list[int] = []
    node.create_timer_s(0.02, lambda: looks.append(1))
    ros.until(lambda: len(looks) > 10)
    assert not safety, "nothing is said before the driver is there"
    Driver(probe)
    assert ros.until(lambda: safety)[0].mode == SafetyState.NORMAL
    assert node.fault == ""


def test_a_command_past_the_gate_moves_nothing_and_is_no_fault(ros: Ros, bench: Bench) -> None:
    """The arm's owner is not frozen for it: else any process could end a run."""
    start, permit = bench.joints, bench.permits.permit
    for mode, kind in ((SafetyState.EMERGENCY_STOP, "stopped"), (SafetyState.NORMAL, "stale")):
        bench.permits.say(mode)
        if kind == "stale":
            bench.permits.permit = permit
        bench.move(start + 0.15, 0.5)
        bench.fingers.publish(bench.permits.given(Float64MultiArray(data=[0.030])))
        for topic in (names.TRAJECTORY, names.GRIPPER):
            ros.until(lambda key=f"dropped commands on {topic}: {kind}": bench.node.counters[key] == 1)
    assert np.array_equal(bench.driver.joints, start)
    assert bench.driver.spline is None, "the driver was sent nothing"
    assert bench.mode == SafetyState.NORMAL


def test_a_protective_stop_latches_and_is_unlocked_through_the_dashboard(ros: Ros, probe: Probe, gripper: str) -> None:
    arm = up(ros, ArmNode)  # first: it takes its time, and holds up this process
    bench = Bench(ros, probe, gripper, arm)
    ros.until(arm.stop.release.service_is_ready)
    goal = bench.begin()
    bench.driver.mode(3)
    ros.until(lambda: arm.stop.latch.tripped)
    assert "protective stop" in arm.stop.latch.reason
    ros.until(lambda: not bench.node.guarded.rule.running)  # else the next state may overtake the one of the arm
    said = len(bench.safety)
    bench.permits.say(SafetyState.NORMAL)  # a commander that has missed it
    bench.move(goal, 1.0)
    ros.until(lambda: bench.node.counters["dropped trajectories"] == 1)
    ros.until(lambda: len(bench.safety) > said)  # again, for that commander
    assert not trigger(ros, probe, names.RELEASE_COLLISION).success, "no experiment may release it"
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    assert bench.driver.unlocked == 1
    bench.driver.mode(7)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert bench.safety[-1].message == "the driver reports safety mode 7"


def test_without_the_drivers_messages_it_says_what_to_install(ros: Ros, gripper: str, capfd: Any) -> None:
    try:
        import ur_dashboard_msgs  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("ur_dashboard_msgs is installed")
    node = ros.add(UrDriverNode, parameter_overrides=[Parameter("gripper_hostname", value=gripper)])
    assert node.trigger_configure().name == "FAILURE"
    assert "ros-jazzy-ur-robot-driver" in capfd.readouterr().err
