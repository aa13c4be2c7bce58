"""What the nodes in front of the lab's robot share: the gripper's commands, the fault that holds, the safety state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from merton_interfaces.msg import SafetyState
from std_msgs.msg import Float64MultiArray

from merton.errors import MertonError
from merton.execution.robots.urcap import UrcapGripper, fault_sentence
from merton_nodes.cell.messages import cell_safety
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode


class RobotNode(StageNode, ABC):
    """A node between the cell's topics and a robot that is held once something went wrong.

    Attributes:
        gripper: the 2F-140; its node makes it and ends it.
        opening_m: of the gripper, as last seen.
        fault: why nothing moves until `cell/release_stop`; empty if nothing is wrong.
        reported: mode and reason that were last published; None to have them said again.
    """

    gripper: UrcapGripper

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.fault = ""
        self.opening_m = 0.0
        self.reported: tuple[int, str] | None = None

    @abstractmethod
    def halt(self) -> None:
        """Stop arm and fingers where they are."""

    def offer_state(self) -> None:
        """Publish the safety state, and take the gripper's commands; called by `set_up`."""
        self.safety = self.create_publisher(SafetyState, names.CELL_SAFETY, names.LATCHED_QOS)
        self.create_subscription(Float64MultiArray, names.GRIPPER, self.on_gripper, names.RELIABLE_QOS)

    def on_gripper(self, message: Float64MultiArray) -> None:
        """One number: the position of the finger joint [m], half the opening."""
        try:
            if not self.active or self.fault or len(message.data) != 1:
                raise ValueError("inactive, held, or not one number")
            self.gripper.command_gripper(2 * float(message.data[0]))
        except (MertonError, ValueError) as error:
            self.counters["dropped gripper commands"] += 1
            self.get_logger().warning(f"gripper command dropped: {error}")

    def look_at_gripper(self) -> None:
        """Keep the opening; hold the arm if the gripper is gone, or does not do as told."""
        if (fingers := self.gripper.reading) is None:
            self.hold(f"no connection to the gripper: {self.gripper.trouble}")
            return
        self.opening_m = fingers.opening_m
        if why := fault_sentence(fingers.fault):
            self.hold(why)

    def hold(self, why: str) -> None:
        """Nothing moves until `cell/release_stop`."""
        if not self.fault:
            self.fault = why
            self.counters["errors: held"] += 1
            self.get_logger().error(why)
            self.halt()

    def report(self, mode: int, why: str) -> None:
        """Publish the safety state if it is news."""
        if (mode, why) != self.reported:
            self.reported = mode, why
            self.safety.publish(cell_safety(self.get_clock().now().nanoseconds, None, mode, why))
