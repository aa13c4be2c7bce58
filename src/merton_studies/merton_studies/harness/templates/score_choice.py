"""A choice: right is 1, all else 0, whether the letter or the text was given."""

from __future__ import annotations

from typing import Any

from merton_studies.harness.templates.score_named import named_choice


def score_choice(case: dict[str, Any], prediction: str) -> float:
    """1 if the prediction names the right choice and no other."""
    named = named_choice(case["choices"], prediction)
    return 1.0 if named is not None and named in (case["answer"], *case["also"]) else 0.0
