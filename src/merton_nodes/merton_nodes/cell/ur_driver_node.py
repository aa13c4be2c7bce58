"""The real cell's arm through the UR ROS 2 driver, its gripper through the URCap, behind the topics of the cell.

The driver's controller does not understand an empty trajectory, and knows no heartbeat and no gripper. This node adds
all three; nothing else of Merton talks to the driver.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import InputError, MertonError, MissingDependencyError
from merton.execution.robots.deviation import DeviationMonitor
from merton.execution.robots.watchdog import Watchdog
from merton.world.cell import ARM_JOINTS
from merton_nodes.cell.messages import motion_to, spline_of
from merton_nodes.cell.robot_node import RobotNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import run

PERIOD_S = 0.02
BRAKE_S = 0.1
"""Time in which a halted arm comes to rest [s]."""
SILENCE_S = 0.5
"""Silence of the joint states after which the driver counts as gone [s]."""
STALE_S = 0.1
"""Age of joint states [s] beyond which a moving arm is elsewhere: holding it there would throw it back."""
NORMAL, REDUCED, PROTECTIVE_STOP = 1, 2, 3
"""Of ur_dashboard_msgs/SafetyMode; every other value is a stop that a person clears at the robot."""


def driver_safety(node: Node, on_mode: Callable[[int], None]) -> None:
    """Listen to the driver's safety mode; raises MissingDependencyError without the driver's messages."""
    try:
        from ur_dashboard_msgs.msg import SafetyMode
    except ImportError:
        raise MissingDependencyError(
            "not installed: ur_dashboard_msgs; run: sudo apt-get install ros-jazzy-ur-robot-driver"
        ) from None

    def on_message(message: Any) -> None:
        on_mode(int(message.mode))

    node.create_subscription(SafetyMode, names.DRIVER_SAFETY, on_message, names.LATCHED_QOS)


class UrDriverNode(RobotNode):
    """Passes trajectories and stops on to the driver's controller, and reports the robot's state."""

    def __init__(self, listen_to_safety: Callable[..., None] = driver_safety, **options: Any) -> None:
        super().__init__("ur_driver_node", **options)
        self.listen_to_safety = listen_to_safety

    def set_up(self) -> None:
        hostname = self.parameter("gripper_hostname", "127.0.0.1", "address of the gripper's socket: the controller's")
        timeout_s = self.parameter(
            "heartbeat_timeout_s",
            0.2,
            "time without arm/heartbeat after which a motion is held [s]",
            minimum=0.05,
            maximum=60.0,
        )
        connect_s = self.parameter(
            "connect_timeout_s",
            15.0,
            "time to connect to the gripper, and then to hear the driver [s]",
            minimum=1.0,
            maximum=120.0,
        )
        self.make_gripper(hostname)
        self.gripper.connect(connect_s)
        self.monitor = DeviationMonitor()
        self.joints_rad: NDArray[np.float64] | None = None
        self.joints_time_s = time.monotonic()
        """When joint states last arrived, on the monotonic clock [s]."""
        self.silent = False
        self.start_limit_s = self.joints_time_s + connect_s
        """Until then silence is no fault: the driver starts at the same time as this node."""
        self.safety_mode: int | None = None
        self.opening_m = self.gripper.gripper_opening_m
        self.watchdog = Watchdog([names.HEARTBEAT], timeout_s)
        self.joints = self.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.offer_state()
        self.commands = self.create_publisher(JointTrajectory, names.DRIVER_TRAJECTORY, names.RELIABLE_QOS)
        self.create_subscription(JointState, names.DRIVER_JOINT_STATES, self.on_joints, names.LATEST_QOS)
        self.listen_to_safety(self, self.on_safety_mode)
        feed = self.watchdog.feed
        self.create_subscription(Header, names.HEARTBEAT, lambda _: feed(names.HEARTBEAT), names.RELIABLE_QOS)
        self.closing.callback(self.halt_if_moving)
        self.unlock = self.create_client(Trigger, names.DRIVER_UNLOCK)
        self.create_service(Trigger, names.CELL_RELEASE, self.on_release)
        self.create_timer_s(PERIOD_S, self.check_state)

    def halt_if_moving(self) -> None:
        """The last command before the node is destroyed."""
        if self.monitor.moving and self.context.ok():
            self.halt()

    def on_joints(self, message: JointState) -> None:
        """Publish the driver's joint states with the gripper's beside them."""
        position, velocity = (
            dict(zip(message.name, values, strict=False)) for values in (message.position, message.velocity)
        )
        if not set(ARM_JOINTS) <= position.keys():
            self.counters["dropped joint states"] += 1
            return
        self.joints_rad = np.array([position[name] for name in ARM_JOINTS])
        speeds = np.array([velocity.get(name, 0.0) for name in ARM_JOINTS])
        self.joints_time_s = time.monotonic()
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        self.joints.publish(
            convert.joint_state_message(stamp_ns, self.joints_rad, speeds, self.opening_m, linkage=True)
        )

    def on_safety_mode(self, mode: int) -> None:
        """Store the mode of the safety controller; a stop ends the motion."""
        self.safety_mode = mode
        if mode not in (NORMAL, REDUCED):
            self.halt()

    def on_trajectory(self, message: JointTrajectory) -> None:
        if not message.points:  # also while inactive: a stop is never refused
            self.halt()
            return
        joints, now_s = self.joints_rad, time.monotonic()
        if self.fault or self.safety_mode not in (NORMAL, REDUCED):
            self.counters["dropped trajectories"] += 1
            self.reported = None  # publish it again: the sender of this motion does not know it
            return
        try:
            if not self.active or joints is None or list(message.joint_names) != list(ARM_JOINTS):
                raise InputError("inactive, not the joints of the arm, or the arm has not been seen")
            spline = spline_of(message)
        except MertonError as error:
            self.counters["dropped trajectories"] += 1
            self.freeze(f"a motion was refused: {error}")  # its sender believes that the arm moves
            return
        if reason := self.monitor.begin(spline, joints, now_s):
            self.freeze(f"a motion was refused: {reason}")
            return
        self.watchdog.start()
        self.commands.publish(message)

    def halt(self) -> None:
        """Hold arm and fingers where they are; an arm without recent joint states: where its motion should be now."""
        now_s, joints_rad = time.monotonic(), self.joints_rad
        if now_s - self.joints_time_s > STALE_S and (expected := self.monitor.expected(now_s)) is not None:
            joints_rad = expected
        self.monitor.end()
        self.gripper.stop()
        if joints_rad is not None:
            self.commands.publish(motion_to(joints_rad, BRAKE_S))

    def on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: accept commands again; unlocks a protective stop. For a person who has inspected the robot."""
        self.reported, self.fault = None, ""
        if self.safety_mode == PROTECTIVE_STOP and self.unlock.service_is_ready():
            self.unlock.call_async(Trigger.Request())
        response.success = True
        return response

    def check_state(self) -> None:
        """Freeze the robot on a fault, and report the safety state."""
        now_s = time.monotonic()
        if (self.joints_rad is None or self.safety_mode is None) and now_s < self.start_limit_s:
            return
        if self.monitor.moving and self.watchdog.silence(now_s):
            self.freeze(f"no {names.HEARTBEAT} for {self.watchdog.timeout_s:g} s during a motion")
        joints_rad = self.joints_rad
        silent = joints_rad is None or now_s - self.joints_time_s > SILENCE_S
        silent_before, self.silent = self.silent, silent
        if silent and silent_before:  # twice: after a pause of this node's own, messages of the driver are still queued
            self.freeze(f"no {names.DRIVER_JOINT_STATES} from the UR driver")
        elif joints_rad is not None and not silent and (deviation := self.monitor.deviation(joints_rad, now_s)):
            self.freeze(f"a motion was not carried out: {deviation}")
        self.check_gripper()
        stop = ""
        if self.safety_mode not in (NORMAL, REDUCED):
            known = {None: "no safety mode", PROTECTIVE_STOP: "a protective stop"}
            stop = f"the driver reports {known.get(self.safety_mode, f'safety mode {self.safety_mode}')}"
        self.report(stop, reduced=self.safety_mode == REDUCED)


def main() -> None:
    sys.exit(run(UrDriverNode))
