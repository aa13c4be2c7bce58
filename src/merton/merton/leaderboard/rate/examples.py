"""Examples of cases at each level of rating (AGI-Elo, appendix A.1), for cases that were measured elsewhere, too."""

from __future__ import annotations

import base64
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InputError
from merton.leaderboard.rate.tail import LongTail
from merton.results.tables import file_bytes, name_in, read_rows, utf8_text

LEVEL_WIDTH = 200.0
"""Elo points of a level of rating; its examples are those nearest to its middle. Ours: the paper names no width."""

SHOWN = 3
"""Examples of a level, at most."""

LARGEST = 1_000_000
"""Bytes of a picture at most: the page holds it."""

PICTURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"RIFF": "webp", b"GIF8": "gif"}
"""The first bytes of a picture that browsers show, to its kind."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif")


@dataclass(frozen=True)
class Source:
    """An example before it is read: a text, and the file of a picture; one of the two is there."""

    text: str = ""
    picture: Path | None = None


@dataclass(frozen=True)
class Example:
    """A case that is shown at its level.

    Attributes:
        id, rating: of the case; Elo points.
        text: empty without one.
        picture: a data: address; empty without one.
    """

    id: str
    rating: float
    text: str
    picture: str


@dataclass(frozen=True)
class Level:
    """A level of rating, `low` <= rating < `low` + `LEVEL_WIDTH`.

    Attributes:
        cases: so many have such a rating.
        known: of these, so many have an example.
        examples: the nearest to the middle, at most `SHOWN`, the hardest first.
    """

    low: float
    cases: int
    known: int
    examples: tuple[Example, ...]


def read_sources(path: Path, cases: Collection[str]) -> tuple[dict[str, Source], int]:
    """Case id to its example, and the number of examples whose case is not among `cases`.

    Args:
        path: a table with the columns `case` and `text` or `picture` (a path from the table's folder) or both; or a
            folder whose files are called by the case's id: pictures, and texts that end in .txt.
        cases: ids of the rated cases.

    Raises:
        InputError: there is no such table or folder, a row has neither, a case is there twice, or none is rated.
    """
    found = _of_folder(path) if path.is_dir() else _of_table(path)
    own = {case: source for case, source in found.items() if case in cases}
    if not own:
        given, there = (", ".join(map(repr, sorted(ids)[:3])) for ids in (found, cases))
        raise InputError(f"{path}: none of its cases is rated here; it has {given or 'none'}, and rated are {there}")
    return own, len(found) - len(own)


def _of_table(path: Path) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for where, row in read_rows(path, ("case",), ("text", "picture")):
        case = name_in(where, row, "case")
        if case in found:
            raise InputError(f"{where}: case {case!r} has an example before; leave one")
        text, picture = (str(row.get(column) or "").strip() for column in ("text", "picture"))
        if not text and not picture:
            raise InputError(f"{where}: case {case!r} has neither a text nor a picture")
        found[case] = Source(text, path.parent / picture if picture else None)
    return found


def _of_folder(path: Path) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for file in sorted(item for item in path.iterdir() if item.is_file()):
        suffix = file.suffix.lower()
        if suffix not in (*SUFFIXES, ".txt"):
            continue
        before = found.get(file.stem, Source())
        if before.text if suffix == ".txt" else before.picture:
            raise InputError(
                f"{file}: case {file.stem!r} has another {'text' if suffix == '.txt' else 'picture'} there"
            )
        if suffix == ".txt":
            found[file.stem] = Source(utf8_text(file.name, file_bytes(file)).strip(), before.picture)
        else:
            found[file.stem] = Source(before.text, file)
    return found


def levels(tail: LongTail, sources: Mapping[str, Source]) -> tuple[Level, ...]:
    """Each level of rating that has a case, the hardest first, with its examples.

    Raises:
        InputError: a picture of an example that is shown cannot be read, is larger than `LARGEST`, or is of none of
            the kinds of `PICTURES`.
    """
    found: dict[int, list[tuple[str, float]]] = {}
    for case, rating in tail.case_ratings:
        found.setdefault(math.floor(rating / LEVEL_WIDTH), []).append((case, rating))
    return tuple(_level(number * LEVEL_WIDTH, found[number], sources) for number in sorted(found, reverse=True))


def _level(low: float, cases: list[tuple[str, float]], sources: Mapping[str, Source]) -> Level:
    known = [(case, rating) for case, rating in cases if case in sources]
    nearest = sorted(known, key=lambda item: (abs(item[1] - low - LEVEL_WIDTH / 2), item[0]))[:SHOWN]
    shown = sorted(nearest, key=lambda item: (-item[1], item[0]))
    return Level(
        low,
        len(cases),
        len(known),
        tuple(Example(case, rating, sources[case].text, _address(sources[case].picture)) for case, rating in shown),
    )


def _address(picture: Path | None) -> str:
    """The picture as a data: address; empty without one."""
    if picture is None:
        return ""
    content = file_bytes(picture)
    if len(content) > LARGEST:
        raise InputError(f"{picture}: has {len(content)} bytes; a picture of an example has {LARGEST} at most")
    kind = next((kind for head, kind in PICTURES.items() if content.startswith(head)), None)
    if kind is None:
        raise InputError(f"{picture}: is no picture that a page shows; choose one of: PNG, JPEG, WebP, GIF")
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
