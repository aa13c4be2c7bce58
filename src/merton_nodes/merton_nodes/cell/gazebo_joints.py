"""Joint states of the cell in Gazebo, from those that the simulator publishes at every step."""

from __future__ import annotations

from collections.abc import Callable

from sensor_msgs.msg import JointState

from merton.errors import MertonError
from merton.world.geometry import Array
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

PERIOD_NS = 10_000_000
"""Simulated time between two joint states of the cell. Ours: each frame has one, at a fifth of the steps."""


class GazeboJoints:
    """Publishes `joint_states` every `PERIOD_NS`, so also at the instants of all frames.

    They come from the simulator itself: joint_state_broadcaster publishes from a thread of its own, and leaves out the
    steps for which that thread is not ready, the last one before time stands among them.

    Args:
        node: gets the subscription and the publisher.
        on_joints: called at every step with the message, the arm's joints (6,) [rad], and the simulated instant [ns].
    """

    def __init__(self, node: StageNode, on_joints: Callable[[JointState, Array, int], None]) -> None:
        self._node, self._on_joints = node, on_joints
        self._stamp_ns = 0
        self._publisher = node.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        node.create_subscription(JointState, names.GAZEBO_JOINT_STATES, self._on_message, names.RELIABLE_QOS)

    def _on_message(self, message: JointState) -> None:
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        if stamp_ns == self._stamp_ns:
            return  # while time stands, the simulator repeats its last message several hundred times a second
        self._stamp_ns = stamp_ns
        try:
            joints_rad, _ = convert.joints_of(message)
        except MertonError:
            self._node.counters["dropped joint states"] += 1
            return
        if stamp_ns % PERIOD_NS == 0:
            self._publisher.publish(message)
        self._on_joints(message, joints_rad, stamp_ns)
