"""Unpacking with limits: what a few bytes unpack to must not fill the memory."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from merton.errors import InputError, require

LARGEST_UNPACKED_BYTES = 256 << 20
"""The most that one chunk or message may unpack to. Ours: writers make chunks of about 1 MB, and a raw image of 8K with
16 bits a channel, the largest message of a camera, has 200 MB."""
ZSTD = b"\x28\xb5\x2f\xfd"
"""First bytes of a frame of Zstandard; a message in CDR begins with a zero."""


def unpacked(data: bytes, compression: str, most: int, exactly: int | None = None) -> bytes:
    """The content of a frame of "zstd" or "lz4"; data of "" as they are.

    Args:
        most: more bytes than these are refused.
        exactly: number of bytes that there must be; None if it is not known.

    Raises:
        InputError: another compression, damaged data, more than `most` bytes, or not `exactly` as many.
        MissingDependencyError: without the package that unpacks it.
    """
    if compression == "":
        return data
    if exactly is not None and exactly > most:
        raise InputError(f"it says that it unpacks to {exactly} bytes, and {most} are the most that are read")
    limit = most if exactly is None else exactly
    if compression == "zstd":
        content = _unzstd(data, limit + 1)
    elif compression == "lz4":
        frames: Any = require("lz4.frame", "recording", "reading compressed recordings")
        try:
            content = frames.LZ4FrameDecompressor().decompress(data, max_length=limit + 1)
        except (RuntimeError, ValueError, EOFError) as error:
            raise InputError(f"it is no intact frame of lz4: {error}") from None
    else:
        raise InputError(f"its compression {compression[:20]!r} is not known; use one of: zstd, lz4")
    if len(content) > limit:
        raise InputError(f"it unpacks to more than {limit} bytes" + (", as it says" if exactly is not None else ""))
    if exactly is not None and len(content) < exactly:
        raise InputError(f"it unpacks to {len(content)} bytes and says {exactly}")
    return content


def _unzstd(data: bytes, count: int) -> bytes:
    """At most `count` bytes of a frame of Zstandard; the size in its header is not relied on."""
    zstandard: Any = require("zstandard", "recording", "reading compressed recordings")
    try:
        with zstandard.ZstdDecompressor().stream_reader(BytesIO(data)) as stream:
            return bytes(stream.read(count))
    except (zstandard.ZstdError, MemoryError) as error:
        raise InputError(f"it is no intact frame of zstd: {error}") from None
