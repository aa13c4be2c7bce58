"""Records the graph's topics as MCAP: images compressed, every other message as it was sent."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image

from merton.errors import InputError
from merton.perception.camera.decoding import DEPTH_BYTES, depth_mm_of
from merton.recording.images import COLOR_FORMATS, png16
from merton.recording.writer import Channel, RecordingWriter
from merton.world.cell import load_cell
from merton_nodes.recording.recorded_topics import DIAGNOSTICS, qos_text, recorded_topics, type_name
from merton_nodes.ros import conversions as convert
from merton_nodes.ros.runtime import StageNode, run

POLL_PERIOD_S = 0.02
NICENESS = 5
"""Priority below all other processes of the graph."""


class PolledCallbackGroup(CallbackGroup):
    """Subscriptions that no executor waits for: waking up for every message would be the largest cost of a recorder."""

    def can_execute(self, entity: object) -> bool:
        return False

    def beginning_execution(self, entity: object) -> bool:
        return False

    def ending_execution(self, entity: object) -> None:
        """Nothing has begun."""


def compress(data: bytes, color: str) -> bytes:
    """A serialized Image as a serialized CompressedImage.

    Depth becomes a PNG of 16 bits in whole millimetres: 16UC1 without loss, 32FC1 rounded and up to 65 m.

    Args:
        color: form of a colour image, of `COLOR_FORMATS`.

    Raises InputError for an image that cannot be encoded.
    """
    image = deserialize_message(data, Image)
    compressed = CompressedImage(header=image.header)
    if image.encoding in DEPTH_BYTES:
        compressed.format = "16UC1; png compressed "
        compressed._data = png16(depth_mm_of(image))
    else:
        compressed.format = f"rgb8; {color} compressed bgr8"
        compressed._data = COLOR_FORMATS[color](convert.color_array(image))
    return bytes(serialize_message(compressed))


class RecorderNode(StageNode):
    """Subscribes; the library's writer encodes and writes in a thread of its own."""

    def __init__(self, **options: Any) -> None:
        super().__init__("recorder_node", **options)

    def set_up(self) -> None:
        path = self.parameter("path", "", "the MCAP file to write; it must not exist yet")
        if not path:
            raise InputError("recorder_node needs its parameter path: the MCAP file to write")
        color = self.parameter(
            "color", "jpeg", "form of colour images: png is without loss, jpeg is small", choices=COLOR_FORMATS
        )
        self.compress = partial(compress, color=color)
        self.writer = RecordingWriter(Path(path).expanduser())
        self.last_image: dict[str, bytes] = {}
        self.last_number: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.recorded: list[tuple[Subscription, Channel]] = []
        self.polled_group = PolledCallbackGroup()
        self.closing.callback(self.finish)  # now: a recorder that is ended while it subscribes leaves a whole file, too
        for topic, kind, qos in recorded_topics(load_cell().camera_names):
            self.listen(topic, kind, qos)
        self.create_timer_s(POLL_PERIOD_S, self.poll)

    def listen(self, topic: str, kind: type, qos: QoSProfile) -> None:
        name, metadata = self.resolve_topic_name(topic), {"offered_qos_profiles": qos_text(qos)}
        if kind is Image:
            channel = Channel(f"{name}/compressed", type_name(CompressedImage), self.compress, metadata)
        else:
            channel = Channel(name, type_name(kind), None, metadata)

        subscription = self.create_subscription(
            kind, topic, lambda message: None, qos, callback_group=self.polled_group, raw=True
        )
        self.recorded.append((subscription, channel))

    def poll(self) -> None:
        """Write the messages that have arrived on every topic."""
        for subscription, channel in self.recorded:
            with subscription.handle:
                while (message := subscription.handle.take_message(subscription.msg_type, True)) is not None:
                    self.on_message(channel, *message)

    def on_message(self, channel: Channel, data: bytes, info: dict[str, int]) -> None:
        """Write a message. An image that the camera repeats is written once."""
        number = int(info.get("publication_sequence_number") or 0)
        missed = number - self.last_number.get(channel.topic, number) - 1
        self.last_number[channel.topic] = number
        if missed > 0 and channel.topic != DIAGNOSTICS:  # every node numbers its own
            self.lost[channel.topic] = self.lost.get(channel.topic, 0) + missed
        if channel.encode:
            if self.last_image.get(channel.topic) == data:
                self.counters["repeated images"] += 1
                return
            self.last_image[channel.topic] = data
        received_ns = info.get("received_timestamp") or time.time_ns()
        self.writer.put(channel, data, received_ns, info.get("source_timestamp") or None, number)

    def observe(self) -> None:
        """Messages written and dropped by topic; why the recording ended early."""
        writer = self.writer
        self.details |= {f"written {topic}": str(count) for topic, count in sorted(writer.written.copy().items())}
        self.counters["written"] = sum(writer.written.copy().values())
        for topic, count in writer.dropped.copy().items():
            self.counters[f"dropped, too slow: {topic}"] = count
        for topic, count in self.lost.items():
            self.counters[f"dropped on the way: {topic}"] = count
        if writer.problem and not self.counters["errors"]:
            self.counters["errors"] = 1
            self.details["problem"] = writer.problem
            self.get_logger().error(writer.problem)

    def finish(self) -> None:
        """Write the messages that came since the last poll, and close the file."""
        self.poll()
        self.writer.close()
        if self.writer.problem and not self.counters["errors"]:
            print(self.writer.problem, file=sys.stderr)


def main() -> None:
    os.nice(NICENESS)
    sys.exit(run(RecorderNode))
