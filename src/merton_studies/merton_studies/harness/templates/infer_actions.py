"""A plan: the model is asked for verbs in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from merton_studies.harness.templates.infer_question import asked

ACTIONS = "reach, push, pick, place, press, pull, twist, move, cover, insert, pour"


def predict_actions(case: dict[str, Any], ask: Callable[..., str]) -> str:
    """The model's answer, as it is."""
    form = f"Answer with the actions in their order, separated by commas, each one of: {ACTIONS}."
    return ask(f"{asked(case)}\n{form}").strip()
