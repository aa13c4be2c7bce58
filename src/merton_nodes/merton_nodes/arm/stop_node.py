"""The stop path: a node and a single-threaded executor of its own, so that nothing else can delay a stop.

It supplements the safety controller of the robot and never replaces it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from merton_interfaces.msg import SafetyState
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import MertonError
from merton.execution.gate.safety import EmergencyStopLatch
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import Spinner

HEARTBEAT_PERIOD_S = 0.05
STOPS_BY_THEMSELVES = (SafetyState.COLLISION_STOP, SafetyState.FAULT)
"""What the cell reports of its own accord."""


class StopNode(Node):
    """Holds the latch, sends the stop command, and tells everybody. Whatever moves the arm is sent through it.

    Args:
        latch: the emergency stop; trips on request, on contact or a fault reported by the cell, and on predicted
            collisions.
        on_trip: called after the stop command was sent, from this node's thread or the caller's.
        context: the context of the arm's node.
        running: the mode to report while the stop is not tripped: NORMAL or REDUCED.
    """

    def __init__(
        self,
        latch: EmergencyStopLatch,
        on_trip: Callable[[], None],
        context: Context,
        running: int = SafetyState.NORMAL,
    ) -> None:
        super().__init__("stop_node", context=context)
        self.latch, self.on_trip, self.running = latch, on_trip, running
        self.lock = threading.Lock()
        """Around the latch and what is said about it; may be held while a file is written."""
        self.gate = threading.Lock()
        """Around sending; never held for longer than that takes, so a stop can always go out."""
        self.trips = int(latch.tripped)
        self.released = 0
        """The gate is open if every trip so far has been released."""
        self.commands = self.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.safety = self.create_publisher(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        self.heartbeat = self.create_publisher(Header, names.HEARTBEAT, names.RELIABLE_QOS)
        self.create_timer(HEARTBEAT_PERIOD_S, self.beat, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.create_service(Trigger, names.STOP, self.on_stop)
        self.create_service(Trigger, names.RESET_STOP, self.on_reset)
        self.create_service(Trigger, names.RELEASE_COLLISION, self.on_release_collision)
        self.create_subscription(SafetyState, names.CELL_SAFETY, self.on_cell_safety, names.LATCHED_QOS)
        self.release = self.create_client(Trigger, names.CELL_RELEASE)
        self.cell_stopped = False
        # why a latch was tripped in an earlier life is not known: then only a person may release it
        mode = SafetyState.EMERGENCY_STOP if latch.tripped else running
        self.state = SafetyState(mode=mode, clearance=convert.UNKNOWN_M)
        self.spinner = Spinner(context)
        self.spinner.executor.add_node(self)

    def start(self) -> None:
        """Report the state as it is (a latch kept on disk may be tripped), and listen until `end`."""
        self.publish(self.state)
        if self.spinner.thread is None:
            self.spinner.start("stop", self.fail)

    def fail(self) -> None:
        """The stop path failed, and with it the process ends: nothing may move that cannot be stopped."""
        with self.gate:
            self.trips += 1  # from now on nothing is sent
            self.commands.publish(JointTrajectory())
        self.get_logger().fatal(f"the stop path failed, and arm_node with it:\n{traceback.format_exc()}")
        self.context.try_shutdown()

    def end(self) -> None:
        """Stop listening."""
        self.spinner.end()
        self.destroy_node()

    def beat(self) -> None:
        """Say that a stop would be heard: the cell holds an arm whose heartbeat has ceased."""
        self.heartbeat.publish(Header(stamp=self.get_clock().now().to_msg()))

    def send(self, publisher: Publisher, message: Any) -> bool:
        """Send a command that moves something; returns False, and sends nothing, while the stop is tripped."""
        with self.gate:
            if self.trips != self.released:
                return False
            publisher.publish(message)
            return True

    def halt(self) -> None:
        """Stop the arm where it is, without a latch: the next command moves it again."""
        with self.gate:
            self.commands.publish(JointTrajectory())

    def trip(self, state: SafetyState) -> None:
        """Stop the arm, latch, and tell everybody; the stop command goes out before anything else."""
        with self.gate:
            self.trips += 1
            self.commands.publish(JointTrajectory())
        with self.lock:
            # a person's stop outranks a collision's, which an experiment may release; a fault outranks both
            news = not self.latch.tripped or state.mode > self.state.mode
            if news:
                self.state = state
            self.released = min(self.released, self.trips - 1)  # a reset may have come between
            try:
                self.latch.trip(state.message or "stopped")
            except MertonError as error:
                self.get_logger().error(str(error))
            if news:
                self.get_logger().error(f"emergency stop: {state.message}")
                self.publish(state)
        self.on_trip()

    def on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: stop now."""
        self.trip(
            SafetyState(mode=SafetyState.EMERGENCY_STOP, clearance=convert.UNKNOWN_M, message="stopped by request")
        )
        response.success, response.message = True, "stopped; reset_stop releases"
        return response

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service for people: release the latch, whatever tripped it."""
        return self.reset(response)

    def on_release_collision(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service for experiments: release a stop that a collision caused, and no other."""
        return self.reset(response, only_collision=True)

    def reset(self, response: Trigger.Response, *, only_collision: bool = False) -> Trigger.Response:
        """Release the latch, and ask the cell to release its own stop as well; a trip meanwhile stays.

        With `only_collision`, for experiments: a stop of another cause stays, and so does one not yet heard of.
        """
        with self.lock:
            seen = self.trips
            if only_collision and self.state.mode in (SafetyState.EMERGENCY_STOP, SafetyState.FAULT):
                response.message = self.latch.reason
                return response
            if only_collision and not self.latch.tripped:
                response.success, response.message = True, "nothing to release"
                return response
            try:
                self.latch.reset()
            except MertonError as error:
                response.message = str(error)
                return response
            # for an experiment only what the cell reported: it may have come to a fault that is not known here yet
            if (not only_collision or self.cell_stopped) and self.release.service_is_ready():
                self.release.call_async(Trigger.Request())
            self.cell_stopped = False
            self.state = SafetyState(mode=self.running, clearance=convert.UNKNOWN_M, message="released")
            self.released = seen
            self.publish(self.state)
        response.success, response.message = True, "released"
        return response

    def on_cell_safety(self, state: SafetyState) -> None:
        """The cell reports that it stopped by itself: latch, once for each time it does."""
        stopped = state.mode in STOPS_BY_THEMSELVES
        if stopped and not self.cell_stopped:
            self.trip(state)
        self.cell_stopped = stopped

    def publish(self, state: SafetyState) -> None:
        """Tell everybody, now and whoever comes later."""
        state.header = convert.header(self.get_clock().now().nanoseconds, names.BASE_FRAME)
        if self.latch.tripped and not state.message:
            state.message = self.latch.reason
        self.safety.publish(state)
