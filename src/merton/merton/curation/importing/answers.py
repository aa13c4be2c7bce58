"""Answers and choices as benchmarks publish them, to the texts of a `Question`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from merton.curation.question import AnswerKind
from merton.errors import InputError

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_LETTER = re.compile(r"\(?([A-Za-z])[).:]?")
_LABELLED = re.compile(r"\(?([A-Z])[).:]\s*(.+)", re.DOTALL)
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def open_answer(text: str) -> tuple[AnswerKind, str]:
    """The kind of an answer without choices, and how it is written: "Yes." is yes, "three" and "3" are 3.

    Everything that is not exactly yes, no or a number is free text and stays as it is: "yes, two" and "3 m" too.
    """
    plain = text.strip().rstrip(".!").strip().lower()
    if plain in ("yes", "no"):
        return "yes_no", plain
    if plain in _WORDS:
        return "number", str(_WORDS.index(plain))
    if _NUMBER.fullmatch(plain):
        return "number", plain
    return "free_text", text.strip()


def open_answers(texts: Sequence[str]) -> tuple[AnswerKind, str, tuple[str, ...]]:
    """Kind, answer and further answers of a question without choices; of free text if they are not all of one kind."""
    found = [open_answer(text) for text in texts if text.strip()]
    if not found:
        return "free_text", "", ()
    kinds = {kind for kind, _ in found}
    if len(kinds) > 1:
        return "free_text", texts[0].strip(), _others([text.strip() for text in texts])
    return found[0][0], found[0][1], _others([answer for _, answer in found])


def _others(answers: Sequence[str]) -> tuple[str, ...]:
    return tuple(answer for answer in dict.fromkeys(answers) if answer and answer != answers[0])


def choices_in(cell: Any, where: str) -> tuple[str, ...]:
    """The choices of a cell: a list, or a text that is the list of JSON or Python, without "A." before each.

    Raises InputError for anything else.
    """
    if cell is None or cell == "":
        return ()
    if isinstance(cell, str):
        cell = _listed(cell)
    if isinstance(cell, dict):  # {"A": "left", "B": "right"}
        cell = [cell[key] for key in sorted(cell) if cell[key] is not None]
    if not isinstance(cell, list | tuple):
        raise InputError(f"{where}: the choices are no list but {str(cell)[:60]!r}")
    texts = [_plain(part) for part in cell]
    labelled = [_LABELLED.fullmatch(text) for text in texts]
    if len(texts) > 1 and all(found and found[1] == _letter(at) for at, found in enumerate(labelled)):
        return tuple(found[2].strip() for found in labelled if found)
    return tuple(texts)


def _listed(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return text


def _plain(value: Any) -> str:
    return " ".join(str(value).split())


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def _by_text(answer: Any, choices: Sequence[str]) -> str | None:
    text = _plain(answer)
    found = _LABELLED.fullmatch(text)
    return next((one for one in (text, found[2] if found else None) if one in choices), None)


def _by_letter(answer: Any, choices: Sequence[str]) -> str | None:
    found = _LETTER.fullmatch(_plain(answer))
    place = ord(found[1].upper()) - ord("A") if found else -1
    return choices[place] if 0 <= place < len(choices) else None


def _by_index(answer: Any, choices: Sequence[str]) -> str | None:
    text = _plain(answer)
    return choices[int(text)] if text.isdecimal() and int(text) < len(choices) else None


FORMS: Mapping[str, Callable[[Any, Sequence[str]], str | None]] = {
    "texts": _by_text,
    "letters": _by_letter,
    "places from 0": _by_index,
}
"""How the right one of the choices is named: by its text, by "B", "(b)" or "B.", or by its place."""


def form_of(pairs: Sequence[tuple[Any, Sequence[str], str]], whole_numbers: bool = False) -> str:
    """The form of `FORMS` that fits all answers of a benchmark; one form for all, so that no row is read by chance.

    Args:
        pairs: answer, choices and place of each question with choices.
        whole_numbers: the column is one of whole numbers: places come before texts.

    Raises:
        InputError: no form fits all; the sentence names the first row that the best form does not fit.
    """
    order = sorted(FORMS, key=lambda name: not (whole_numbers and FORMS[name] is _by_index))
    fits = {name: [FORMS[name](answer, choices) is not None for answer, choices, _ in pairs] for name in order}
    best = max(order, key=lambda name: sum(fits[name]))
    if pairs and not all(fits[best]):
        answer, choices, where = pairs[fits[best].index(False)]
        shown = ", ".join(repr(choice[:40]) for choice in choices[:8])
        raise InputError(f"{where}: the answer {str(answer)[:60]!r} is none of the choices {shown}")
    return best
