"""Numbers, names and times as the words of a page."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from merton.results.records import Outcome
from merton.results.text import MISSING, one_line, time_of
from merton.statistics.intervals import Interval, interval_text, unsigned_zero

OUTCOME_MARKS = {
    Outcome.SUCCESS: ("✓", "success"),
    Outcome.FAILURE: ("✕", "failure"),
    Outcome.EMERGENCY_STOP: ("■", "emergency stop"),
    Outcome.INVALID_ACTION: ("!", "invalid action"),
    Outcome.INFRASTRUCTURE: ("○", "infrastructure fault"),
    Outcome.ABSTAINED: ("–", "abstained"),
}
"""Outcome to the mark and the words that stand for it."""


def number(value: object, digits: int = 2) -> str:
    """A number with so many decimals, without a minus before zero; a dash for a value that is no finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        return MISSING
    text = f"{value:.{digits}f}"
    return unsigned_zero(text).replace("-", "−")


def signed(value: float, digits: int = 2) -> str:
    """A difference with its sign; none before zero."""
    return unsigned_zero(f"{value:+.{digits}f}").replace("-", "−")


def interval_words(ends: Sequence[float] | None, digits: int = 2, factor: float = 1.0, sign: bool = False) -> str:
    """An interval, such as "[−0.10, 0.20]"; "no interval" for None and of NaN.

    Args:
        ends: lower and upper.
        digits: decimals of each.
        factor: by which they are multiplied, such as 100 for percent.
        sign: whether both have one, as differences.
    """
    known = None if ends is None else Interval(*ends).scaled(factor)
    return interval_text(known, f"{'+' if sign else ''}.{digits}f").replace("-", "−")


def beside(ends: Sequence[float] | None, digits: int = 2, factor: float = 1.0, sign: bool = False) -> Markup:
    """`interval_words` in small print behind its value; nothing without one."""
    return Markup(" <small>{}</small>").format(interval_words(ends, digits, factor, sign)) if ends else Markup()


def p_value(value: float | None, sign: bool = False) -> str:
    """A p-value, 0..1, with three decimals, and "< .001" for a smaller one; with `sign` there is "= " before others.

    A dash for None and NaN.
    """
    if value is not None and value < 0.001:
        return "< .001"
    return f"{'= ' if sign else ''}{number(value, 3)}"


def percent(value: float | None, maximum: float = 1.0) -> str:
    """A share of `maximum` in whole percent, without the sign; a dash for None."""
    return MISSING if value is None else f"{100.0 * value / maximum:.0f}"


def readable(name: str) -> str:
    """A name for people: "gaussian_blur" to "gaussian blur"."""
    return one_line(name, 60).replace("_", " ")


def moment(utc: str) -> str:
    """A time of the record for people: to the second, without the zone, which is always UTC."""
    return one_line(utc, 40)[:19].replace("T", " ")


def date_and_time(iso: object) -> str:
    """An ISO time for people, such as "3 May 2026, 12:00 UTC"; anything else as it is."""
    try:
        time = time_of(str(iso))
    except ValueError:
        return one_line(iso) if iso else "at an unknown time"
    zone = f" {time.tzname()}" if time.tzinfo else ""
    return f"{time.day} {time:%B %Y, %H:%M}{zone}"


def duration(seconds: object) -> str:
    """A time span for people, such as "4 min 37 s" or "2 h 5 min"; empty for a value that is no finite number."""
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0.0 <= seconds < math.inf:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours}\u00a0h {minutes_left}\u00a0min"
    return f"{minutes}\u00a0min {rest}\u00a0s" if minutes else f"{rest}\u00a0s"


def marked(reference: str, distorted: str) -> Markup:
    """The distorted answer with the words that the reference answer lacks in <mark>."""
    ours, theirs = reference.split(), distorted.split()
    parts = []
    for kind, _, _, start, end in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        text = " ".join(theirs[start:end])
        if text:
            parts.append(Markup("{}" if kind == "equal" else "<mark>{}</mark>").format(text))
    return Markup(" ").join(parts)


def flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as names and texts, such as ("seeds · kmeans", "0"); six digits of a fraction."""
    rows = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            rows += flat(value, f"{prefix}{name} · ")
        elif isinstance(value, list | tuple) and any(isinstance(part, Mapping) for part in value):
            for number_of_part, part in enumerate(value, 1):
                whole = part if isinstance(part, Mapping) else {"": part}
                rows += flat(whole, f"{prefix}{name} {number_of_part} · ")
        else:
            text = ", ".join(map(_brief, value)) if isinstance(value, list | tuple) else _brief(value)
            rows.append((f"{prefix}{name}".removesuffix(" · "), text))
    return rows


def _brief(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
