"""Answers without choices as benchmarks publish them, to the texts of a `Question`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from merton.errors import InputError
from merton.results.tables import plain_text as plain
from merton.results.text import one_line
from merton_studies.curation.importing.choices import listed
from merton_studies.curation.question import AnswerKind

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?", re.ASCII)
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_TRUTH = {"true": "yes", "false": "no", "yes": "yes", "no": "no"}
_ANSWER_KEYS = ("answer", "text", "value")
_NESTED_STARTS = ("{'", '{"', "[{'", '[{"')
"""Of an object, or a list of them, as Python or JSON writes it."""


def open_answer(text: str) -> tuple[AnswerKind, str]:
    """The kind of an answer without choices, and how it is written.

    "Yes." is yes, and so is "True", as tables write it; "three" and "3" are 3, "1,200" is 1200. Everything that is not
    exactly yes, no or a number is free text and stays as it is: "yes, two" and "3 m" too.
    """
    word = text.strip().rstrip(".!").strip().lower()
    if word in _TRUTH:
        return "yes_no", _TRUTH[word]
    if word in _WORDS:
        return "number", str(_WORDS.index(word))
    if _GROUPED.fullmatch(word):
        return "number", word.replace(",", "")
    if _NUMBER.fullmatch(word):
        return "number", word
    return "free_text", text.strip()


def open_answers(texts: Sequence[str]) -> tuple[AnswerKind, str, tuple[str, ...]]:
    """Kind, answer and further answers of a question without choices; of free text if they are not all of one kind."""
    found = [open_answer(text) for text in texts if text.strip()]
    if not found:
        return "free_text", "", ()
    kinds = {kind for kind, _ in found}
    if len(kinds) > 1:
        given = [text.strip() for text in texts if text.strip()]
        return "free_text", given[0], _others(given)
    return found[0][0], found[0][1], _others([answer for _, answer in found])


def _others(answers: Sequence[str]) -> tuple[str, ...]:
    return tuple(answer for answer in dict.fromkeys(answers) if answer and answer != answers[0])


def answers_in(cell: Any, where: str) -> list[str]:
    """The right answers of a cell, the first of which counts; [""] for a blank one.

    Args:
        cell: a value, a list of values; {"answer": ...}, {"text": [...]}, {"value": ..., "aliases": [...]} or a list
            of {"answer": ...}, of which the commonest comes first; or one of these nested forms as JSON or Python.
        where: row and column, for messages.

    Raises:
        InputError: another nested value.
    """
    if isinstance(cell, str) and cell[:1] in ("[", "{"):
        read = listed(cell)
        nested = isinstance(read, Mapping) or (
            isinstance(read, list) and all(isinstance(part, str | Mapping) for part in read)
        )
        if read is cell and cell.startswith(_NESTED_STARTS):  # such as {'answer': nan}
            raise _refused(cell, where)
        cell = read if nested else cell
    if isinstance(cell, Mapping):
        return _of_object(cell, where)
    if not isinstance(cell, list | tuple):
        return [plain(cell)]
    if cell and all(isinstance(part, Mapping) for part in cell):
        found = [text for part in cell for text in _of_object(part, where)]
        return [text for text, _ in Counter(found).most_common()]
    if any(isinstance(part, Mapping | list | tuple) for part in cell):
        raise _refused(cell, where)
    return [plain(part) for part in cell] or [""]


def _of_object(cell: Mapping[str, Any], where: str) -> list[str]:
    value = next((cell[key] for key in _ANSWER_KEYS if key in cell), cell)
    parts = value, cell.get("aliases") or ()
    values = [one for part in parts for one in (part if isinstance(part, list | tuple) else [part])]
    if any(isinstance(part, Mapping | list | tuple | bytes) for part in values):
        raise _refused(cell, where)
    return [plain(part) for part in values] or [""]


def _refused(cell: Any, where: str) -> InputError:
    shown = one_line(repr(cell), 60)
    return InputError(f"{where}: the answer is nested: {shown}; name a column of texts by --column answer=NAME")
