"""A plan: the likeness of two sequences of verbs by edits, 1 - distance / length of the longer one."""

from __future__ import annotations

import re
from typing import Any

from merton_studies.harness.templates.score_words import after_answer, first_paragraph, plain, spaced

VERBS = ["reach", "push", "pick", "place", "press", "pull", "twist", "move", "cover", "insert", "pour"]


def score_actions(case: dict[str, Any], prediction: str) -> float:
    """0..1; the best of the answer and those that are right too."""
    rest = after_answer(spaced(prediction))
    said = [actions(part) for part in (rest, first_paragraph(rest))]
    return max(likeness(actions(right), one) for right in (case["answer"], *case["also"]) for one in said)


def actions(text: str) -> list[str]:
    """The steps of a plan: of each its first known verb, or all of its words where it has none."""
    steps = [plain(re.sub(r"^\W*\d+\W+", "", step)).split() for step in re.split(r"[,;\n]|->|→|\bthen\b", text)]
    return [next((word for word in step if word in VERBS), " ".join(step)) for step in steps if step]


def likeness(right: list[str], said: list[str]) -> float:
    """1 - Levenshtein distance / length of the longer sequence; 0 for nothing."""
    if not right or not said:
        return 0.0
    before = list(range(len(said) + 1))
    for row, verb in enumerate(right, 1):
        now = [row]
        for column, other in enumerate(said, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (verb != other)))
        before = now
    return 1.0 - before[-1] / max(len(right), len(said))
