"""Complete views of the cell, collected from the topics of its state, its joints and its cameras."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from merton_interfaces.msg import CellState, DistortionInfo
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image, JointState

from merton.errors import InfrastructureError, InputError
from merton.execution.kinematics import UR5, base_from_tcp
from merton.execution.robots.gripper import Gripper
from merton.experiment.ports import CellView
from merton.world.cell import CellConfig
from merton.world.observation import CameraView
from merton_nodes.cameras.free_cameras import PARTS, FreeCameras
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.newest_messages import NewestMessages


class ViewCollector:
    """Waits for the cell to be at rest, and for joint states and all images of that instant, distorted as wanted.

    In lockstep with a simulated cell, all of them carry the stamp of the cell's state. Cameras that run on their own
    have no stamp in common: then a view has their newest images since the cell came to rest.

    Args:
        node: subscribes; spun by another thread.
        cell: its geometry.
        lockstep: false for cameras that run on their own.

    Attributes:
        distortion: (name, level, seed) that the images must carry.
        minimum_stamp_ns: older views are not accepted.
        minimum_scene: views of earlier scenes are not accepted.
    """

    def __init__(self, node: Node, cell: CellConfig, lockstep: bool) -> None:
        self.cell = cell
        self.gripper = Gripper.from_cell(cell)
        self.latest = NewestMessages()
        self.free_cameras = None if lockstep else FreeCameras(cell.camera_names)
        self.at_rest_since_ns = 0  # for cameras that run on their own; 0: not at rest yet in this wait
        self.distortion: tuple[str, float, int] = ("reference", 0.0, 0)
        self.minimum_stamp_ns = 0
        self.minimum_scene = 0
        self._subscribe(node)

    def _subscribe(self, node: Node) -> None:
        sub, keep = node.create_subscription, self.latest.keep
        sub(CellState, names.CELL_STATE, keep("state"), names.RELIABLE_QOS)
        sub(JointState, names.JOINT_STATES, keep("joints"), names.RELIABLE_QOS)
        kinds = (Image, Image, CameraInfo, Image, DistortionInfo)
        topics = (names.color, names.depth, names.color_info, names.distorted, names.distortion_info)
        for camera in self.cell.camera_names:
            for part, kind, topic in zip(PARTS, kinds, topics, strict=True):
                callback = keep(f"{camera} {part}")
                if self.free_cameras is not None:
                    callback = self.latest.keep_with(self.free_cameras.add, camera, part)
                sub(kind, topic(camera), callback, names.SENSOR_QOS)

    def wait(self, deadline_s: float) -> CellView:
        """The next view; raises InfrastructureError naming what is missing after `deadline_s`."""
        self.at_rest_since_ns = 0
        return self.latest.wait(self._complete_view, deadline_s, self._missing)

    def _complete_view(self, messages: dict[str, Any]) -> CellView | None:
        state = messages.get("state")
        if state is None or not state.at_rest or state.scene < self.minimum_scene:
            self.at_rest_since_ns = 0
            return None
        stamp_ns = convert.nanoseconds_of(state.header.stamp)
        if stamp_ns < self.minimum_stamp_ns:
            return None
        if self.free_cameras is not None:
            self.at_rest_since_ns = self.at_rest_since_ns or stamp_ns
            messages = {**messages, **self.free_cameras.messages(self.at_rest_since_ns, self.distortion)}
            if self._not_seen_at_rest(messages):
                return None
            stamp_ns = min(
                convert.nanoseconds_of(messages[f"{camera} color"].header.stamp) for camera in self.cell.camera_names
            )
        elif self._stale(stamp_ns):
            return None
        try:
            return self._view_of(state, stamp_ns, messages)
        except InputError as error:
            raise InfrastructureError(f"a message of the cell is unusable: {error}") from None

    def _view_of(self, state: CellState, stamp_ns: int, messages: dict[str, Any]) -> CellView:
        joints, opening_m = convert.joints_of(messages["joints"])
        base_from_tool0 = UR5.forward(joints)
        reference, distorted = {}, {}
        for camera in self.cell.camera_names:
            reference[camera] = CameraView(
                camera,
                convert.color_array(messages[f"{camera} color"]),
                convert.depth_array(messages[f"{camera} depth"]),
                convert.intrinsics_of(messages[f"{camera} camera_info"]),
                self.cell.base_from_camera(camera, base_from_tool0),
                stamp_ns,
            )
            distorted[camera] = replace(reference[camera], color=convert.color_array(messages[f"{camera} distorted"]))
        return CellView(
            stamp_ns,
            reference,
            distorted,
            joints,
            base_from_tcp(joints, self.cell.tool0_from_tcp),
            self.gripper.gripper_open(opening_m),
            bool(state.success),
        )

    def _not_seen_at_rest(self, messages: dict[str, Any]) -> list[str]:
        """Cameras that run on their own, or joints, without a message since the cell came to rest."""
        assert self.free_cameras is not None
        joints = messages.get("joints")
        late = joints is None or convert.nanoseconds_of(joints.header.stamp) < self.at_rest_since_ns
        return self.free_cameras.missing(self.at_rest_since_ns, self.distortion) + ["the joints"] * late

    def _stale(self, stamp_ns: int) -> list[str]:
        """Keys of the messages that do not carry this stamp, or are not distorted as wanted."""
        keys = ["joints", *(f"{camera} {part}" for camera in self.cell.camera_names for part in PARTS)]
        messages = self.latest.messages

        def fits(key: str) -> bool:
            message = messages.get(key)
            if message is None or convert.nanoseconds_of(message.header.stamp) != stamp_ns:
                return False
            is_info = key.endswith("distortion info")
            return not is_info or (message.name, message.level, message.seed) == self.distortion

        return [key for key in keys if not fits(key)]

    def _missing(self) -> str:
        """The missing parts of the view, in words."""
        state = self.latest.messages.get("state")
        if state is None:
            return f"{names.CELL_STATE}, which no node publishes"
        stamp_ns = convert.nanoseconds_of(state.header.stamp)
        if not state.at_rest or stamp_ns < self.minimum_stamp_ns or state.scene < self.minimum_scene:
            return "the cell to come to rest"
        if self.free_cameras is not None:
            return "anything newer than the moment the cell came to rest from " + ", ".join(
                self._not_seen_at_rest(self.latest.messages)
            )
        return "images and joint states of one instant; stale: " + ", ".join(self._stale(stamp_ns))
