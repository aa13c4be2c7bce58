"""A number: within the tolerance of the question if it has one; else the mean relative accuracy of VSI-Bench."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from merton.harness.templates.score_words import after_answer

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
METRES = {"mm": Fraction(1, 1000), "cm": Fraction(1, 100), "m": Fraction(1), "km": Fraction(1000)}
NAMES = {"millimet": "mm", "centimet": "cm", "kilomet": "km", "met": "m"}


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
    """The first number of a text, in digits or as a word up to twelve; a length is converted to the unit."""
    part = after_answer(text)
    found = re.search(r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:[.,]\d+)?(?:e[-+]?\d{1,2})?|[-+]?\.\d+", part, re.I)
    if not found:
        words = [word for word in re.findall(r"[a-z]+", part.lower()) if word in WORDS]
        return Fraction(WORDS.index(words[0])) if words else None
    digits = found[0]
    if re.search(r",\d{3}(?!\d)", digits):
        digits = digits.replace(",", "")
    value = Fraction(digits.replace(",", "."))
    behind = re.match(r"\s*([a-z]+)", part[found.end() :].lower())
    said = behind[1] if behind else ""
    said = next((short for name, short in NAMES.items() if said.startswith(name)), said)
    return value * METRES[said] / METRES[unit] if said in METRES and unit in METRES else value
