"""Frames of a websocket (RFC 6455) that are passed on as they came, with their pings, closes and texts."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass

import numpy as np

from merton.errors import InputError

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
LONGEST = 256 * 1024 * 1024
"""Of a message [bytes]; ours: a thousand pictures of 256 pixels. A longer one ends the connection."""


@dataclass(frozen=True)
class Frame:
    """One frame.

    Attributes:
        raw: head, mask and payload, as they came.
        opcode: of RFC 6455, section 5.2.
        final: the last one of its message.
        payload: without the mask.
        arrived_s: when its first bytes were there [s of the performance counter].
    """

    raw: bytes
    opcode: int
    final: bool
    payload: bytes
    arrived_s: float

    @property
    def is_control(self) -> bool:
        """Whether it is a ping, a pong or a close, which may stand between the frames of a message."""
        return self.opcode >= CLOSE


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """The next frame.

    Raises:
        asyncio.IncompleteReadError, OSError: the connection has ended.
        InputError: it is longer than `LONGEST`, or uses an extension, of which none was agreed.
    """
    head = await reader.readexactly(2)
    arrived_s = time.perf_counter()
    if head[0] & 0x70:
        raise InputError("a websocket frame uses an extension that was not agreed on")
    length = head[1] & 0x7F
    if length > 125:
        head += await reader.readexactly(2 if length == 126 else 8)
        length = int.from_bytes(head[2:], "big")
    if length > LONGEST:
        raise InputError(f"a websocket frame of {length} bytes, {LONGEST} at most are taken")
    if head[1] & 0x80:
        mask = await reader.readexactly(4)
        sent = await reader.readexactly(length)
        return Frame(head + mask + sent, head[0] & 0x0F, bool(head[0] & 0x80), masked(sent, mask), arrived_s)
    sent = await reader.readexactly(length)
    return Frame(head + sent, head[0] & 0x0F, bool(head[0] & 0x80), sent, arrived_s)


def masked(data: bytes, mask: bytes) -> bytes:
    """Data with a mask of 4 bytes put on, or taken off (RFC 6455, section 5.3)."""
    if mask == b"\0\0\0\0":
        return data
    whole = len(data) & ~3
    body = (np.frombuffer(data, "<u4", whole >> 2) ^ np.frombuffer(mask, "<u4")).tobytes()
    return body + bytes(byte ^ mask[index] for index, byte in enumerate(data[whole:]))


def client_frame(payload: bytes, opcode: int = BINARY) -> bytes:
    """A final frame as a client sends it, with a fresh mask."""
    length = len(payload)
    if length < 126:
        head = bytes((0x80 | opcode, 0x80 | length))
    elif length < 1 << 16:
        head = bytes((0x80 | opcode, 0xFE)) + length.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0xFF)) + length.to_bytes(8, "big")
    mask = os.urandom(4)
    return head + mask + masked(payload, mask)


def close_code(payload: bytes) -> tuple[int | None, str]:
    """Code and reason of a close frame; (None, "") if it has none."""
    if len(payload) < 2:
        return None, ""
    return int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace")


@dataclass(frozen=True)
class Whole:
    """A message of one or more frames.

    Attributes:
        raw: the frames as they came.
        payload: without masks.
        is_binary: or text.
        arrived_s: when its first bytes were there [s of the performance counter].
    """

    raw: bytes
    payload: bytes
    is_binary: bool
    arrived_s: float


class Assembly:
    """Puts the frames of a direction together to messages."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []

    def add(self, frame: Frame) -> Whole | None:
        """Take a data frame; gives the message with its last one, else None.

        Raises:
            InputError: the message is longer than `LONGEST`.
        """
        self._frames.append(frame)
        if not frame.final:
            if sum(len(one.raw) for one in self._frames) > LONGEST:
                raise InputError(f"a websocket message of more than {LONGEST} bytes")
            return None
        frames, self._frames = self._frames, []
        first = frames[0]
        raw, payload = first.raw, first.payload
        if len(frames) > 1:
            raw, payload = (b"".join(getattr(one, part) for one in frames) for part in ("raw", "payload"))
        return Whole(raw, payload, first.opcode == BINARY, first.arrived_s)
