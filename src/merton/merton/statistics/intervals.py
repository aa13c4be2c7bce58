"""The 95 % interval of every board, report and page, and the one way to print it."""

from __future__ import annotations

import math
from typing import NamedTuple

ENDS = (0.025, 0.975)
"""The quantiles between which the middle 95 % lie."""


class Interval(NamedTuple):
    """Lower and upper end of a 95 % interval, which may be infinite.

    As text "[0.10, 0.20]": `f"{interval:.2f}"` writes each end so, without a sign before zero.
    """

    low: float
    high: float

    def scaled(self, factor: float, shift: float = 0.0) -> Interval:
        """Of a value that is `factor`, above 0, times this one's plus `shift`."""
        return Interval(factor * self.low + shift, factor * self.high + shift)

    def __format__(self, spec: str) -> str:
        low, high = (format(end, spec or ".2f") for end in self)
        return f"[{unsigned_zero(low)}, {unsigned_zero(high)}]"


def interval_text(interval: Interval | None, spec: str = ".2f") -> str:
    """The one way to print an interval: "[0.10, 0.20]"; "no interval" for None and of NaN."""
    return "no interval" if interval is None or math.isnan(interval.low) else format(interval, spec)


def unsigned_zero(text: str) -> str:
    """A number as text, without the sign if it reads zero."""
    return text.lstrip("+-") if float(text) == 0.0 else text
