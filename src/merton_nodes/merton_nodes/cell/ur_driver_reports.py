"""The newest reports of the UR ROS 2 driver: joints, safety mode, speed scaling, its controller, goals of others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from action_msgs.msg import GoalStatus, GoalStatusArray
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectoryPoint

from merton.errors import InputError, MissingDependencyError
from merton.execution.robots.watchdog import Watchdog
from merton.world.geometry import Array
from merton_nodes.cell.messages import arm_state_of
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.polled import PolledTopic
from merton_nodes.ros.runtime import StageNode

NORMAL, REDUCED, PROTECTIVE_STOP = 1, 2, 3
"""Modes of ur_dashboard_msgs/SafetyMode; every other value is a stop that a person clears at the robot."""
SILENCE_S, CONTROLLER_SILENCE_S = 0.5, 1.0
"""Silence after which the driver counts as gone, and its controller as not active [s]. Ours: an arm that stands still
is noticed by its path as well, and a busy machine delays the controller's state first."""
STALE_S = 0.1
"""Age of the controller's reference [s] beyond which a moving arm is elsewhere: a stop from there throws it back."""
JUMPS_BEFORE = "3.3.0"
"""Version of ur_controllers since which a late cycle throws no scaled motion to its end. Older ones look for the next
point from the last found one on, at times that then lie before it."""
UNDER_WAY = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING, GoalStatus.STATUS_CANCELING)


class DriverMessages(NamedTuple):
    """The driver's messages: safety mode, state of the controller, and the reference in such a state."""

    safety_mode: type
    controller_state: type
    reference_of: Callable[[Any], JointTrajectoryPoint]


def driver_messages() -> DriverMessages:
    """Those of the UR ROS 2 driver; MissingDependencyError if they are absent."""
    try:
        from control_msgs.msg import JointTrajectoryControllerState
        from ur_dashboard_msgs.msg import SafetyMode
    except ImportError as error:
        raise MissingDependencyError(
            f"not installed: {(error.name or '').split('.')[0]}; run: sudo apt-get install ros-jazzy-ur-robot-driver"
        ) from None
    return DriverMessages(SafetyMode, JointTrajectoryControllerState, lambda state: state.reference)


def why_full_speed() -> str:
    """The reason why the installed ur_controllers needs the full speed; empty without one, or if none is installed."""
    try:
        package = Path(get_package_share_directory("ur_controllers"), "package.xml")
    except PackageNotFoundError:
        return ""
    version = ElementTree.parse(package).findtext("version", default="0.0.0").strip()
    if [int(number) for number in version.split(".")] >= [int(number) for number in JUMPS_BEFORE.split(".")]:
        return ""
    return (
        f"ur_controllers {version} may throw the arm to the end of a motion below 100%; install {JUMPS_BEFORE} or newer"
    )


class JointReference(NamedTuple):
    """The controller's reference: joints [rad], speeds [rad/s] and accelerations [rad/s2] (6,) by its own clock.

    `age_s` is the real time since then [s].
    """

    joints_rad: Array
    velocities_rad_s: Array
    accelerations_rad_s2: Array
    age_s: float


class DriverReports:
    """The driver's newest reports; `listen` subscribes to them.

    Joint states and states of the controller come with every cycle of the controller: `look` takes the newest of each.

    Args:
        node: gets the subscriptions.
        on_joints: called with the stamp [ns] of joint states that are new.
        on_safety_mode: called with every safety mode.
        on_scaling: called with the speed scaling, 0 .. 1.
        on_goal: called when a goal of another program has begun, and when none is left: True, False.

    Attributes:
        safety_mode: None before the first.
        foreign_goal: whether the controller carries out a goal of another program.
        joints_rad: (6,) of the arm; None before the first message.
        velocities_rad_s: (6,) of the arm.
        joints_time_s: when new joint states were last found, on the monotonic clock [s].
        joints_are_heard: whether joint states arrive.
        controller_is_active: whether the controller publishes its state; an inactive one has its topics all the same.
    """

    def __init__(
        self,
        node: StageNode,
        on_joints: Callable[[int], None],
        on_safety_mode: Callable[[int], None],
        on_scaling: Callable[[float], None],
        on_goal: Callable[[bool], None],
    ) -> None:
        self.node, self.on_joints, self.on_safety_mode = node, on_joints, on_safety_mode
        self.on_scaling, self.on_goal = on_scaling, on_goal
        self.safety_mode: int | None = None
        self.foreign_goal = False
        self.joints_rad: Array | None = None
        self.velocities_rad_s = np.zeros(6)
        self.joints_time_s = time.monotonic()
        self.joints_are_heard = self.controller_is_active = False
        self._controller_state, self._controller_time_s = b"", time.monotonic()
        self._joints_watch = Watchdog([names.DRIVER_JOINT_STATES], SILENCE_S)
        self._controller_watch = Watchdog([names.DRIVER_CONTROLLER_STATE], CONTROLLER_SILENCE_S)

    def check(self, now_s: float) -> None:
        """Look, and notice silence; called often, with the monotonic clock [s]."""
        self.look()  # a process that was held up has not read yet: that is not the driver's silence
        if self._joints_watch.silence(now_s):
            self.joints_are_heard = False
        if self._controller_watch.silence(now_s):
            self.controller_is_active = False

    def listen(self, messages: DriverMessages) -> None:
        """Subscribe."""
        listen, self._messages = self.node.create_subscription, messages
        listen(messages.safety_mode, names.DRIVER_SAFETY, self._on_safety, names.LATCHED_QOS)
        listen(Float64, names.DRIVER_SPEED_SCALING, self._on_speed_scaling, names.LATEST_QOS)
        listen(GoalStatusArray, names.DRIVER_GOALS, self._on_goals, names.LATCHED_QOS)
        self._joint_states = PolledTopic(self.node, JointState, names.DRIVER_JOINT_STATES)
        # raw: it is read when the arm is to be stopped
        self._controller_states = PolledTopic(
            self.node, messages.controller_state, names.DRIVER_CONTROLLER_STATE, raw=True
        )

    def look(self) -> None:
        """Take the newest joint states, and the newest state of the controller; called often, after `listen`."""
        if (message := self._joint_states.take()) is not None:
            self._on_joints(message)
        if (state := self._controller_states.take()) is not None:
            self._on_controller(state)

    @property
    def joints_age_s(self) -> float:
        """Age of the newest joint states [s]; before the first, time since the start."""
        return time.monotonic() - self.joints_time_s

    def _on_joints(self, message: JointState) -> None:
        try:
            self.joints_rad, self.velocities_rad_s = arm_state_of(message)
        except InputError:
            self.node.counters["dropped joint states"] += 1
            return
        self.joints_time_s, self.joints_are_heard = time.monotonic(), True
        self._joints_watch.feed(names.DRIVER_JOINT_STATES)
        self.on_joints(convert.nanoseconds_of(message.header.stamp))

    def reference(self) -> JointReference | None:
        """The controller's newest reference, as of now; None if it is older than `STALE_S`, or not one of the arm."""
        self.look()
        arrived_s = time.monotonic() - self._controller_time_s
        if not self._controller_state or arrived_s > STALE_S:
            return None
        state: Any = deserialize_message(self._controller_state, self._messages.controller_state)
        point = self._messages.reference_of(state)
        try:
            joints, velocities, accelerations = (
                convert.joint_values(state.joint_names, values)
                for values in (point.positions, point.velocities, point.accelerations or [0.0] * 6)
            )
        except InputError:
            return None
        stamp_ns = convert.nanoseconds_of(state.header.stamp)
        told_s = (self.node.get_clock().now().nanoseconds - stamp_ns) / 1e9
        # the stamp is the better one where the driver has this machine's clock
        age_s = told_s if arrived_s <= told_s <= STALE_S else arrived_s
        return JointReference(joints, velocities, accelerations, age_s)

    def _on_controller(self, state: bytes) -> None:
        self._controller_state, self._controller_time_s = state, time.monotonic()
        self.controller_is_active = True
        self._controller_watch.feed(names.DRIVER_CONTROLLER_STATE)

    def _on_safety(self, message: Any) -> None:
        self.safety_mode = int(message.mode)
        self.on_safety_mode(self.safety_mode)

    def _on_speed_scaling(self, message: Float64) -> None:
        """In percent; 0 while the robot's program stands."""
        self.on_scaling(message.data / 100)

    def _on_goals(self, message: GoalStatusArray) -> None:
        before, self.foreign_goal = self.foreign_goal, any(goal.status in UNDER_WAY for goal in message.status_list)
        if before != self.foreign_goal:
            self.on_goal(self.foreign_goal)
