"""The base of every node: typed parameters, diagnostics, and a main function that starts, spins and ends cleanly."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.exceptions import InvalidParameterTypeException, ParameterException
from rclpy.executors import ExternalShutdownException, ShutdownException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.timer import Timer

from merton.errors import MertonError, UnknownNameError, describe_error
from merton.graph.supervisor import READY, without_shared_memory
from merton.processes import ENDING
from merton_nodes.ros.entities import NewEntities
from merton_nodes.ros.executor import NodeExecutor
from merton_nodes.ros.uniqueness import Uniqueness

Value = TypeVar("Value")

DIAGNOSTICS_PERIOD_S = 1.0
KEPT_BYTES = 128 << 20
"""The most free memory that a process keeps for the next image [bytes]."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
_LARGEST_IN_HEAP = 32 << 20  # the largest value that every 64-bit glibc accepts


class StageNode(LifecycleNode):
    """A lifecycle node that works while it is active and publishes diagnostics.

    Subclasses implement `set_up` (build the library object, wire topics) and, where needed, `start`, `observe` and
    `unfinished`. A node that was cleaned up is set up again, with the parameters it has then.

    Attributes:
        closing: ends the node's resources, the newest first, before the node is cleaned up or destroyed. `set_up`
            registers the end of each when it opens it; all that the node itself makes (publishers, timers, servers of
            actions, ..) ends by itself afterwards.
        exit_code: of the process, if the node ends it by ending its context.

    Args:
        sole_topic: one that this process alone may publish in a ROS domain; empty for none.
    """

    def __init__(self, name: str, *, sole_topic: str = "", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.uniqueness = Uniqueness(self, sole_topic)
        self.active = self.configured = False
        self.exit_code = 1
        self.closing = contextlib.ExitStack()
        self.counters: Counter[str] = Counter()
        """Number of events by name, shown in diagnostics. Names that start with "dropped" or "error" make a warning."""
        self.details: dict[str, str] = {}
        self.wall_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._change_state = self._service_change_state.callback
        self._service_change_state.callback = self._on_change_state
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_timer_s(DIAGNOSTICS_PERIOD_S, self._publish_diagnostics)
        self.add_pre_set_parameters_callback(self._integers_to_doubles)

    def set_up(self) -> None:
        """Build the node. A MertonError raised here ends the configuration with its sentence."""

    def start(self) -> None:
        """Called on activation."""

    def unfinished(self) -> str:
        """The reason why the node, which is inactive, cannot be cleaned up now, as a clause; empty if it can."""
        return ""

    def observe(self) -> None:
        """Called before diagnostics are published, once the node is configured: brings `details` up to date."""

    def _on_change_state(self, request: ChangeState.Request, response: ChangeState.Response) -> ChangeState.Response:
        """Service: carry out a transition; one that the present state does not have is refused, as by rclcpp.

        Ours: rclpy raises it out of the spin instead, which would end the process, and with it the graph.
        """
        wanted, (_, state) = request.transition, self._state_machine.current_state
        offered = {label: number for number, label, *_ in self._state_machine.available_transitions}
        if wanted.label in offered if wanted.label else wanted.id in offered.values():
            return self._change_state(request, response)
        self.get_logger().error(
            f"transition {wanted.label or wanted.id!r} is refused: a node that is {state} has "
            + (", ".join(f"{label} ({number})" for label, number in sorted(offered.items())) or "no transitions")
        )
        response.success = False
        return response

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._made = NewEntities(self)
        if not self._succeeds(self.set_up):
            self._take_down()
            return TransitionCallbackReturn.FAILURE
        self.configured = True
        return super().on_configure(state)

    def _succeeds(self, step: Callable[[], None]) -> bool:
        """Carry out a step of a transition; an error is logged, which rclpy would drop."""
        try:
            step()
        except (MertonError, ParameterException) as error:
            self.get_logger().error(str(error))
            return False
        except Exception as error:
            self.describe(error)
            return False
        return True

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback: end all that `set_up` has made; refused while the node is `unfinished`."""
        if reason := self.unfinished():
            self.get_logger().error(f"{self.get_name()} cannot be cleaned up: {reason}")
            return TransitionCallbackReturn.FAILURE
        self._take_down()
        return super().on_cleanup(state)

    def _take_down(self) -> None:
        """Undo `set_up`, also one that failed; errors are logged."""
        self.configured = False
        self._succeeds(self.closing.close)
        self._made.destroy()
        self.counters.clear()
        self.details.clear()

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.active = True
        if not (self._succeeds(self.uniqueness.require) and self._succeeds(self.start)):
            self.active = False
            return TransitionCallbackReturn.FAILURE
        self.get_logger().info(READY)
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.active = False
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.active = False
        return super().on_shutdown(state)

    def destroy_node(self) -> None:
        """End the node. Ours: rclpy keeps the state machine, and with it the node's name in the ROS graph."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def create_timer_s(self, period_s: float, callback: Callable[[], None], *, autostart: bool = True) -> Timer:
        """A timer on the monotonic clock: simulated time may stand still. Unless `autostart`, `reset` starts it."""
        return self.create_timer(period_s, callback, clock=self.wall_clock, autostart=autostart)

    def parameter(
        self,
        name: str,
        default: Value,
        description: str,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        choices: Iterable[str] = (),
        read_only: bool = True,
    ) -> Value:
        """Declare a parameter, unless it is, with its description and range, and return its value.

        Args:
            name, default, description: its type is that of the default; a double may be given as an integer.
            minimum, maximum: range of a number; both or none.
            choices: of a string, or of each string of a list, in which '' stands for none.
            read_only: whether it is fixed once it is declared.

        Raises:
            UnknownNameError: a value that is none of the `choices`.
            ParameterException: a value of another type or outside of the range.
        """
        choices = tuple(choices)
        descriptor = ParameterDescriptor(description=description, read_only=read_only)
        descriptor.additional_constraints = f"one of: {', '.join(choices)}" if choices else ""
        if minimum is not None and maximum is not None:
            if isinstance(default, float):
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(minimum), to_value=float(maximum))
                ]
            else:
                descriptor.integer_range = [IntegerRange(from_value=int(minimum), to_value=int(maximum))]
        if not self.has_parameter(name):
            try:
                self.declare_parameter(name, default, descriptor)
            except InvalidParameterTypeException:
                given = self._override(name)
                if not isinstance(default, float) or type(given) is not int:
                    raise
                self.declare_parameter(name, float(given), descriptor, ignore_override=True)
        value = cast(Value, self.get_parameter(name).value)
        if choices:
            for item in [value] if isinstance(value, str) else [item for item in cast(list[str], value) if item]:
                if item not in choices:
                    raise UnknownNameError(f"value of {name}", item, choices)
        return value

    def _override(self, name: str) -> object:
        """The value, of any type, that an undeclared parameter was given at the start."""
        value: object = self.declare_parameter(name, None, ParameterDescriptor(dynamic_typing=True)).value
        self.undeclare_parameter(name)
        return value

    def _integers_to_doubles(self, parameters: list[Parameter]) -> list[Parameter]:
        """Callback before parameters are set: 3 is 3.0 for a parameter that is a double. Ours: rclpy refuses it."""
        return [
            Parameter(given.name, Parameter.Type.DOUBLE, float(given.value))
            if given.type_ == Parameter.Type.INTEGER
            and self.has_parameter(given.name)
            and self.get_parameter(given.name).type_ == Parameter.Type.DOUBLE
            else given
            for given in parameters
        ]

    def describe(self, error: Exception) -> str:
        """Count an error and return it in one sentence; the log gets the trace of one that is no MertonError."""
        self.counters["errors"] += 1
        if isinstance(error, MertonError):
            return str(error)
        self.get_logger().error("".join(traceback.format_exception(error)))
        return f"{describe_error(error)}; the log of {self.get_name()} has the trace"

    def _publish_diagnostics(self) -> None:
        if self.configured:
            self.uniqueness.require()
            self.observe()
        troubles = [f"{key}: {n}" for key, n in self.counters.items() if n and key.startswith(("dropped", "error"))]
        values = {**self.details, **{key: str(count) for key, count in sorted(self.counters.items())}}
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if troubles else DiagnosticStatus.OK,
            name=self.get_fully_qualified_name(),
            message="; ".join(["active" if self.active else "inactive", *troubles]),
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)


class Spinner:
    """Spins nodes. It ends before anything it uses is destroyed: first the executor, then the nodes, last the context.

    Ours: `Executor.shutdown` does not wait for the thread that spins, which then finds its guards gone.

    Args:
        context: of the nodes; None for the default one.
    """

    def __init__(self, context: Context | None = None) -> None:
        self.executor = NodeExecutor(context)
        self.ending = False
        self.thread: threading.Thread | None = None

    def spin(self) -> None:
        """Spin in this thread until `ask_to_end` or the end of the context."""
        with contextlib.suppress(ExternalShutdownException, ShutdownException):
            while not self.ending and self.executor.context.ok():
                self.executor.spin_once()

    def start(self, name: str, on_failure: Callable[[], None] | None = None) -> threading.Thread:
        """Spin in a thread of its own; `on_failure` is called while the exception of a callback is being handled."""

        def work() -> None:
            try:
                self.spin()
            except Exception:
                if on_failure is None:
                    raise
                on_failure()

        self.thread = threading.Thread(target=work, name=name, daemon=True)
        self.thread.start()
        return self.thread

    def ask_to_end(self) -> None:
        """Let the current callback be the last. From any thread."""
        self.ending = True
        self.executor.create_task(lambda: None)  # `wake` alone would let it wait for the next message

    def end(self) -> None:
        """End spinning; then the nodes may be destroyed."""
        self.ask_to_end()
        if self.thread is not None:
            self.thread.join(5)
        self.executor.shutdown(timeout_sec=0)  # does not wait for a callback that never ends


def run(make_node: Callable[[], StageNode], args: list[str] | None = None, *, shared_memory: bool = True) -> int:
    """Start a node, bring it up unless its parameter `autostart` is false, and spin until one of `ENDING`.

    Without shared memory a node cannot be blocked by another process that was killed; images need shared memory.

    Called in the main thread. Returns the exit code: 0 after a signal, 1 if the node could not be configured or is not
    alone, the node's `exit_code` if something in the process ended its context, such as a stop path that failed.
    """
    keep_freed_memory()
    if not shared_memory:
        os.environ.update(without_shared_memory(os.environ))
    # not rclpy's handlers: their thread ends the context under the callbacks, and triggers guards that may be gone
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    on_signals(signal.default_int_handler)
    spinner = Spinner()
    node: StageNode | None = None
    code = 0
    try:
        node = make_node()
        node.uniqueness.wait()
        spinner.executor.add_node(node)
        if node.parameter("autostart", True, "configure and activate at once, without a lifecycle manager"):
            succeeded = TransitionCallbackReturn.SUCCESS
            if node.trigger_configure() != succeeded or node.trigger_activate() != succeeded:
                code = 1
        if code == 0:
            gc.freeze()  # objects of the start-up live on: scanning them again would delay a stop
            with ended_by_signals(spinner):
                spinner.spin()
            code = 0 if spinner.ending else node.exit_code
    except KeyboardInterrupt:
        pass
    except MertonError as error:
        print(error, file=sys.stderr)
        code = 1
    finally:
        on_signals(signal.SIG_IGN)  # the end of a node, such as braking an arm, is not to be interrupted
        spinner.end()
        if node is not None:
            node.closing.close()
            node.destroy_node()
        rclpy.try_shutdown()
    return code


def on_signals(handler: Any) -> None:
    """Set the handler of the signals that end a process. In the main thread."""
    for number in ENDING:
        signal.signal(number, handler)


@contextlib.contextmanager
def ended_by_signals(spinner: Spinner) -> Iterator[None]:
    """A signal of `ENDING` asks a spinner to end; the second one interrupts a callback that hangs.

    Python's handlers run only between two instructions of the main thread, which may be waiting in C for a message. So
    the signal is also written into a socket, on which another thread waits.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)

    def listen() -> None:
        while number := reader.recv(1):
            if number[0] in ENDING:  # others with a handler of Python's are written, too, such as SIGCHLD
                spinner.ask_to_end()

    listener = threading.Thread(target=listen, name="signals", daemon=True)
    listener.start()
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    on_signals(lambda *_: on_signals(signal.default_int_handler))
    try:
        yield
    finally:
        on_signals(signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        writer.close()
        listener.join()
        reader.close()


def keep_freed_memory() -> None:
    """Let this process reuse the memory it frees, in place of giving it back to the system.

    Ours: a message with images is copied several times in rclpy and DDS, each time into fresh pages, and allocating
    those takes longer than the copying. Without glibc nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
