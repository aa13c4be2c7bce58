"""A number: the model is asked for one, in the unit of the question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from merton_studies.harness.templates.infer_question import asked


def predict_number(case: dict[str, Any], ask: Callable[..., str]) -> str:
    """The model's answer, as it is."""
    unit = f", in {case['unit']}" if case["unit"] else ""
    return ask(f"{asked(case)}\nAnswer with one number alone{unit}.").strip()
