"""arm_node in front of an arm that is later than its trajectory: a chunk is carried out when the arm is there."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from merton.execution.gate.planner import plan, segments
from merton.execution.gate.safety import MODES
from merton.execution.kinematics import base_from_tcp
from merton.execution.robots.gripper import Gripper
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton_nodes.arm import arm_driver, arm_node
from merton_nodes.arm.arm_driver import ARRIVED_RAD
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.experiment.ros_ports import longest_s
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, up

CELL = load_cell()
UP = [0.0, 0.0, 0.02, 0, 0, 0, 1.0]


class LateArm(Node):
    """Follows trajectories late and slowly, and no further than a part of their way; then it may shake."""

    def __init__(
        self, speed: float = 1.0, way: float = 1.0, delay_s: float = 0.0, shaking: bool = False, **kwargs: Any
    ) -> None:
        super().__init__("late_arm", **kwargs)
        self.speed, self.way, self.delay_s, self.shaking = speed, way, delay_s, shaking
        self.begin_s = 0.0
        self.times_s = np.zeros(1)
        self.path_rad = np.array([CELL.home_joints])
        self.joints = self.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.create_subscription(JointTrajectory, names.TRAJECTORY, self.on_trajectory, names.RELIABLE_QOS)
        self.create_timer(0.01, self.publish_joints)

    def on_trajectory(self, message: JointTrajectory) -> None:
        if not message.points:  # a halt
            self.times_s, self.path_rad = np.zeros(1), self.joints_rad[None]
            return
        self.times_s = np.array([convert.nanoseconds_of(point.time_from_start) / 1e9 for point in message.points])
        self.path_rad = np.array([list(point.positions) for point in message.points])
        self.begin_s = time.monotonic() + self.delay_s

    @property
    def joints_rad(self) -> np.ndarray:
        now_s = min((time.monotonic() - self.begin_s) * self.speed, self.times_s[-1] * self.way)
        shake_rad = 0.01 * np.sin(50 * time.monotonic()) if self.shaking else 0.0
        return np.array([np.interp(now_s, self.times_s, angle) for angle in self.path_rad.T]) + shake_rad

    def publish_joints(self) -> None:
        stamp_ns = self.get_clock().now().nanoseconds
        self.joints.publish(convert.joint_state_message(stamp_ns, self.joints_rad, np.zeros(6), 0.14))


class Lift:
    """Outcome of a lift of 20 mm: its result, how high it went [m], how far a joint was from its goal [rad]."""

    def __init__(self, ros: Ros, probe: Probe, robot: LateArm, **parameters: Any) -> None:
        arm = up(ros, ArmNode, **parameters)
        ros.until(lambda: arm.arm.joints_rad is not None)
        before_m = base_from_tcp(arm.arm.joints_rad, CELL)[2, 3]
        goal = ExecuteActions.Goal(chunk=convert.chunk_message(checked_chunk([UP], 0.2), 0))
        self.result = ros.act(probe, ExecuteActions, names.EXECUTE, goal)
        self.lifted_m = self.result.final_pose.pose.position.z - before_m
        self.away_rad = float(np.abs(arm.arm.joints_rad - robot.path_rad[-1]).max())
        self.short = arm.counters["motions that ended short"]


@pytest.mark.parametrize("late", [{"speed": 0.2}, {"delay_s": 1.5}])
def test_a_chunk_is_done_when_an_arm_that_is_late_has_arrived(ros: Ros, probe: Probe, late: dict[str, float]) -> None:
    lift = Lift(ros, probe, ros.add(LateArm, **late))
    assert (lift.result.error_code, lift.result.executed) == (0, 1), lift.result.error_msg
    assert lift.lifted_m == pytest.approx(0.02, abs=2e-3)
    assert lift.away_rad <= ARRIVED_RAD
    assert lift.short == 0


def test_an_arm_that_stands_short_of_its_goal_is_counted(
    ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arm_driver, "STALLED_S", 1.0)
    lift = Lift(ros, probe, ros.add(LateArm, way=0.5))
    assert (lift.result.error_code, lift.result.executed) == (0, 1), lift.result.error_msg
    assert 0.005 < lift.lifted_m < 0.015
    assert lift.away_rad > ARRIVED_RAD
    assert lift.short == 1


def test_an_arm_that_a_speed_slider_slows_down_is_waited_for(ros: Ros, probe: Probe) -> None:
    lift = Lift(ros, probe, ros.add(LateArm, speed=0.08), patience_s=1.0)
    assert (lift.result.error_code, lift.result.executed) == (0, 1), lift.result.error_msg
    assert lift.away_rad <= ARRIVED_RAD


def test_an_arm_that_never_comes_to_rest_is_given_up(ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm_driver, "SLOWEST_SCALING", 1.0)
    lift = Lift(ros, probe, ros.add(LateArm, way=0.5, shaking=True), patience_s=1.0)
    assert (lift.result.error_code, lift.result.executed) == (404, 0)
    assert "still moves 1 s after it should have come to rest" in lift.result.error_msg


@pytest.mark.parametrize("waiting", [False, True])
def test_the_path_begins_after_the_observation_whichever_came_first(ros: Ros, probe: Probe, waiting: bool) -> None:
    """The chunk or the joint states of its observation: they come from two processes."""
    arm = up(ros, ArmNode).arm
    joints = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(joints.get_subscription_count)

    def state(stamp_ns: int, joints_rad: np.ndarray) -> None:
        joints.publish(convert.joint_state_message(stamp_ns, joints_rad, np.zeros(6), 0.14))
        ros.until(lambda: arm.stamp_ns == stamp_ns)

    async def chunk() -> None:
        arm.begin()
        await arm.wait_for_state_after(20)

    state(10, CELL.home_joints)
    if not waiting:
        state(20, CELL.home_joints)
    task = ros.executor.create_task(chunk)
    ros.until(lambda: arm.moving)
    if waiting:
        state(20, CELL.home_joints)
    ros.result(task)
    moved = CELL.home_joints + 0.1
    state(30, moved)
    expected = base_from_tcp(moved, CELL)[:3, 3]
    assert [[point.x, point.y, point.z] for point in arm.end()] == [pytest.approx(expected.tolist())]


def test_results_do_not_heap_up(ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message of a goal's status lists all kept results: each chunk would take longer than the last."""
    monkeypatch.setattr(arm_node, "RESULT_KEPT_S", 1)
    assert Lift(ros, probe, ros.add(LateArm)).result.error_code == 0
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    ros.until(lambda: not arm.server._goal_handles)


def test_a_chunk_that_is_slowed_down_and_grips_is_waited_for() -> None:
    """Else a model that asks for it would have its trial thrown away as a fault of the cell."""
    deltas = [[0.0, 0.0, -0.04 if odd else 0.04, 0, 0, 0, float(odd)] for odd in [False, True] * 20]
    chunk = checked_chunk(deltas, 0.1)
    motion = plan(CELL.home_joints, chunk.deltas, chunk.step_s, chunk.frame, CELL, MODES["reduced"], 1.0)
    assert (motion.verdict.ok, motion.slowdown > 2, len(segments(motion))) == (True, True, 40)
    gripper = Gripper.from_cell(CELL)
    needed_s = sum(part.times_s[-1] + CELL.simulation.settle_s + gripper.travel_time_s for part in segments(motion))
    assert 2 * chunk.step_s * len(deltas) < needed_s < longest_s(chunk, gripper)
