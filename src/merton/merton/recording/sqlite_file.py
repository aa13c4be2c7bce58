"""A file of rosbag2's storage sqlite3, the default before ROS 2 Iron."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from merton.errors import InfrastructureError, InputError, require
from merton.recording.compression import LARGEST_UNPACKED_BYTES
from merton.recording.entry import Decoder, Entry, Form, OnDamaged, name_of, text_of

MAGIC = b"SQLite format 3\x00"
LARGEST_RATIO = 200
"""Largest ratio of a database to its packed file: it goes to a temporary file. Ours: pictures as they leave a
camera shrink to a third, a still scene of a simulator to a fiftieth."""
_MIB = 1 << 20


class SqliteFile:
    """A database of rosbag2: tables of topics and messages, and from Iron on of the types' definitions.

    Attributes:
        path: the file.
        torn: where and why reading ended early, in one sentence; else empty.
    """

    def __init__(self, path: Path, packed: bool = False) -> None:
        """`packed`: the whole file is packed by Zstandard, as of `ros2 bag record --compression-mode file`."""
        self.path, self.torn, self._packed = path, "", packed
        self._content: Any = None
        """The temporary file with the content of a packed one, from the first access on; it goes with this object."""

    def topics(self) -> dict[str, str]:
        """The type of each topic; raises InputError if the file is no bag."""
        with self._opened() as database:
            return {form.topic: form.type_name for form in self._forms(database).values()}

    def entries(self, topics: Collection[str] | None = None, on_damaged: OnDamaged | None = None) -> Iterator[Entry]:
        """The messages in the order in which they were received; those of `topics` alone unless that is None.

        Raises:
            InputError: the file is no bag, or a message cannot be unpacked; with `on_damaged` that is called with the
                sentence of such a message instead.
        """
        decoder = Decoder(self.path, on_damaged)
        with self._opened() as database:
            forms = {
                number: form for number, form in self._forms(database).items() if topics is None or form.topic in topics
            }
            asked = ",".join("?" * len(forms))
            query = f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({asked}) ORDER BY timestamp, id"
            try:
                for number, time_ns, data in database.execute(query, tuple(forms)):
                    if not isinstance(time_ns, int) or not isinstance(data, bytes):
                        raise InputError(f"{self.path}: a message on {forms[number].topic} is no row of time and bytes")
                    yield from decoder.entries(forms[number], data, time_ns, time_ns)
            except sqlite3.Error as error:
                self.torn = f"{self.path} is torn or damaged: {text_of(error)}"

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """The database, to read alone; nothing that its schema defines is run."""
        file = self._unpacked() if self._packed else self.path
        # the log of a recorder that was killed lies beside its file, and has the last messages
        how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "immutable=1"
        try:
            database = sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True)
        except sqlite3.Error as error:
            raise InputError(f"cannot read the recording {self.path}: {text_of(error)}") from None
        with contextlib.closing(database):
            database.execute("PRAGMA trusted_schema = OFF")
            if hasattr(database, "setlimit"):  # Python 3.11
                database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_UNPACKED_BYTES)
            yield database

    def _unpacked(self) -> Path:
        """The temporary file with the content of a packed one."""
        if self._content is not None:
            return Path(self._content.name)
        zstandard: Any = require("zstandard", "recording", "reading compressed recordings")
        packed, most = zstandard.ZstdDecompressor(), LARGEST_RATIO * self.path.stat().st_size + _MIB
        try:
            content = tempfile.NamedTemporaryFile(suffix=".db3")  # noqa: SIM115  # it lives as long as this object
            with self.path.open("rb") as stream, packed.stream_reader(stream, read_across_frames=True) as blocks:
                while block := blocks.read(_MIB):
                    if content.write(block) and content.tell() > most:
                        raise InputError(
                            f"{self.path} unpacks to more than {LARGEST_RATIO} times its size: if that is right, "
                            f"unpack it by hand, zstd -d {self.path.name}, and give the new file"
                        )
            content.flush()
        except zstandard.ZstdError as error:
            raise InputError(f"{self.path} cannot be unpacked: {text_of(error)}") from None
        except OSError as error:
            free = shutil.disk_usage(tempfile.gettempdir()).free // _MIB
            raise InfrastructureError(
                f"cannot unpack {self.path} into {tempfile.gettempdir()}, which has {free} MiB free: {error.strerror}"
            ) from None
        self._content = content
        return Path(content.name)

    def _forms(self, database: sqlite3.Connection) -> dict[int, Form]:
        """The form of the messages of each topic, by its number."""
        try:
            kinds = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
            if not all(str(kinds.get(name, "")).upper().startswith("CREATE TABLE") for name in ("topics", "messages")):
                raise InputError(f"{self.path} is no recording: its database has no tables of topics and messages")
            definitions = {}
            if "message_definitions" in kinds:
                query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions"
                definitions = {name: (encoding, text) for name, encoding, text in database.execute(query)}
            rows = database.execute("SELECT id, name, type, serialization_format FROM topics").fetchall()
        except sqlite3.Error as error:
            raise InputError(f"{self.path} is no recording: {text_of(error)}") from None
        forms = {}
        for number, topic, type_name, encoding in rows:
            if not all(isinstance(value, str) for value in (topic, type_name, encoding)):
                raise InputError(f"{self.path} is no recording: a topic of it has no name or type")
            kind, text = definitions.get(type_name, ("", ""))
            if not isinstance(kind, str) or not isinstance(text, str):
                raise InputError(f"{self.path} is no recording: the definition of {name_of(type_name)} is no text")
            forms[number] = Form(name_of(topic), name_of(type_name), encoding, kind, text.encode())
        return forms
