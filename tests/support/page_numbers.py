"""Sentences of the pages with numbers that follow from data in the repository: their form, and the check of one.

A row names the page, the sentence as it stands there, each number in braces, and the function that recomputes the
numbers. `tests/studies/project/test_page_numbers.py` has the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from sources import ROOT

MINUS = "−"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
PRINTED = rf"(?:[-{MINUS}]?[\d.,]*\d(?: \[[^\]]*\])?|{'|'.join(WORDS)})"
"""A number as the pages print it, perhaps with its interval."""


class Number:
    """A number with its interval, if it has one: `f"{Number(0.5, (0.25, 0.75)):.2f}"` is "0.50 [0.25, 0.75]".

    With "~" before the format they are printed as in a paper, ".50 [.25, .75]": without the zero before the point, and
    with a true minus sign. The format "w" is a whole number to twelve as a word.
    """

    def __init__(self, value: float, interval: tuple[float, float] | None = None) -> None:
        self.value, self.interval = value, interval

    def __format__(self, spec: str) -> str:
        value = _printed(self.value, spec)
        if self.interval is None:
            return value
        return f"{value} [{', '.join(_printed(end, spec) for end in self.interval)}]"


def _printed(value: float, spec: str) -> str:
    if spec == "w":
        return WORDS[int(value)]
    text = format(value, spec.removeprefix("~"))
    if not spec.startswith("~"):
        return text
    return re.sub(rf"^({MINUS}?)0\.", r"\1.", text.replace("-", MINUS))


@dataclass(frozen=True)
class Sentence:
    """A sentence, or a row of a table, whose numbers can be recomputed.

    Attributes:
        page: path from the root of the checkout.
        text: as it stands on the page, each number a replacement field of `str.format`: the format rounds it.
        numbers: recomputes them: name of a field to an int or a `Number`.
    """

    page: str
    text: str
    numbers: Callable[[], Mapping[str, Any]]

    def mismatch(self, content: str | None = None) -> str:
        """The fault of the page in a sentence, empty if its numbers are the recomputed ones.

        Args:
            content: of the page; read from its file by default. Line breaks count as spaces.
        """
        content = (ROOT / self.page).read_text(encoding="utf-8") if content is None else content
        content = " ".join(content.split())
        numbers = {name: Number(each) if isinstance(each, int) else each for name, each in self.numbers().items()}
        wanted = self.text.format_map(numbers)
        before = r"(?<![\d.,])" if wanted[0].isdigit() else ""
        after = r"(?!\d|[.,]\d)" if wanted[-1].isdigit() else ""
        if re.search(before + re.escape(wanted) + after, content):
            return ""
        pieces = [(re.escape(before), PRINTED if field else "") for before, field, _, _ in Formatter().parse(self.text)]
        stale = re.search("".join(piece + number for piece, number in pieces), content)
        if stale is None:
            return f"{self.page} no longer has the sentence {self.text!r}: change its row with the page"
        return f"{self.page} says {stale[0]!r}; the data say {wanted!r}"
