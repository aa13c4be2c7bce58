"""The real cell's arm through the UR ROS 2 driver, its gripper through the URCap, behind the topics of the cell.

The driver's controller does not understand an empty trajectory, and knows no heartbeat and no gripper. This node adds
all three; nothing else of Merton talks to the driver but its guard, a process that brakes the arm if this one dies.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import InfrastructureError, InputError, MertonError
from merton.execution.robots.deviation import DeviationMonitor
from merton.execution.robots.watchdog import Watchdog
from merton.world.cell import ARM_JOINTS
from merton_nodes.cell.messages import spline_of, stop_of
from merton_nodes.cell.robot_node import RobotNode
from merton_nodes.cell.ur_driver_guard import UrDriverGuard
from merton_nodes.cell.ur_driver_reports import (
    NORMAL,
    PROTECTIVE_STOP,
    REDUCED,
    STALE_S,
    DriverMessages,
    DriverReports,
    driver_messages,
    why_full_speed,
)
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import run

PERIOD_S, LOOK_S = 0.02, 0.008
"""Periods of the check of the state, and of the look at the driver, so that joint states come at 125 Hz at most as from
ur_robot_node [s]."""


class UrDriverNode(RobotNode):
    """Passes trajectories and stops on to the driver's controller, and reports the robot's state."""

    def __init__(
        self,
        messages: Callable[[], DriverMessages] = driver_messages,
        make_guard: Callable[[str, float], UrDriverGuard] = UrDriverGuard,
        **options: Any,
    ) -> None:
        super().__init__("ur_driver_node", **options)
        self.messages, self.make_guard = messages, make_guard

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
        messages = self.messages()
        self.commands = self.create_publisher(JointTrajectory, names.DRIVER_TRAJECTORY, names.RELIABLE_QOS)
        self.guard, self.guarded_motion = self.make_guard(self.commands.topic_name, timeout_s), False
        self.closing.callback(self.guard.close)
        self.guard.start()
        self.make_gripper(hostname)
        self.gripper.connect(connect_s)
        self.monitor = DeviationMonitor(why_full_speed())
        self.start_limit_s = time.monotonic() + connect_s
        """End of the time in which silence is no fault: the driver starts at the same time as this node."""
        self.opening_m = self.gripper.gripper_opening_m
        self.watchdog = Watchdog([names.HEARTBEAT], timeout_s)
        self.joints = self.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.reports = DriverReports(self, self.on_joints, self.on_safety_mode, self.on_scaling, self.on_foreign_goal)
        self.reports.listen(messages)
        self.offer_state()
        feed = self.watchdog.feed
        self.create_subscription(Header, names.HEARTBEAT, lambda _: feed(names.HEARTBEAT), names.RELIABLE_QOS)
        self.closing.callback(self.halt_if_moving)
        self.unlock = self.create_client(Trigger, names.DRIVER_UNLOCK)
        self.create_service(Trigger, names.CELL_RELEASE, self.on_release)
        self.create_timer_s(PERIOD_S, self.check_state)
        self.create_timer_s(LOOK_S, self.reports.look)

    def halt_if_moving(self) -> None:
        """The last command before the node is destroyed."""
        if self.monitor.moving and self.context.ok():
            self.halt()

    def on_joints(self, stamp_ns: int) -> None:
        """Publish the driver's joint states with the gripper's beside them."""
        joints_rad, velocities_rad_s = self.reports.joints_rad, self.reports.velocities_rad_s
        assert joints_rad is not None
        self.joints.publish(
            convert.joint_state_message(stamp_ns, joints_rad, velocities_rad_s, self.opening_m, linkage=True)
        )

    def on_safety_mode(self, mode: int) -> None:
        """A stop of the safety controller ends the motion."""
        if mode not in (NORMAL, REDUCED):
            self.halt()

    def on_scaling(self, scaling: float) -> None:
        """The pendant's speed slider, and 0 while the robot's program stands: the controller's clock follows it."""
        self.monitor.scale(scaling, time.monotonic())
        self.details["speed scaling"] = f"{self.monitor.scaling:.2f}"

    def on_foreign_goal(self, begun: bool) -> None:
        """Another program's goal has replaced the motion under way; the tolerances of that goal outlive it."""
        if begun and self.monitor.moving:
            self.freeze("a motion was not carried out: another program has sent the controller a goal")
        elif not begun:
            self.get_logger().warning(
                "another program has moved the arm: joint_trajectory_controller applies its tolerances to Merton's "
                "motions until a goal without tolerances comes, or the driver is started again"
            )

    def on_trajectory(self, message: JointTrajectory) -> None:
        if not message.points:  # also while inactive: a stop is never refused
            self.halt()
            return
        if self.fault or self.reports.safety_mode not in (NORMAL, REDUCED):
            self.counters["dropped trajectories"] += 1
            self.reported = None  # publish it again: the sender of this motion does not know it
            return
        try:
            self.begin(message)
        except MertonError as error:
            self.counters["dropped trajectories"] += 1
            self.freeze(f"a motion was refused: {error}")  # its sender believes that the arm moves

    @property
    def controller_listens(self) -> bool:
        """Whether an active controller would get a motion."""
        return self.reports.controller_is_active and self.commands.get_subscription_count() > 0

    def begin(self, message: JointTrajectory) -> None:
        """Pass a motion on; raises InputError with the reason if it cannot be carried out."""
        self.reports.look()
        joints_rad = self.reports.joints_rad
        if not self.active or joints_rad is None or list(message.joint_names) != list(ARM_JOINTS):
            raise InputError("inactive, not the joints of the arm, or the arm has not been seen")
        if not self.controller_listens:
            raise InputError(f"no active controller listens to {self.commands.topic_name}")
        if self.reports.foreign_goal:
            raise InputError("the controller carries out a goal of another program")
        if reason := self.monitor.begin(spline_of(message), joints_rad, time.monotonic()):
            raise InputError(reason)
        try:
            self.tell_guard()
        except InfrastructureError:
            self.monitor.end()
            raise
        self.watchdog.start()
        self.commands.publish(message)

    def tell_guard(self) -> None:
        """Keep the guard informed of a motion, and of its end; raises InfrastructureError if it is not there."""
        if self.monitor.moving or self.guarded_motion:
            self.guarded_motion = self.monitor.moving
            self.guard.tell(self.monitor)

    def halt(self) -> None:
        """Brake the arm, and hold the fingers. Without a reference of the controller: where its motion should be now.

        In the controller's own reference, which its trajectories are joined to, and not where the arm was measured.
        """
        monitor, reports = self.monitor, self.reports
        reference, planned = reports.reference(), monitor.expected(time.monotonic())
        monitor.end()
        with contextlib.suppress(InfrastructureError):
            self.tell_guard()
        self.gripper.stop()
        if reference is not None:
            stop = stop_of(*reference[:3], age_s=reference.age_s, scaling=monitor.scaling)
        elif planned is not None:
            stop = stop_of(*planned, scaling=monitor.scaling)
        elif reports.joints_rad is not None:
            stop = stop_of(reports.joints_rad, np.zeros(6), scaling=monitor.scaling)
        else:
            return
        self.commands.publish(stop)

    def on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: accept commands again; unlocks a protective stop. For a person who has inspected the robot."""
        self.reported, self.fault = None, ""
        if self.reports.safety_mode == PROTECTIVE_STOP and self.unlock.service_is_ready():
            self.unlock.call_async(Trigger.Request())
        response.success = True
        return response

    def check_state(self) -> None:
        """Freeze the robot on a fault, and report the safety state."""
        now_s, reports, mode = time.monotonic(), self.reports, self.reports.safety_mode
        if now_s < self.start_limit_s:
            reports.check(now_s)
            if reports.joints_rad is None or mode is None or not self.controller_listens or not self.guard.ready:
                return
            self.start_limit_s = now_s  # all of it is there
        if self.monitor.moving and self.watchdog.silence(now_s):
            self.freeze(f"no {names.HEARTBEAT} for {self.watchdog.timeout_s:g} s during a motion")
        self.check_driver(now_s)
        self.check_guard()
        self.check_gripper()
        stop = ""
        if mode not in (NORMAL, REDUCED):
            known = {None: "no safety mode", PROTECTIVE_STOP: "a protective stop"}
            stop = f"the driver reports {known.get(mode, f'safety mode {mode}')}"
        self.report(stop, reduced=mode == REDUCED)

    def check_driver(self, now_s: float) -> None:
        """Freeze the robot if the driver is silent, or the arm does not follow its motion."""
        reports = self.reports
        reports.check(now_s)
        if not reports.joints_are_heard:
            self.freeze(f"no {names.DRIVER_JOINT_STATES} from the UR driver")
        elif self.monitor.moving and not reports.controller_is_active:
            self.freeze(f"no {names.DRIVER_CONTROLLER_STATE}: the controller was deactivated during a motion")
        if reports.joints_rad is None or reports.joints_age_s > STALE_S:
            return
        if deviation := self.monitor.deviation(reports.joints_rad, now_s):
            self.freeze(f"a motion was not carried out: {deviation}")

    def check_guard(self) -> None:
        """Freeze the robot if the guard has braked it, or is gone during a motion."""
        if self.guard.braked:
            self.guard.braked = False
            self.freeze(f"this node was silent for {self.watchdog.timeout_s:g} s during a motion: its guard braked it")
        try:
            self.tell_guard()
        except InfrastructureError as error:
            self.freeze(str(error))


def main() -> None:
    sys.exit(run(UrDriverNode, shared_memory=False))
