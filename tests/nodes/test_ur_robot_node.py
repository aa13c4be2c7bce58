"""ur_robot_node over real ROS 2, on a simulated controller and gripper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import SafetyState
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.world.cell import ARM_JOINTS
from merton.world.linkage import joint_rad
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.cell.ur_robot_node import UrRobotNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Permits, Probe, trigger, up
from simulated_ur import SimulatedUr, simulated_ur

pytest.importorskip("rtde_control", reason="ur-rtde has no wheel for this Python")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def ur() -> Iterator[SimulatedUr]:
    with simulated_ur() as simulated:
        yield simulated


class Bench:
    """The node, with a commander that sends heartbeats."""

    def __init__(
        self, ros: Any, probe: Probe, ur: SimulatedUr, timeout_s: float = 2.0, arm: ArmNode | None = None
    ) -> None:
        self.ros, self.probe = ros, probe
        self.node = up(ros, UrRobotNode, hostname=ur.address, heartbeat_timeout_s=timeout_s, connect_timeout_s=60.0)
        self.states = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.safety = probe.listen(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.permits = Permits(probe, arm and arm.stop.safety)
        self.trajectories = probe.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.commands = probe.create_publisher(Float64MultiArray, names.GRIPPER, names.RELIABLE_QOS)
        self.heartbeat = probe.create_publisher(Header, names.HEARTBEAT, names.RELIABLE_QOS)
        self.beating = probe.create_timer(0.05, lambda: self.heartbeat.publish(Header()))
        release = probe.create_client(Trigger, names.CELL_RELEASE)
        ros.until(lambda: self.states and self.safety and release.service_is_ready())
        for publisher in (self.trajectories, self.commands, self.heartbeat):
            ros.until(lambda publisher=publisher: publisher.get_subscription_count() == 1)

    @property
    def joints(self) -> np.ndarray:
        return np.array(self.states[-1].position[:6])

    @property
    def mode(self) -> int:
        return self.safety[-1].mode

    def move(self, goal: np.ndarray, duration_s: float) -> None:
        """Send a trajectory from where the arm is."""
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
        self.ros.until(lambda: np.abs(self.joints - start).max() > 1e-3)
        return start + 1.0

    def rests(self) -> bool:
        """Whether the arm stands still."""
        return len(self.states) > 20 and self.states[-1].position == self.states[-20].position


@pytest.fixture
def bench(ros: Any, probe: Probe, ur: SimulatedUr) -> Bench:
    return Bench(ros, probe, ur)


def test_trajectories_gripper_and_the_empty_trajectory(ros: Any, bench: Bench) -> None:
    assert bench.states[-1].name[:6] == list(ARM_JOINTS)
    assert bench.states[-1].name[6:] == ["gripper_left_finger_joint", "finger_joint"]
    assert bench.mode == SafetyState.NORMAL
    goal = bench.joints + 0.2
    bench.move(goal, 1.0)
    ros.until(lambda: np.allclose(bench.joints, goal, atol=2e-3))

    bench.commands.publish(bench.permits.given(Float64MultiArray(data=[0.030])))
    ros.until(lambda: abs(bench.states[-1].position[6] - 0.030) < 0.001)
    assert bench.states[-1].position[7] == pytest.approx(joint_rad(2 * bench.states[-1].position[6]))

    bench.begin()
    bench.trajectories.publish(JointTrajectory())
    ros.until(bench.rests)
    assert np.abs(bench.joints - goal).max() < 0.9, "it stopped well before the end"
    assert bench.mode == SafetyState.NORMAL, "a stop on request latches in the stop node, not here"

    bench.commands.publish(bench.permits.given(Float64MultiArray(data=[float("nan")])))
    bench.trajectories.publish(
        bench.permits.given(JointTrajectory(joint_names=["elbow"], points=[JointTrajectoryPoint()]))
    )
    ros.until(lambda: bench.node.counters["dropped gripper commands"] == 1)
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "a motion was refused" in bench.safety[-1].message, "its sender believes that the arm moves"


def test_a_command_past_the_gate_moves_nothing_and_is_no_fault(ros: Any, bench: Bench) -> None:
    start = bench.joints
    bench.permits.say(SafetyState.EMERGENCY_STOP)
    bench.move(start + 0.15, 0.5)
    bench.commands.publish(bench.permits.given(Float64MultiArray(data=[0.030])))
    for topic in (names.TRAJECTORY, names.GRIPPER):
        ros.until(lambda key=f"dropped commands on {topic}: stopped": bench.node.counters[key] == 1)
    assert bench.node.motion == 0, "the controller was sent nothing"
    assert np.array_equal(bench.joints, start)
    assert bench.mode == SafetyState.NORMAL


def test_a_protective_stop_is_a_fault_until_a_person_releases_it(
    ros: Any, bench: Bench, probe: Probe, ur: SimulatedUr
) -> None:
    goal = bench.begin()
    ur.fault("protective_stop")
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "protective stop" in bench.safety[-1].message
    ros.until(bench.rests)
    held, said = bench.joints, len(bench.safety)
    bench.move(goal, 1.0)
    ros.until(lambda: bench.node.counters["dropped trajectories"] == 1)
    ros.until(lambda: len(bench.safety) > said)  # again, for a commander that has missed it
    assert np.array_equal(bench.joints, held)
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    assert np.array_equal(bench.joints, held), "released is not resumed"
    bench.move(held + 0.05, 0.5)
    ros.until(lambda: np.allclose(bench.joints, held + 0.05, atol=2e-3))


def test_an_emergency_stop_is_released_at_the_robot_only(ros: Any, bench: Bench, probe: Probe, ur: SimulatedUr) -> None:
    bench.begin()
    ur.fault("emergency_stop")
    ros.until(lambda: bench.mode == SafetyState.FAULT and "emergency stop" in bench.safety[-1].message)
    count = len(bench.safety)
    response = trigger(ros, probe, names.CELL_RELEASE)
    assert not response.success
    assert "which a person releases at the robot" in response.message
    ros.until(lambda: len(bench.safety) > count)
    assert bench.mode == SafetyState.FAULT, "published again, for a node that has released its latch"
    ur.fault("unlock")
    assert ros.until(lambda: trigger(ros, probe, names.CELL_RELEASE).success)
    ros.until(lambda: bench.mode == SafetyState.NORMAL)


def test_an_arm_whose_commander_dies_is_held(ros: Any, probe: Probe, ur: SimulatedUr) -> None:
    bench = Bench(ros, probe, ur, timeout_s=1.0)
    bench.begin()
    bench.beating.cancel()
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert "no heartbeat for 1 s" in bench.safety[-1].message
    ros.until(bench.rests)


def test_a_lost_connection_is_a_fault_and_comes_back(ros: Any, bench: Bench, probe: Probe, ur: SimulatedUr) -> None:
    bench.begin()
    ur.fault("drop_connections")
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert ros.until(lambda: bench.node.robot.connections == 2)
    ros.until(lambda: bench.node.robot.reading and bench.node.gripper.reading)
    ros.until(bench.rests)
    assert bench.mode == SafetyState.FAULT, "until it is released"
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    goal = bench.joints + 0.05
    bench.move(goal, 0.5)
    ros.until(lambda: np.allclose(bench.joints, goal, atol=2e-3))


def test_a_fault_of_the_fingers_holds_the_arm_until_it_is_over(
    ros: Any, bench: Bench, probe: Probe, ur: SimulatedUr
) -> None:
    goal = bench.begin()
    ur.fault("gripper_fault 5")
    ros.until(lambda: bench.node.gripper.reading and bench.node.gripper.reading.fault == 5)
    assert bench.mode == SafetyState.NORMAL, "this one ends by itself"
    ur.fault("gripper_fault 14")
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert bench.safety[-1].message == "the gripper reports fault 14: motor current too high"
    ros.until(bench.rests)
    assert np.abs(bench.joints - goal).max() > 0.1, "it stopped on the way"
    count = len(bench.safety)
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: len(bench.safety) > count and bench.mode == SafetyState.FAULT)
    ur.fault("gripper_fault 0")
    ros.until(lambda: bench.node.gripper.reading and bench.node.gripper.reading.fault == 0)
    assert trigger(ros, probe, names.CELL_RELEASE).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)


def test_the_stop_node_latches_on_a_protective_stop(ros: Any, probe: Probe, ur: SimulatedUr) -> None:
    arm = up(ros, ArmNode)  # first: it takes its time, and holds up this process
    bench = Bench(ros, probe, ur, arm=arm)
    ros.until(arm.stop.release.service_is_ready)
    ur.fault("protective_stop")
    ros.until(lambda: arm.stop.latch.tripped)
    assert "protective stop" in arm.stop.latch.reason
    assert not trigger(ros, probe, names.RELEASE_COLLISION).success, "an experiment may not release it"
    ros.until(lambda: bench.mode == SafetyState.FAULT)
    assert trigger(ros, probe, names.RESET_STOP).success
    ros.until(lambda: bench.mode == SafetyState.NORMAL)
    assert not arm.stop.latch.tripped


def test_without_a_robot_it_is_not_configured(ros: Any, capfd: Any) -> None:
    from rclpy.parameter import Parameter

    from simulated_ur import free_address

    overrides = [Parameter("hostname", value=free_address()), Parameter("connect_timeout_s", value=1.0)]
    node = ros.add(UrRobotNode, parameter_overrides=overrides)
    assert node.trigger_configure().name == "FAILURE"
    assert "no connection to the UR controller" in capfd.readouterr().err
