"""Names that other programs give to tasks and cameras, made safe for ids of test cases and names of files."""

from __future__ import annotations

import hashlib
import re

from merton.errors import InputError
from merton.results.text import plain_name
from merton.world.splits import unit_of

LONGEST = 64
"""Characters of a safe name."""
_SAFE = re.compile(r"[a-z0-9][a-z0-9_-]*")


def safe_name(name: str) -> str:
    """A task's name with the characters a-z, 0-9, _ and - alone; distinct names stay distinct.

    A safe name stays as it is. Another one gets 8 digits of its SHA-256 behind it, as do names such as "test-pick",
    which stand for Merton's own scenes of a split.

    Raises:
        InputError: the name is empty or has characters that cannot be printed.
    """
    return _safe("task", name, reserved=unit_of(name) != name)


def safe_camera(name: str) -> str:
    """A camera's name as it stands in the names of its pictures' files, by the rules of `safe_name`."""
    return _safe("camera", name)


def _safe(kind: str, name: str, reserved: bool = False) -> str:
    if not name or not name.isprintable():
        raise InputError(f"the name of a {kind} must be printable text, got {name[:80]!r}")
    if _SAFE.fullmatch(name) and len(name) <= LONGEST and not reserved:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    plain = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[: LONGEST - 9].rstrip("-_")
    safe = f"{plain or kind}-{digest}"
    return safe if unit_of(safe) == safe else f"{plain}-0{digest[:7]}"


def safe_part(name: str) -> str:
    """The name of a design of parts as a folder's: a long one, of many steps, ends in 8 digits of its SHA-256."""
    return plain_name(name, "[^A-Za-z0-9_.+-]", LONGEST)
