"""`--column PART=NAME`: which column of a table holds which part of a row."""

from __future__ import annotations

from collections.abc import Sequence

from merton.errors import InputError


def named_columns(texts: Sequence[str] | None) -> dict[str, str]:
    """Part to its column; raises InputError for a text of another form, or a part that is named twice."""
    found = columns_by_part(texts)
    for part, names in found.items():
        if len(names) > 1:
            raise InputError(f"--column names {part} twice: {names[0]} and {names[1]}")
    return {part: names[0] for part, names in found.items()}


def columns_by_part(texts: Sequence[str] | None) -> dict[str, tuple[str, ...]]:
    """Part to its columns, of which it may have several; raises InputError for a text of another form."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts or ():
        part, _, name = text.partition("=")
        if not part or not name:
            raise InputError(f"--column {text} is not of the form PART=NAME, such as score=MOS")
        found[part] = (*found.get(part, ()), name)
    return found
