"""The gripper of the cell in Gazebo: commands on the cell's topic, on their way to its controller."""

from __future__ import annotations

from collections.abc import Sequence

from std_msgs.msg import Float64MultiArray

from merton.errors import InputError
from merton.world.cell import CellConfig
from merton.world.linkage import joint_rad
from merton_nodes.ros import names
from merton_nodes.ros.marks import marked
from merton_nodes.ros.runtime import StageNode


class GazeboFingers:
    """The newest command that was allowed, and the way to send it.

    The controller of sliding fingers listens to the cell's topic itself; a linkage's takes angles, from here alone.

    Args:
        node: gets the publisher.
        cell: stroke of the gripper, and whether it has a linkage.
        own: the mark of commands that `node` sends itself.
    """

    def __init__(self, node: StageNode, cell: CellConfig, own: str) -> None:
        self.node, self.gripper, self.own = node, cell.gripper, own
        self.goal_m: Sequence[float] = [cell.gripper.stroke / 2]
        """Position of a sliding finger [m], half the opening."""
        topic = names.FINGER_JOINT if cell.gripper.linkage else names.GRIPPER
        self.publisher = node.create_publisher(Float64MultiArray, topic, names.RELIABLE_QOS)

    def allow(self, goal_m: Sequence[float]) -> None:
        """Take a command of the cell's topic that may move the gripper; one that makes no sense is dropped."""
        before_m, self.goal_m = self.goal_m, list(goal_m)
        if self.gripper.linkage:
            try:
                self.send()
            except InputError as error:
                self.goal_m = before_m
                self.node.counters["dropped gripper commands"] += 1
                self.node.get_logger().warning(f"gripper command dropped: {error}")

    def open(self) -> None:
        """Open the gripper."""
        self.goal_m = [self.gripper.stroke / 2]
        self.send()

    def send(self) -> None:
        """Send the newest command that was allowed; raises InputError if the linkage cannot get there."""
        goal = [joint_rad(2 * finger_m) for finger_m in self.goal_m] if self.gripper.linkage else list(self.goal_m)
        self.publisher.publish(marked(Float64MultiArray(data=goal), self.own))
