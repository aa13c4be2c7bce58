"""The sources of camera_node's frames but the simulated cell, one class for each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation

from merton.perception.camera.bag import BagCamera
from merton.perception.camera.folder import FolderCamera
from merton.perception.camera.frame import CameraFrame
from merton.perception.camera.pairing import LARGEST_GAP_NS
from merton.perception.camera.realsense import CameraSettings, RealsenseCamera
from merton.recording.reader import torn_note
from merton.world.observation import CameraView
from merton_nodes.ros.runtime import StageNode

LATE_S, GAP_S = 0.5, 3.0
"""The longest delay that playing catches up, and the longest pause of a recording that is not skipped [s]."""
SET_BACK_NS = 1_000_000_000
"""A stamp that lies further before the last one is of a clock that was set back, and stays as it is."""


class PublishFrame(Protocol):
    """Publishes a frame of a camera, or a view with depth in metres, with a stamp [ns]."""

    def __call__(self, camera: str, frame: CameraFrame | CameraView, stamp_ns: int) -> None: ...


class FrameSource:
    """A source of frames."""

    def observe(self) -> None:
        """Bring the node's counters and details up to date."""

    def close(self) -> None:
        """Release devices."""


class FolderSource(FrameSource):
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


class BagSource(FrameSource):
    """The images of a recorded run at the pace of their stamps, over and over; stamped as if taken now."""

    def __init__(self, node: StageNode, publish: PublishFrame, bag: BagCamera) -> None:
        self.node, self.publish, self.bag = node, publish, bag
        self.bag.check()
        for camera in bag.without_info:
            node.get_logger().warning(
                f"the recording has no camera_info of {camera}: the focal length and principal point of a D455 are "
                f"taken"
            )
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
            if self.next is None:
                self.frames, self.anchor = iter(self.bag), None
                self.node.counters["times played"] += 1
                self.say_what_is_left_out()
                if (torn := self.bag.reader.torn) and self.node.details.get("recording") != torn:
                    self.node.details["recording"] = torn
                    self.node.get_logger().warning(torn_note(torn))
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

    def say_what_is_left_out(self) -> None:
        """Count the colour images without depth, and log them after the first pass."""
        for camera, count in self.bag.without_depth.items():
            key = f"frames left out {camera}"
            if count and key not in self.node.counters:
                self.node.get_logger().warning(
                    f"{count} colour images of {camera} are left out: no depth is within {LARGEST_GAP_NS / 1e6:.0f} ms"
                )
            if count:
                self.node.counters[key] = count

    def late_s(self, stamp_ns: int) -> float:
        """The delay of a recorded instant [s]; negative if it is not due yet."""
        assert self.anchor is not None
        return time.monotonic() - self.anchor[1] - (stamp_ns - self.anchor[0]) / 1e9


class RealsenseSource(FrameSource):
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
        """The callback that publishes frames of one camera, stamped on the node's clock with their time of exposure.

        The two clocks are read one after the other: on a busy machine frames that come together would be out of order.
        """
        last_ns = 0

        def on_frame(frame: CameraFrame) -> None:
            nonlocal last_ns
            if self.node.active and self.node.context.ok():
                age_ns = time.monotonic_ns() - frame.stamp_ns
                # ROS may end while this thread is at work
                with contextlib.suppress(InvalidHandle, rclpy_implementation.RCLError):
                    stamp_ns = self.node.get_clock().now().nanoseconds - age_ns
                    if 0 <= last_ns - stamp_ns < SET_BACK_NS:
                        stamp_ns = last_ns + 1
                    last_ns = stamp_ns
                    self.publish(name, frame, stamp_ns)

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
