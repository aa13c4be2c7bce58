"""An MCAP file read front to back, also one that a crash or a full disk has cut off, or that is packed as a whole."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from merton.errors import InputError, require
from merton.recording.compression import LARGEST_UNPACKED_BYTES, unpacked
from merton.recording.entry import Decoder, Entry, Form, OnDamaged, name_of, text_of

MAGIC = b"\x89MCAP0\r\n"


class McapFile:
    """An MCAP file.

    Attributes:
        path: the file.
        torn: where and why reading ended before the end of a whole file, in one sentence; else empty.
    """

    def __init__(self, path: Path, packed: bool = False) -> None:
        """`packed`: the whole file is packed by Zstandard, as of `ros2 bag record --compression-mode file`."""
        self.path, self.torn, self._packed = path, "", packed

    def topics(self) -> dict[str, str]:
        """The type of each topic, "" for one without a schema: from the index if it has them, else from the whole file.

        A crash cuts the index off, and a writer may leave channels or schemas out of it.
        """
        from mcap.reader import SeekingReader
        from mcap.records import Channel, Schema

        if not self._packed:
            with self.path.open("rb") as stream, contextlib.suppress(Exception):  # mcap raises several kinds
                size = self.path.stat().st_size
                if summary := SeekingReader(stream, record_size_limit=size).get_summary():
                    names = {schema.id: name_of(schema.name) for schema in summary.schemas.values()}
                    channels = summary.channels.values()
                    if channels and all(each.schema_id in names or not each.schema_id for each in channels):
                        return {name_of(each.topic): names.get(each.schema_id, "") for each in channels}
        found, names = dict[str, str](), dict[int, str]()
        for record in self._records():
            if isinstance(record, Schema):
                names[record.id] = name_of(record.name)
            elif isinstance(record, Channel):
                found[name_of(record.topic)] = names.get(record.schema_id, "")
        return found

    def entries(self, topics: Collection[str] | None = None, on_damaged: OnDamaged | None = None) -> Iterator[Entry]:
        """The messages in the order of the file; those of `topics` alone unless that is None.

        Raises:
            InputError: a message cannot be unpacked; with `on_damaged` that is called with its sentence instead.
        """
        from mcap.records import Channel, Message, Schema

        no_schema, schemas = Schema(id=0, name="", encoding="", data=b""), dict[int, Schema]()
        forms: dict[int, Form] = {}
        decoder = Decoder(self.path, on_damaged)
        for record in self._records():
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel) and record.id not in forms:
                schema = schemas.get(record.schema_id, no_schema)
                names = name_of(record.topic), name_of(schema.name)
                forms[record.id] = Form(*names, record.message_encoding, schema.encoding, schema.data, record.metadata)
            elif isinstance(record, Message):
                form = forms.get(record.channel_id)
                if form is not None and (topics is None or form.topic in topics):
                    yield from decoder.entries(form, record.data, record.log_time, record.publish_time, record.sequence)

    def _records(self) -> Iterator[Any]:
        """MCAP's own records in the order of the file, types of `mcap.records`, up to its end or its tear."""
        from mcap.records import Chunk, Footer
        from mcap.stream_reader import StreamReader

        size = self.path.stat().st_size
        with contextlib.ExitStack() as open_files:
            stream: Any = open_files.enter_context(self.path.open("rb"))
            if self._packed:
                zstandard: Any = require("zstandard", "recording", "reading compressed recordings")
                stream = open_files.enter_context(
                    zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
                )
            # no record can be longer than the file: a damaged length must not allocate that much memory
            limit = LARGEST_UNPACKED_BYTES if self._packed else size
            limited: Any = _Limited(stream, limit)
            records = StreamReader(limited, validate_crcs=True, emit_chunks=True, record_size_limit=limit).records
            complete = False
            while True:
                at = stream.tell()
                try:
                    record = next(records)
                    found = _inside(record) if isinstance(record, Chunk) else iter((record,))
                    yield from found
                except StopIteration:
                    break
                except Exception as error:  # garbage makes the parser and the decompressors raise any type
                    if not complete:
                        whole = "its content" if self._packed else size
                        self.torn = f"{self.path} is torn or damaged near byte {at} of {whole}: {text_of(error)}"
                    return
                complete = complete or isinstance(record, Footer)


class _Limited:
    """A stream of which no more than a number of bytes is read at once, also if a damaged length asks for more."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._limit = stream, limit

    def read(self, count: int) -> bytes:
        """`count` bytes, fewer at the end."""
        if not 0 <= count <= self._limit:
            raise InputError(f"a record asks for {count} bytes, and {self._limit} are the most")
        return self._stream.read(count)


def _inside(chunk: Any) -> Iterator[Any]:
    """The schemas, channels and messages of a chunk, one after the other.

    Raises:
        InputError: it unpacks to more than `LARGEST_UNPACKED_BYTES` or than it says, or it is damaged.
    """
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Channel, Message, Schema

    data = unpacked(chunk.data, chunk.compression, LARGEST_UNPACKED_BYTES, chunk.uncompressed_size)
    if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
        raise InputError("the checksum of a chunk is wrong")
    stream = ReadDataStream(BytesIO(data))
    while stream.count < len(data):
        opcode, length = stream.read1(), stream.read8()
        if length > len(data) - stream.count:
            raise InputError(f"a record of {length} bytes is longer than its chunk")
        content = ReadDataStream(BytesIO(stream.read(length)))
        if opcode == Opcode.CHANNEL:
            yield Channel.read(content)
        elif opcode == Opcode.MESSAGE:
            yield Message.read(content, length)
        elif opcode == Opcode.SCHEMA:
            yield Schema.read(content)
