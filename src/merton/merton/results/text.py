"""Names and numbers as text that is safe to show on a terminal and in a page; times of texts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

MISSING = "–"
"""Shown in place of a value that is missing."""
WITHHELD = "withheld"
"""Shown in place of a rating that the matches leave open."""


def printable(text: str, limit: int = 80) -> str:
    """Text that is safe to show: control and direction characters replaced, cut to `limit` characters."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Text that a terminal only shows: control and direction characters replaced, but for line breaks and tabs."""
    return _OBEYED.sub("\ufffd", text)


def time_of(text: str) -> datetime:
    """The time of a text as ISO 8601, with a zone if the text names one; raises ValueError for another text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 knows no Z


def one_line(value: object, limit: int = 80) -> str:
    """Any value as printable text on one line, white space collapsed."""
    return printable(" ".join(str(value).split()), limit)


def formatted(value: float | None, pattern: str = "{:.2f}") -> str:
    """The value in the pattern, or a dash if it is missing."""
    return MISSING if value is None else pattern.format(value)


def counted(n: int, noun: str) -> str:
    """A number of things, such as "1 scene" and "40 scenes"; `noun` is a regular one in the singular."""
    return f"{n} {noun}{'s' * (n != 1)}"


def count_of(n: int, scenes: int) -> str:
    """A number of trials beside that of their scenes, such as "132 in 4 scenes"; alone where there is no scene."""
    return f"{n} in {counted(scenes, 'scene')}" if scenes else str(n)


def places(best_and_worst: tuple[int, int] | None) -> str:
    """A range of places, such as "1 to 9"; one number where both are the same, a dash for None."""
    if best_and_worst is None:
        return MISSING
    best, worst = best_and_worst
    return str(best) if best == worst else f"{best} to {worst}"


def distinct_names(ids: Iterable[str], limit: int) -> dict[str, str]:
    """Each id to one line of printable text of at most `limit` characters (20 or more); all different.

    A long id loses its middle, since long names mostly differ at their ends. Ids that look alike even so, and those
    that look like a shortened one, end in six digits of their SHA-256.
    """
    wanted = sorted(set(ids))
    shown = {name: _without_middle(one_line(name, len(name) + 1), limit) for name in wanted}
    taken = Counter(shown.values())
    for name in wanted:
        if taken[shown[name]] > 1:
            digits = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
            shown[name] = f"{_without_middle(shown[name], limit - 9)} ({digits})"
    return shown


def plain_name(name: str, unusual: str, longest: int, filler: str = "-") -> str:
    """A name in the characters that another program or a file system takes; distinct names stay distinct.

    A name that has these alone stays as it is. Another one, an empty or longer one, or one that begins with a dot, ends
    in 8 digits of its SHA-256.

    Args:
        unusual: a regular expression of the characters that are replaced by `filler`, runs of them by one.
        longest: characters of the result, 20 or more.
    """
    plain = re.sub(f"(?:{unusual})+|^[.]+", filler, name)
    if name and plain == name and len(name) <= longest:
        return name
    digits = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain[: longest - 9]}{filler}{digits}"


def _without_middle(text: str, limit: int) -> str:
    head = limit // 2
    return text if len(text) <= limit else f"{text[:head]}…{text[head + 1 - limit :]}"
