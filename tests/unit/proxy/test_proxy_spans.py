"""Messages of msgpack read with the places of their binary parts, beside msgpack's own reader."""

from __future__ import annotations

from contextlib import suppress

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.proxy.spans import DEEPEST, Piece, Span, binary, read, replaced

PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    PLAIN | st.binary(max_size=400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.binary(max_size=9), inner, max_size=4),
    max_leaves=12,
)


def plain(value: object) -> object:
    if isinstance(value, Span):
        return value.content
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@settings(max_examples=40)
@given(VALUES)
def test_it_reads_what_msgpack_reads(value: object) -> None:
    data = msgpack.packb(value)
    assert plain(read(data)) == msgpack.unpackb(data, strict_map_key=False)


@settings(max_examples=40)
@given(VALUES, st.integers(0, 10**6), st.binary(min_size=1, max_size=4))
def test_a_spoiled_message_is_a_value_or_a_value_error(value: object, at: int, other: bytes) -> None:
    data = bytearray(msgpack.packb(value))
    at %= len(data)
    data[at : at + len(other)] = other
    with suppress(ValueError):
        found = read(bytes(data))
        assert plain(found) is not None or data[0] in (0xC0, *range(0xC7, 0xCA), *range(0xD4, 0xD9))


@settings(max_examples=40)
@given(st.lists(VALUES, max_size=3), st.binary(max_size=600), st.lists(VALUES, max_size=3), st.binary(max_size=300))
def test_a_part_is_replaced_and_its_surroundings_stay(before: list, old: bytes, after: list, new: bytes) -> None:
    data = msgpack.packb([*before, old, *after])
    span = read(data)[len(before)]
    changed = replaced(data, [Piece(span.begin, span.end, binary(new))])
    assert changed == msgpack.packb([*before, new, *after])


@pytest.mark.parametrize("length", [0, 255, 256, 65535, 65536])
def test_a_binary_part_has_the_head_that_msgpack_gives_it(length: int) -> None:
    assert binary(bytes(length)) == msgpack.packb(bytes(length))


def test_a_message_may_not_be_deeper_than_a_limit() -> None:
    deep: list = []
    for _ in range(DEEPEST - 1):
        deep = [deep]
    read(msgpack.packb(deep))
    with pytest.raises(ValueError, match="deeper"):
        read(msgpack.packb([[deep]]))


def test_extensions_are_none_and_their_bytes_stay() -> None:
    data = msgpack.packb({"at": msgpack.Timestamp(1, 2), "data": b"abc", "own": msgpack.ExtType(7, b"xyz")})
    found = read(data)
    assert found["at"] is None
    assert found["own"] is None
    piece = Piece(found["data"].offset, found["data"].end, b"xyz")
    assert replaced(data, [piece]) == data.replace(b"abc", b"xyz")
