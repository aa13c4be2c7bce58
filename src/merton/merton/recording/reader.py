"""Reads MCAP recordings front to back, also those that a crash or a full disk has cut off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError, require
from merton.recording.writer import mcap_writer


@dataclass(frozen=True)
class Entry:
    """A message of a recording.

    Attributes:
        topic: its topic in the file.
        type_name: such as "sensor_msgs/msg/JointState".
        data: the message in CDR.
        log_time_ns, publish_time_ns: when it was received and sent [ns since 1970].
        decode: returns an object with the fields of the definition in the file.
    """

    topic: str
    type_name: str
    data: bytes
    log_time_ns: int
    publish_time_ns: int
    decode: Callable[[], Any]


class RecordingReader:
    """A recording on disk.

    Attributes:
        path: the file.
        torn: where and why reading ended before the end of a whole file, in one sentence; else empty.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError if `path` is no MCAP file, MissingDependencyError without the extra `recording`."""
        self.path, self.torn = path, ""
        try:
            with path.open("rb") as stream:
                start = stream.read(8)
        except OSError as error:
            raise InputError(f"cannot read the recording {path}: {error.strerror}") from None
        if start != b"\x89MCAP0\r\n":
            raise InputError(f"{path} is no recording: it does not begin as MCAP files do")
        require("mcap_ros2.decoder", "recording", "reading recordings")

    def records(self) -> Iterator[Any]:
        """MCAP's own records in the order of the file, types of `mcap.records`, up to its end or its tear."""
        from mcap.records import Footer
        from mcap.stream_reader import StreamReader

        size = self.path.stat().st_size
        with self.path.open("rb") as stream:
            # no record can be longer than the file: a damaged length must not allocate that much memory
            records = StreamReader(stream, validate_crcs=True, record_size_limit=size).records
            complete = False
            while True:
                at = stream.tell()
                try:
                    record = next(records)
                except StopIteration:
                    break
                except Exception as error:  # garbage makes the parser and the decompressors raise any type
                    if not complete:
                        self.torn = f"{self.path} is torn or damaged near byte {at} of {size}: {_reason(error)}"
                    return
                complete = complete or isinstance(record, Footer)
                yield record

    def entries(self, topics: Collection[str] | None = None) -> Iterator[Entry]:
        """The messages in the order of the file; those of `topics` alone unless that is None."""
        from mcap.records import Channel, Message, Schema
        from mcap_ros2.decoder import DecoderFactory

        schemas: dict[int, Schema] = {}
        channels: dict[int, Channel] = {}
        factory = DecoderFactory()
        for record in self.records():
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, Message) and record.channel_id in channels:
                channel = channels[record.channel_id]
                schema = schemas.get(channel.schema_id)
                if schema is None or (topics is not None and channel.topic not in topics):
                    continue

                def decode(message: Message = record, channel: Channel = channel, schema: Schema = schema) -> Any:
                    try:
                        decoder = factory.decoder_for(channel.message_encoding, schema)
                        if decoder is not None:
                            return decoder(message.data)
                    except Exception as error:  # as above
                        raise InputError(
                            f"{self.path}: a message on {channel.topic} cannot be decoded: {_reason(error)}"
                        ) from None
                    raise InputError(
                        f"{self.path}: {channel.topic} is encoded as {channel.message_encoding!r} with a schema in "
                        f"{schema.encoding!r}; use cdr with ros2msg"
                    )

                yield Entry(channel.topic, schema.name, record.data, record.log_time, record.publish_time, decode)


def repair(path: Path, target: Path) -> int:
    """Write the readable messages of a recording as a whole file, and return their number.

    Raises:
        InputError: `path` is no recording, or `target` exists or cannot be written.
    """
    from mcap.records import Channel, Message, Schema

    reader, writer_type = RecordingReader(path), mcap_writer()
    schemas: dict[int, int] = {}
    channels: dict[int, int] = {}
    count = 0
    try:
        with target.open("xb") as stream:
            writer = writer_type(stream)
            writer.start(profile="ros2")
            for record in reader.records():
                if isinstance(record, Schema) and record.id not in schemas:
                    schemas[record.id] = writer.register_schema(record.name, record.encoding, record.data)
                elif isinstance(record, Channel) and record.id not in channels:
                    schema = schemas.get(record.schema_id, 0)
                    channels[record.id] = writer.register_channel(
                        record.topic, record.message_encoding, schema, record.metadata
                    )
                elif isinstance(record, Message) and record.channel_id in channels:
                    channel = channels[record.channel_id]
                    writer.add_message(channel, record.log_time, record.data, record.publish_time, record.sequence)
                    count += 1
            writer.finish()
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    return count


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
