"""Rows of a table to questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from merton.config import validated
from merton.curation.importing.answers import FORMS, choices_in, form_of, open_answers
from merton.curation.importing.columns import Columns
from merton.curation.importing.media import MediaFolder
from merton.curation.importing.tables import Table
from merton.curation.question import Question
from merton.errors import InputError

OnProgress = Callable[[int, int], None]


class Refusals:
    """Ids that were seen, with their places: the second question with one is refused."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}

    def check(self, name: str, where: str) -> None:
        """Raises InputError if the id was there before."""
        first = self._places.setdefault(name, where)
        if first != where:
            raise InputError(f"{where}: the id {name!r} stands already in {first}")


def questions_of(
    table: Table, columns: Columns, source: str, media: MediaFolder, on_progress: OnProgress
) -> tuple[list[Question], str]:
    """Every question of a table, and how its answers name the choices ("" without choices).

    Raises:
        InputError: a row that is no question: no text, choices without the answer, an id that stands twice, a missing
            picture; with file and row.
    """
    form, total = _answer_form(table, columns)
    seen, found = Refusals(), []
    for number, (where, row) in enumerate(table.rows(columns.all), 1):
        name = _text(row.get(columns.by_part.get("id", ""))) or str(number)
        seen.check(name, where)
        found.append(_question(row, columns, form, f"{source}/{name}", source, media, where))
        on_progress(number, total)
    if not found:
        raise InputError(f"{table.files[0]} has no questions")
    return found, form


def _answer_form(table: Table, columns: Columns) -> tuple[str, int]:
    """How answers name choices, and how many rows there are; pictures are not read."""
    answer = columns.by_part["answer"]
    named = [name for name in (columns.by_part.get("choices"), answer, *columns.lettered) if name]
    pairs: list[tuple[Any, Sequence[str], str]] = []
    blank, total = "", 0
    for where, row in table.rows(named):
        total += 1
        choices = _choices(row, columns, where)
        if choices and _text(row[answer]):
            pairs.append((_first(row[answer]), choices, where))
        elif choices:
            blank = blank or where
    if blank and pairs:  # a benchmark keeps all of its answers to itself, or none
        raise InputError(f"{blank}: has choices but no answer")
    return (form_of(pairs, table.kinds[answer] == "whole number") if pairs else ""), total


def _choices(row: dict[str, Any], columns: Columns, where: str) -> tuple[str, ...]:
    if columns.lettered:
        return tuple(_text(row[name]) for name in columns.lettered if _text(row[name]))
    column = columns.by_part.get("choices")
    return choices_in(row[column], where) if column else ()


def _question(
    row: dict[str, Any], columns: Columns, form: str, name: str, source: str, media: MediaFolder, where: str
) -> Question:
    choices = _choices(row, columns, where)
    answer = row[columns.by_part["answer"]]
    frames = row.get(columns.by_part.get("frames", ""))
    pictures = [medium for column in columns.pictures for medium in media.add_cell(row[column], where)]
    values: dict[str, Any] = {
        "id": name,
        "source": source,
        "media": [medium.model_dump() for medium in (*pictures, *media.add_cell(frames, where))],
        "video": bool(frames) and not pictures,
        "meta": {column: _text(row[column]) for column in columns.meta if _text(row[column])},
    }
    for part in ("text", "unit", "situation", "scene", "dimension"):
        values[part] = _text(row.get(columns.by_part.get(part, "")))
    if choices:
        right = FORMS[form](_first(answer), choices) if form else ""
        values |= {"answer_kind": "choice", "choices": choices, "answer": right}
    else:
        texts = [*_texts(answer), *_texts(row.get(columns.by_part.get("also", "")))]
        values |= dict(zip(("answer_kind", "answer", "also"), open_answers(texts), strict=True))
    return question_of(values, where)


def question_of(values: Mapping[str, Any], where: str) -> Question:
    """Values as a question; raises InputError, with the place, for values that are none."""
    return validated(Question, json.dumps(values), where)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _texts(value: Any) -> list[str]:
    return [_text(part) for part in value] if isinstance(value, list) else [_text(value)]


def _text(value: Any) -> str:
    """A cell as text on one line; a whole float without its point."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())
