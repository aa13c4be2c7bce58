"""Measures how good the distorted images are, without their originals, as they come."""

from __future__ import annotations

import sys
import time
from collections import deque
from functools import partial
from typing import Any

import numpy as np
from merton_interfaces.msg import ImageQuality
from sensor_msgs.msg import Image

from merton import __version__
from merton.errors import InputError
from merton.perception.quality import METRICS, measure, no_reference_metrics
from merton.world.cell import load_cell
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.runtime import StageNode, run

LATENCY_WINDOW = 300


class QualityNode(StageNode):
    """One metric, applied to every camera's distorted images: those of a trial, and those that a viewer looks at."""

    def __init__(self, **options: Any) -> None:
        super().__init__("quality_node", **options)
        self.latencies_ms: deque[float] = deque(maxlen=LATENCY_WINDOW)

    def set_up(self) -> None:
        cell = load_cell()
        cameras = list(self.parameter("cameras", list(cell.camera_names), "the cameras to watch"))
        meaning = "metric of quality, one that needs no reference image"
        name = self.parameter("metric", "merton-nr", meaning, choices=no_reference_metrics())
        meaning = "as of arm_node, to be shown beside the values; 0: none"
        self.minimum = self.parameter("min_image_quality", 0.0, meaning, minimum=0.0, maximum=1e6)
        self.metric = METRICS[name]
        self.worst, self.best = self.metric.range if self.metric.better == "higher" else self.metric.range[::-1]
        measure(name, np.zeros((480, 640, 3), np.uint8))  # before the first image, which would wait for weights
        self.measured: dict[str, tuple[Image, ImageQuality]] = {}
        self.outputs = {
            camera: self.create_publisher(ImageQuality, names.quality(camera), names.RELIABLE_QOS) for camera in cameras
        }
        for camera in cameras:
            self.create_subscription(Image, names.distorted(camera), partial(self.on_image, camera), names.SENSOR_QOS)

    def on_image(self, camera: str, message: Image) -> None:
        """Publish the quality of an image; that of a repeated one only again."""
        if not self.active:
            return
        started = time.monotonic()
        last = self.measured.get(camera)
        if last is None or not convert.is_same_image(last[0], message):
            try:
                value = measure(self.metric.name, convert.color_array(message))
            except InputError as error:
                self.counters["dropped malformed frames"] += 1
                self.details["last malformed frame"] = f"{camera}: {error}"
                return
            quality = ImageQuality(
                header=message.header,
                value=value,
                metric=self.metric.name,
                version=__version__,
                worst=self.worst,
                best=self.best,
                minimum=self.minimum,
            )
            self.measured[camera] = message, quality
            self.latencies_ms.append(1000 * (time.monotonic() - started))
        self.outputs[camera].publish(self.measured[camera][1])
        self.counters["frames"] += 1

    def observe(self) -> None:
        for camera, (_, quality) in self.measured.items():
            self.details[f"{quality.metric} of {camera}"] = f"{quality.value:.3f}"
        if self.latencies_ms:
            p50, p99 = np.percentile(self.latencies_ms, (50, 99))
            self.details["latency"] = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms over {len(self.latencies_ms)} images"


def main() -> None:
    sys.exit(run(QualityNode))
