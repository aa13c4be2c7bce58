"""Writes messages to an MCAP file in a thread of its own, so that no caller waits for a disk."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.errors import InfrastructureError, InputError, require
from merton.recording.schemas import schema_of

FLUSH_PERIOD_S = 0.5
"""Time before a kill whose messages may be lost [s]. Ours: half of the second that is promised."""
CHUNK_BYTES = 1 << 20
MOST_WAITING_BYTES = 64 << 20
"""Most bytes that wait for a slow disk; further messages are dropped and counted."""
PROFILE = "ros2"


@dataclass(frozen=True)
class Channel:
    """A topic of a recording.

    Attributes:
        topic: its name in the file.
        type_name: type of its messages in the file, such as "sensor_msgs/msg/JointState".
        encode: makes the written message of the received one, in the writer's thread. None: written as received.
        metadata: further entries; the type's hash is always there.
    """

    topic: str
    type_name: str
    encode: Callable[[bytes], bytes] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Item:
    channel: Channel
    data: bytes
    log_time_ns: int
    publish_time_ns: int
    sequence: int


class RecordingWriter:
    """An MCAP file that is being written.

    Attributes:
        path: the file.
        written: messages in the file, by topic.
        dropped: messages that found no room or a file that had ended, by topic.
        problem: why nothing is written any more, in one sentence; empty while the file is written.
    """

    def __init__(self, path: Path) -> None:
        """Start the file.

        Raises:
            InputError: there is a file already.
            InfrastructureError: it cannot be written.
            MissingDependencyError: the extra `recording` is not installed.
        """
        self.path = path
        self.written: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.problem = ""
        writer_type = mcap_writer()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("xb")
            self._writer = writer_type(self._stream, chunk_size=CHUNK_BYTES)
            self._writer.start(profile=PROFILE)
            self._writer.flush()
        except FileExistsError:
            raise InputError(f"the recording {path} exists: choose another name") from None
        except OSError as error:
            raise InfrastructureError(f"cannot write the recording {path}: {error.strerror}") from None
        self._ids: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._waiting: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._since_flush: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="recording", daemon=True)
        self._thread.start()

    def put(
        self, channel: Channel, data: bytes, log_time_ns: int, publish_time_ns: int | None = None, sequence: int = 0
    ) -> bool:
        """Queue a message; never blocks. False if it was dropped.

        Args:
            data: the message in CDR, with its four bytes of encapsulation.
            log_time_ns: when it was received [ns since 1970].
            publish_time_ns: when it was sent; None if not known.
            sequence: its number among those of its publisher, 0 if not known.
        """
        with self._lock:
            if self.problem or self._waiting_bytes + len(data) > MOST_WAITING_BYTES:
                self.dropped[channel.topic] += 1
                return False
            self._waiting_bytes += len(data)
            published_ns = log_time_ns if publish_time_ns is None else publish_time_ns
            self._waiting.put(_Item(channel, data, log_time_ns, published_ns, sequence))
        return True

    def close(self) -> None:
        """Write the waiting messages, the index and the end; `problem` says if that was not possible."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        try:
            try:
                self._write_until_closed()
                self._writer.finish()
            finally:
                self._stream.close()
        except OSError as error:
            self._end(f"the recording {self.path} has ended, the run goes on: {error.strerror}")
        except Exception as error:  # a thread must not end silently
            self._end(f"the recording {self.path} has ended, the run goes on: {type(error).__name__}: {error}")

    def _write_until_closed(self) -> None:
        flush_at_s = time.monotonic() + FLUSH_PERIOD_S
        while True:
            try:
                item = self._waiting.get(timeout=max(0.0, flush_at_s - time.monotonic()))
                if item is None:
                    return
                self._write(item)
            except queue.Empty:
                pass
            if time.monotonic() >= flush_at_s:
                self._writer.flush()
                self._since_flush.clear()
                flush_at_s = time.monotonic() + FLUSH_PERIOD_S

    def _write(self, item: _Item) -> None:
        channel = item.channel
        try:
            data = channel.encode(item.data) if channel.encode else item.data
        except InputError:  # an image that cannot be decoded
            with self._lock:
                self.dropped[channel.topic] += 1
        else:
            self.written[channel.topic] += 1
            self._since_flush[channel.topic] += 1
            self._writer.add_message(
                self._id_of(channel), item.log_time_ns, data, item.publish_time_ns, item.sequence & 0xFFFFFFFF
            )
        finally:
            with self._lock:
                self._waiting_bytes -= len(item.data)

    def _id_of(self, channel: Channel) -> int:
        if channel.topic not in self._ids:
            schema = schema_of(channel.type_name)
            if schema.name not in self._schemas:
                self._schemas[schema.name] = self._writer.register_schema(schema.name, "ros2msg", schema.text.encode())
            self._ids[channel.topic] = self._writer.register_channel(
                channel.topic,
                "cdr",
                self._schemas[schema.name],
                {"topic_type_hash": schema.type_hash, **channel.metadata},
            )
        return self._ids[channel.topic]

    def _end(self, problem: str) -> None:
        with self._lock:
            self.problem = problem
            self.written -= self._since_flush  # it may never have reached the file
            self.dropped += self._since_flush
            while not self._waiting.empty():
                if (item := self._waiting.get()) is not None:
                    self.dropped[item.channel.topic] += 1


def free_path(folder: Path) -> Path:
    """`recording.mcap` in `folder`, or the first of `recording-2.mcap` and so on that is not there yet."""
    path, number = folder / "recording.mcap", 1
    while path.exists():
        number += 1
        path = folder / f"recording-{number}.mcap"
    return path


def mcap_writer() -> Any:
    """The class `mcap.writer.Writer`; raises MissingDependencyError if the extra `recording` is not installed."""
    return require("mcap.writer", "recording", "recording").Writer
