"""Msgpack read with the place of its binary parts, so that one of them can be replaced and all else stays as it was.

Ours, because msgpack's own reader tells no places, and a message that is read and packed again is another one where
its sender chose other widths of numbers, other forms of text or an order of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DEEPEST = 32
"""Of objects and lists within one another."""


@dataclass(frozen=True)
class Span:
    """A binary part of a message.

    Attributes:
        message: the whole message.
        begin: first byte of the part, with its head.
        offset, end: first byte of its content, and the one after it.
    """

    message: bytes
    begin: int
    offset: int
    end: int

    @property
    def content(self) -> bytes:
        """The bytes of it."""
        return self.message[self.offset : self.end]


@dataclass(frozen=True)
class Piece:
    """A replacement: the bytes from `begin` up to `end` of a message become `data`."""

    begin: int
    end: int
    data: bytes


def replaced(message: bytes, pieces: Iterable[Piece]) -> bytes:
    """The message with pieces of it replaced; they do not overlap."""
    parts, at = [], 0
    for piece in sorted(pieces, key=lambda one: one.begin):
        parts += [message[at : piece.begin], piece.data]
        at = piece.end
    return b"".join([*parts, message[at:]])


def binary(content: bytes) -> bytes:
    """A binary part with its head."""
    length = len(content)
    if length < 1 << 8:
        return b"\xc4" + length.to_bytes(1, "big") + content
    if length < 1 << 16:
        return b"\xc5" + length.to_bytes(2, "big") + content
    return b"\xc6" + length.to_bytes(4, "big") + content


def read(message: bytes) -> Any:
    """The value of a message of msgpack, with a `Span` in place of each binary part.

    Text that is no UTF-8 is a bytes object. Extensions are None.

    Raises:
        ValueError: no msgpack, deeper than `DEEPEST`, or a key that is a list or a dictionary.
    """
    try:
        value, end = _Reader(message).value(0, 0)
    except (IndexError, struct.error):
        raise ValueError("the message ends too early") from None
    if end != len(message):
        raise ValueError(f"{len(message) - end} bytes follow the message")
    return value


_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LENGTHS = {  # the code of a head: the kind, and the bytes of its length
    0xC4: ("bin", 1),
    0xC5: ("bin", 2),
    0xC6: ("bin", 4),
    0xC7: ("ext", 1),
    0xC8: ("ext", 2),
    0xC9: ("ext", 4),
    0xD9: ("str", 1),
    0xDA: ("str", 2),
    0xDB: ("str", 4),
    0xDC: ("list", 2),
    0xDD: ("list", 4),
    0xDE: ("map", 2),
    0xDF: ("map", 4),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class _Reader:
    def __init__(self, message: bytes) -> None:
        self._message = message

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """The value that begins at a byte, and the byte after it."""
        message, code = self._message, self._message[at]
        if depth > DEEPEST:
            raise ValueError(f"deeper than {DEEPEST} objects within one another")
        if code < 0x80:
            return code, at + 1
        if code >= 0xE0:
            return code - 0x100, at + 1
        if code < 0xC0:
            kind, length = ("map", code & 0x0F) if code < 0x90 else ("list", code & 0x0F)
            if code >= 0xA0:
                kind, length = "str", code & 0x1F
            return self._long(kind, length, at, at + 1, depth)
        if code in _NUMBERS:
            form = _NUMBERS[code]
            return struct.unpack_from(form, message, at + 1)[0], at + 1 + struct.calcsize(form)
        if code in _LENGTHS:
            kind, width = _LENGTHS[code]
            after = at + 1 + width
            return self._long(kind, int.from_bytes(message[at + 1 : after], "big"), at, after, depth)
        if 0xD4 <= code <= 0xD8:
            return self._long("ext", 1 << (code - 0xD4), at, at + 1, depth)
        if code not in _CONSTANTS:
            raise ValueError("a byte that begins no value")
        return _CONSTANTS[code], at + 1

    def _long(self, kind: str, length: int, begin: int, at: int, depth: int) -> tuple[Any, int]:
        if kind == "map":
            return self._map(length, at, depth)
        if kind == "list":
            items = []
            for _ in range(length):
                item, at = self.value(at, depth + 1)
                items.append(item)
            return items, at
        end = at + length + (kind == "ext")  # the type of an extension is a byte more
        if end > len(self._message):
            raise ValueError("the message ends too early")
        if kind == "bin":
            return Span(self._message, begin, at, end), end
        if kind == "ext":
            return None, end
        text = self._message[at:end]
        try:
            return text.decode(), end
        except UnicodeDecodeError:
            return text, end

    def _map(self, length: int, at: int, depth: int) -> tuple[dict[Any, Any], int]:
        found = {}
        for _ in range(length):
            key, at = self.value(at, depth + 1)
            if isinstance(key, Span):
                key = key.content
            if isinstance(key, list | dict):
                raise ValueError("a key that is no text and no number")
            found[key], at = self.value(at, depth + 1)
        return found, at
