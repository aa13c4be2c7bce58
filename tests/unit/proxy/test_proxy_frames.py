"""Frames of websockets as they came, with the examples of RFC 6455, section 5.7."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.errors import InputError
from merton.proxy.frames import (
    BINARY,
    LONGEST,
    PING,
    TEXT,
    Assembly,
    Frame,
    client_frame,
    close_code,
    masked,
    read_frame,
)

HELLO_MASKED = bytes.fromhex("818537fa213d7f9f4d5158")
HELLO_IN_TWO = bytes.fromhex("010348656c80026c6f")
PING_HELLO = bytes.fromhex("890548656c6c6f")


def frames(data: bytes, count: int) -> list[Frame]:
    async def reading() -> list[Frame]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return [await read_frame(reader) for _ in range(count)]

    return asyncio.run(reading())


def test_the_examples_of_the_standard() -> None:
    (hello,) = frames(HELLO_MASKED, 1)
    assert (hello.opcode, hello.final, hello.payload, hello.raw) == (TEXT, True, b"Hello", HELLO_MASKED)
    first, ping, second = frames(HELLO_IN_TWO[:5] + PING_HELLO + HELLO_IN_TWO[5:], 3)
    assert (ping.opcode, ping.is_control, ping.payload) == (PING, True, b"Hello")
    assembly = Assembly()
    assert assembly.add(first) is None
    whole = assembly.add(second)
    assert whole is not None
    assert (whole.payload, whole.raw, whole.is_binary) == (b"Hello", HELLO_IN_TWO, False)


@settings(max_examples=30)
@given(st.binary(max_size=70000))
def test_a_frame_of_a_client_is_read_as_it_was_written(payload: bytes) -> None:
    raw = client_frame(payload)
    (frame,) = frames(raw, 1)
    assert (frame.raw, frame.payload, frame.opcode, frame.final) == (raw, payload, BINARY, True)


@settings(max_examples=30)
@given(st.binary(max_size=99), st.binary(min_size=4, max_size=4))
def test_a_mask_put_on_twice_is_none(data: bytes, mask: bytes) -> None:
    assert masked(masked(data, mask), mask) == data


def test_too_long_a_frame_and_an_extension_are_refused_before_they_are_read() -> None:
    with pytest.raises(InputError, match="bytes"):
        frames(b"\x82\x7f" + (LONGEST + 1).to_bytes(8, "big"), 1)
    with pytest.raises(InputError, match="extension"):
        frames(b"\xc1\x00", 1)


def test_codes_of_closes() -> None:
    assert close_code(b"\x03\xf3the traceback is in the frame before") == (1011, "the traceback is in the frame before")
    assert close_code(b"") == (None, "")
