"""Folders of `ros2 bag record`, as the package rosbags writes them: parts, packed messages and files, both storages."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (make develop)")
pytest.importorskip("mcap_ros2", reason="mcap-ros2-support is not installed (the extra recording)")

from bags import STRING_HASH, Message, string, write_bag
from merton.cli.main import app
from merton.cli.recordings import recording_named
from merton.errors import InputError, MissingDependencyError
from merton.recording import sqlite_file
from merton.recording.bag_files import is_recording
from merton.recording.reader import RecordingReader, recording_sha256, repair
from merton.recording.schemas import schema_of

COUNT = 40


def said(number: int) -> Message:
    return (
        f"/text{number % 2}",
        "std_msgs/msg/String",
        "string data\n",
        STRING_HASH,
        string(f"line {number} " + "a" * 200),
    )


MESSAGES = [said(number) for number in range(COUNT)]


def lines(path: Path, topics: list[str] | None = None) -> list[int]:
    reader = RecordingReader(path)
    found = [int(entry.decode().data.split()[1]) for entry in reader.entries(topics)]
    assert reader.torn == ""
    return found


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("storage", "packed"),
    [(storage, packed) for storage in ("MCAP", "SQLITE3") for packed in ("NONE", "MESSAGE", "FILE")]
    + [("MCAP", "STORAGE")],
)
def test_a_bag_of_any_form_gives_its_messages_in_order(storage: str, packed: str, parts: int, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES, storage, packed, parts)
    assert lines(bag) == list(range(COUNT))
    assert lines(bag, ["/text1"]) == list(range(1, COUNT, 2))
    assert RecordingReader(bag).topics() == {f"/text{number}": "std_msgs/msg/String" for number in (0, 1)}
    assert recording_named(bag) == bag
    (first, *_) = sorted(file for file in bag.iterdir() if file.name != "metadata.yaml")
    assert is_recording(first)
    assert lines(first) == list(range(-(-COUNT // parts))), "one of the files alone"
    whole = tmp_path / "whole.mcap"
    assert repair(bag, whole) == (COUNT, "")
    assert lines(whole) == list(range(COUNT))


def test_parts_are_in_the_order_of_their_numbers_without_metadata_too(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES, parts=12)
    assert lines(bag) == list(range(COUNT))
    before = recording_sha256(bag)
    (bag / "metadata.yaml").unlink()
    assert lines(bag) == list(range(COUNT))
    assert recording_sha256(bag) == before
    (bag / "metadata.yaml").write_text("!!python/object:x {")
    assert lines(bag) == list(range(COUNT))


def test_a_part_that_is_not_there_is_said(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES, parts=4)
    (bag / "bag_2.mcap").unlink()
    reader = RecordingReader(bag)
    assert len(list(reader.entries())) == 30
    assert reader.torn == f"{bag} lacks bag_2.mcap, which its metadata name"
    told = CliRunner().invoke(app, ["recording", "repair", str(bag), "--out", str(tmp_path / "whole.mcap")])
    assert "lacks bag_2.mcap" in " ".join(told.output.split())


def test_a_torn_part_is_read_up_to_its_tear_and_the_others_whole(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES, parts=4)
    part = bag / "bag_1.mcap"
    part.write_bytes(part.read_bytes()[:700])
    reader = RecordingReader(bag)
    found = [int(entry.decode().data.split()[1]) for entry in reader.entries()]
    assert set(found) >= {*range(10), *range(20, 40)}
    assert "bag_1.mcap is torn or damaged near byte" in reader.torn


def test_a_packed_file_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(97, 123, (COUNT, 100_000), np.uint8)
    long = [(*said(number)[:4], string(bytes(noise[number]).decode())) for number in range(COUNT)]
    bag = write_bag(tmp_path / "bag", long, packed="FILE")
    (part,) = bag.glob("*.zstd")
    part.write_bytes(part.read_bytes()[:-1_000_000])
    reader = RecordingReader(part)
    found = [entry.decode().data for entry in reader.entries()]
    assert 10 < len(found) < COUNT
    assert found == [bytes(row).decode() for row in noise[: len(found)]]
    assert "torn or damaged near byte" in reader.torn


def test_a_database_without_definitions_uses_installed_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of Humble: its databases have no table message_definitions."""
    bag = write_bag(tmp_path / "bag", MESSAGES, "SQLITE3")
    with sqlite3.connect(bag / "bag_0.db3") as database:
        database.execute("DROP TABLE message_definitions")
    share = tmp_path / "ros/share/std_msgs/msg"
    schema_of.cache_clear()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "nowhere"))
    with pytest.raises(MissingDependencyError, match="the definition of std_msgs/msg/String is not installed"):
        lines(bag)
    share.mkdir(parents=True)
    (share / "String.msg").write_text("string data\n")
    hashes = [{"type_name": "std_msgs/msg/String", "hash_string": "x"}]
    about = {"type_description_msg": {"referenced_type_descriptions": []}, "type_hashes": hashes}
    (share / "String.json").write_text(json.dumps(about))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "ros"))
    assert lines(bag) == list(range(COUNT))
    schema_of.cache_clear()


def test_files_of_another_kind_are_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "old.bag").write_bytes(b"#ROSBAG V2.0\n" + bytes(100))
    with pytest.raises(InputError, match="is a bag of ROS 1, which is not read: convert it"):
        RecordingReader(tmp_path / "old.bag")
    with sqlite3.connect(tmp_path / "other.db3") as database:
        database.execute("CREATE TABLE cakes (id INTEGER)")
    with pytest.raises(InputError, match="no tables of topics and messages"):
        RecordingReader(tmp_path / "other.db3")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no recording; its files must end in \.mcap, \.mcap\.zstd, \.db3"):
        RecordingReader(tmp_path / "empty")
    (tmp_path / "x.mcap.zstd").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(InputError, match="is no recording"):
        RecordingReader(tmp_path / "x.mcap.zstd")


def test_a_database_cannot_make_its_reader_run_what_it_defines(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "view.db3") as database:
        database.execute("CREATE TABLE topics (id INTEGER, name TEXT, type TEXT, serialization_format TEXT)")
        database.execute("INSERT INTO topics VALUES (1, '/a', 'std_msgs/msg/String', 'cdr')")
        database.execute("CREATE VIEW messages AS SELECT 1 AS id, 1 AS topic_id, 1 AS timestamp, zeroblob(9) AS data")
    with pytest.raises(InputError, match="no tables of topics and messages"):
        RecordingReader(tmp_path / "view.db3")


def test_a_packed_database_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES * 20, "SQLITE3", "FILE")
    monkeypatch.setattr(sqlite_file, "_MIB", 4096)
    monkeypatch.setattr(sqlite_file, "LARGEST_RATIO", 2)
    with pytest.raises(InputError, match=r"unpacks to more than 2 times its size: .* zstd -d"):
        lines(bag)


def test_the_folder_of_a_run_is_no_bag(tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text("name: a\n")
    (tmp_path / "recording.mcap").write_bytes(b"")
    assert not is_recording(tmp_path)
