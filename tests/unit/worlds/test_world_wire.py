"""The frames between Merton and the host of a world: what goes in comes out, and nothing else is believed."""

from __future__ import annotations

import ast
import json
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from merton.worlds.hosted import world_wire
from merton.worlds.hosted.world_wire import (
    DTYPES,
    LARGEST_ARRAYS,
    LONGEST_GREETING,
    LONGEST_HEADER,
    MAGIC,
    Closed,
    Wire,
    WireError,
)
from wire import LIMIT_S


@contextmanager
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        left = socket.create_connection(listening.getsockname())
        right, _ = listening.accept()
    with left, right:
        yield left, right


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Wire]]:
    """The raw end of a connection, and the wire that reads the other."""
    with ends() as (left, right):
        yield left, Wire(right)


def passed(message: Any) -> Any:
    """A message after a way through a connection, which holds a small one."""
    with ends() as (left, right):
        Wire(left).send(message, LIMIT_S)
        return Wire(right).receive(LIMIT_S)


arrays = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | arrays,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


@given(values)
@settings(deadline=None, max_examples=100)
def test_a_message_comes_out_as_it_went_in(message: Any) -> None:
    assert equal(message, passed(message))


def test_views_and_other_byte_orders_come_out_as_their_numbers() -> None:
    numbers = np.arange(24, dtype=">f8").reshape(4, 6)
    found = passed({"turned": numbers[::-1, ::2], "one": np.float64(1.5), "pair": (1, 2)})
    assert np.array_equal(found["turned"], numbers[::-1, ::2])
    assert found["turned"].dtype.str == "<f8"
    assert (found["one"], found["pair"]) == (1.5, [1, 2])


@pytest.mark.parametrize(
    "message",
    [{1: 2}, {1, 2}, object(), np.array([None]), np.array(["a"]), np.zeros(2, complex), np.zeros(2, np.longdouble)],
    ids=["keys", "set", "object", "objects", "texts", "complex", "long"],
)
def test_what_does_not_travel_is_not_sent(pair: tuple[socket.socket, Wire], message: Any) -> None:
    raw, wire = pair
    with pytest.raises((TypeError, ValueError)):
        wire.send(message)
    wire.close()
    assert raw.recv(1) == b""


def frame(header: object, tail: bytes = b"", length: int | None = None) -> bytes:
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return MAGIC + struct.pack(">I", len(encoded) if length is None else length) + encoded + tail


DEEP = 600 if sys.version_info < (3, 12) else 1000
"""Lists in lists that json still reads."""
BROKEN = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "pickle": b"\x80\x04\x95\x00\x00\x00\x00",
    "a header of 100 MB": frame(b"{", length=100 * 2**20),
    "no JSON": frame(b"{]"),
    "no text": frame(b"\xff\xfe"),
    "nested without end": frame(b"[" * 100_000),
    "nested as deep as Python reads": frame(b'{"message": ' + b"[" * DEEP + b"]" * DEEP + b', "arrays": []}'),
    "no message": frame({"arrays": []}),
    "no list": frame({"message": 1, "arrays": 3}),
    "objects": frame({"message": 1, "arrays": [["|O", [1]]]}, bytes(8)),
    "a structure": frame({"message": 1, "arrays": [["<f8,<f8", [1]]]}, bytes(16)),
    "more than all": frame({"message": 1, "arrays": [["<f8", [LARGEST_ARRAYS]]]}),
    "sizes that overflow": frame({"message": 1, "arrays": [["<f8", [2**32, 2**32, 0, 2**32, 2**32]]] * 2}),
    "a size below zero": frame({"message": 1, "arrays": [["<f8", [-1]]]}),
    "a size of a half": frame({"message": 1, "arrays": [["<f8", [0.5]]]}),
    "an array that is not there": frame({"message": {"$array": 1}, "arrays": [["|u1", [1]]]}, b"1"),
    "an array below zero": frame({"message": {"$array": -1}, "arrays": [["|u1", [1]]]}, b"1"),
}


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in BROKEN.items()])
def test_what_is_no_frame_is_refused_at_once(pair: tuple[socket.socket, Wire], sent: bytes) -> None:
    raw, wire = pair
    raw.sendall(sent)
    with pytest.raises(WireError):
        wire.receive(LIMIT_S)


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=100)
def test_arbitrary_bytes_are_refused(sent: bytes) -> None:
    with ends() as (left, right):
        left.sendall(sent)
        left.close()
        with pytest.raises((WireError, Closed)):
            Wire(right).receive(LIMIT_S)


def test_a_greeting_is_short_and_has_no_arrays(pair: tuple[socket.socket, Wire]) -> None:
    raw, wire = pair
    raw.sendall(frame({"message": {"version": 1}, "arrays": []}))
    assert wire.receive(LIMIT_S, LONGEST_GREETING) == {"version": 1}
    raw.sendall(frame({"message": {"$array": 0}, "arrays": [["|u1", [1]]]}, b"1"))
    with pytest.raises(WireError, match="arrays of 1 bytes"):
        wire.receive(LIMIT_S, LONGEST_GREETING)


def test_the_limit_holds_for_the_whole_message(pair: tuple[socket.socket, Wire]) -> None:
    raw, wire = pair
    raw.sendall(frame({"message": 1, "arrays": []})[:-1])  # a byte is missing, and does not come
    with pytest.raises(TimeoutError):
        wire.receive(0.05)


def test_an_end_in_the_middle_is_no_message(pair: tuple[socket.socket, Wire]) -> None:
    raw, wire = pair
    assert wire.is_quiet()
    raw.sendall(frame({"message": 1, "arrays": [["<f8", [2]]]}, bytes(15)))
    raw.close()
    with pytest.raises(Closed):
        wire.receive(LIMIT_S)
    assert not wire.is_quiet()


def test_a_message_beyond_the_limit_is_not_sent(pair: tuple[socket.socket, Wire]) -> None:
    raw, wire = pair
    with pytest.raises(ValueError, match="too long"):
        wire.send("x" * LONGEST_HEADER)
    wire.close()
    assert raw.recv(1) == b""


def test_the_files_of_the_host_have_the_syntax_and_imports_of_old_pythons() -> None:
    folder = Path(world_wire.__file__).parent
    for name in ("host", "world_requests", "world_wire"):
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"), feature_version=(3, 8))
        imported = {one.name for node in tree.body if isinstance(node, ast.Import) for one in node.names}
        imported |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert {module.split(".")[0] for module in imported} - set(sys.stdlib_module_names) <= {
            "numpy",
            "world_requests",
            "world_wire",
        }
