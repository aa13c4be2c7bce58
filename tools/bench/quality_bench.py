"""Image quality in the bench: the work of quality_node on one image, by metric."""

from __future__ import annotations

import contextlib
from typing import Any

import cv2
import numpy as np
from distortion_bench import photograph
from timing import cpu_seconds

HEIGHT, WIDTH = 480, 640


def qualities() -> dict[str, Any]:
    """Milliseconds of processor time of one thread for a 640x480 image, from its bytes to those of its quality.

    That is all quality_node does with it: unpack the message, convert it, measure, and pack the result. Metrics whose
    packages are not installed are left out.
    """
    from merton_interfaces.msg import ImageQuality
    from rclpy.serialization import deserialize_message, serialize_message
    from sensor_msgs.msg import Image

    from merton.errors import MissingDependencyError
    from merton.perception.quality import measure, no_reference_metrics
    from merton_nodes.ros import conversions as convert

    cv2.setNumThreads(1)
    picture = np.ascontiguousarray(photograph()[:HEIGHT, :WIDTH])
    received = serialize_message(convert.color_message(picture, 1, "frame"))

    def answer(metric: str) -> bytes:
        message = deserialize_message(received, Image)
        value = measure(metric, convert.color_array(message))
        return serialize_message(ImageQuality(header=message.header, value=value, metric=metric))

    def conversion() -> Any:
        return convert.color_array(deserialize_message(received, Image))

    result: dict[str, Any] = {"conversion_alone_ms": 1e3 * cpu_seconds(conversion, 30)}
    for name in no_reference_metrics():
        with contextlib.suppress(MissingDependencyError):
            result[f"{name}_ms"] = 1e3 * cpu_seconds(lambda n=name: answer(n), 30)
    return result
