"""The gripper of the cell in Gazebo: its commands become trajectories of one joint, which the others mimic."""

from __future__ import annotations

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import InputError
from merton.world.cell import FINGER_JOINTS, CellConfig
from merton.world.linkage import JOINT, joint_rad
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

SHORTEST_S = 0.1
"""Least duration of the trajectories [s]. Ours: time for the fingers to come to rest where they are."""


class GazeboFingers:
    """Moves the fingers, sliding ones or those of a linkage, at the gripper's speed.

    Ours: a trajectory, because the physics engine does not drive a joint that is at its greatest speed.

    Args:
        node: gets the publisher.
        cell: stroke and speed of the gripper, and whether it has a linkage.
    """

    def __init__(self, node: StageNode, cell: CellConfig) -> None:
        self.node, self.gripper = node, cell.gripper
        topic = names.GAZEBO_LINKAGE if cell.gripper.linkage else names.GAZEBO_FINGERS
        self.publisher = node.create_publisher(JointTrajectory, topic, names.RELIABLE_QOS)

    def move(self, opening_m: float, measured_m: float) -> None:
        """Go from the measured opening to another [m]; a command that the gripper cannot follow is dropped."""
        try:
            joint, goal = (JOINT, joint_rad(opening_m)) if self.gripper.linkage else (FINGER_JOINTS[0], opening_m / 2)
        except InputError as error:
            self.node.counters["dropped gripper commands"] += 1
            self.node.get_logger().warning(f"gripper command dropped: {error}")
            return
        travel_s = max(abs(opening_m - measured_m) / self.gripper.max_speed, SHORTEST_S)
        point = JointTrajectoryPoint(positions=[goal], time_from_start=convert.duration_message(travel_s))
        self.publisher.publish(JointTrajectory(joint_names=[joint], points=[point]))
