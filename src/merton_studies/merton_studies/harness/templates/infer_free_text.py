"""Any text: the model is asked for few words, because words that were not asked for count against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from merton_studies.harness.templates.infer_question import asked


def predict_free_text(case: dict[str, Any], ask: Callable[..., str]) -> str:
    """The model's answer, as it is."""
    return ask(f"{asked(case)}\nAnswer with a word or a short phrase.").strip()
