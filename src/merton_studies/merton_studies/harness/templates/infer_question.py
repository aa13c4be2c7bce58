"""The part of a prompt that all kinds of answers have in common."""

from __future__ import annotations

from typing import Any


def asked(case: dict[str, Any]) -> str:
    """The situation, if there is one, and the question."""
    return "\n".join(filter(None, (case["situation"].strip(), case["text"].strip())))
