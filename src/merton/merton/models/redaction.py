"""Replies without the key that was sent: servers repeat it in errors, in several forms."""

from __future__ import annotations

import re
from functools import lru_cache
from html.entities import html5


def without_key(body: bytes, key: str) -> bytes:
    """A body without a key in it, as it is or escaped for JSON (once or more), HTML or an address."""
    return _pattern_of(key).sub(b"<the key>", body) if key else body


@lru_cache(maxsize=16)
def _pattern_of(key: str) -> re.Pattern[bytes]:
    return re.compile(b"".join(map(_forms_of, re.findall(r"\\+|[^\\]", key))))


def _forms_of(character: str) -> bytes:
    """A pattern of all forms of a character or of a run of backslashes: writers escape differently, and not all.

    Backslashes are bounded: a body of them alone would otherwise take the square of its length.
    """
    if character[0] == "\\":
        n = len(character)
        return rb"(?:\\{%d,%d}|(?i:%%5c|&#92;|&#x5c;|&bsol;|\\{1,8}u005c){%d})" % (n, 8 * n, n)
    code, raw = ord(character), character.encode()
    entity = rb"(?:&|\\{1,8}u0026)(?:#0*%d|#x0*%x" % (code, code)
    entity += b"".join(b"|" + name.rstrip(";").encode() for name, value in html5.items() if value == character) + b");"
    escaped = rb"\\{1,8}u%04x" % code, b"".join(b"%%%02x" % byte for byte in raw), entity
    plain = re.escape(raw) if raw.isalnum() else rb"\\{0,8}" + re.escape(raw)
    return b"(?:%s|(?i:%s)%s)" % (plain, b"|".join(escaped), rb"|\+" * (character == " "))
