"""Yes or no."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from merton_studies.harness.templates.infer_question import asked


def predict_yes_no(case: dict[str, Any], ask: Callable[..., str]) -> str:
    """The model's answer, as it is."""
    return ask(f"{asked(case)}\nAnswer with yes or no alone.").strip()
