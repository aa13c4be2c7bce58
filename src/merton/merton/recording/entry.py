"""A message of a recording, and how its bytes are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.errors import InputError, MertonError
from merton.recording.compression import LARGEST_UNPACKED_BYTES, ZSTD, unpacked
from merton.recording.schemas import schema_of
from merton.results.text import printable

LONGEST_NAME = 300
"""Characters of a topic's or a type's name that are kept. Ours: names of ROS have at most 255."""


def name_of(text: str) -> str:
    """The name of a topic or a type on one printable line: in a damaged file it may hold anything."""
    return printable(text, LONGEST_NAME)


@dataclass(frozen=True)
class Form:
    """The form of a topic's messages.

    Attributes:
        topic: its name in the file.
        type_name: such as "sensor_msgs/msg/JointState".
        encoding: of the messages, such as "cdr".
        schema_encoding, schema: the definition of the type in the file; "" and nothing if it has none.
        metadata: further entries of the file about the topic.
    """

    topic: str
    type_name: str
    encoding: str
    schema_encoding: str
    schema: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A message of a recording.

    Attributes:
        form: of the messages of its topic.
        data: the message in CDR.
        log_time_ns, publish_time_ns: when it was received and sent [ns since 1970].
        decode: returns an object with the fields of the definition in the file; raises InputError if it cannot.
        file: that it is in.
        sequence: its number among those of its publisher, 0 if not known.
    """

    form: Form
    data: bytes
    log_time_ns: int
    publish_time_ns: int
    decode: Callable[[], Any]
    file: Path
    sequence: int = 0

    @property
    def topic(self) -> str:
        """Its topic in the file."""
        return self.form.topic

    @property
    def type_name(self) -> str:
        """Such as "sensor_msgs/msg/JointState"."""
        return self.form.type_name


OnDamaged = Callable[[str], None]
"""Takes the sentence about a message that is left out because it cannot be unpacked."""


class Decoder:
    """Makes messages of the bytes of one file, which it names in its errors."""

    def __init__(self, file: Path, on_damaged: OnDamaged | None = None) -> None:
        from mcap_ros2.decoder import DecoderFactory

        self._file, self._factory, self._on_damaged = file, DecoderFactory(), on_damaged
        self._ids: dict[tuple[str, str, bytes], int] = {}

    def entries(
        self, form: Form, data: bytes, log_time_ns: int, publish_time_ns: int, sequence: int = 0
    ) -> Iterator[Entry]:
        """The message; one that `ros2 bag record --compression-mode message` has packed is unpacked.

        Raises:
            InputError: it cannot be unpacked; with `on_damaged` nothing is yielded instead.
        """
        if data[:4] == ZSTD:
            try:
                data = unpacked(data, "zstd", LARGEST_UNPACKED_BYTES)
            except InputError as error:
                sentence = f"{self._file}: a message on {form.topic} cannot be unpacked: {error}"
                if self._on_damaged is None:
                    raise InputError(sentence) from None
                self._on_damaged(sentence)
                return
        yield Entry(form, data, log_time_ns, publish_time_ns, lambda: self._decoded(form, data), self._file, sequence)

    def _decoded(self, form: Form, data: bytes) -> Any:
        from mcap.records import Schema

        try:
            kind, text = definition_of(form)
            number = self._ids.setdefault((form.type_name, kind, text), len(self._ids) + 1)
            schema = Schema(id=number, data=text, encoding=kind, name=form.type_name)
            if (decoder := self._factory.decoder_for(form.encoding, schema)) is not None:
                return decoder(data)
        except MertonError:
            raise
        except Exception as error:  # garbage makes the parsers raise any type
            raise InputError(f"{self._file}: a message on {form.topic} cannot be decoded: {text_of(error)}") from None
        raise InputError(
            f"{self._file}: {form.topic} is encoded as {form.encoding[:40]!r} with a schema in "
            f"{form.schema_encoding[:40]!r}; use cdr with ros2msg"
        )


def definition_of(form: Form) -> tuple[str, bytes]:
    """The encoding of a type's definition and its text: that of the file, or of the installed type if it has none.

    Databases before Iron have no definitions, and rosbag2 writes the encoding "unknown" where it did not find one.

    Raises:
        MissingDependencyError: the type is not installed either.
    """
    is_there = form.schema and form.schema_encoding not in ("", "unknown")
    if is_there or form.encoding != "cdr" or form.type_name.count("/") != 2:
        return form.schema_encoding, form.schema
    return "ros2msg", schema_of(form.type_name).text.encode()


def text_of(error: Exception) -> str:
    """The text of an error in one line, or its type if it has none; the first 300 characters."""
    return (" ".join(str(error).split()) or type(error).__name__)[:300]
