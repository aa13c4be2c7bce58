"""The real cell's arm and gripper behind the cell's topics: an arm of UR's through RTDE, a 2F-140 through its URCap."""

from __future__ import annotations

import sys
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import InputError, MertonError
from merton.execution.robots.rtde import RtdeRobot
from merton.execution.robots.safety_status import REDUCED_BIT
from merton.world.cell import ARM_JOINTS, load_cell
from merton_nodes.cell.messages import spline_of
from merton_nodes.cell.robot_node import RobotNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import run

PERIOD_S = 0.008
"""Joint states at 125 Hz, as the controller reports them."""
NO_ERROR = ("", "reached", "stopped by request", "replaced by another motion")
"""Results of a motion that are no error."""


class UrRobotNode(RobotNode):
    """Passes trajectories, gripper commands and stops on, and reports the robot's state."""

    def __init__(self, **options: Any) -> None:
        super().__init__("ur_robot_node", **options)

    def set_up(self) -> None:
        hostname = self.parameter("hostname", "127.0.0.1", "address of the UR controller")
        gripper_hostname = self.parameter(
            "gripper_hostname", "", "address of the gripper's socket; empty: of the controller"
        )
        timeout_s = self.parameter(
            "heartbeat_timeout_s",
            0.2,
            "time without arm/heartbeat after which a motion is held [s]; 0: never",
            minimum=0.0,
            maximum=60.0,
        )
        connect_s = self.parameter(
            "connect_timeout_s", 15.0, "time to connect to arm and gripper [s]", minimum=1.0, maximum=120.0
        )
        self.robot = RtdeRobot(hostname, load_cell().arm, timeout_s)
        self.make_gripper(gripper_hostname or hostname)
        self.closing.callback(self.robot.close)  # before the gripper's: it stops the arm
        self.robot.connect(connect_s)
        self.gripper.connect(connect_s)
        self.opening_m = self.gripper.gripper_opening_m
        self.controller_s = 0.0
        self.motion = 0
        self.joints = self.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.offer_state()
        self.create_subscription(Header, names.HEARTBEAT, lambda _: self.robot.beat(), names.RELIABLE_QOS)
        self.create_service(Trigger, names.CELL_RELEASE, self.on_release)
        self.create_timer_s(PERIOD_S, self.check_state)

    def on_trajectory(self, message: JointTrajectory) -> None:
        if not message.points:  # also while inactive: a stop is never refused
            self.halt()
            return
        if self.fault:
            self.counters["dropped trajectories"] += 1
            self.reported = None  # publish it again: the sender of this motion does not know it
            return
        try:
            if not self.active or list(message.joint_names) != list(ARM_JOINTS):
                raise InputError("inactive, or not the joints of the arm")
            spline = spline_of(message)
            self.motion = self.robot.follow(spline.times_s, spline.joints_rad, spline.velocities_rad_s)
        except MertonError as error:
            self.counters["dropped trajectories"] += 1
            self.freeze(f"a motion was refused: {error}")  # its sender believes that the arm moves

    def halt(self) -> None:
        self.robot.stop()
        self.gripper.stop()

    def on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: accept commands again; unlocks a protective stop. For a person who has inspected the robot."""
        self.reported = None  # publish it again: the latch released with this must learn of a stop that remains
        reading = self.robot.reading
        try:
            if reading is not None and reading.stopped:
                self.robot.unlock_protective_stop()
        except MertonError as error:
            response.message = str(error)
            return response
        self.fault, self.motion = "", 0
        response.success = True
        return response

    def check_state(self) -> None:
        """Freeze the robot on a fault, publish new joint states, and report the safety state."""
        reading = self.robot.reading
        if self.motion and (result := self.robot.result_of(self.motion)) not in NO_ERROR:
            self.freeze(f"a motion was not carried out: {result}")
        if reading is None:
            self.freeze(f"no connection to the controller: {self.robot.error}")
        self.check_gripper()
        if reading is not None and reading.time_s != self.controller_s:
            self.controller_s = reading.time_s
            stamp_ns = self.get_clock().now().nanoseconds
            speeds = reading.velocities_rad_s
            self.joints.publish(
                convert.joint_state_message(stamp_ns, reading.joints_rad, speeds, self.opening_m, linkage=True)
            )
        stop = f"the controller reports: {reading.stopped}" if reading is not None and reading.stopped else ""
        self.report(stop, reduced=reading is not None and bool(reading.safety_bits & REDUCED_BIT))


def main() -> None:
    sys.exit(run(UrRobotNode, shared_memory=False))
