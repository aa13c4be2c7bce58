"""The base of both nodes of the lab's robot: commands, faults that freeze it, the safety state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from merton_interfaces.msg import SafetyState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from merton.errors import MertonError
from merton.execution.robots.gripper import Gripper
from merton.execution.robots.urcap import UrcapGripper, fault_sentence
from merton.world.cell import load_cell
from merton_nodes.cell.guarded_commands import GuardedCommands
from merton_nodes.cell.messages import cell_safety
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode


class RobotNode(StageNode, ABC):
    """A node between the cell's topics and a robot that a fault freezes.

    Attributes:
        gripper: the 2F-140; the subclass connects it, and the end of the node closes it.
        opening_m: of the gripper, newest measurement.
        fault: why nothing moves until `cell/release_stop`; empty if nothing is wrong.
        reported: mode and reason as last published; None to publish them again.
    """

    gripper: UrcapGripper

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, sole_topic=names.JOINT_STATES, **options)
        self.fault = ""
        self.opening_m = 0.0
        self.reported: tuple[int, str] | None = None

    @abstractmethod
    def on_trajectory(self, message: JointTrajectory) -> None:
        """A new trajectory replaces the running one; an empty one stops arm and fingers where they are."""

    @abstractmethod
    def halt(self) -> None:
        """Stop arm and fingers where they are."""

    def make_gripper(self, hostname: str) -> None:
        """Make `gripper` at an address; called by `set_up`."""
        cell = load_cell(linkage=True)
        self.gripper = UrcapGripper(hostname, Gripper.from_cell(cell), cell.gripper.max_speed, cell.gripper.max_force)
        self.closing.callback(self.gripper.close)

    def offer_state(self) -> None:
        """Wire the safety state and the commands; called by `set_up`."""
        self.reported = None
        self.safety = self.create_publisher(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.guarded = GuardedCommands(self, self.on_trajectory, self.on_gripper)

    def on_gripper(self, message: Float64MultiArray) -> None:
        """One number: the position of the finger joint [m], half the opening."""
        try:
            if not self.active or self.fault or len(message.data) != 1:
                raise ValueError("inactive, held, or not one number")
            self.gripper.command_gripper(2 * float(message.data[0]))
        except (MertonError, ValueError) as error:
            self.counters["dropped gripper commands"] += 1
            self.get_logger().warning(f"gripper command dropped: {error}")

    def check_gripper(self) -> None:
        """Update the opening; freeze the robot if the gripper is gone or reports a fault."""
        if (reading := self.gripper.reading) is None:
            self.freeze(f"no connection to the gripper: {self.gripper.error}")
            return
        self.opening_m = reading.opening_m
        if fault := fault_sentence(reading.fault):
            self.freeze(fault)

    def freeze(self, fault: str) -> None:
        """Halt, and move nothing until `cell/release_stop`; the first fault stays the reason."""
        if not self.fault:
            self.fault = fault
            self.counters["errors: held"] += 1
            self.get_logger().error(fault)
            self.halt()

    def report(self, stop: str, reduced: bool) -> None:
        """Publish the safety state if it has changed.

        Args:
            stop: the safety stop that the controller reports; empty for none.
            reduced: whether the controller is in reduced mode.
        """
        mode, reason = SafetyState.NORMAL, ""
        if stop or self.fault:
            mode, reason = SafetyState.FAULT, stop or self.fault
        elif reduced:
            mode, reason = SafetyState.REDUCED, "reduced mode"
        if (mode, reason) != self.reported:
            self.reported = mode, reason
            self.safety.publish(cell_safety(self.get_clock().now().nanoseconds, None, mode, reason))
