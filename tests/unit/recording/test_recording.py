"""Recordings: read by two other readers, and after a crash, a full disk, or damage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from merton.cli.continuation import continuation_of
from merton.errors import InputError, UnknownNameError
from merton.experiment.run import RunDirectory
from merton.files import resource
from merton.graph.spec import load_graph
from merton.recording import writer as writing
from merton.recording.reader import RecordingReader, repair
from merton.recording.schemas import schema_of
from merton.recording.writer import Channel, RecordingWriter, free_path
from patience import until

TEXT = Channel("/text", "std_msgs/msg/String")


def string(text: str) -> bytes:
    """std_msgs/String in little-endian CDR (OMG DDSI-RTPS 2.5, 10.2): length with the closing zero, bytes, zero."""
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data


def write(path: Path, count: int) -> None:
    writer = RecordingWriter(path)
    for number in range(count):
        assert writer.put(TEXT, string(f"line {number}"), 1_000 + number, 500 + number, number)
    writer.close()
    assert (writer.written, writer.dropped, writer.problem) == ({"/text": count}, {}, "")


def texts(path: Path) -> list[str]:
    return [entry.decode().data for entry in RecordingReader(path).entries()]


def test_rosbags_and_mcap_read_a_recording(tmp_path: Path) -> None:
    from mcap.reader import make_reader
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_typestore

    path = tmp_path / "recording.mcap"
    write(path, 300)
    assert texts(path) == [f"line {number}" for number in range(300)]
    with Reader(path) as bag:
        (connection,) = bag.connections
        assert (connection.topic, connection.msgtype, connection.msgcount) == ("/text", "std_msgs/msg/String", 300)
        # rosbags carries the hashes of Jazzy's types: what is in the file is the type that all ROS knows by this name
        store = get_typestore(Stores.ROS2_JAZZY)
        assert store.hash_rihs01("std_msgs/msg/String") == schema_of("std_msgs/msg/String").type_hash
        found = [
            (time_ns, store.deserialize_cdr(raw, "std_msgs/msg/String").data) for _, time_ns, raw in bag.messages()
        ]
    assert found == [(1_000 + number, f"line {number}") for number in range(300)]
    with path.open("rb") as stream:
        summary = make_reader(stream).get_summary()
        assert summary is not None
        assert summary.statistics is not None
        (channel,) = summary.channels.values()
        assert channel.metadata["topic_type_hash"] == schema_of("std_msgs/msg/String").type_hash
        assert summary.statistics.channel_message_counts == {channel.id: 300}
        assert {schema.encoding for schema in summary.schemas.values()} == {"ros2msg"}
        _, _, message = next(make_reader(stream).iter_messages())
    assert (message.log_time, message.publish_time) == (1_000, 500)


def test_a_schema_holds_every_type_inside() -> None:
    text = schema_of("merton_interfaces/msg/TrialEvidence").text
    inside = re.findall(r"^MSG: (\S+)$", text, re.MULTILINE)
    assert {"merton_interfaces/ActionChunk", "merton_interfaces/ActionDelta", "geometry_msgs/Pose"} <= set(inside)
    assert len(inside) == len(set(inside))


KILLED = """
import sys, time
from pathlib import Path
from merton.recording.writer import Channel, RecordingWriter
writer = RecordingWriter(Path(sys.argv[1]))
channel, number = Channel("/text", "std_msgs/msg/String"), 0
print("begun", flush=True)
while True:
    data = str(number).encode() + b"\\0"
    if number < 2000:  # far less than a chunk
        writer.put(channel, b"\\0\\1\\0\\0" + len(data).to_bytes(4, "little") + data, time.time_ns())
        number += 1
    time.sleep(0.001)
"""


def test_kill_9_loses_only_messages_since_the_last_flush(tmp_path: Path) -> None:
    """Messages get to the file while it is written, though all of them together do not fill a chunk."""
    path = tmp_path / "recording.mcap"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    until(lambda: sum(1 for _ in RecordingReader(path).entries()) > 100)
    assert process.poll() is None
    process.kill()
    process.communicate()
    reader = RecordingReader(path)
    read = [int(entry.decode().data) for entry in reader.entries()]
    assert read == list(range(len(read))), "a message is missing in the middle"
    assert writing.FLUSH_PERIOD_S <= 0.5, "docs/lab/recording.md says so"
    assert "torn or damaged near byte" in reader.torn

    whole = tmp_path / "whole.mcap"
    assert repair(path, whole) == (len(read), reader.torn)
    from rosbags.rosbag2 import Reader

    with Reader(whole) as bag:
        assert bag.message_count == len(read)
    reader = RecordingReader(whole)
    assert (sum(1 for _ in reader.entries()), reader.torn) == (len(read), "")
    with pytest.raises(InputError, match=r"cannot write .*whole.mcap: File exists"):
        repair(path, whole)


def test_a_file_cut_off_anywhere_is_read_up_to_the_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK_BYTES", 2_000)
    path = tmp_path / "recording.mcap"
    write(path, 500)
    data = path.read_bytes()
    cut, counts = tmp_path / "cut.mcap", []
    for end in range(8, len(data), len(data) // 40):
        cut.write_bytes(data[:end])
        found = texts(cut)
        assert found == [f"line {number}" for number in range(len(found))]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 500)
    assert len(set(counts)) > 5


def test_damage_is_one_sentence_and_never_another_error(tmp_path: Path) -> None:
    path = tmp_path / "recording.mcap"
    write(path, 200)
    good = path.read_bytes()
    bad = tmp_path / "bad.mcap"
    draw = np.random.default_rng(7)
    for _ in range(60):
        data = np.frombuffer(good, np.uint8).copy()
        spots = draw.integers(8, len(data), 3)
        data[spots] = draw.integers(0, 256, 3)
        bad.write_bytes(data.tobytes())
        reader = RecordingReader(bad)
        found, said = 0, ""
        try:
            for entry in reader.entries():
                entry.decode()
                found += 1
        except InputError as error:
            said = str(error)
        assert found == 200 or said or reader.torn
        assert "\n" not in said + reader.torn


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot read the recording .*: No such file"),
        (b"", "is no recording"),
        (b"SQLite format 3\0", "is no recording"),
    ],
)
def test_a_file_that_is_no_recording_is_one_sentence(content: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        RecordingReader(path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full, which is Linux' full disk")
def test_a_full_disk_is_reported_and_blocks_no_caller(tmp_path: Path) -> None:
    """The file turns into /dev/full once it has begun; later messages are counted as dropped."""
    writer = RecordingWriter(tmp_path / "recording.mcap")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._stream.fileno())
    os.close(full)
    put = 0
    for put in range(1, 1_000_000):
        if not writer.put(TEXT, string("x" * 100_000), put):
            break
        if put % 20 == 0:
            writer._thread.join(0.05)
    writer.close()
    assert "No space left on device" in writer.problem
    assert "the run goes on" in writer.problem
    assert not writer.put(TEXT, string("late"), 1)
    assert (writer.written["/text"], writer.dropped["/text"]) == (0, put + 1), "taken, and never in the file"


def test_a_slow_disk_drops_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_WAITING_BYTES", 1_000)
    gate = threading.Event()

    def slow(data: bytes) -> bytes:
        gate.wait(20)
        return data

    writer = RecordingWriter(tmp_path / "recording.mcap")
    channel = Channel("/text", "std_msgs/msg/String", slow)
    taken = [writer.put(channel, string("x" * 200), number) for number in range(20)]
    gate.set()
    writer.close()
    assert 0 < sum(taken) < 20
    assert (writer.written["/text"], writer.dropped["/text"]) == (sum(taken), 20 - sum(taken))
    assert Counter(len(text) for text in texts(writer.path)) == {200: sum(taken)}


def test_names_of_files(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        path = free_path(tmp_path)
        path.touch()
        names.append(path.name)
    assert names == ["recording.mcap", "recording-2.mcap", "recording-3.mcap"]
    with pytest.raises(InputError, match="exists: choose another name"):
        RecordingWriter(tmp_path / "recording.mcap")


def test_a_recorded_run_that_ends_early_says_how_to_go_on_recording(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, resource("merton_bringup", "config/experiments/quickstart.yaml"), "night")
    said = continuation_of(run, "lab", {"robot_ip": "192.0.2.10"}, True)
    assert said.endswith("--name night --graph lab --record --set robot_ip=192.0.2.10")
    assert "--record" not in continuation_of(run, "sim", {}, False)


def test_a_graph_starts_its_recorder_only_if_asked() -> None:
    graph = load_graph("sim")
    assert "recorder_node" not in [node.name for node in graph.nodes]
    recorded = graph.with_arguments({"recording": "/tmp/x.mcap"})
    assert [node.name for node in recorded.nodes] == ["recorder_node", *(node.name for node in graph.nodes)]
    assert recorded.nodes[0].parameters == {"path": "/tmp/x.mcap"}
    assert [node.name for node in recorded.nodes if recorded.can_do_without(node.name)] == ["recorder_node"]
    with pytest.raises(UnknownNameError, match="recording"):
        graph.with_arguments({"recordings": "x"})
