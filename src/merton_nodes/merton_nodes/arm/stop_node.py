"""The stop path: a node and a single-threaded executor of its own, so that nothing else can delay a stop.

It supplements the safety controller of the robot and never replaces it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from uuid import uuid4

from merton_interfaces.msg import SafetyState
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from merton.errors import MertonError
from merton.execution.gate.latch import EmergencyStopLatch
from merton.execution.gate.permit import permit_text
from merton.execution.gate.safety import Verdict
from merton.execution.gate.stop import Stop, StopEvent, StopState
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.marks import Command, marked
from merton_nodes.ros.runtime import Spinner

HEARTBEAT_PERIOD_S = 0.05
OWN_EVENTS = {
    SafetyState.COLLISION_STOP: StopEvent.COLLISION_PREDICTED,
    SafetyState.EMERGENCY_STOP: StopEvent.STOP,
}
"""Events of arm_node's own, by the mode of their report."""
CELL_EVENTS = {SafetyState.COLLISION_STOP: StopEvent.CELL_COLLISION, SafetyState.FAULT: StopEvent.CELL_FAULT}
"""Events of the cell, by the mode of its report."""


class StopNode(Node):
    """Owns the emergency stop: sends the stop command and every motion command, and publishes the safety state.

    Args:
        latch: the emergency stop.
        on_trip: called after the stop command was sent, from this node's thread or the caller's.
        context: the context of the arm's node.
        running: the mode to report while the stop is not tripped: NORMAL or REDUCED.

    Attributes:
        report: the safety state as it was last published.
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
        self.commands = self.create_publisher(JointTrajectory, names.TRAJECTORY, names.RELIABLE_QOS)
        self.safety = self.create_publisher(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        self.heartbeat = self.create_publisher(Header, names.HEARTBEAT, names.RELIABLE_QOS)
        self.process = uuid4().hex
        """Tells this process from another that takes its place, in every heartbeat."""
        self.create_timer(HEARTBEAT_PERIOD_S, self.beat, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.create_service(Trigger, names.STOP, self.on_stop)
        self.create_service(Trigger, names.RESET_STOP, self.on_reset)
        self.create_service(Trigger, names.RELEASE_COLLISION, self.on_release_collision)
        self.create_subscription(SafetyState, names.CELL_SAFETY, self.on_cell_safety, names.LATCHED_QOS)
        self.release = self.create_client(Trigger, names.CELL_RELEASE)
        mode = SafetyState.EMERGENCY_STOP if latch.tripped else running
        self.report = SafetyState(mode=mode, clearance=convert.UNKNOWN_M, message=latch.reason)
        self.spinner = Spinner(context)
        self.spinner.executor.add_node(self)

    @property
    def state(self) -> Stop:
        """The current state of the stop; may be read from any thread."""
        return self.latch.stop

    def start(self) -> None:
        """Publish the state as it is (a latch kept on disk may be tripped), and listen until `end`."""
        self.publish(self.report)
        if self.spinner.thread is None:
            self.spinner.start("stop", self.fail)

    def fail(self) -> None:
        """End the process after a failure of the stop path: an arm that cannot be stopped must not move."""
        self.latch.note(StopEvent.FAILURE, halt=self.send_stop)
        self.get_logger().fatal(f"the stop path failed, and arm_node with it:\n{traceback.format_exc()}")
        self.context.try_shutdown()

    def end(self) -> None:
        """Stop listening; nothing is sent any more."""
        self.latch.note(StopEvent.SHUTDOWN)
        self.spinner.end()
        self.destroy_node()

    def beat(self) -> None:
        """Publish the heartbeat: a stop would arrive. The cell holds an arm whose heartbeat has ceased."""
        if self.state.accepts(StopEvent.HEARTBEAT):
            self.heartbeat.publish(Header(stamp=self.get_clock().now().to_msg(), frame_id=self.process))

    def send(self, publisher: Publisher, message: Command, since: int) -> bool:
        """Send a command of a motion that began in generation `since`; False, without sending, if that is over."""
        return self.latch.send(since, lambda permit: publisher.publish(marked(message, permit_text(permit))))

    def send_stop(self) -> None:
        """Publish the empty trajectory, which halts the arm where it is."""
        self.commands.publish(JointTrajectory())

    def halt(self, why: Verdict, event: StopEvent = StopEvent.HALT) -> None:
        """Halt the arm where it is, without a latch: the next command moves it again."""
        self.latch.note(event, why, self.send_stop)
        with self.latch.lock:  # an announcement of another thread comes before it or after it, as a whole
            self.publish(self.report)

    def trip(self, report: SafetyState) -> None:
        """Stop for a reason of arm_node's own, COLLISION_STOP or EMERGENCY_STOP; from any thread."""
        self.apply_trip(OWN_EVENTS[report.mode], report)

    def apply_trip(self, event: StopEvent, report: SafetyState) -> None:
        """Stop the arm, latch, and publish the report; the stop command goes out before anything else."""

        def announce() -> None:
            # a person's stop outranks a collision's, which an experiment may release; a fault outranks both
            if report.mode > self.report.mode:
                self.get_logger().error(f"emergency stop: {report.message}")
                self.publish(report)

        try:
            self.latch.trip(event, report.message, self.send_stop, announce)
        except MertonError as error:
            self.get_logger().error(str(error))
        self.on_trip()

    def on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service: stop now."""
        self.trip(
            SafetyState(mode=SafetyState.EMERGENCY_STOP, clearance=convert.UNKNOWN_M, message="stopped by request")
        )
        response.success, response.message = True, "stopped; reset_stop releases"
        return response

    def on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service for people: release the stop, whichever event tripped it."""
        return self.reset(response)

    def on_release_collision(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Service for experiments: release a stop that a collision caused, and no other."""
        return self.reset(response, StopEvent.RESET_BY_EXPERIMENT)

    def reset(self, response: Trigger.Response, event: StopEvent = StopEvent.RESET_BY_OPERATOR) -> Trigger.Response:
        """Release the stop if the table allows it, and ask the cell to release its own stop as well."""
        response.message = "nothing to release"

        def announce(before: Stop) -> None:
            # An experiment may release only a contact that the cell has reported: the robot may have a fault that has
            # not been reported here yet.
            by_operator = event is StopEvent.RESET_BY_OPERATOR
            if (by_operator or before.state is StopState.CONTACT) and self.release.service_is_ready():
                self.release.call_async(Trigger.Request())
            self.publish(SafetyState(mode=self.running, clearance=convert.UNKNOWN_M, message="released"))
            response.message = "released"

        try:
            response.success = self.latch.reset(event, announce)
        except MertonError as error:
            response.message = str(error)
        else:
            if self.latch.tripped:  # refused, or another stop came at the same time
                response.message = self.latch.reason
        return response

    def on_cell_safety(self, report: SafetyState) -> None:
        """The cell reports that it stopped by itself, or that it holds the arm no longer."""
        if (event := CELL_EVENTS.get(report.mode)) is not None:
            self.apply_trip(event, report)
        else:
            self.latch.note(StopEvent.CELL_NORMAL)

    def publish(self, report: SafetyState) -> None:
        """Publish the safety state, also for later subscribers. Its stamp is the permit."""
        report.header = convert.header(self.latch.permit, names.BASE_FRAME)
        if self.latch.tripped and not report.message:
            report.message = self.latch.reason
        self.report = report
        self.safety.publish(report)
