"""Reads recordings front to back: a file, or the parts of a bag, also those that a crash or a full disk has cut off."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

from merton.errors import InputError, MissingDependencyError, require
from merton.files import file_sha256
from merton.recording.bag_files import files_of
from merton.recording.entry import Entry, Form, OnDamaged, definition_of
from merton.recording.writer import mcap_writer

__all__ = ["Entry", "RecordingReader", "recording_sha256", "repair", "torn_note"]


class RecordingReader:
    """A recording on disk: a file of MCAP or of rosbag2's sqlite3, or a folder of `ros2 bag record` with its parts.

    Messages or whole files that `ros2 bag record` has packed are unpacked.

    Attributes:
        path: the file or folder.
        torn: where and why reading ended before the end of a whole file, and parts of a bag that are not there, in one
            sentence each; else empty.
    """

    def __init__(self, path: Path) -> None:
        """Raises InputError if `path` is no recording, MissingDependencyError without the extra `recording`."""
        self.path = path
        self.files, lost = files_of(path)
        self._lost = f"{path} lacks {', '.join(file.name for file in lost)}, which its metadata name" if lost else ""
        require("mcap_ros2.decoder", "recording", "reading recordings")

    @property
    def torn(self) -> str:
        """See the class."""
        return "; ".join(filter(None, (self._lost, *(file.torn for file in self.files))))

    @property
    def in_brackets(self) -> str:
        """`torn` for the end of another sentence: in brackets with a space before them; empty if it is."""
        return f" ({torn})" if (torn := self.torn) else ""

    def topics(self) -> dict[str, str]:
        """The type of each topic, such as {"/joint_states": "sensor_msgs/msg/JointState"}.

        Raises:
            InputError: a database that is no bag.
        """
        return {topic: kind for file in self.files for topic, kind in file.topics().items()}

    def entries(self, topics: Collection[str] | None = None, on_damaged: OnDamaged | None = None) -> Iterator[Entry]:
        """The messages in the order of the files; those of `topics` alone unless that is None.

        Raises:
            InputError: a database that is no bag, or a message that cannot be unpacked; with `on_damaged` that is
                called with the sentence of each such message instead.
        """
        for file in self.files:
            yield from file.entries(topics, on_damaged)


def torn_note(torn: str) -> str:
    """A note on where a recording is torn, with the remedy taken; empty if it is whole."""
    return f"{torn}; what can be read was used" if torn else ""


def recording_sha256(path: Path) -> str:
    """The SHA-256 of a recording: of its file, or of the sums of its parts in their order, a line each."""
    parts = [file_sha256(file.path) for file in files_of(path)[0]]
    return parts[0] if not path.is_dir() else sha256("".join(f"{part}\n" for part in parts).encode()).hexdigest()


def repair(path: Path, target: Path) -> tuple[int, str]:
    """Write the readable messages of a recording as one whole MCAP file, of which nothing is left if that fails.

    Definitions that the recording lacks are those of the installed types.

    Returns:
        Their number, and where the recording is torn, as `RecordingReader.torn`, and how many messages were left out
        because they cannot be unpacked.

    Raises:
        InputError: `path` is no recording, or `target` exists or cannot be written.
    """
    reader, writer_type = RecordingReader(path), mcap_writer()
    schemas: dict[tuple[str, str, bytes], int] = {}
    channels: dict[tuple[str, str, str], int] = {}
    count, damaged = 0, list[str]()

    def channel_of(form: Form) -> int:
        encoding, text = form.schema_encoding, form.schema
        with contextlib.suppress(MissingDependencyError):
            encoding, text = definition_of(form)
        kind = form.type_name, encoding, text
        if kind not in schemas:
            schemas[kind] = writer.register_schema(*kind) if any(kind) else 0  # 0 stands for none
        key = form.topic, form.type_name, form.encoding
        if key not in channels:
            channels[key] = writer.register_channel(form.topic, form.encoding, schemas[kind], dict(form.metadata))
        return channels[key]

    try:
        with target.open("xb") as stream, contextlib.ExitStack() as on_failure:
            on_failure.callback(target.unlink, missing_ok=True)
            writer = writer_type(stream)
            writer.start(profile="ros2")
            for entry in reader.entries(on_damaged=damaged.append):
                number = channel_of(entry.form)
                writer.add_message(number, entry.log_time_ns, entry.data, entry.publish_time_ns, entry.sequence)
                count += 1
            writer.finish()
            on_failure.pop_all()
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    left_out = f"messages left out: {len(damaged)}, the first because {damaged[0]}" if damaged else ""
    return count, "; ".join(filter(None, (reader.torn, left_out)))
