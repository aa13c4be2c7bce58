"""Safe file names for the pages of agents, cases and boards with any id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

LONGEST = 60
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""Names that Windows reserves, with any ending."""


def file_names(ids: Iterable[str]) -> dict[str, str]:
    """Id to a file name without ending: lower-case ASCII letters, digits, and "_", "-", "." inside; all different.

    A short plain id is its own name. Any other is cleaned, cut, and ends in a hash of the whole id, so that ids that
    differ only in case or behind the cut stay apart, also on file systems that ignore case. A name depends on the id
    alone, so links survive from snapshot to snapshot.
    """
    wanted = sorted(set(ids))
    names = {name: name for name in wanted if _is_plain(name)}
    used = set(names.values())
    for name in wanted:
        if name not in names:
            names[name] = _hashed(name, used)
            used.add(names[name])
    return names


def _is_plain(name: str) -> bool:
    return len(name) <= LONGEST and bool(_PLAIN.fullmatch(name)) and not _DEVICES.fullmatch(name)


def _hashed(name: str, used: set[str]) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    words = re.sub(r"[^a-z0-9_]+", "-", name[:200].lower()).strip("-_")[: LONGEST - 20] or "x"
    short = f"{words}-{digest[:10]}"
    # Taken only if an id was chosen to equal the file name of another; no plain id is as long as the long form.
    return short if short not in used else f"{words}-{digest}"
