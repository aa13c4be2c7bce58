"""Tables that were made elsewhere: which column holds which part of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from merton.errors import InputError, UnknownNameError, did_you_mean
from merton.results.text import one_line

NO_OTHER_NAMES: Mapping[str, Sequence[str]] = MappingProxyType({})


def check_parts(columns: Mapping[str, str], parts: Mapping[str, str]) -> None:
    """Raise UnknownNameError for a part that a row has not; see `column_of`."""
    for part in columns:
        if part not in parts:
            raise UnknownNameError("part of a row", part, parts)


def column_of(
    where: str,
    there: Sequence[str],
    parts: Mapping[str, str],
    columns: Mapping[str, str],
    also: Mapping[str, Sequence[str]] = NO_OTHER_NAMES,
) -> dict[str, str]:
    """Part to the column that holds it: the one that was named for it, else the one of its own name.

    A column that was named for a part holds no other, whatever it is called. A part without a column is left out.

    Args:
        where: the table, for errors.
        there: its columns.
        parts: part of a row to its meaning.
        columns: part to the column that was named for it.
        also: part to further names of its column, as Merton's own tables call it.

    Raises:
        InputError: a part that there is not, or a column that was named and is not in the table.
    """
    check_parts(columns, parts)
    for part, name in columns.items():
        if name not in there:
            raise InputError(
                f"{where}: there is no column {one_line(name, 40)!r} for {part}; {did_you_mean(name, there)}"
                f"the table has: {listed(there)}"
            )
    found, taken = dict(columns), set(columns.values())
    for part in parts:
        names = [name for name in (part, *also.get(part, ())) if name in there and name not in taken]
        if part not in columns and names:
            found[part] = names[0]
    return found


def listed(columns: Sequence[str]) -> str:
    """The columns of a table in a sentence."""
    return ", ".join(one_line(name, 40) for name in columns)
