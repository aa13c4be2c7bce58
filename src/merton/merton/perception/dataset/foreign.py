"""Pictures that somebody else distorted, as rows: of a table, or of a published database's folder.

`importing` makes a dataset of them. Types, categories and levels are theirs, never Merton's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.errors import InputError, UnknownNameError
from merton.perception.dataset.databases import DATABASES, layout_of, read_copies
from merton.perception.dataset.tags import CATEGORIES, TASKS_PER_IMAGE
from merton.results.parts import check_parts, column_of, listed
from merton.results.tables import READABLE, named_rows, plain_number, plain_text, point_wanted
from merton.results.text import one_line

TASKS = tuple(f"task_{number}" for number in range(1, TASKS_PER_IMAGE + 1))
PARTS = {
    "reference": "the undistorted picture",
    "distorted": "its distorted copy; a row without one gives a reference alone",
    "type": "type of the distortion: a name, or a number",
    "category": "family of the type",
    "level": "how strong: a whole number from 1 (weak) on",
    "severity": "how strong, if not in levels: any number, a larger one is stronger",
    "split": "part that its makers put the copy in, such as train",
    "scene": "the scene that the reference shows, if several show one",
    **dict.fromkeys(CATEGORIES, "tag of the reference"),
    "tasks": "instructions for a robot, as a list (JSON Lines, Parquet)",
    **dict.fromkeys(TASKS, "an instruction, the easiest first"),
}
"""Part of a row to its meaning; a column of this name, or the one named for it, holds it."""
CHECKED_TAGS = ("domain", "perspective")
"""Tags whose values the studies know; objects and backgrounds may be any."""
LARGEST_LEVEL = 20
LONGEST_TYPE = 60
_TYPE_SIGNS = re.compile(r"[^\w-]+")


@dataclass(frozen=True)
class ForeignRow:
    """A distorted picture, or a reference alone.

    Attributes:
        where: place in the table or name of the file, for messages.
        reference, distorted: files; `distorted` is None of a reference alone.
        reference_name, distorted_name: as the source names them.
        type, number: of the distortion; the number is 0 where the source has none.
        level: from 1 on; None where the source has none.
        severity: rises with the strength; None where the source has none.
        about: scene, tags and tasks of the reference.
    """

    where: str
    reference: Path
    reference_name: str
    distorted: Path | None = None
    distorted_name: str = ""
    type: str = ""
    number: int = 0
    category: str = ""
    level: int | None = None
    severity: float | None = None
    split: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignSet:
    """All rows of a source.

    Attributes:
        name: of the data set.
        layout: "table", or of `databases.DATABASES`.
        remarks: sentences that its user should read.
    """

    name: str
    layout: str
    rows: Sequence[ForeignRow]
    remarks: tuple[str, ...] = ()


def read_foreign(
    source: Path, *, columns: Mapping[str, str] | None = None, pictures: Path | None = None, name: str = ""
) -> ForeignSet:
    """The rows of a table, or of a folder in the layout of LIVE, TID2013, KADID-10k or CSIQ.

    Args:
        source: a table of `READABLE`, or such a folder.
        columns: part of `PARTS` to the column of the table that holds it, where that has another name.
        pictures: folder that paths in the table start from; the table's own by default.
        name: of the data set; by default the database's, or the name of the table's folder.

    Raises:
        InputError: no such file, a folder of another layout, a part or column that does not exist, or a wrong cell;
            with the line.
    """
    if source.is_dir():
        if columns or pictures:
            raise InputError(f"{str(source)!r} is a folder, whose layout says which column is which: name a table")
        return _of_folder(source, name)
    rows, remarks = _of_table(source, columns or {}, pictures or source.parent)
    return ForeignSet(name or source.resolve().parent.name, "table", rows, remarks)


def _of_folder(folder: Path, name: str) -> ForeignSet:
    layout = layout_of(folder)
    if layout is None:
        known = "; ".join(f"{one.title}: {', '.join(one.holds)}" for one in DATABASES.values())
        raise InputError(
            f"{str(folder)!r} has the layout of no database that Merton knows ({known}): name a table of its pictures, "
            f"ending in one of {', '.join(READABLE)}"
        )
    rows = [
        ForeignRow(
            copy.image.name,
            copy.reference,
            copy.reference.relative_to(folder).as_posix(),
            copy.image,
            copy.image.relative_to(folder).as_posix(),
            copy.type,
            copy.number,
            level=copy.level,
            severity=copy.severity,
        )
        for copy in read_copies(layout, folder)
    ]
    return ForeignSet(name or DATABASES[layout].title, layout, rows)


def _of_table(file: Path, columns: Mapping[str, str], pictures: Path) -> tuple[list[ForeignRow], tuple[str, ...]]:
    check_parts(columns, PARTS)
    rows = list(named_rows(file, READABLE))
    if not rows:
        raise InputError(f"{file} has no row")
    there = list(dict.fromkeys(name for _, row in rows for name in row))  # lines of JSON may have different keys
    holding = column_of(str(file), there, PARTS, columns)
    _refuse_missing(str(file), there, holding)
    found = [_row(where, {part: row.get(name) for part, name in holding.items()}, pictures) for where, row in rows]
    _refuse_merged([(where, text) for where, row in rows if (text := plain_text(row.get(holding["type"])))])
    unused = [one_line(name, 40) for name in there if name not in holding.values()]
    return found, (f"columns that are not used: {', '.join(unused)}",) if unused else ()


def _refuse_missing(where: str, there: Sequence[str], found: Mapping[str, str]) -> None:
    """Raise InputError where no column holds a part that is needed, or two say how strong a copy is."""
    for part in ("reference", "distorted", "type"):
        if part not in found:
            raise InputError(
                f"{where}: no column holds {PARTS[part]}; call it {part}, or name it: --column {part}=NAME. The table "
                f"has: {listed(there)}"
            )
    if {"level", "severity"} <= set(found):
        raise InputError(f"{where}: both {found['level']} and {found['severity']} say how strong a copy is; name one")


def _row(where: str, cells: Mapping[str, Any], pictures: Path) -> ForeignRow:
    """A row of a table; raises InputError for a wrong cell."""
    text = {part: plain_text(cell) for part, cell in cells.items() if part != "tasks"}
    if not text["reference"]:
        raise InputError(f"{where}: reference is empty; write the path of the undistorted picture")
    about = dict(_about(where, text, cells.get("tasks")))
    reference = pictures / text["reference"]
    if not text["distorted"]:
        if text["type"]:
            raise InputError(f"{where}: has the type {one_line(text['type'], 40)!r} but no distorted picture")
        return ForeignRow(where, reference, text["reference"], about=about)
    name, number = _type(where, text["type"])
    return ForeignRow(
        where,
        reference,
        text["reference"],
        pictures / text["distorted"],
        text["distorted"],
        name,
        number,
        text.get("category", ""),
        _level(where, cells.get("level")),
        _severity(where, cells.get("severity")),
        text.get("split", ""),
        about,
    )


def _type(where: str, text: str) -> tuple[str, int]:
    """Name and number of a type: a whole number is a number, and names it too."""
    if text.isdecimal() and int(text) > 0:
        return f"type_{int(text):02d}", int(text)
    name = _TYPE_SIGNS.sub("_", text).strip("_")
    if not name or name == "reference" or len(name) > LONGEST_TYPE:
        raise InputError(
            f"{where}: type is {one_line(text, 40)!r}; write the name of the distortion, of at most {LONGEST_TYPE} "
            "letters or digits, and not reference"
        )
    return name, 0


def _refuse_merged(rows: Sequence[tuple[str, str]]) -> None:
    """Raise InputError where two names of types, with their places, become one in file names."""
    first: dict[str, tuple[str, str]] = {}
    for where, text in rows:
        other, place = first.setdefault(_type(where, text)[0], (text, where))
        if other != text:
            raise InputError(
                f"{where}: the type {one_line(text, 40)!r} differs from {one_line(other, 40)!r} in {place} in signs or "
                "zeros alone: write one name"
            )


def _level(where: str, cell: Any) -> int | None:
    if cell is None or plain_text(cell) == "":
        return None
    number = plain_number(cell)
    if number is None or not number.is_integer() or not 1 <= number <= LARGEST_LEVEL:
        raise InputError(
            f"{where}: level is {one_line(cell, 40)!r}; it must be a whole number from 1 to {LARGEST_LEVEL}"
            f"{point_wanted(cell)}; any other number is a severity: --column severity=NAME"
        )
    return int(number)


def _severity(where: str, cell: Any) -> float | None:
    if cell is None or plain_text(cell) == "":
        return None
    number = plain_number(cell)
    if number is None or not abs(number) < float("inf"):
        raise InputError(f"{where}: severity is {one_line(cell, 40)!r}; it must be a number{point_wanted(cell)}")
    return number


def _about(where: str, text: Mapping[str, str], tasks: Any) -> Iterator[tuple[str, Any]]:
    """Scene, tags and tasks of a reference."""
    yield "scene", text.get("scene", "")
    for tag, choices in CATEGORIES.items():
        value = text.get(tag, "")
        if tag in CHECKED_TAGS and value:
            value = re.sub(r"[\s-]+", "_", value.lower())
            if value not in choices:
                raise InputError(f"{where}: {UnknownNameError(tag, text[tag], choices)}")
        yield tag, value
    listed = [plain_text(one) for one in tasks] if isinstance(tasks, list | tuple) else [plain_text(tasks)]
    found = [one for one in (*listed, *(text.get(part, "") for part in TASKS)) if one]
    if len(found) > TASKS_PER_IMAGE:
        raise InputError(f"{where}: has {len(found)} tasks; at most {TASKS_PER_IMAGE} are possible")
    if len(set(found)) < len(found):
        raise InputError(f"{where}: has the same task twice")
    yield "tasks", tuple(found)
