"""Rows of a table to questions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from merton.config import validated
from merton.errors import InputError
from merton.progress import OnProgress
from merton.results.tables import plain_text as plain
from merton.results.text import one_line
from merton_studies.curation.importing.answers import answers_in, open_answers
from merton_studies.curation.importing.choices import FORMS, Choices, choices_in, choices_of, form_of, other_count
from merton_studies.curation.importing.columns import Columns
from merton_studies.curation.importing.media import MediaFolder
from merton_studies.curation.importing.tables import Table
from merton_studies.curation.question import Question


class Refusals:
    """Ids that were seen, with their places: the second question with one is refused."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def check(self, name: str, where: str) -> None:
        """Raises InputError if the id was there before."""
        first = self._places.setdefault(name, where)
        if first != where:
            raise InputError(f"{where}: the id {one_line(name)!r} stands already in {first}")


def questions_of(
    table: Table, columns: Columns, source: str, media: MediaFolder, on_progress: OnProgress
) -> tuple[list[Question], list[str]]:
    """Every question of a table, and sentences on how its answers name the choices (none without choices).

    Raises:
        InputError: a row that is no question: no text, choices without the answer, an id that stands twice, a missing
            picture, a nested value that is not read; with file and row.
    """
    form, total, remarks = _answer_form(table, columns)
    seen, found = Refusals(), []
    for number, (where, row) in enumerate(table.rows(columns.all), 1):
        name = _part(row, columns, "id", where) or str(number)
        seen.check(name, where)
        found.append(_question(row, columns, form, (source, name), media, where))
        on_progress(number, total)
    if not found:
        raise InputError(f"{table.files[0]} has no questions")
    return found, remarks


def _answer_form(table: Table, columns: Columns) -> tuple[str, int, list[str]]:
    """The form in which answers name choices, the number of rows, and remarks on the form; pictures are not read."""
    answer = columns.by_part["answer"]
    named = [name for name in (columns.by_part.get("choices"), answer, *columns.lettered) if name]
    pairs: list[tuple[Any, Choices, str]] = []
    blank, total = "", 0
    for where, row in table.rows(named):
        total += 1
        choices = _choices(row, columns, where)
        if choices:
            right = _right(row[answer], f"{where}, column {answer!r}")
            pairs += [(right, choices, where)] if plain(right) else []
            blank = blank or ("" if plain(right) else where)
    if blank and pairs:  # a benchmark keeps all of its answers to itself, or none
        raise InputError(f"{blank}: has choices but no answer")
    if not pairs:
        return "", total, []
    form = form_of(pairs, table.kinds[answer] == "whole number")
    remarks = [f"The answers name the choices by {form}."]
    ambiguous = other_count(form, pairs, answer)
    return form, total, [*remarks, ambiguous] if ambiguous else remarks


def _choices(row: dict[str, Any], columns: Columns, where: str) -> Choices:
    if columns.lettered:
        return choices_of([row[name] for name in columns.lettered], columns.labels)
    column = columns.by_part.get("choices")
    return choices_in(row[column], f"{where}, column {column!r}") if column else Choices()


def _right(cell: Any, where: str) -> Any:
    """The one answer of a question with choices, as it is written in its cell."""
    if not isinstance(cell, list | tuple | Mapping):
        return cell
    found = list(dict.fromkeys(filter(None, answers_in(cell, where))))
    if len(found) > 1:
        raise InputError(f"{where}: names {len(found)} right choices; a question has one")
    return found[0] if found else None


def _question(
    row: dict[str, Any], columns: Columns, form: str, name: tuple[str, str], media: MediaFolder, where: str
) -> Question:
    choices = _choices(row, columns, where)
    column = columns.by_part["answer"]
    frames = row.get(columns.by_part.get("frames", ""))
    stamps_s = stamps_in(row.get(columns.by_part.get("stamps", "")), where)
    pictures = [
        medium
        for column in columns.pictures
        for medium in media.add_cell(row[column], where, column, name[1], stamps_s)
    ]
    values: dict[str, Any] = {
        "id": "/".join(name),
        "source": name[0],
        "media": [medium.model_dump() for medium in (*pictures, *media.add_cell(frames, where))],
        "video": media.is_one_video(pictures) or (bool(frames) and not pictures),
        "meta": {column: _flat(row[column]) for column in columns.meta if _flat(row[column])},
    }
    for part in ("text", "unit", "situation", "scene", "dimension"):
        values[part] = _part(row, columns, part, where)
    if choices:
        right = FORMS[form](_right(row[column], where), choices) if form else ""
        values |= {"answer_kind": "choice", "choices": choices.texts, "answer": right}
    else:
        also = columns.by_part.get("also")
        texts = answers_in(row[column], f"{where}, column {column!r}")
        texts += answers_in(row[also], f"{where}, column {also!r}") if also else []
        values |= dict(zip(("answer_kind", "answer", "also"), open_answers(texts), strict=True))
    return question_of(values, where)


def stamps_in(cell: Any, where: str) -> list[float]:
    """The seconds of a cell: nothing, a number, a list of them, or such a list as text, "1.5, 2"; raises InputError."""
    parts = cell if isinstance(cell, list | tuple) else re.split(r"[,;\s]+", plain(cell).strip("[] "))
    try:
        return [float(part) for part in parts if part != ""]
    except (TypeError, ValueError):
        shown = one_line(repr(cell), 40)
        raise InputError(f"{where}: stamps are seconds of a video, such as [1.5, 2], not {shown}") from None


def question_of(values: Mapping[str, Any], where: str) -> Question:
    """Values as a question; raises InputError, with the place, for values that are none."""
    return validated(Question, json.dumps(values), where)


def _part(row: dict[str, Any], columns: Columns, part: str, where: str) -> str:
    """The text of a part of a question, "" where it has none; raises InputError for a nested value."""
    column = columns.by_part.get(part)
    if column is None:
        return ""
    cell = row[column]
    several = isinstance(cell, list | tuple) and (part == "text" and len(cell) > 1)
    if several or isinstance(cell, Mapping) or (isinstance(cell, list | tuple) and any(map(_is_nested, cell))):
        raise InputError(f"{where}: the column {column!r} is nested; name one of plain texts by --column {part}=NAME")
    return _flat(cell)


def _is_nested(cell: Any) -> bool:
    return isinstance(cell, list | tuple | Mapping)


def _flat(cell: Any) -> str:
    return ", ".join(filter(None, map(plain, cell))) if isinstance(cell, list | tuple) else plain(cell)
