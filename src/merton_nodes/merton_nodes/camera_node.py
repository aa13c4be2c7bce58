"""The D455s: rendered from the cell's state, or played from a folder of images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from merton_interfaces.msg import CellState
from sensor_msgs.msg import CameraInfo, Image

from merton.errors import InputError
from merton.observation import Image as Pixels
from merton.observation import Intrinsics
from merton.perception.camera.folder import FolderCamera
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.runtime import StageNode, run

SOURCES = ("cell", "folder")


class CameraNode(StageNode):
    """Publishes colour, camera_info and aligned depth under realsense-ros' names."""

    def __init__(self, **options: Any) -> None:
        super().__init__("camera_node", **options)

    def set_up(self) -> None:
        """Open the source."""
        source = self.parameter("source", "cell", f"where frames come from: {', '.join(SOURCES)}")
        if source not in SOURCES:
            raise InputError(f"unknown camera source {source!r}; choose one of: {', '.join(SOURCES)}")
        self.cameras = list(self.parameter("cameras", ["wrist", "top", "side"], "the cameras to play"))
        folder = self.parameter("folder", "", "with source folder: the directory of images; every camera shows them")
        rate_hz = self.parameter("rate_hz", 5.0, "with source folder: frames per second", minimum=0.1, maximum=90.0)
        width = self.parameter("width", 424, "width of rendered frames [px]", minimum=64, maximum=1280)
        height = self.parameter("height", 240, "height of rendered frames [px]", minimum=48, maximum=800)
        self.outputs = {
            camera: (
                self.create_publisher(Image, names.color(camera), names.SENSOR_QOS),
                self.create_publisher(CameraInfo, names.color_info(camera), names.SENSOR_QOS),
                self.create_publisher(Image, names.depth(camera), names.SENSOR_QOS),
            )
            for camera in self.cameras
        }
        self.shown: tuple[int, int] | None = None
        self.messages: list[tuple] = []
        if source == "cell":
            from merton.simulation.cameras import SceneCameras  # needs OpenGL, which a folder does not

            self.scene_cameras = SceneCameras(width, height)
            self.create_subscription(CellState, names.CELL_STATE, self.on_state, names.LATEST_QOS)
        else:
            self.folder = FolderCamera(Path(folder))
            self.frames = iter(self.folder)
            self.every(1.0 / rate_hz, self.play)

    def on_state(self, state: CellState) -> None:
        """Render what the cell shows now; a state seen before is only shown again."""
        if not self.active:
            return
        key = (state.scene, convert.nanoseconds_of(state.header.stamp))
        if key != self.shown:
            self.messages = []
            for camera in self.cameras:
                view = self.scene_cameras.render(state.task, state.seed, state.qpos, camera)
                self.messages.append(self.frame(camera, view.color, view.depth_m, view.intrinsics, key[1]))
            self.shown = key
            self.counters["frames rendered"] += len(self.cameras)
        self.publish()

    def play(self) -> None:
        """Show the folder's next image on every camera; start again after the last."""
        if not self.active:
            return
        image = next(self.frames, None)
        if image is None:
            self.frames = iter(self.folder)
            image = next(self.frames)
        now = self.get_clock().now().nanoseconds
        self.messages = [self.frame(c, image.color, image.depth_m, image.intrinsics, now) for c in self.cameras]
        self.counters["frames played"] += 1
        self.publish()

    def frame(self, camera: str, color: Pixels, depth_m: object, intrinsics: Intrinsics, stamp_ns: int) -> tuple:
        """The messages of one camera at one instant: colour, camera_info, depth or None."""
        optical = names.optical_frame(camera)
        return (
            convert.color_message(color, stamp_ns, optical),
            convert.camera_info_message(intrinsics, stamp_ns, optical),
            None if depth_m is None else convert.depth_message(depth_m, stamp_ns, optical),
        )

    def publish(self) -> None:
        """Send the current frame of every camera."""
        for camera, messages in zip(self.cameras, self.messages, strict=True):
            for publisher, message in zip(self.outputs[camera], messages, strict=True):
                if message is not None:
                    publisher.publish(message)


def main() -> None:
    """Entry point."""
    sys.exit(run(CameraNode))
