"""The process that brakes the arm if ur_driver_node dies or hangs during a motion.

The controller of the UR ROS 2 driver has the whole motion, and would carry it out to its end. Ours: a second process is
all that is left after kill -9, and a motion in short pieces would make every late message a change of speed.
"""

from __future__ import annotations

import signal
import time
from multiprocessing.connection import Connection

import rclpy
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from trajectory_msgs.msg import JointTrajectory

from merton.errors import InfrastructureError, MertonError
from merton.execution.robots.deviation import DeviationMonitor
from merton.graph.supervisor import enclave
from merton.processes import SupervisedDriver
from merton_nodes.cell.messages import stop_of
from merton_nodes.ros import names

NAME = "ur_driver_guard"
_READY, _BRAKED = "ready", "braked"
AGAIN_S = 1.0
"""Pause before a guard that has ended is replaced [s]. Ours."""
LOOK_S = 0.1
"""Time between two looks whether the controller is there [s]. Ours."""
DELIVERY_S = 1.0
"""The longest time in which the last command of a guard is delivered [s]. Ours."""


class UrDriverGuard:
    """Starts the process, and keeps it informed.

    Args:
        topic: of the controller's commands, with its namespace.
        silence_s: time without `tell` during a motion after which the process brakes the arm [s].
    """

    def __init__(self, topic: str, silence_s: float) -> None:
        self.braked = False
        """Whether the process has braked the arm, because this one was silent during a motion; reset by its reader."""
        self.ready = False
        """Whether the process watches, and the controller hears it."""
        self._told: tuple[int | None, int] = (None, 0)
        """Pid of the process, and `DeviationMonitor.changes` of the monitor, at the last `tell`."""
        self._process = SupervisedDriver(
            NAME, guard, (topic, silence_s), float("inf"), "", self._on_message, self._on_end
        )

    @property
    def pid(self) -> int | None:
        """The process that watches now."""
        return self._process.pid

    def start(self) -> None:
        """Start it. One that ends is replaced until `close`."""
        self._process.start()

    def tell(self, monitor: DeviationMonitor) -> None:
        """The motion under way or its end; called often during a motion, by a process that works.

        The process gets the monitor if it has changed, else None, which says that this process works.
        Raises InfrastructureError if no process watches, or it hangs.
        """
        if not self.ready:
            raise InfrastructureError(f"no {NAME}, the process that brakes the arm if this one dies")
        told = (self.pid, monitor.changes)
        self._process.send(monitor if told != self._told else None, wait=False)
        self._told = told

    def close(self) -> None:
        """End it."""
        self._process.close()

    def _on_message(self, message: str) -> float:
        if message == _READY:
            self.ready = True
        else:
            self.braked = True
        return float("inf")

    def _on_end(self, _: MertonError | None) -> float:
        self.ready = False
        return AGAIN_S


def guard(topic: str, silence_s: float, link: Connection) -> None:
    """The process: follows the plan of the motion, and brakes the arm if the pipe ends or is silent meanwhile."""
    for number in (signal.SIGINT, signal.SIGHUP):  # of a terminal: they come to the node, too, which it outlives
        signal.signal(number, signal.SIG_IGN)
    context = Context()
    rclpy.init(
        args=["--ros-args", *enclave("ur_driver_node")],
        context=context,
        signal_handler_options=SignalHandlerOptions.NO,
    )
    node = Node(NAME, context=context, use_global_arguments=False)
    commands = node.create_publisher(JointTrajectory, topic, names.RELIABLE_QOS)
    monitor = DeviationMonitor()

    def brake(state: str) -> None:
        planned = monitor.expected(time.monotonic())
        if planned is not None:
            commands.publish(stop_of(*planned, scaling=monitor.scaling))
            delivered = commands.wait_for_all_acked(Duration(seconds=DELIVERY_S))
            node.get_logger().error(
                f"ur_driver_node is {state} during a motion: the arm is braked"
                + ("" if delivered else ", but the controller has not acknowledged the command")
            )
        monitor.end()

    try:
        while commands.get_subscription_count() == 0:
            if link.poll(LOOK_S):
                monitor = link.recv() or monitor
        link.send(_READY)
        while True:
            if link.poll(silence_s if monitor.moving else None):
                monitor = link.recv() or monitor
            else:
                brake(f"silent for {silence_s:g} s")
                link.send(_BRAKED)
    except (EOFError, OSError):
        brake("gone")
    node.destroy_node()
    rclpy.shutdown(context=context)
