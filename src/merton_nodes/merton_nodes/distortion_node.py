"""Distorts camera streams live. Name, level and seed can be changed while it runs, all three at once."""

from __future__ import annotations

import sys
import time
import zlib
from collections import deque
from typing import Any

import numpy as np
from merton_interfaces.msg import DistortionInfo
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image

from merton.errors import InputError, MertonError
from merton.perception.distortion import DISTORTIONS, distort
from merton.seeding import generator
from merton_nodes import conversions as convert
from merton_nodes import names
from merton_nodes.runtime import StageNode, run

LATENCY_WINDOW = 300


class DistortionNode(StageNode):
    """One distortion, applied to every camera.

    The noise of a frame depends on the seed, the camera and the frame's pixels: the same scene looks the same every
    time, and two different frames never carry the same noise pattern.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("distortion_node", **options)

    def set_up(self) -> None:
        """Declare the dynamic parameters, wire every camera."""
        cameras = list(self.parameter("cameras", ["wrist", "top", "side"], "the cameras to distort"))
        choices = ", ".join(DISTORTIONS)
        self.name = self.parameter("name", "reference", f"reference, or one of: {choices}", read_only=False)
        self.level = self.parameter("level", 0, "0 (untouched) .. 5 (worst)", minimum=0, maximum=5, read_only=False)
        self.seed = self.parameter("seed", 0, "seed of stochastic distortions, >= 0", read_only=False)
        self.check(self.name, self.level, self.seed)
        self.sent: dict[str, tuple] = {}
        self.latencies_ms: deque[float] = deque(maxlen=LATENCY_WINDOW)
        self.outputs = {
            camera: (
                self.create_publisher(Image, names.distorted(camera), names.SENSOR_QOS),
                self.create_publisher(DistortionInfo, names.distortion_info(camera), names.SENSOR_QOS),
            )
            for camera in cameras
        }
        for camera in cameras:
            self.create_subscription(
                Image, names.color(camera), lambda m, c=camera: self.on_image(c, m), names.LATEST_QOS
            )  # depth 1: when it cannot keep up, old frames are dropped, never queued
        self.add_on_set_parameters_callback(self.on_parameters)

    def check(self, name: str, level: int, seed: int) -> None:
        """Raise InputError unless the three go together."""
        if level > 0:
            DISTORTIONS[name]  # raises with the choices
        if seed < 0:
            raise InputError(f"the seed of a distortion must be >= 0, got {seed}")

    def on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Take new values all at once, and show the frame at hand in the new way."""
        new = {"name": self.name, "level": self.level, "seed": self.seed}
        new.update({p.name: p.value for p in parameters if p.name in new})
        try:
            self.check(**new)
        except MertonError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self.name, self.level, self.seed = new["name"], new["level"], new["seed"]
        return SetParametersResult(successful=True)

    def on_image(self, camera: str, message: Image) -> None:
        """Distort one frame and send it with what was done to it."""
        if not self.active:
            return
        started = time.monotonic()
        stamp_ns = convert.nanoseconds_of(message.header.stamp)
        key = (stamp_ns, self.name, self.level, self.seed)
        if self.sent.get(camera, (None,))[0] != key:
            try:
                pixels = convert.color_array(message)
                image = self.distorted(camera, pixels)
            except InputError as error:
                self.counters["dropped malformed frames"] += 1
                self.details["last malformed frame"] = f"{camera}: {error}"
                return
            info = DistortionInfo(
                header=message.header,
                name=self.name if self.level else "reference",
                level=float(self.level),
                seed=self.seed,
            )
            self.sent[camera] = (key, convert.color_message(image, stamp_ns, message.header.frame_id), info)
        for publisher, out in zip(self.outputs[camera], self.sent[camera][1:], strict=True):
            publisher.publish(out)
        self.counters["frames"] += 1
        self.latencies_ms.append(1000 * (time.monotonic() - started))
        if self.counters["frames"] % 30 == 0:
            p50, p99 = np.percentile(self.latencies_ms, (50, 99))
            self.details["latency"] = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms over {len(self.latencies_ms)} frames"

    def distorted(self, camera: str, pixels: np.ndarray) -> np.ndarray:
        """The frame as it is to be seen; the frame itself at level 0."""
        if self.level == 0:
            return pixels
        checksum = zlib.crc32(np.ascontiguousarray(pixels))
        return distort(pixels, self.name, self.level, generator(self.seed, camera, checksum))


def main() -> None:
    """Entry point."""
    sys.exit(run(DistortionNode))
