"""Foreign rows put in order: references with ids, types with numbers, and a level for every copy.

A level is 1 (weak) and up, and tells the copies of a reference under one type apart. One that the source has is kept.
A severity is ranked among those of its type; where a type has more than `LARGEST_LEVEL` of them, as the bit rates of
LIVE, among those of the type and reference. Ours, because studies compare levels, and only the order of somebody
else's strengths is known. Levels of two types with one number are not equally strong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from merton.errors import InputError
from merton.perception.dataset.foreign import LARGEST_LEVEL, ForeignRow
from merton.results.text import one_line


@dataclass(frozen=True)
class Copy:
    """A distorted copy; its fields are those of `ForeignRow`, the number is that of its type with its zeros."""

    name: str
    file: Path
    number: str
    type: str
    category: str
    level: int
    severity: float | None
    split: str


@dataclass(frozen=True)
class Reference:
    """A reference and its copies, by type and level; `about` is its scene, tags and tasks."""

    id: str
    name: str
    file: Path
    about: Mapping[str, Any]
    copies: tuple[Copy, ...]

    @property
    def told(self) -> list[Any]:
        """All of it but the places of its files on this machine."""
        copies = [[value for name, value in vars(copy).items() if name != "file"] for copy in self.copies]
        return [self.id, self.name, sorted(self.about.items()), copies]


@dataclass(frozen=True)
class Plan:
    """References by id, type to its severities (empty where it has levels), and the highest level."""

    references: tuple[Reference, ...]
    types: Mapping[str, Sequence[float]]
    levels: int


def plan(rows: Sequence[ForeignRow]) -> Plan:
    """Ids, numbers and levels.

    Raises:
        InputError: no distorted picture, two rows that contradict each other about a reference or a type, two copies of
            one reference, type and strength, or more levels than are possible; with both places.
    """
    copies = [row for row in rows if row.distorted]
    if not copies:
        raise InputError("no row has a distorted picture")
    _refuse_twice(copies)
    levels = _levels(copies)
    _refuse_alike(copies, levels)
    numbers, categories = _numbers(copies), _categories(copies)
    of_reference: dict[str, list[tuple[ForeignRow, int]]] = {row.reference_name: [] for row in rows}
    for row, level in zip(copies, levels, strict=True):
        of_reference[row.reference_name].append((row, level))
    ids, about = _ids(list(of_reference)), _about(rows)
    references = []
    for name, id_ in ids.items():
        mine = sorted(of_reference[name], key=lambda item: (numbers[item[0].type], item[1]))
        made = tuple(
            Copy(
                row.distorted_name,
                row.distorted or Path(),
                numbers[row.type],
                row.type,
                categories[row.type],
                level,
                row.severity,
                row.split,
            )
            for row, level in mine
        )
        file = next(row.reference for row in rows if row.reference_name == name)
        scene = {"scene": about[name]["scene"] or id_}
        references.append(Reference(id_, name, file, {**about[name], **scene}, made))
    severities = {
        kind: sorted({row.severity for row in copies if row.type == kind and row.severity is not None})
        for kind in sorted(numbers, key=numbers.__getitem__)
    }
    return Plan(tuple(sorted(references, key=lambda one: one.id)), severities, max(levels))


def _refuse_twice(copies: Sequence[ForeignRow]) -> None:
    """Raise InputError for a distorted picture that two rows name."""
    first: dict[str, str] = {}
    for row in copies:
        if row.distorted_name in first:
            raise InputError(
                f"{row.where}: the distorted picture {one_line(row.distorted_name)!r} stands twice, first in "
                f"{first[row.distorted_name]}"
            )
        first[row.distorted_name] = row.where


def _levels(copies: Sequence[ForeignRow]) -> list[int]:
    """The level of every copy; see the top of this file."""
    by_type: dict[str, list[ForeignRow]] = {}
    for row in copies:
        by_type.setdefault(row.type, []).append(row)
    ranks: dict[tuple[str, str | None], dict[float, int]] = {}
    for kind, mine in by_type.items():
        if len({(row.level is None, row.severity is None) for row in mine}) > 1:
            odd = next(row for row in mine if (row.level is None) != (mine[0].level is None)
                       or (row.severity is None) != (mine[0].severity is None))  # fmt: skip
            raise InputError(
                f"{odd.where}: some copies of the type {kind} have a strength and some have none, as {mine[0].where}: "
                "give all or none"
            )
        if mine[0].severity is None:
            continue
        if len({row.severity for row in mine}) <= LARGEST_LEVEL:
            ranks[kind, None] = _ranked(mine)
            continue
        for name in {row.reference_name for row in mine}:
            ranks[kind, name] = _ranked([row for row in mine if row.reference_name == name])
    return [_level(row, ranks) for row in copies]


def _ranked(rows: Sequence[ForeignRow]) -> dict[float, int]:
    found = {value: rank for rank, value in enumerate(sorted({row.severity or 0.0 for row in rows}), 1)}
    if len(found) > LARGEST_LEVEL:
        raise InputError(
            f"{rows[0].where}: the reference {one_line(rows[0].reference_name)!r} has {len(found)} copies of the type "
            f"{rows[0].type}; at most {LARGEST_LEVEL} strengths are possible"
        )
    return found


def _level(row: ForeignRow, ranks: Mapping[tuple[str, str | None], Mapping[float, int]]) -> int:
    if row.severity is None:
        return row.level or 1
    found = ranks.get((row.type, None)) or ranks[row.type, row.reference_name]
    return found[row.severity]


def _refuse_alike(copies: Sequence[ForeignRow], levels: Sequence[int]) -> None:
    """Raise InputError for two copies that nothing tells apart."""
    first: dict[tuple[str, str, int], str] = {}
    for row, level in zip(copies, levels, strict=True):
        key = row.reference_name, row.type, level
        if key in first:
            raise InputError(
                f"{row.where}: the reference {one_line(row.reference_name)!r} has another copy of the type {row.type} "
                f"and this strength in {first[key]}: give each its level or severity"
            )
        first[key] = row.where


def _numbers(copies: Sequence[ForeignRow]) -> dict[str, str]:
    """Type to its number: that of the source, or else in the order of the rows; with zeros, so that it sorts."""
    numbers: dict[str, int] = {}
    for row in copies:
        if numbers.setdefault(row.type, row.number) != row.number:
            raise InputError(f"{row.where}: the type {row.type} has a number here and none before: write one form")
    free = iter(range(1, 2 * len(numbers) + 1))
    taken = set(numbers.values())
    numbers = {name: number or next(one for one in free if one not in taken) for name, number in numbers.items()}
    digits = max(2, int(math.log10(max(numbers.values()))) + 1)
    return {name: f"{number:0{digits}d}" for name, number in numbers.items()}


def _categories(copies: Sequence[ForeignRow]) -> dict[str, str]:
    found: dict[str, ForeignRow] = {}
    for row in copies:
        first = found.setdefault(row.type, row)
        if first.category != row.category:
            raise InputError(
                f"{row.where}: the category of the type {row.type} is {one_line(row.category, 40)!r}, and "
                f"{one_line(first.category, 40)!r} in {first.where}"
            )
    return {name: row.category for name, row in found.items()}


def _ids(names: Sequence[str]) -> dict[str, str]:
    """Reference to its id: its file's name without ending, or its whole path where two files share that."""
    stems = [PurePosixPath(name).stem for name in names]
    ids = {
        name: stem if stems.count(stem) == 1 else "_".join(PurePosixPath(name).with_suffix("").parts[-8:])
        for name, stem in zip(names, stems, strict=True)
    }
    if len(set(ids.values())) < len(ids) or any(
        one in ("", ".", "..") or "/" in one or "\\" in one for one in ids.values()
    ):
        again = sorted(name for name, one in ids.items() if list(ids.values()).count(one) > 1) or names
        raise InputError(f"the names of {one_line(', '.join(again[:2]), 200)} give no two different ids: rename a file")
    return ids


def _about(rows: Sequence[ForeignRow]) -> dict[str, Mapping[str, Any]]:
    """Reference to its scene, tags and tasks, which all its rows must agree on."""
    empty = {"scene": "", "domain": "", "perspective": "", "object": "", "background": "", "tasks": ()}
    first: dict[str, ForeignRow] = {}
    for row in rows:
        known = first.setdefault(row.reference_name, replace(row, about={**empty, **row.about}))
        for part, value in row.about.items():
            if known.about[part] != value:
                raise InputError(
                    f"{row.where}: {part} of the reference {one_line(row.reference_name)!r} is not as in {known.where}"
                )
    return {name: row.about for name, row in first.items()}
