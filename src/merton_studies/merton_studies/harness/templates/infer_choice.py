"""A choice: the model is asked for the letter of one of the listed texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from merton_studies.harness.templates.infer_question import asked


def predict_choice(case: dict[str, Any], ask: Callable[..., str]) -> str:
    """The model's answer, as it is."""
    listed = "\n".join(f"{chr(65 + place)}. {choice}" for place, choice in enumerate(case["choices"]))
    return ask(f"{asked(case)}\n{listed}\nAnswer with the letter of one choice alone.").strip()
