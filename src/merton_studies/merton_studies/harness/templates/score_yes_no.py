"""Yes or no: right is 1, all else 0."""

from __future__ import annotations

from typing import Any

from merton_studies.harness.templates.score_truth import said_truth


def score_yes_no(case: dict[str, Any], prediction: str) -> float:
    """1 if the prediction says the right one of the two."""
    return 1.0 if said_truth(prediction) in (case["answer"], *case["also"]) else 0.0
