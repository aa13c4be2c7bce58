"""The frames in which Merton and the host of a world speak: a JSON header, then the numbers of its arrays.

    b"MWLD" | length of the header, 4 bytes, big-endian | header | arrays one after the other, C order, little-endian

The header is {"message": any JSON value, "arrays": [[dtype, shape], ...]}; where an array belongs, the message has
{"$array": its index}. NaN and infinities are numbers, as in Python's json: the reader of a message judges them. Nothing
is ever unpickled, and sizes are checked before memory is taken. Python 3.8 or later with numpy; both sides import this
one file. Ours, because msgpack or websockets would be one more package in every world's environment.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from typing import Any

import numpy as np

MAGIC = b"MWLD"
VERSION = 1
"""Of the protocol, which both sides compare in their first messages."""
TOKEN = "MERTON_WORLD_TOKEN"
"""The environment variable of the token that a client must show."""
READY = "merton-world listens on "
"""The beginning of the line that a host says on standard output once it is ready; its address follows."""
LONGEST_HEADER = 16 * 1024 * 1024
"""Bytes; the description of ten thousand tasks takes 3 MB."""
LARGEST_ARRAYS = 512 * 1024 * 1024
"""Bytes of all arrays of a message together."""
LONGEST_GREETING = 4096
"""Bytes of the header of the first message, which has no arrays: all that a stranger can make the other side keep."""
DTYPES = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"])
"""Of arrays that travel: truth values, integers, floats."""


class WireError(Exception):
    """The other side does not keep to the form of frames."""


class Closed(Exception):
    """The other side has closed the connection."""


class Wire:
    """One end of a connection, used by one thread at a time.

    Args:
        connection: which this object then owns.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection

    def send(self, message: Any, limit_s: float | None = None) -> None:
        """Send a message: JSON values and arrays in dictionaries, lists and tuples.

        Raises:
            TypeError, ValueError: something in it does not travel; nothing was sent.
            Closed, TimeoutError: as `receive`.
        """
        arrays: list = []
        body = _packed(message, arrays)
        header = json.dumps({"message": body, "arrays": [[array.dtype.str, array.shape] for array in arrays]}).encode()
        if len(header) > LONGEST_HEADER or sum(array.nbytes for array in arrays) > LARGEST_ARRAYS:
            raise ValueError(f"a message is too long: {len(header)} bytes of header")
        self._socket.settimeout(limit_s)
        try:
            self._socket.sendall(b"".join([MAGIC, struct.pack(">I", len(header)), header]))
            for array in arrays:
                if array.size:
                    self._socket.sendall(array.reshape(-1).view(np.uint8))
        except socket.timeout:  # noqa: UP041 (another class before Python 3.10)
            raise TimeoutError from None
        except OSError as error:
            raise Closed(error.strerror or str(error)) from None

    def receive(self, limit_s: float | None = None, longest_header: int = LONGEST_HEADER) -> Any:
        """The next message; its arrays are the caller's own.

        Args:
            limit_s: until the message is there as a whole [s]; None for ever.
            longest_header: bytes; with `LONGEST_GREETING` no arrays are taken either.

        Raises:
            Closed: the other side has closed the connection.
            TimeoutError: the time is over; the connection is of no further use.
            WireError: what came is no message; the connection is of no further use.
        """
        end_s = None if limit_s is None else time.monotonic() + limit_s
        if (magic := self._read(len(MAGIC), end_s)) != MAGIC:
            raise WireError(f"what came is no frame: it begins with {bytes(magic)!r}")
        (length,) = struct.unpack(">I", self._read(4, end_s))
        if length > longest_header:
            raise WireError(f"a header of {length} bytes came, of at most {longest_header}")
        header = self._read(length, end_s)
        try:
            read = json.loads(header.decode("utf-8"))
            message, kinds = read["message"], [(str(dtype), tuple(shape)) for dtype, shape in read["arrays"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise WireError("a header came that is not JSON with message and arrays") from None
        _check_sizes(kinds, LARGEST_ARRAYS if longest_header > LONGEST_GREETING else 0)
        arrays = []
        for dtype, shape in kinds:
            array = np.empty(shape, dtype)
            if array.size:
                self._fill(array.reshape(-1).view(np.uint8), end_s)
            arrays.append(array)
        try:
            return _unpacked(message, arrays)
        except RecursionError:
            raise WireError("a message came that is nested too deeply") from None

    def is_quiet(self) -> bool:
        """Whether the connection stands and nothing has come unasked."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _read(self, count: int, end_s: float | None) -> bytearray:
        found = bytearray(count)
        self._fill(found, end_s)
        return found

    def _fill(self, buffer: Any, end_s: float | None) -> None:
        view, done = memoryview(buffer), 0
        while done < len(view):
            left_s = None if end_s is None else end_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            try:
                count = self._socket.recv_into(view[done:])
            except socket.timeout:  # noqa: UP041 (another class before Python 3.10)
                raise TimeoutError from None
            except OSError as error:
                raise Closed(error.strerror or str(error)) from None
            if count == 0:
                raise Closed("the connection was closed")
            done += count


def _packed(value: Any, arrays: list[np.ndarray]) -> Any:
    """The value for JSON; its arrays are appended to `arrays`."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        if array.dtype.str not in DTYPES:
            raise ValueError(f"arrays of dtype {value.dtype} do not travel, only numbers do")
        arrays.append(array.reshape(value.shape))  # ascontiguousarray makes a number a vector
        return {"$array": len(arrays) - 1}
    if isinstance(value, np.generic):
        return _packed(value.item(), arrays)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"keys are texts, got {key!r}")
        return {key: _packed(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(item, arrays) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} does not travel")


def _unpacked(value: Any, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$array"}:
            index = value["$array"]
            if type(index) is not int or not 0 <= index < len(arrays):
                raise WireError(f"a message names array {index!r} of {len(arrays)}")
            return arrays[index]
        return {key: _unpacked(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    return value


def _check_sizes(kinds: list[Any], most: int) -> None:
    total = 0
    for dtype, shape in kinds:
        if dtype not in DTYPES or len(shape) > 8:
            raise WireError(f"an array of dtype {dtype!r} and {len(shape)} axes came")
        if not all(type(length) is int and 0 <= length < 2**40 for length in shape):
            raise WireError(f"an array of shape {shape!r} came")
        total += math.prod(max(length, 1) for length in shape) * np.dtype(dtype).itemsize  # as numpy bounds it
    if total > most:
        raise WireError(f"arrays of {total} bytes came, of at most {most}")
