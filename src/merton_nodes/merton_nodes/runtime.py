"""What every node shares: typed parameters, diagnostics, and a main function that starts, spins and ends cleanly."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from rclpy.timer import Timer

from merton.errors import MertonError

DIAGNOSTICS_PERIOD_S = 1.0
KEPT_BYTES = 128 << 20
"""Memory that is free and yet kept for the next image, in a process, at most [bytes]."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
_LARGEST_IN_HEAP = 32 << 20  # the most that every glibc of 64 bits takes


class StageNode(LifecycleNode):
    """A lifecycle node that works while it is active and says how it is doing.

    Subclasses implement `set_up` (build the library object, wire topics) and, where needed, `start` and `tear_down`.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.active = False
        self.counters: Counter[str] = Counter()
        """What happened how often; shown in diagnostics. Names that start with "dropped" or "error" make a warning."""
        self.details: dict[str, str] = {}
        self.wall_clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.every(DIAGNOSTICS_PERIOD_S, self._publish_diagnostics)

    def set_up(self) -> None:
        """Build what the node works with. A MertonError raised here ends the configuration with its sentence."""

    def start(self) -> None:
        """Called on activation."""

    def tear_down(self) -> None:
        """Give back what `set_up` took, beyond publishers, subscriptions, services and timers."""

    def observe(self) -> None:
        """Called before diagnostics are published: the place to bring `details` up to date."""

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback."""
        try:
            self.set_up()
        except (MertonError, ParameterException) as error:
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # rclpy would drop it without a word
            self.explain(error)
            return TransitionCallbackReturn.FAILURE
        return super().on_configure(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback: refused. A node is configured once; to change what is read-only, start it anew."""
        self.get_logger().error("a node of Merton is configured once: start it anew instead of cleaning it up")
        return TransitionCallbackReturn.FAILURE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback."""
        self.active = True
        self.start()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback."""
        self.active = False
        return super().on_deactivate(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle callback."""
        self.active = False
        return super().on_shutdown(state)

    def every(self, period_s: float, callback: Callable[[], None], *, autostart: bool = True) -> Timer:
        """A timer on the monotonic clock: simulated time may stand still. Unless `autostart`, `reset` starts it."""
        return self.create_timer(period_s, callback, clock=self.wall_clock, autostart=autostart)

    def parameter(
        self,
        name: str,
        default: Any,
        description: str,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        read_only: bool = True,
    ) -> Any:
        """Declare a parameter with its description and range, and return its value."""
        descriptor = ParameterDescriptor(description=description, read_only=read_only)
        if minimum is not None and maximum is not None:
            if isinstance(default, float):
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(minimum), to_value=float(maximum))
                ]
            else:
                descriptor.integer_range = [IntegerRange(from_value=int(minimum), to_value=int(maximum))]
        return self.declare_parameter(name, default, descriptor).value

    def explain(self, error: Exception) -> str:
        """An error in one sentence; what is no MertonError leaves its trace in the log. Counted in diagnostics."""
        self.counters["errors"] += 1
        if isinstance(error, MertonError):
            return str(error)
        self.get_logger().error("".join(traceback.format_exception(error)))
        return f"{type(error).__name__}: {error}; the log of {self.get_name()} has the trace"

    def _publish_diagnostics(self) -> None:
        self.observe()
        troubled = any(count and key.startswith(("dropped", "error")) for key, count in self.counters.items())
        values = {**self.details, **{key: str(count) for key, count in sorted(self.counters.items())}}
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if troubled else DiagnosticStatus.OK,
            name=self.get_fully_qualified_name(),
            message="active" if self.active else "inactive",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)


def run(make_node: Callable[[], StageNode], args: Sequence[str] | None = None) -> int:
    """Start a node, bring it up unless its parameter `autostart` is false, and spin until SIGINT or SIGTERM.

    Returns the exit code: 0 after a shutdown, 1 if the node could not be configured.
    """
    keep_freed_memory()
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.ALL)
    executor = SingleThreadedExecutor()
    node: StageNode | None = None
    code = 0
    try:
        node = make_node()
        executor.add_node(node)
        if node.parameter("autostart", True, "configure and activate at once, without a lifecycle manager"):
            succeeded = TransitionCallbackReturn.SUCCESS
            if node.trigger_configure() != succeeded or node.trigger_activate() != succeeded:
                code = 1
        if code == 0:
            executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except MertonError as error:
        print(error, file=sys.stderr)
        code = 1
    finally:
        # asked again, as by a second Ctrl-C: what is on its way, such as braking an arm, is not to be cut off
        with contextlib.suppress(ValueError):  # only the main thread has signals
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
        executor.shutdown(timeout_sec=5)
        if node is not None:
            node.tear_down()
            node.destroy_node()
        shut_down()
    return code


def keep_freed_memory() -> None:
    """Let this process keep what it frees for what it asks for next, in place of giving it back to the system.

    Ours: a message with images is copied again and again on its way through rclpy and DDS, each time into fresh pages,
    and handing those out takes longer than the copying. Without glibc nothing happens.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)


def shut_down() -> None:
    """End ROS in this process; the signal handler's thread may be doing the same at this moment."""
    with contextlib.suppress(RuntimeError):
        rclpy.try_shutdown()
