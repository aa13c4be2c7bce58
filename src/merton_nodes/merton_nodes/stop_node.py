"""The stop path: a node and a single-threaded executor of its own, so that nothing else can delay a stop.

It supplements the safety controller of the robot and never replaces it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

from merton_interfaces.msg import SafetyState
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import MertonError
from merton.execution.safety import EmergencyStopLatch
from merton_nodes import conversions as convert
from merton_nodes import names


class StopNode(Node):
    """Holds the latch, sends the stop command, and tells everybody.

    Args:
        latch: the emergency stop; trips on request, on contact reported by the cell, and on predicted collisions.
        on_trip: called after the stop command was sent, from this node's thread or the caller's.
        context: the context of the arm's node.
    """

    def __init__(self, latch: EmergencyStopLatch, on_trip: Callable[[], None], context: Context) -> None:
        super().__init__("stop_node", context=context)
        self.latch, self.on_trip = latch, on_trip
        self.lock = threading.Lock()
        self.commands = self.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.safety = self.create_publisher(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        self.create_service(Trigger, names.STOP, self.on_stop)
        self.create_service(Trigger, names.RESET_STOP, self.on_reset)
        self.create_service(Trigger, names.RELEASE_COLLISION, self.on_release_collision)
        self.create_subscription(SafetyState, names.CELL_SAFETY, self.on_cell_safety, names.LATCHED_QOS)
        self.release = self.create_client(Trigger, names.CELL_RELEASE)
        self.cell_stopped = False
        self.mode = SafetyState.EMERGENCY_STOP if latch.tripped else SafetyState.NORMAL
        self.executor_thread = threading.Thread(target=self.spin, name="stop", daemon=True)
        self.own_executor = SingleThreadedExecutor(context=context)
        self.own_executor.add_node(self)

    def start(self) -> None:
        """Report the state as it is (a latch kept on disk may be tripped), and listen."""
        self.publish(SafetyState(mode=self.mode))
        self.executor_thread.start()

    def spin(self) -> None:
        """The thread of the stop path."""
        with contextlib.suppress(ExternalShutdownException, ShutdownException):
            self.own_executor.spin()

    def end(self) -> None:
        """Stop listening."""
        self.own_executor.shutdown(timeout_sec=5)
        if self.executor_thread.is_alive():
            self.executor_thread.join(5)
        self.destroy_node()

    def trip(self, state: SafetyState) -> None:
        """Stop the arm, latch, and tell everybody; the stop command goes out before anything else."""
        self.commands.publish(JointTrajectory())
        with self.lock:
            first = not self.latch.tripped
            if first or state.mode == SafetyState.EMERGENCY_STOP:  # a person's stop outranks a collision's
                self.mode = state.mode
            try:
                self.latch.trip(state.message or "stopped")
            except MertonError as error:
                self.get_logger().error(str(error))
            if first or state.mode == SafetyState.EMERGENCY_STOP:
                self.get_logger().error(f"emergency stop: {state.message}")
                self.publish(state)
        self.on_trip()

    def on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: stop now."""
        self.trip(SafetyState(mode=SafetyState.EMERGENCY_STOP, message="stopped by request"))
        response.success, response.message = True, "stopped; reset_stop releases"
        return response

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service for people: release the latch, whatever tripped it."""
        return self.reset(response)

    def on_release_collision(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service for experiments: release a stop that a collision caused, never one that a person caused."""
        return self.reset(response, unless_requested=True)

    def reset(self, response: Trigger.Response, *, unless_requested: bool = False) -> Trigger.Response:
        """Release the latch, and ask the cell to release its own stop as well; all in one step, seen from a trip."""
        with self.lock:
            if unless_requested and self.mode == SafetyState.EMERGENCY_STOP:
                response.message = self.latch.reason
                return response
            try:
                self.latch.reset()
            except MertonError as error:
                response.message = str(error)
                return response
            if self.release.service_is_ready():
                self.release.call_async(Trigger.Request())
            self.cell_stopped = False
            self.mode = SafetyState.NORMAL
            self.publish(SafetyState(mode=SafetyState.NORMAL, message="released"))
        response.success, response.message = True, "released"
        return response

    def on_cell_safety(self, state: SafetyState) -> None:
        """The cell reports a contact: latch, once for each time it stops."""
        stopped = state.mode == SafetyState.COLLISION_STOP
        if stopped and not self.cell_stopped:
            self.trip(state)
        self.cell_stopped = stopped

    def publish(self, state: SafetyState) -> None:
        """Tell everybody, now and whoever comes later."""
        state.header = convert.header(self.get_clock().now().nanoseconds, names.BASE_FRAME)
        if self.latch.tripped and not state.message:
            state.message = self.latch.reason
        self.safety.publish(state)
