"""The sources of camera_node's frames, one class for each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from merton_interfaces.msg import CellState, FrameRequest
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation

from merton.errors import InputError
from merton.perception.camera.bag import BagCamera
from merton.perception.camera.folder import FolderCamera
from merton.perception.camera.frame import CameraFrame
from merton.perception.camera.realsense import CameraSettings, RealsenseCamera
from merton.world.observation import CameraView
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode

TRIAL_NODES = ("experiment_node", names.DISTORTION_NODE)
"""Subscribers that need the frames of a simulated cell only where the first of them requests some; all others view."""
VIEWERS_PERIOD_S = 0.2
"""Period of the search for viewers [s]: how late the first frame may be for one."""
LATE_S, GAP_S = 0.5, 3.0
"""The longest delay that playing catches up, and the longest pause of a recording that is not skipped [s]."""


class PublishFrame(Protocol):
    """Publishes a frame of a camera, or a view with depth in metres, with a stamp [ns]."""

    def __call__(self, camera: str, frame: CameraFrame | CameraView, stamp_ns: int) -> None: ...


class Source:
    """A source of frames."""

    def observe(self) -> None:
        """Bring the node's counters and details up to date."""

    def close(self) -> None:
        """Release devices."""


class CellSource(Source):
    """Views of the simulated cell, rendered from its state: those that are requested at rest, and those with a viewer.

    A state is rendered once for each camera; repeated, its views are published again to viewers.
    """

    def __init__(
        self,
        node: StageNode,
        publish: PublishFrame,
        cameras: list[str],
        width: int,
        height: int,
        linkage: bool = False,
    ) -> None:
        from merton.simulation.cameras import SceneCameras  # needs OpenGL, which the other sources do not

        self.node, self.publish, self.cameras = node, publish, cameras
        self.scene_cameras = SceneCameras(width, height, linkage=linkage)
        self.state: CellState | None = None
        self.views: dict[str, CameraView] = {}
        """What has been rendered of that state."""
        self.request: FrameRequest | None = None
        """The newest one that has no answer yet."""
        self.viewed: tuple[set[str], set[str]] = set(), set()
        """Cameras with a viewer of colour, and of depth."""
        node.create_subscription(CellState, names.CELL_STATE, self.on_state, names.LATEST_QOS)
        node.create_subscription(FrameRequest, names.FRAME_REQUEST, self.on_request, names.RELIABLE_QOS)
        node.create_timer_s(VIEWERS_PERIOD_S, self.find_viewers)

    def on_state(self, state: CellState) -> None:
        """Render a new state as far as it is viewed or requested; a repeated one is published again."""
        if not self.node.active:
            return
        last = self.state
        if last is None or (last.scene, last.header.stamp) != (state.scene, state.header.stamp):
            self.views.clear()
        self.state = state
        color, depth = self.requested()
        self.show(color | self.viewed[0], depth | self.viewed[1])

    def on_request(self, request: FrameRequest) -> None:
        """Answer a request, now or at the next rest."""
        self.request = request
        if self.node.active:
            self.show(*self.requested())

    def requested(self) -> tuple[set[str], set[str]]:
        """The cameras, for colour and for depth, of a request whose instant has come: it counts as answered."""
        state, request = self.state, self.request
        if state is None or request is None or not state.at_rest:
            return set(), set()
        if convert.nanoseconds_of(request.header.stamp) > convert.nanoseconds_of(state.header.stamp):
            return set(), set()
        self.request = None
        return set(request.color), set(request.depth)

    def show(self, color: set[str], depth: set[str]) -> None:
        """Publish cameras with the state's stamp, those of `depth` with their depth; render what is not yet."""
        for camera in self.cameras:
            if camera in color | depth:
                assert self.state is not None
                self.publish(
                    camera, self.view(camera, camera in depth), convert.nanoseconds_of(self.state.header.stamp)
                )

    def view(self, camera: str, depth: bool) -> CameraView:
        """A view of the newest state, rendered unless it has been."""
        state, view = self.state, self.views.get(camera)
        assert state is not None
        if view is None or (depth and view.depth_m is None):
            view = self.scene_cameras.render(state.task, state.seed, state.qpos, camera, depth=depth)
            self.views[camera] = view
            self.node.counters["frames rendered"] += 1
            self.node.counters["depth images rendered"] += depth
        return view

    def close(self) -> None:
        self.scene_cameras.close()

    def find_viewers(self) -> None:
        """Find the cameras that other nodes than those of a trial look at, as they are or distorted."""

        def has_viewer(*topics: str) -> bool:
            ends = (end for topic in topics for end in self.node.get_subscriptions_info_by_topic(topic))
            return any(end.node_name not in TRIAL_NODES for end in ends)

        of_color = (names.color, names.color_info, names.distorted, names.distortion_info)
        self.viewed = (
            {camera for camera in self.cameras if has_viewer(*(topic(camera) for topic in of_color))},
            {camera for camera in self.cameras if has_viewer(names.depth(camera))},
        )


class FolderSource(Source):
    """The pictures of a folder, each on every camera, over and over."""

    def __init__(self, node: StageNode, publish: PublishFrame, cameras: list[str], folder: str, rate_hz: float) -> None:
        self.node, self.publish, self.cameras = node, publish, cameras
        self.folder = FolderCamera(folder)
        self.frames = iter(self.folder)
        node.create_timer_s(1.0 / rate_hz, self.play)

    def play(self) -> None:
        if not self.node.active:
            return
        frame = next(self.frames, None)
        if frame is None:
            self.frames = iter(self.folder)
            frame = next(self.frames)
        now_ns = self.node.get_clock().now().nanoseconds
        for camera in self.cameras:
            self.publish(camera, frame, now_ns)
        self.node.counters["frames played"] += 1


class BagSource(Source):
    """The images of a recorded run at the pace of their stamps, over and over; stamped as if taken now."""

    def __init__(self, node: StageNode, publish: PublishFrame, cameras: list[str], bag: str) -> None:
        self.node, self.publish, self.file = node, publish, bag
        self.bag = BagCamera(bag, cameras)
        self.frames = iter(self.bag)
        self.next: tuple[str, CameraFrame] | None = None
        self.anchor: tuple[int, float, int] | None = None
        """A recorded stamp [ns], and when it was published: monotonic time [s] and ROS time [ns]."""
        node.create_timer_s(0.002, self.play)

    def play(self) -> None:
        """Publish the frames that are due."""
        if not self.node.active:
            return
        while True:
            if self.next is None:
                self.next = next(self.frames, None)
            if self.next is None and self.anchor is None:
                raise InputError(f"{self.file!r} has no frame of which all parts are there: is it cut off?")
            if self.next is None:
                self.frames, self.anchor = iter(self.bag), None
                self.node.counters["times played"] += 1
                return
            camera, frame = self.next
            late_s = 0.0 if self.anchor is None else self.late_s(frame.stamp_ns)
            if -GAP_S < late_s < 0:
                return
            if self.anchor is None or not 0 <= late_s <= LATE_S:
                self.anchor = frame.stamp_ns, time.monotonic(), self.node.get_clock().now().nanoseconds
            self.publish(camera, frame, self.anchor[2] + frame.stamp_ns - self.anchor[0])
            self.node.counters["frames played"] += 1
            self.next = None

    def late_s(self, stamp_ns: int) -> float:
        """The delay of a recorded instant [s]; negative if it is not due yet."""
        assert self.anchor is not None
        return time.monotonic() - self.anchor[1] - (stamp_ns - self.anchor[0]) / 1e9


class RealsenseSource(Source):
    """RealSense cameras, each in a process of its own; frames are published from the threads that receive them."""

    def __init__(
        self, node: StageNode, publish: PublishFrame, settings: Mapping[str, CameraSettings], limit_s: float
    ) -> None:
        self.node, self.publish = node, publish
        self.cameras = {name: RealsenseCamera(name, own, self.publisher_of(name)) for name, own in settings.items()}
        try:
            for camera in self.cameras.values():
                camera.start()
            end_s = time.monotonic() + limit_s
            for camera in self.cameras.values():
                camera.connect(max(0.0, end_s - time.monotonic()))
        except BaseException:
            self.close()
            raise

    def publisher_of(self, name: str) -> Callable[[CameraFrame], None]:
        """The callback that publishes frames of one camera, stamped on the node's clock with their time of exposure."""

        def on_frame(frame: CameraFrame) -> None:
            if self.node.active and self.node.context.ok():
                age_ns = time.monotonic_ns() - frame.stamp_ns
                # ROS may end while this thread is at work
                with contextlib.suppress(InvalidHandle, rclpy_implementation.RCLError):
                    self.publish(name, frame, self.node.get_clock().now().nanoseconds - age_ns)

        return on_frame

    def observe(self) -> None:
        counters: Any = self.node.counters
        for name, camera in self.cameras.items():
            counters[f"frames {name}"] = camera.frames
            counters[f"dropped frames {name}"] = camera.dropped
            counters[f"errors: reconnections {name}"] = camera.reconnections
            counters[f"errors: seconds without frames {name}"] += camera.silence_s > camera.settings.stall_s
            before = self.node.details.get(name, "")
            self.node.details[name] = camera.status()
            if camera.error and camera.error not in before:
                self.node.get_logger().warning(f"camera {name}: {camera.status()}")

    def close(self) -> None:
        for camera in self.cameras.values():
            camera.close()
