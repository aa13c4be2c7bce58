"""Papers beside their numbers: the printed rows of `config/published`, and a sentence judged by numbers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Literal

from merton.files import resource

FOLDER = "config/published"

ClaimVerdict = Literal["holds", "holds in part", "does not hold", "not resolved", "not applicable", "noted"]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, or about its numbers, judged by numbers.

    Attributes:
        text: the sentence, in the paper's words as far as it is the paper's.
        measured: the numbers that decide, in a sentence.
        verdict: "not resolved" where an interval is too wide to tell; "not applicable" where there is nothing that
            it speaks of; "noted" of a sentence that is ours.
    """

    text: str
    measured: str
    verdict: ClaimVerdict


def printed_rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of `config/published/<name>.csv` in the paper's order, column to text: every printed digit is kept."""
    with resource("merton_bringup", f"{FOLDER}/{name}.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
