"""`--column PART=NAME`: which column of a table holds which part of a row."""

from __future__ import annotations

from collections.abc import Sequence

from merton.errors import InputError


def named_columns(texts: Sequence[str] | None) -> dict[str, str]:
    """Part to its column; raises InputError for a text of another form, or a part that is named twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        part, _, name = text.partition("=")
        if not part or not name:
            raise InputError(f"--column {text} is not of the form PART=NAME, such as distorted=image")
        if part in found:
            raise InputError(f"--column names {part} twice: {found[part]} and {name}")
        found[part] = name
    return found
