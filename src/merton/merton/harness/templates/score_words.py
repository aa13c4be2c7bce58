"""Texts made comparable."""

from __future__ import annotations

import re
import unicodedata


def plain(text: str) -> str:
    """A text in small letters, with its words and numbers alone, a space between them."""
    small = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\d+(?:\.\d+)?|[^\W\d_]+", small))


def after_answer(text: str) -> str:
    """The part behind the last "answer is", "answer:" or the like; the whole text where there is none."""
    said = list(re.finditer(r"\b(?:answer|option|choice)\b(?:\s+is\b)?\s*[:=]?\s*", text, re.IGNORECASE))
    return text[said[-1].end() :] if said and text[said[-1].end() :].strip() else text
