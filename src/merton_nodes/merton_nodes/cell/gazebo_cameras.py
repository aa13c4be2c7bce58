"""The cameras of the cell in Gazebo, which take frames where time stands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node
from sensor_msgs.msg import CameraInfo

from merton.world.cell import CellConfig
from merton_nodes.cell.lockstep import Lockstep
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names


class GazeboCameras:
    """Lets all cameras take a frame, holds time until they have, and reports the instants that are rendered.

    A trigger is for the instant that the renderer has reached, which may be behind the joint states: the caller takes
    frames once it has been told that both stand where time does.

    Args:
        node: gets the subscriptions.
        world: triggers the cameras.
        time: is held, unless it runs freely.
        cell: names the cameras.
        on_rendered: called with the simulated instant of every step [ns], once the renderer has reached it.
    """

    def __init__(
        self, node: Node, world: Any, time: Lockstep, cell: CellConfig, on_rendered: Callable[[int], None]
    ) -> None:
        self.world, self.time, self.cameras = world, time, tuple(cell.cameras.named)
        self._on_rendered = on_rendered
        self._due: set[str] = set()
        node.create_subscription(CameraInfo, names.GAZEBO_RENDERER, self._on_renderer, names.RELIABLE_QOS)
        for camera in self.cameras:
            topic, on_info = names.color_info(camera), partial(self._on_info, camera)
            node.create_subscription(CameraInfo, topic, on_info, names.RELIABLE_QOS)

    def take_frames(self) -> None:
        """A frame of every camera, of the instant at which time stands."""
        self._due = set(self.cameras)
        self.time.held = self.time.stands
        self.world.trigger_cameras()

    def _on_renderer(self, message: CameraInfo) -> None:
        self._on_rendered(convert.nanoseconds_of(message.header.stamp))

    def _on_info(self, camera: str, message: CameraInfo) -> None:
        """A camera has begun with its frame."""
        if convert.nanoseconds_of(message.header.stamp) == self.time.stamp_ns:
            self._due.discard(camera)
        if self.time.held and not self._due:
            self.time.release()
