"""The part of a prompt that all kinds of answers have in common."""

from __future__ import annotations

from typing import Any


def asked(case: dict[str, Any]) -> str:
    """The situation, if there is one, what the pictures are, if they are a video, and the question."""
    video = "The pictures are frames of one video, in their order." if case.get("video") else ""
    return "\n".join(filter(None, (case["situation"].strip(), video, case["text"].strip())))
