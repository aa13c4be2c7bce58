"""Names and numbers as text that is safe to show on a terminal and in a page."""

from __future__ import annotations

MISSING = "–"
"""Shown in place of a value that is missing."""


def printable(text: str, limit: int = 80) -> str:
    """Text that is safe to show: control and direction characters replaced, cut to `limit` characters."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def one_line(value: object, limit: int = 80) -> str:
    """Any value as printable text on one line, white space collapsed."""
    return printable(" ".join(str(value).split()), limit)


def formatted(value: float | None, pattern: str = "{:.2f}") -> str:
    """The value in the pattern, or a dash if it is missing."""
    return MISSING if value is None else pattern.format(value)


def count_of(n: int, scenes: int) -> str:
    """A number of trials beside that of their scenes, such as "132 in 4 scenes"; alone where there is no scene."""
    return f"{n} in {scenes} scene{'s' * (scenes != 1)}" if scenes else str(n)
