"""Requests and responses of HTTP/1.1 that are passed on as they came."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from merton.errors import InputError
from merton.proxy.frames import LONGEST

LONGEST_HEAD = 64 * 1024
"""Of a request or a response [bytes]."""
END = b"\r\n\r\n"


@dataclass(frozen=True)
class Head:
    """The head of a request or a response.

    Attributes:
        first: the first line, such as ("POST", "/act?task=pick", "HTTP/1.1").
        fields: names as they were written, and values.
    """

    first: tuple[str, str, str]
    fields: tuple[tuple[str, str], ...]

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value of a field, by its name in any case."""
        return next((value for known, value in self.fields if known.lower() == name.lower()), default)

    def says(self, name: str, word: str) -> bool:
        """Whether a field that is a list of words has this one."""
        return word in (part.strip().lower() for part in (self.get(name) or "").split(","))

    @property
    def upgrades(self) -> bool:
        """Whether it asks for a websocket."""
        return self.says("connection", "upgrade") and self.says("upgrade", "websocket")

    @property
    def status(self) -> int:
        """Of a response; 0 if there is none."""
        return int(self.first[1]) if self.first[1].isdigit() else 0

    def rewritten(self, target: str, host: str, without: Iterable[str] = ()) -> bytes:
        """The bytes of a request under another target and host, its other fields in order, some left out."""
        left_out = {"host", *without}
        kept = [(name, value) for name, value in self.fields if name.lower() not in left_out]
        lines = [f"{self.first[0]} {target} {self.first[2]}", f"Host: {host}"]
        return ("\r\n".join([*lines, *(f"{name}: {value}" for name, value in kept)])).encode("latin-1") + END


async def read_head(reader: asyncio.StreamReader) -> tuple[Head, bytes] | None:
    """The next head and its bytes; None if the other side has ended the connection before it.

    Raises:
        InputError: no head of HTTP, or a longer one than `LONGEST_HEAD`.
    """
    try:
        raw = await reader.readuntil(END)
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise InputError("a request or response ends within its head") from None
        return None
    except asyncio.LimitOverrunError:
        raise InputError("this is not HTTP") from None
    if len(raw) > LONGEST_HEAD:
        raise InputError(f"a head of more than {LONGEST_HEAD} bytes")
    lines = raw[: -len(END)].decode("latin-1").split("\r\n")
    first = lines[0].split(" ", 2)
    fields = [line.partition(":") for line in lines[1:]]
    if len(first) < 2 or any(not colon for _, colon, _ in fields):
        raise InputError("this is not HTTP")
    head = Head((first[0], first[1], first[2] if len(first) == 3 else ""), tuple((n, v.strip()) for n, _, v in fields))
    return head, raw


async def read_body(reader: asyncio.StreamReader, head: Head, of_request: bool) -> tuple[bytes, bytes]:
    """The body that follows a head: its bytes as they came, and its content.

    Raises:
        asyncio.IncompleteReadError, OSError: the connection has ended within it.
        InputError: its length is not understood, or beyond what is taken.
    """
    if head.says("transfer-encoding", "chunked"):
        return await _chunks(reader)
    length = head.get("content-length")
    if length is None:
        if of_request or head.status in (204, 304):
            return b"", b""
        body = await reader.read(LONGEST)  # until the connection ends
        while more := await reader.read(LONGEST):
            body += more
        return body, body
    if not length.isdecimal() or int(length) > LONGEST:
        raise InputError(f"a body of {length[:20]!r} bytes, {LONGEST} at most are taken")
    body = await reader.readexactly(int(length))
    return body, body


async def read_response(reader: asyncio.StreamReader, method: str) -> tuple[Head, bytes, bytes]:
    """The next response to a request of this method, past those that announce one: its head, its bytes, its content.

    Raises:
        asyncio.IncompleteReadError, OSError: the connection has ended before it, or within it.
        InputError: as `read_head` and `read_body`.
    """
    while (found := await read_head(reader)) is not None:
        head, raw = found
        if head.status >= 200:
            sent, content = (b"", b"") if method == "HEAD" else await read_body(reader, head, of_request=False)
            return head, raw + sent, content
    raise asyncio.IncompleteReadError(b"", None)


async def _chunks(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    raw, content = [], []
    total = 0
    while True:
        line = await reader.readuntil(b"\r\n")
        try:
            length = int(line.split(b";")[0], 16)
        except ValueError:
            raise InputError("a chunk of a body has no length") from None
        total += length
        if not length >= 0 or total > LONGEST:
            raise InputError(f"a body of more than {LONGEST} bytes")
        raw.append(line)
        if not length:
            break
        data = await reader.readexactly(length + 2)
        raw.append(data)
        content.append(data[:-2])
    while True:  # trailers
        line = await reader.readuntil(b"\r\n")
        raw.append(line)
        if line == b"\r\n":
            return b"".join(raw), b"".join(content)


def answer(status: int, phrase: str, body: bytes, kind: str = "application/json") -> bytes:
    """A response of the proxy itself, after which the connection ends."""
    head = f"HTTP/1.1 {status} {phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close"
    return head.encode() + b"\r\nX-Content-Type-Options: nosniff" + END + body
