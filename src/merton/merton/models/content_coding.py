"""The content codings of HTTP replies (RFC 9110, 8.4.1), undone within a limit of memory.

Ours: the HTTP client undoes every coding that a reply names, each without a limit; two layers of gzip make gigabytes of
kilobytes.
"""

from __future__ import annotations

import zlib

from merton.errors import InfrastructureError

MAX_LAYERS = 2
"""Codings of one reply: the server's, and one of a proxy before it."""
MAX_MEMBERS = 100
"""Members of one gzip body, which follow one another (RFC 1952, 2.2); each costs a copy of the rest."""
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def decoded(data: bytes, header: str, limit: int) -> bytes:
    """The body of a reply without its codings; no layer of it takes more than `limit` bytes.

    Args:
        header: value of Content-Encoding, such as "gzip" or "gzip, gzip" (in the order in which they were applied).

    Raises:
        InfrastructureError: another coding, too many of them, a body beyond the limit, or one that cannot be unpacked.
    """
    codings = [name for part in header.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    unknown = [name for name in codings if name not in _WINDOW_BITS]
    if unknown or len(codings) > MAX_LAYERS:
        what = f"in the coding {unknown[0]!r}" if unknown else f"in {len(codings)} layers of coding"
        raise InfrastructureError(f"a reply {what[:60]} cannot be read: only gzip and deflate, {MAX_LAYERS} at most")
    for name in reversed(codings):
        data = _unpacked(data, name, limit)
    return data


def _unpacked(data: bytes, name: str, limit: int) -> bytes:
    bits = _WINDOW_BITS[name]
    if name == "deflate" and (len(data) < 2 or data[0] & 15 != 8 or int.from_bytes(data[:2], "big") % 31):
        bits = -15  # without zlib's header, as some servers send it
    whole, left = b"", data
    for _ in range(MAX_MEMBERS):
        unpacking = zlib.decompressobj(bits)
        try:
            whole += unpacking.decompress(left, limit + 1 - len(whole))
        except zlib.error as error:
            raise InfrastructureError(f"a reply in the coding {name} cannot be unpacked: {error}") from None
        if len(whole) > limit:
            raise InfrastructureError(f"a reply has more than {limit >> 20} MiB unpacked")
        if not unpacking.eof:
            raise InfrastructureError(f"a reply in the coding {name} cannot be unpacked: it ends too early")
        left = unpacking.unused_data
        if not left:
            return whole
    raise InfrastructureError(f"a reply in the coding {name} has more than {MAX_MEMBERS} parts")
