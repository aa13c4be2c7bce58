"""A number: within the tolerance of the question if it has one; else the mean relative accuracy of VSI-Bench."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from merton_studies.harness.templates.score_quantity import (
    FIRST_NUMBER,
    NUMBER_WORDS,
    UNIT_OF,
    UNITS,
    number_at,
    quantity_at,
)
from merton_studies.harness.templates.score_words import after_answer, spaced


def score_number(case: dict[str, Any], prediction: str) -> float:
    """0..1; the best of the answer and those that are right too."""
    value = said_number(prediction, case["unit"])
    if value is None:
        return 0.0
    return max(accuracy(value, Fraction(right), case["tolerance"]) for right in (case["answer"], *case["also"]))


def accuracy(value: Fraction, right: Fraction, tolerance: str) -> float:
    """With a tolerance 1 or 0. Else the share of the thresholds t = .50, .55 ... .95 for which the relative error is
    less than 1 - t (Yang et al., CVPR 2025); where the right number is 0 there is none, and only 0 is right."""
    error = abs(value - right)
    if tolerance:
        return 1.0 if error <= Fraction(tolerance) else 0.0
    if right == 0:
        return 1.0 if error == 0 else 0.0
    return sum(100 * error < (100 - t) * abs(right) for t in range(50, 100, 5)) / 10


def said_number(text: str, unit: str) -> Fraction | None:
    """The first number of a text, in digits or as a word up to twelve; a quantity is converted to the unit.

    None if it has a unit of another quantity: 1.5 ms is no length.
    """
    part = after_answer(spaced(text))
    found = FIRST_NUMBER.search(part)
    if not found:
        words = [word for word in re.findall(r"[a-z]+", part.lower()) if word in NUMBER_WORDS]
        return Fraction(NUMBER_WORDS.index(words[0])) if words else None
    value, base, end = quantity_at(part, found)
    asked = UNITS.get(UNIT_OF.get(unit.strip().lower(), ""))
    if base and asked and asked[0] == base:
        return value / asked[1]
    if base and asked and part[end - 1].isalpha():  # a quotation mark is no inch here
        return None
    return number_at(part, found[0], found.end())[0]
