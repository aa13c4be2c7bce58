"""Complete views of the cell, collected from the topics of its state and its cameras."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from merton_interfaces.msg import CellState, DistortionInfo, FrameRequest
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image

from merton.errors import InfrastructureError, InputError
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.execution.robots.gripper import Gripper
from merton.experiment.ports import CellView
from merton.perception.camera.pairing import check_aligned
from merton.perception.distortion import DEPTH_FAULTS
from merton.world.camera_info import is_rectified
from merton.world.cell import CellConfig
from merton.world.observation import CameraView
from merton_nodes.cameras.free_cameras import FAULTY_DEPTH, PARTS, FreeCameras
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.newest_messages import NewestMessages


class ViewCollector:
    """Waits for the cell to be at rest, and for the images of that instant, distorted as wanted.

    In lockstep with a simulated cell, all of them carry the stamp of the cell's state, or of a past one that they are
    to show, and are requested: its cameras render nothing else. Cameras that run on their own have no stamp in common:
    then a view has their newest images since the cell came to rest.

    Args:
        node: subscribes; spun by another thread.
        cell: its geometry.
        lockstep: false for cameras that run on their own.

    Attributes:
        minimum_stamp_ns: older views are not accepted.
        minimum_scene: views of earlier scenes are not accepted.
        rectified: cameras whose images are rectified, by the name of their topic.
        seen: the state that the images of the newest view show, in lockstep.
    """

    def __init__(self, node: Node, cell: CellConfig, lockstep: bool) -> None:
        self.cell = cell
        self.gripper = Gripper.from_cell(cell)
        self.latest = NewestMessages()
        self.free_cameras = None if lockstep else FreeCameras(cell.camera_names)
        self.at_rest_since_ns = 0  # for cameras that run on their own; 0: not at rest yet in this wait
        self.distortion: tuple[str, float, int] = ("reference", 0.0, 0)
        self.parts: tuple[str, ...] = PARTS
        self.minimum_stamp_ns = 0
        self.minimum_scene = 0
        self.color: tuple[str, ...] = ()
        self.depth: tuple[str, ...] = ()
        self.past: CellState | None = None
        self.seen = CellState()
        self.waiting = False
        self.rectified = set[str]()
        self._subscribe(node)
        self.requests = node.create_publisher(FrameRequest, names.FRAME_REQUEST, names.RELIABLE_QOS)

    def _subscribe(self, node: Node) -> None:
        sub, keep = node.create_subscription, self.latest.keep
        sub(CellState, names.CELL_STATE, self.latest.keep_with(self._on_state), names.RELIABLE_QOS)
        kinds = (Image, Image, CameraInfo, Image, DistortionInfo, Image)
        topics = (
            names.color,
            names.depth,
            names.color_info,
            names.distorted,
            names.distortion_info,
            names.distorted_depth,
        )
        for camera in self.cell.camera_names:
            for part, kind, topic in zip((*PARTS, FAULTY_DEPTH), kinds, topics, strict=True):
                callback = keep(f"{camera} {part}")
                if self.free_cameras is not None:
                    callback = self.latest.keep_with(self.free_cameras.add, camera, part)
                subscription = sub(kind, topic(camera), callback, names.SENSOR_QOS)
                if part == "color" and is_rectified(subscription.topic_name):  # a topic of another name, by remapping
                    self.rectified.add(camera)

    def expect(self, name: str, level: float, seed: int) -> None:
        """Accept images with this distortion alone; a fault of depth has images of its own."""
        self.distortion = (name, level, seed)
        self.parts = (*PARTS, FAULTY_DEPTH) if name in DEPTH_FAULTS else PARTS
        if self.free_cameras is not None:
            self.free_cameras.parts = self.parts

    def wait(
        self,
        deadline_s: float,
        color: Collection[str] | None = None,
        depth: Collection[str] | None = None,
        past: CellState | None = None,
    ) -> CellView:
        """The next view, with the cameras of `merton.experiment.ports.Ports.view`.

        Images, arm and gripper are those of the state `past` of a simulated cell in lockstep, if there is one.

        Raises InfrastructureError naming what is missing after `deadline_s`, counted anew while a simulated cell moves.
        """
        self.at_rest_since_ns = 0
        self.color = tuple(self.cell.camera_names if color is None else color)
        self.depth = tuple(camera for camera in self.color if depth is None or camera in depth)
        self.past, self.waiting = past, True
        if past is not None:  # an earlier view may have left images of that instant, which camera_node shows no more
            self.latest.forget([f"{camera} {part}" for camera in self.color for part in self.parts])
        self._request_frames()
        try:
            return self.latest.wait(self._complete_view, deadline_s, self._missing, self._advance)
        finally:
            self.waiting = False

    def _advance(self) -> object:
        """A value that changes while a simulated cell moves: on a busy machine it is late, not broken."""
        state = self.latest.messages.get("state")
        if self.free_cameras is not None or state is None or state.at_rest:
            return None
        return state.header.stamp

    def _request_frames(self) -> None:
        if self.color:
            header = convert.header(self.minimum_stamp_ns, "")
            past = self.past or CellState()
            self.requests.publish(FrameRequest(header=header, color=self.color, depth=self.depth, past=past))

    def _on_state(self, state: CellState) -> None:
        """Keep the state; if it is repeated while its view is incomplete, a request or an image was lost."""
        last = self.latest.messages.get("state")
        self.latest.messages["state"] = state
        if self.waiting and last is not None and last.header.stamp == state.header.stamp:
            self._request_frames()

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
            if self._not_seen_at_rest():
                return None
            messages = self.free_cameras.messages(self.color, self.at_rest_since_ns, self.distortion)
            stamps = (convert.nanoseconds_of(messages[f"{camera} color"].header.stamp) for camera in self.color)
            stamp_ns = min(stamps, default=stamp_ns)
        elif self._stale(self._taken_ns(state)):
            return None
        try:
            return self._view_of(state, stamp_ns, messages)
        except InputError as error:
            raise InfrastructureError(f"a message of the cell is unusable: {error}") from None

    def _taken_ns(self, state: CellState) -> int:
        """The stamp of the images that are wanted at a rest, in lockstep [ns]."""
        return convert.nanoseconds_of((self.past or state).header.stamp)

    def _view_of(self, state: CellState, stamp_ns: int, messages: dict[str, Any]) -> CellView:
        self.seen = self.past or state
        joints, opening_m = convert.joints_of(self.seen.joints)
        base_from_tool0 = kinematics_of(self.cell).forward(joints)
        reference, distorted = {}, {}
        for camera in self.color:
            if camera in self.depth:
                check_aligned(*(messages[f"{camera} {part}"].header.frame_id for part in ("color", "depth")))
            reference[camera] = CameraView(
                camera,
                convert.color_array(messages[f"{camera} color"]),
                convert.depth_array(messages[f"{camera} depth"]) if camera in self.depth else None,
                convert.intrinsics_of(messages[f"{camera} camera_info"], camera in self.rectified),
                self.cell.base_from_camera(camera, base_from_tool0),
                convert.nanoseconds_of(messages[f"{camera} color"].header.stamp),
            )
            color, depth_m = convert.color_array(messages[f"{camera} distorted"]), reference[camera].depth_m
            if depth_m is not None and FAULTY_DEPTH in self.parts:
                depth_m = convert.depth_array(messages[f"{camera} {FAULTY_DEPTH}"])
            distorted[camera] = replace(reference[camera], color=color, depth_m=depth_m)
        return CellView(
            stamp_ns,
            reference,
            distorted,
            joints,
            base_from_tcp(joints, self.cell),
            self.gripper.gripper_open(opening_m),
            bool(state.success),
            None if math.isnan(state.progress) else state.progress,
        )

    def _not_seen_at_rest(self) -> list[str]:
        """Cameras that run on their own, without a message since the cell came to rest."""
        assert self.free_cameras is not None
        return self.free_cameras.missing(self.color, self.at_rest_since_ns, self.distortion)

    def _stale(self, stamp_ns: int) -> list[str]:
        """Keys of the messages that do not carry this stamp, or are not distorted as wanted."""
        keys = [
            f"{camera} {part}"
            for camera in self.color
            for part in self.parts
            if part not in ("depth", FAULTY_DEPTH) or camera in self.depth
        ]
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
            return "anything newer than the moment the cell came to rest from " + ", ".join(self._not_seen_at_rest())
        return "images of one instant; stale: " + ", ".join(self._stale(self._taken_ns(state)))
