"""A point: the model is asked for its place in shares of the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from merton_studies.harness.templates.infer_question import asked


def predict_point(case: dict[str, Any], ask: Callable[..., str]) -> str:
    """The model's answer, as it is."""
    form = (
        "Answer with one point [x, y] alone, in shares of the width and the height, from 0 to 1, from the upper left."
    )
    return ask(f"{asked(case)}\n{form}").strip()
