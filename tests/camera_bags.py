"""Recordings of cameras, written by the package rosbags: messages of sensor_msgs, and bags of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rosbags import rosbag2
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
T = STORE.types
WIDTH, HEIGHT, COUNT, PERIOD_NS = 48, 32, 4, 33_333_333
START_NS = 1_700_000_000_000_000_000
DEPTH_TOPIC = "/camera/top/aligned_depth_to_color/image_raw"
INFO_NAME = "color/camera_info"
LENS = (-0.056, 0.067, 0.0001, -0.0002, -0.02)


def color(number: int, camera: str) -> np.ndarray:
    return np.random.default_rng([number, len(camera)]).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)


def depth(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 65535, (HEIGHT, WIDTH), np.uint16)


def header(stamp_ns: int) -> Any:
    stamp = T["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    return T["std_msgs/msg/Header"](stamp, "frame")


def image(pixels: np.ndarray, encoding: str, stamp_ns: int, padding: int = 0) -> Any:
    rows = np.ascontiguousarray(pixels).view(np.uint8).reshape(HEIGHT, -1)
    rows = np.pad(rows, ((0, 0), (0, padding)))
    return T["sensor_msgs/msg/Image"](header(stamp_ns), HEIGHT, WIDTH, encoding, 0, rows.shape[1], rows.reshape(-1))


def compressed(data: bytes, form: str, stamp_ns: int) -> Any:
    return T["sensor_msgs/msg/CompressedImage"](header(stamp_ns), form, np.frombuffer(data, np.uint8))


def info(stamp_ns: int) -> Any:
    k = np.array([40.5, 0, 23.25, 0, 41.5, 15.75, 0, 0, 1])
    roi = T["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
    return T["sensor_msgs/msg/CameraInfo"](
        header(stamp_ns), HEIGHT, WIDTH, "plumb_bob", np.array(LENS), k, np.eye(3).ravel(), np.zeros(12), 0, 0, roi
    )


def write(folder: Path, messages: list[tuple[str, Any]]) -> Path:
    """A bag of messages under their topics, in that order."""
    writer = rosbag2.Writer(folder, version=9, storage_plugin=rosbag2.StoragePlugin.MCAP)
    with writer:
        connections: dict[str, Any] = {}
        for index, (topic, message) in enumerate(messages):
            kind = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], START_NS + index, STORE.serialize_cdr(message, kind))
    return folder


def raw(camera: str, under: str = "/") -> list[tuple[str, Any]]:
    """A recording of a camera as it published; one camera_info came before its image, the first image without depth."""
    messages = []
    for number in range(COUNT):
        stamp_ns = START_NS + number * PERIOD_NS
        top = f"{under}camera/{camera}"
        messages += [
            (f"{top}/color/camera_info", info(stamp_ns)),
            (f"{top}/color/image_raw", image(color(number, camera), "rgb8", stamp_ns, padding=4)),
        ]
        if number:
            messages.append((f"{top}/aligned_depth_to_color/image_raw", image(depth(number), "16UC1", stamp_ns)))
    return messages
