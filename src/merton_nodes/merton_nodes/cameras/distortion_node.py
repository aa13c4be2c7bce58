"""Distorts camera streams live. Name, level and seed can be changed while it runs, all three at once."""

from __future__ import annotations

import sys
import time
from collections import deque
from functools import partial
from typing import Any

import numpy as np
from merton_interfaces.msg import DistortionInfo
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image

from merton.errors import InputError, MertonError
from merton.perception.distortion import DEPTH_FAULTS, DISTORTIONS
from merton.perception.distortion.compiled import compile_all
from merton.perception.distortion.stream import DistortionSetting, parse_schedule
from merton.world.cell import load_cell
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode, run

LATENCY_WINDOW = 300


class DistortionNode(StageNode):
    """One `DistortionSetting`, applied to every camera."""

    def __init__(self, **options: Any) -> None:
        super().__init__("distortion_node", **options)
        self.latencies_ms: deque[float] = deque(maxlen=LATENCY_WINDOW)

    def set_up(self) -> None:
        compile_all()  # before the first frame, which would wait for it
        cameras = list(self.parameter("cameras", list(load_cell().camera_names), "the cameras to distort"))
        choices = ("reference", *DISTORTIONS, *DEPTH_FAULTS)
        name = self.parameter("name", "reference", "distortion of the images", choices=choices, read_only=False)
        level = self.parameter("level", 0.0, "0 (untouched) .. 5 (worst)", minimum=0, maximum=5, read_only=False)
        seed = self.parameter("seed", 0, "seed of stochastic distortions, >= 0", read_only=False)
        lines = self.parameter(
            "schedule", [""], "lines 'name level seconds', walked through over and over in place of name and level"
        )
        self.setting = DistortionSetting(name, level, seed)
        self.schedule = parse_schedule(lines, seed) if any(lines) else None
        self.started_s = time.monotonic()
        self.sent: dict[str, tuple[DistortionSetting, Image, tuple[Image, DistortionInfo]]] = {}
        self.outputs = {
            camera: (
                self.create_publisher(Image, names.distorted(camera), names.SENSOR_QOS),
                self.create_publisher(DistortionInfo, names.distortion_info(camera), names.SENSOR_QOS),
            )
            for camera in cameras
        }
        self.depths = {
            camera: self.create_publisher(Image, names.distorted_depth(camera), names.SENSOR_QOS) for camera in cameras
        }
        for camera in cameras:
            self.create_subscription(Image, names.color(camera), partial(self.on_image, camera), names.LATEST_QOS)
        self.listens_to_depth = False
        settings = [setting for setting, _ in self.schedule.steps] if self.schedule else [self.setting]
        if any(setting.acts_on_depth for setting in settings):
            self.listen_to_depth()
        self.add_on_set_parameters_callback(self.on_parameters)
        self.closing.callback(self.remove_on_set_parameters_callback, self.on_parameters)

    def start(self) -> None:
        """A schedule begins with the activation."""
        self.started_s = time.monotonic()

    def on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Set all new values at once, or none."""
        new = {"name": self.setting.name, "level": self.setting.level, "seed": self.setting.seed}
        given = {p.name: p.value for p in parameters if p.name in new}
        if not given:
            return SetParametersResult(successful=True)
        try:
            if self.schedule is not None:
                raise InputError("a schedule is running: name, level and seed cannot be set")
            self.setting = DistortionSetting(**{**new, **given})
            if self.setting.acts_on_depth:
                self.listen_to_depth()
        except MertonError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def listen_to_depth(self) -> None:
        """Subscribe to depth with the first fault of depth: until then depth images cost nothing here."""
        if not self.listens_to_depth:
            self.listens_to_depth = True
            for camera in self.depths:
                self.create_subscription(Image, names.depth(camera), partial(self.on_depth, camera), names.LATEST_QOS)

    def follow_schedule(self) -> None:
        """Take the setting of this moment from the schedule, if there is one."""
        if self.schedule is not None:
            self.setting = self.schedule.at(time.monotonic() - self.started_s)

    def on_depth(self, camera: str, message: Image) -> None:
        """Publish a depth image with its fault, while one is set."""
        self.follow_schedule()
        if not self.active or not self.setting.acts_on_depth or not self.depths[camera].get_subscription_count():
            return
        try:
            depth_m = convert.depth_array(message)
        except InputError as error:
            self.drop(camera, error)
            return
        if depth_m is not None:
            faulty_m, header = self.setting.apply_depth(camera, depth_m), message.header
            stamp_ns = convert.nanoseconds_of(header.stamp)
            self.depths[camera].publish(convert.depth_message(faulty_m, stamp_ns, header.frame_id))
            self.counters["depth images"] += 1

    def on_image(self, camera: str, message: Image) -> None:
        """Distort a frame that has a subscriber, and publish it with its distortion; a repeated one only again."""
        if not self.active or not any(publisher.get_subscription_count() for publisher in self.outputs[camera]):
            return
        started = time.monotonic()
        self.follow_schedule()
        last = self.sent.get(camera)
        if last is None or last[0] != self.setting or not convert.is_same_image(last[1], message):
            try:
                image = self.setting.apply(camera, convert.color_array(message))
            except InputError as error:
                self.drop(camera, error)
                return
            info = DistortionInfo(
                header=message.header,
                name=self.setting.shown_name,
                level=float(self.setting.level),
                seed=self.setting.seed,
            )
            stamp_ns = convert.nanoseconds_of(message.header.stamp)
            outputs = (convert.color_message(image, stamp_ns, message.header.frame_id), info)
            self.sent[camera] = (self.setting, message, outputs)
        for publisher, out in zip(self.outputs[camera], self.sent[camera][2], strict=True):
            publisher.publish(out)
        self.counters["frames"] += 1
        self.latencies_ms.append(1000 * (time.monotonic() - started))

    def drop(self, camera: str, error: InputError) -> None:
        """Count a frame that is unusable."""
        self.counters["dropped malformed frames"] += 1
        self.details["last malformed frame"] = f"{camera}: {error}"

    def observe(self) -> None:
        if self.latencies_ms:
            p50, p99 = np.percentile(self.latencies_ms, (50, 99))
            self.details["latency"] = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms over {len(self.latencies_ms)} frames"


def main() -> None:
    sys.exit(run(DistortionNode))
