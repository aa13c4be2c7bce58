"""Yes or no: right is 1, all else 0."""

from __future__ import annotations

from typing import Any

from merton.harness.templates.score_words import after_answer, plain


def score_yes_no(case: dict[str, Any], prediction: str) -> float:
    """1 if the prediction begins with the right word, or has it and not the other."""
    words = plain(after_answer(prediction)).split()
    said = [word for word in words if word in ("yes", "no")]
    clear = bool(said) and (words[0] == said[0] or len(set(said)) == 1)
    return 1.0 if clear and said[0] in (case["answer"], *case["also"]) else 0.0
