"""Hostile recordings: few bytes that unpack to many, and garbage. Memory stays small, and an error is one sentence."""

from __future__ import annotations

import os
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed (make develop)")
pytest.importorskip("mcap_ros2", reason="mcap-ros2-support is not installed (the extra recording)")
import lz4.frame  # noqa: E402
import zstandard  # noqa: E402
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from mcap.data_stream import RecordBuilder  # noqa: E402
from mcap.records import Channel, Chunk, Message, Schema  # noqa: E402
from mcap.writer import CompressionType, Writer  # noqa: E402

from merton.errors import MertonError  # noqa: E402
from merton.perception.camera.bag import BagCamera  # noqa: E402
from merton.recording import compression  # noqa: E402
from merton.recording.mcap_file import MAGIC  # noqa: E402
from merton.recording.reader import RecordingReader  # noqa: E402
from merton_studies.people.sources import recording as people  # noqa: E402
from merton_studies.release.lerobot.timeline import Timeline  # noqa: E402
from merton_studies.twins.recorded import read_recording  # noqa: E402

EXAMPLES = int(os.environ.get("MERTON_FUZZ_RECORDINGS", "30"))
MIB = 1 << 20
IMAGE = """std_msgs/Header header
uint32 height
uint32 width
string encoding
uint8 is_bigendian
uint32 step
uint8[] data
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
"""


@contextmanager
def at_most(peak_bytes: int) -> Iterator[None]:
    """The block allocates no more than this at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < peak_bytes
    finally:
        tracemalloc.stop()


def chunk_file(path: Path, data: bytes, packing: str, claims: int, crc: int = 0) -> Path:
    """An MCAP file of one chunk that says how much it unpacks to."""
    builder = RecordBuilder()
    Chunk(packing, data, 0, 0, crc, claims).write(builder)
    path.write_bytes(MAGIC + builder.end() + MAGIC)
    return path


def content(text: bytes = b"x") -> bytes:
    """The records of a chunk with one message."""
    builder = RecordBuilder()
    Schema(data=b"string data\n", encoding="ros2msg", id=1, name="std_msgs/msg/String").write(builder)
    Channel(id=1, message_encoding="cdr", metadata={}, schema_id=1, topic="/text").write(builder)
    data = b"\0\1\0\0" + (len(text) + 1).to_bytes(4, "little") + text + b"\0"
    Message(channel_id=1, data=data, log_time=1, publish_time=1, sequence=0).write(builder)
    return builder.end()


def zstd_without_size(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


@pytest.mark.parametrize(
    ("packing", "pack", "claims", "says"),
    [
        (
            "zstd",
            zstandard.compress,
            2048 * MIB,
            "says that it unpacks to 2147483648 bytes, and 268435456 are the most",
        ),
        ("lz4", lz4.frame.compress, 2048 * MIB, "says that it unpacks to 2147483648 bytes"),
        ("zstd", zstandard.compress, 100, "unpacks to more than 100 bytes, as it says"),
        ("zstd", zstd_without_size, 100, "unpacks to more than 100 bytes, as it says"),
        ("lz4", lz4.frame.compress, 100, "unpacks to more than 100 bytes, as it says"),
        ("zstd", zstandard.compress, 129 * MIB, "unpacks to 134217728 bytes and says"),
        ("brotli", bytes, 100, "compression 'brotli' is not known; use one of: zstd, lz4"),
    ],
)
def test_a_chunk_unpacks_to_no_more_than_it_says_and_than_the_limit(
    packing: str, pack: Callable[[bytes], bytes], claims: int, says: str, tmp_path: Path
) -> None:
    path = chunk_file(tmp_path / "bomb.mcap", pack(bytes(128 * MIB)), packing, claims)
    assert path.stat().st_size < MIB or packing == "brotli"
    reader = RecordingReader(path)
    with at_most((140 if claims == 129 * MIB else 8) * MIB + path.stat().st_size):
        assert list(reader.entries()) == []
    assert says in reader.torn
    assert "\n" not in reader.torn


@pytest.mark.parametrize("packing", ["", "zstd", "lz4"])
def test_a_chunk_that_says_the_truth_is_read(packing: str, tmp_path: Path) -> None:
    data = content()
    packed = {"": data, "zstd": zstandard.compress(data), "lz4": lz4.frame.compress(data)}[packing]
    reader = RecordingReader(chunk_file(tmp_path / "a.mcap", packed, packing, len(data), zlib.crc32(data)))
    assert [entry.decode().data for entry in reader.entries()] == ["x"]
    wrong = RecordingReader(chunk_file(tmp_path / "b.mcap", packed, packing, len(data), 7))
    assert list(wrong.entries()) == []
    assert "checksum" in wrong.torn


def test_a_chunk_of_many_small_records_is_read_one_by_one(tmp_path: Path) -> None:
    """Unknown records of nine bytes, and one message."""
    data = content() + (b"\x7f" + bytes(8)) * 200_000
    path = chunk_file(tmp_path / "many.mcap", zstandard.compress(data), "zstd", len(data))
    with at_most(4 * len(data)):
        assert len(list(RecordingReader(path).entries())) == 1


def test_a_packed_message_unpacks_to_no_more_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merton.recording.entry.LARGEST_UNPACKED_BYTES", MIB)
    with (tmp_path / "a.mcap").open("wb") as stream:
        writer = Writer(stream, compression=CompressionType.NONE)
        writer.start("ros2")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data\n")
        channel = writer.register_channel("/text", "cdr", schema)
        writer.add_message(channel, 1, zstandard.compress(bytes(64 * MIB)), 1)
        writer.finish()
    with (
        at_most(8 * MIB),
        pytest.raises(MertonError, match="/text cannot be unpacked: it unpacks to more than 1048576"),
    ):
        list(RecordingReader(tmp_path / "a.mcap").entries())


def test_a_record_of_a_packed_file_asks_for_no_more_than_the_limit(tmp_path: Path) -> None:
    """A message that says it is shorter than its own head would be all that follows."""
    bomb = MAGIC + b"\x05" + (3).to_bytes(8, "little") + bytes(512 * MIB)
    path = tmp_path / "a.mcap.zstd"
    path.write_bytes(zstandard.compress(bomb))
    del bomb
    reader = RecordingReader(path)
    with at_most(8 * MIB):
        assert list(reader.entries()) == []
    assert "a record asks for" in reader.torn
    assert compression.LARGEST_UNPACKED_BYTES <= 256 * MIB


def small(folder: Path, packing: CompressionType = CompressionType.NONE) -> bytes:
    """A small recording with a camera's images, of which most bytes matter."""
    path = folder / f"small-{packing.name}.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream, compression=packing, enable_crcs=False, enable_data_crcs=False)
        writer.start("ros2")
        schema = writer.register_schema("sensor_msgs/msg/Image", "ros2msg", IMAGE.encode())
        topics = [
            writer.register_channel(topic, "cdr", schema)
            for topic in ("/camera/top/color/image_raw", "/cell/state", "/joint_states", "/trial_results")
        ]
        pixels = np.arange(12, dtype=np.uint8).tobytes()
        head = b"\0\1\0\0" + bytes(8) + b"\1\0\0\0\0\0\0\0" + (2).to_bytes(4, "little") * 2 + b"\5\0\0\0rgb8\0\0\0\0"
        data = head + (6).to_bytes(4, "little") + (12).to_bytes(4, "little") + pixels
        for channel in topics:
            writer.add_message(channel, 1, data, 1)
        writer.finish()
    return path.read_bytes()


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("small")
    database = folder / "small.db3"
    with sqlite3.connect(database) as made:
        made.executescript(
            "CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT);"
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);"
            "CREATE TABLE message_definitions (topic_type TEXT, encoding TEXT, encoded_message_definition TEXT);"
            "INSERT INTO topics VALUES (1, '/camera/top/color/image_raw', 'sensor_msgs/msg/Image', 'cdr');"
            "INSERT INTO messages VALUES (1, 1, 1, x'00010000'), (2, 1, 2, x'00010000FF');"
        )
        made.execute("INSERT INTO message_definitions VALUES ('sensor_msgs/msg/Image', 'ros2msg', ?)", (IMAGE,))
    made.close()
    files = [small(folder, packing) for packing in (CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4)]
    assert len(list(BagCamera(folder / "small-NONE.mcap"))) == 1
    return [*files, database.read_bytes(), *(zstandard.compress(files[0]) for _ in range(1))]


def read_by_all(path: Path) -> None:
    """Read a recording as every command does; no error but Merton's own may leave it, in one line."""
    uses: list[Callable[[], object]] = [
        lambda: [entry.decode() for entry in RecordingReader(path).entries()],
        lambda: RecordingReader(path).topics(),
        lambda: list(BagCamera(path)),
        lambda: read_recording(path),
        lambda: Timeline(path),
        lambda: list(people._trials(path)),
    ]
    for use in uses:
        said = ""
        try:
            use()
        except MertonError as error:
            said = str(error)
        assert "\n" not in said
        assert len(said) < 2_000


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mutated_recording_is_read_or_refused(data: st.DataObject, samples: list[bytes], tmp_path: Path) -> None:
    content = bytearray(data.draw(st.sampled_from(samples)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        match data.draw(st.sampled_from(["set", "set", "set", "number", "cut", "insert", "remove", "copy"])):
            case "set" if content:
                content[at] = data.draw(st.integers(0, 255))
            case "number":
                content[at : at + 8] = data.draw(
                    st.sampled_from([0, 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1])
                ).to_bytes(8, "little")
            case "cut":
                del content[at:]
            case "insert":
                content[at:at] = data.draw(st.binary(max_size=40))
            case "remove":
                del content[at : at + data.draw(st.integers(1, 40))]
            case "copy":
                end = at + data.draw(st.integers(1, 200))
                content[at:at] = content[at:end]
    path = tmp_path / "mutated.mcap"
    path.write_bytes(bytes(content))
    read_by_all(path)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.binary(max_size=400),
    start=st.sampled_from([b"", MAGIC, compression.ZSTD, b"SQLite format 3\0", MAGIC + b"\x06", MAGIC + b"\x05"]),
)
def test_garbage_is_refused(content: bytes, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "garbage.mcap"
    path.write_bytes(start + content)
    read_by_all(path)


DEFINITIONS = st.lists(
    st.sampled_from(
        ["string data", "uint8[] data", "int32 height", "string height", "std_msgs/Header header", "string header",
         "float64[9] k", "string[] name", "uint8[4294967295] data", "Loop loop", "geometry_msgs/Missing x", "uint8",
         "int32 scene", "string scene", "uint8 X=300", "# note", "wstring w", "string<=3 s", "", "\0",
         "string trial_id",
         "float64[] position", "int64 outcome", "string outcome", "string format"]
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    lines=DEFINITIONS,
    data=st.binary(max_size=120),
    topic=st.sampled_from(["/camera/top/color/image_raw", "/cell/state", "/joint_states", "/trial_results",
                           "/camera/top/color/camera_info",
                           "/camera/top/aligned_depth_to_color/image_raw/compressedDepth",
                           "/trial_evidence", "/experiment/chunk/distorted", "/camera/top/color/image_raw/compressed"]),
    kind=st.sampled_from(["sensor_msgs/msg/Image", "a", "", "a/b/c/d", "Loop"]),
)  # fmt: skip
def test_messages_of_any_type_are_read_or_refused(
    lines: list[str], data: bytes, topic: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "types.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream, compression=CompressionType.NONE)
        writer.start("ros2")
        text = "\n".join(
            [*lines, "=" * 80, "MSG: a/Loop", "Loop loop", "=" * 80, "MSG: std_msgs/Header", "int32 stamp"]
        )
        schema = writer.register_schema(kind, "ros2msg", text.encode())
        image = writer.register_schema("sensor_msgs/msg/Image", "ros2msg", IMAGE.encode())
        channels = [writer.register_channel(topic, "cdr", schema)]
        channels += [writer.register_channel("/camera/top/color/image_raw", "cdr", image)]
        for channel in channels:
            writer.add_message(channel, 1, b"\0\1\0\0" + data, 1)
        writer.finish()
    read_by_all(path)
