"""The cameras of the cell in Gazebo, which take frames where time stands."""

from __future__ import annotations

from functools import partial
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import CameraInfo

from merton.world.cell import CellConfig
from merton_nodes.cell.lockstep import Lockstep
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names


class GazeboCameras:
    """Lets all cameras take a frame, and holds time until they have.

    Ours: gz-sim 8 may render one instant twice, because triggers reach its cameras one after the other, and waits for
    ever if time goes on before the second time (its condition `updateTimeCv` is signalled by the next frame only).

    Args:
        node: gets the subscriptions.
        world: triggers the cameras.
        time: is held, unless it runs freely.
        cell: names the cameras.
    """

    def __init__(self, node: Node, world: Any, time: Lockstep, cell: CellConfig) -> None:
        self.world, self.time, self.cameras = world, time, tuple(cell.cameras.named)
        self._due: set[str] = set()
        for camera in self.cameras:
            topic, on_info = names.color_info(camera), partial(self._on_info, camera)
            node.create_subscription(CameraInfo, topic, on_info, names.RELIABLE_QOS)

    def take_frames(self) -> None:
        """A frame of every camera, of the instant at which time stands."""
        self._due = set(self.cameras)
        self.time.held = self.time.stands
        self.world.trigger_cameras()

    def _on_info(self, camera: str, message: CameraInfo) -> None:
        """A camera has begun with its frame."""
        if convert.nanoseconds_of(message.header.stamp) == self.time.stamp_ns:
            self._due.discard(camera)
        if self.time.held and not self._due:
            self.time.release()
