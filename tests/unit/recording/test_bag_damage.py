"""Recordings whose index, metadata or packing is not as usual: nothing of them is left out without a word."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (make develop)")
pytest.importorskip("mcap_ros2", reason="mcap-ros2-support is not installed (the extra recording)")

import zstandard
from mcap.writer import Writer

from bags import STRING_HASH, Message, string, write_bag
from merton.cli.main import app
from merton.errors import InputError
from merton.recording.messages import namespace_of
from merton.recording.reader import RecordingReader, repair, torn_note

COUNT = 40


def said(number: int, data: bytes | None = None) -> Message:
    text = string(f"line {number} " + "a" * 200) if data is None else data
    return f"/text{number % 2}", "std_msgs/msg/String", "string data\n", STRING_HASH, text


MESSAGES = [said(number) for number in range(COUNT)]
TOPICS = {f"/text{number}": "std_msgs/msg/String" for number in (0, 1)}


def lines(reader: RecordingReader) -> list[int]:
    return [int(entry.decode().data.split()[1]) for entry in reader.entries()]


@pytest.mark.parametrize(
    "summary", [{}, {"repeat_channels": False}, {"repeat_schemas": False}, {"use_statistics": False}]
)
def test_topics_are_found_whatever_the_index_of_the_file_has(summary: dict[str, Any], tmp_path: Path) -> None:
    """Parts of the summary section are optional (MCAP specification, "Summary Section")."""
    path = tmp_path / "a.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream, **summary)
        writer.start("ros2")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data\n")
        for topic in TOPICS:
            writer.add_message(writer.register_channel(topic, "cdr", schema), 1, string("line 1"), 1)
        writer.finish()
    assert RecordingReader(path).topics() == TOPICS


@pytest.mark.parametrize("summary", [{}, {"repeat_channels": False}])
def test_a_name_that_breaks_lines_is_shown_on_one(summary: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream, **summary)
        writer.start("ros2")
        schema = writer.register_schema("sensor_msgs/msg/\x1b[2JImage", "ros2msg", b"string data\n")
        writer.add_message(writer.register_channel("/a\nb/image_raw", "cdr", schema), 1, string("line 1"), 1)
        writer.finish()
    reader = RecordingReader(path)
    assert reader.topics() == {"/a\ufffdb/image_raw": "sensor_msgs/msg/\ufffd[2JImage"}
    (entry,) = reader.entries(["/a\ufffdb/image_raw"])
    assert entry.type_name == "sensor_msgs/msg/\ufffd[2JImage"


def unnamed(bag: Path) -> None:
    """As after a recorder was killed: its metadata does not name the last parts, here 9 to 19."""
    about = yaml.safe_load((bag / "metadata.yaml").read_text())
    about["rosbag2_bagfile_information"]["relative_file_paths"][9:] = []
    (bag / "metadata.yaml").write_text(yaml.safe_dump(about))


@pytest.mark.parametrize("packed", ["NONE", "FILE"])
def test_parts_that_the_metadata_does_not_name_come_last(packed: str, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag_2026_11", MESSAGES, packed=packed, parts=20)
    unnamed(bag)
    repair(bag, bag / "whole.mcap")  # another file in the folder is no part
    (bag / "whole.mcap").rename(bag / "bag_2026_11.mcap")
    reader = RecordingReader(bag)
    assert lines(reader) == list(range(COUNT))
    assert reader.torn == ""


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("number", [0, 1])
def test_a_part_that_was_unpacked_by_hand_is_the_part(number: int, is_kept: bool, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "half", MESSAGES, "MCAP", "FILE", 2)
    file = bag / f"half_{number}.mcap.zstd"
    (bag / f"half_{number}.mcap").write_bytes(zstandard.ZstdDecompressor().stream_reader(file.open("rb")).read())
    if not is_kept:
        file.unlink()
    reader = RecordingReader(bag)
    assert lines(reader) == list(range(COUNT))
    assert reader.torn == ""


def test_a_missing_part_does_not_say_that_later_ones_were_not_used(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES, parts=4)
    (bag / "bag_1.mcap").unlink()
    reader = RecordingReader(bag)
    assert lines(reader) == [*range(10), *range(20, 40)]
    told = f"{bag} lacks bag_1.mcap, which its metadata name; what can be read was used"
    assert (torn_note(reader.torn), torn_note("")) == (told, "")


def test_a_packed_file_of_several_frames_is_read_to_its_end(tmp_path: Path) -> None:
    """As pzstd writes them, and `cat a.zst b.zst` (RFC 8878, 3.1: concatenated frames are the content one by one)."""
    pack = zstandard.ZstdCompressor().compress
    for storage, ending in (("MCAP", ".mcap"), ("SQLITE3", ".db3")):
        content = next(write_bag(tmp_path / storage, MESSAGES, storage).glob(f"*{ending}")).read_bytes()
        for cut in (5, 3000):
            packed = tmp_path / f"two{ending}.zstd"
            packed.write_bytes(pack(content[:cut]) + pack(content[cut:]))
            reader = RecordingReader(packed)
            assert lines(reader) == list(range(COUNT))
            assert reader.torn == ""


def test_channels_without_a_schema_are_kept_by_repair(tmp_path: Path) -> None:
    """Schema 0 stands for none (MCAP specification, "Channel"), as Foxglove's programs write JSON."""
    path, whole = tmp_path / "a.mcap", tmp_path / "whole.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start("")
        writer.add_message(writer.register_channel("/json", "json", 0), 1, b'{"a": 1}', 1)
        writer.finish()
    assert repair(path, whole) == (1, "")
    for file in (path, whole):
        (entry,) = RecordingReader(file).entries()
        assert (entry.topic, entry.form.encoding, entry.data) == ("/json", "json", b'{"a": 1}')
        with pytest.raises(InputError, match="/json is encoded as 'json' with a schema in ''; use cdr with ros2msg"):
            entry.decode()


@pytest.mark.parametrize("storage", ["MCAP", "SQLITE3"])
def test_repair_leaves_out_a_message_that_cannot_be_unpacked_and_says_so(storage: str, tmp_path: Path) -> None:
    damaged = said(4, b"\x28\xb5\x2f\xfd garbage")
    bag = write_bag(tmp_path / "bag", [*MESSAGES[:4], damaged, *MESSAGES[5:]], storage)
    with pytest.raises(InputError, match="a message on /text0 cannot be unpacked"):
        list(RecordingReader(bag).entries())
    whole = tmp_path / "whole.mcap"
    count, torn = repair(bag, whole)
    assert count == COUNT - 1
    assert torn.startswith(f"messages left out: 1, the first because {bag}/bag_0")
    assert lines(RecordingReader(whole)) == [*range(4), *range(5, COUNT)]


def test_nothing_is_left_of_a_repair_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bag, whole = write_bag(tmp_path / "bag", MESSAGES), tmp_path / "whole.mcap"

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "finish", fail)
        with pytest.raises(InputError, match="No space left"):
            repair(bag, whole)
    assert not whole.exists()
    assert repair(bag, whole) == (COUNT, "")
    with pytest.raises(InputError, match="File exists"):
        repair(bag, whole)
    assert whole.exists(), "that of another repair stays"


@pytest.mark.parametrize("encoding", ["unknown", "", "ros2msg"])
def test_a_definition_that_says_nothing_is_that_of_the_installed_type(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rosbag2 writes "unknown" and no text where it did not find a definition (message_definition_encoding)."""
    text = b"string data\n"
    monkeypatch.setattr("merton.recording.entry.schema_of", lambda name: {"std_msgs/msg/String": Installed(text)}[name])
    bag = write_bag(tmp_path / "bag", MESSAGES, "SQLITE3")
    with sqlite3.connect(bag / "bag_0.db3") as database:
        database.execute("UPDATE message_definitions SET encoding = ?, encoded_message_definition = ''", (encoding,))
    path = tmp_path / "a.mcap"
    with path.open("wb") as stream:
        writer = Writer(stream)
        writer.start("ros2")
        schema = writer.register_schema("std_msgs/msg/String", encoding, b"")
        for _, _, _, _, data in MESSAGES:
            writer.add_message(writer.register_channel("/text", "cdr", schema), 1, data, 1)
        writer.finish()
    for number, recording in enumerate((bag, path)):
        assert lines(RecordingReader(recording)) == list(range(COUNT))
        whole = tmp_path / f"whole{number}.mcap"
        repair(recording, whole)
        (form,) = {(entry.form.schema_encoding, entry.form.schema) for entry in RecordingReader(whole).entries()}
        assert form == ("ros2msg", text), "the new file can be read where the type is not installed"


class Installed:
    """An installed type."""

    def __init__(self, text: bytes) -> None:
        self.text = text.decode()


def test_topics_of_other_programs_are_no_graph() -> None:
    own = {"/lab1/cell/state": "merton_interfaces/msg/CellState", "/lab1/joint_states": "sensor_msgs/msg/JointState"}
    other = {"/plc/cell/state": "std_msgs/msg/String", "/x/trial_results": ""}
    assert namespace_of({**own, **other}, Path("r")) == "lab1/"
    assert namespace_of(other, Path("r")) == ""
    with pytest.raises(InputError, match="the topics of 2 graphs, in /a, /lab1"):
        namespace_of({**own, "/a/trial_results": "merton_interfaces/msg/TrialResult"}, Path("r"))


def test_the_folder_that_one_stands_in_is_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bag = write_bag(tmp_path / "bag", MESSAGES)
    monkeypatch.chdir(bag)
    for name in (".", "../bag", str(bag)):
        told = CliRunner().invoke(app, ["recording", "view", name, "--in", "foxglove"])
        assert told.exception is None, told.output
        layout = tmp_path / "bag.foxglove.json"
        assert layout.exists()
        layout.unlink()
