"""A point: 1 in the region or on its border, 0 outside."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from merton_studies.harness.templates.score_words import after_answer, spaced


def score_point(case: dict[str, Any], prediction: str) -> float:
    """1 if the point lies in the region of the answer, or in one that is right too."""
    point = said_point(prediction)
    regions = [json.loads(text, parse_float=Fraction, parse_int=Fraction) for text in (case["answer"], *case["also"])]
    return 1.0 if point is not None and any(inside(point, region) for region in regions) else 0.0


def said_point(text: str) -> tuple[Fraction, Fraction] | None:
    """The first two numbers of a text, each a share or a percentage with its sign; None without two."""
    found = re.findall(r"(?<![\w.])([-+]?(?:\d+(?:\.\d+)?|\.\d+))\s*(%?)", after_answer(spaced(text)))
    if len(found) < 2:
        return None
    x, y = (Fraction(digits) / (100 if percent else 1) for digits, percent in found[:2])
    return x, y


def inside(point: tuple[Fraction, Fraction], region: list[list[Fraction]]) -> bool:
    """In a polygon or on its border: a ray to the right crosses its border an odd number of times."""
    x, y = point
    odd = False
    for (x1, y1), (x2, y2) in zip(region, region[1:] + region[:1], strict=True):
        turn = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
        if turn == 0 and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2):
            return True
        if (y1 > y) != (y2 > y) and (turn > 0) == (y2 > y1):
            odd = not odd
    return odd
