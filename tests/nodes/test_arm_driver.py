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

from merton.cell import load_cell
from merton.decision.action import checked_chunk
from merton.execution.kinematics import base_from_tcp
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.arm_driver import ARRIVED_RAD
from merton_nodes.arm_node import ArmNode
from ros import Probe, Ros, up

CELL = load_cell()
UP = [0.0, 0.0, 0.02, 0, 0, 0, 1.0]


class LateArm(Node):
    """Follows trajectories at a fraction of their speed, and no further than a fraction of their way."""

    def __init__(self, speed: float, way: float, **kwargs: Any) -> None:
        super().__init__("late_arm", **kwargs)
        self.speed, self.way = speed, way
        self.begin_s = 0.0
        self.times_s = np.zeros(1)
        self.path_rad = np.array([CELL.home_joints])
        self.joints = self.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.create_subscription(JointTrajectory, names.TRAJECTORY, self.on_trajectory, names.RELIABLE_QOS)
        self.create_timer(0.01, self.tell)

    def on_trajectory(self, message: JointTrajectory) -> None:
        self.times_s = np.array([convert.nanoseconds_of(point.time_from_start) / 1e9 for point in message.points])
        self.path_rad = np.array([list(point.positions) for point in message.points])
        self.begin_s = time.monotonic()

    @property
    def joints_rad(self) -> np.ndarray:
        now_s = min((time.monotonic() - self.begin_s) * self.speed, self.times_s[-1] * self.way)
        return np.array([np.interp(now_s, self.times_s, angle) for angle in self.path_rad.T])

    def tell(self) -> None:
        stamp_ns = self.get_clock().now().nanoseconds
        self.joints.publish(convert.joint_state_message(stamp_ns, self.joints_rad, np.zeros(6), 0.14))


def lifted_by(ros: Ros, probe: Probe, speed: float, way: float) -> tuple[float, float, int]:
    """What a lift of 20 mm came to [m], how far a joint was from its goal [rad], and how often that was counted."""
    robot = ros.add(LateArm, speed, way)
    arm = up(ros, ArmNode)
    ros.until(lambda: arm.arm.joints_rad is not None)
    before_m = base_from_tcp(arm.arm.joints_rad, CELL.tool0_from_tcp)[2, 3]
    goal = ExecuteActions.Goal(chunk=convert.chunk_message(checked_chunk([UP], 0.2), 0))
    result = ros.act(probe, ExecuteActions, names.EXECUTE, goal)
    assert (result.error_code, result.executed) == (0, 1), result.error_msg
    away_rad = float(np.abs(arm.arm.joints_rad - robot.path_rad[-1]).max())
    return result.final_pose.pose.position.z - before_m, away_rad, arm.counters["motions that ended short"]


def test_a_chunk_is_done_when_an_arm_that_is_late_has_arrived(ros: Ros, probe: Probe) -> None:
    lifted_m, away_rad, short = lifted_by(ros, probe, speed=0.2, way=1.0)
    assert lifted_m == pytest.approx(0.02, abs=2e-3)
    assert away_rad <= ARRIVED_RAD
    assert short == 0


def test_an_arm_that_stands_short_of_its_goal_is_counted(ros: Ros, probe: Probe) -> None:
    lifted_m, away_rad, short = lifted_by(ros, probe, speed=0.5, way=0.5)
    assert 0.005 < lifted_m < 0.015
    assert away_rad > ARRIVED_RAD
    assert short == 1
