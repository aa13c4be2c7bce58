"""The choices of a question as benchmarks publish them, and how an answer names the right one."""

from __future__ import annotations

import ast
import io
import itertools
import json
import re
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from merton.errors import InputError
from merton.results.tables import plain_text as plain
from merton.results.text import one_line

_LETTER = re.compile(r"\(?([A-Za-z])[).:]?")
_LABELLED = re.compile(r"\(?([A-Z])[).:]\s*(.*)", re.DOTALL)
_WHOLE = re.compile(r"(\d{1,6})(?:\.0+)?", re.ASCII)
_TEXT_KEYS = ("text", "texts", "choice", "choices", "option", "options", "value")
_LABEL_KEYS = ("label", "labels", "key", "letter")
_TRUE, _FALSE = ("yes", "true"), ("no", "false")


@dataclass(frozen=True)
class Choices:
    """The choices of a question without blank ones; those that are left keep their letters and places.

    Attributes:
        texts: what may be chosen.
        places: of each, from 0, blank ones counted.
        labels: as the benchmark calls each; empty where it does not.
    """

    texts: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts)

    @property
    def letters(self) -> tuple[str, ...]:
        """A letter for each: its label, or that of its place where labels are none."""
        if self.labels and all(_LETTER.fullmatch(label) for label in self.labels):
            return tuple(label.strip("().:").upper() for label in self.labels)
        return tuple(letter_of(place) for place in self.places)


def choices_of(cells: Sequence[Any], labels: Sequence[Any] = ()) -> Choices:
    """The choices in cells, in their order; a cell that is blank or missing is none."""
    kept = [(place, text) for place, text in enumerate(map(plain, cells)) if text]
    return Choices(
        tuple(text for _, text in kept),
        tuple(place for place, _ in kept),
        tuple(plain(labels[place]) for place, _ in kept) if labels else (),
    )


def choices_in(cell: Any, where: str) -> Choices:
    """The choices of a cell, without "A." before each.

    Args:
        cell: a list of texts; an object of label to text; {"text": [...], "label": [...]} or a list of {"text",
            "label"}, as data sets of the Hugging Face hub have them; or any of these as JSON or as Python writes it.
        where: for messages.

    Raises:
        InputError: anything else.
    """
    if cell is None or cell == "":
        return Choices()
    if isinstance(cell, str):
        cell = listed(cell)
    if isinstance(cell, Mapping):
        return _of_object(cell, where)
    if not isinstance(cell, list | tuple):
        raise InputError(f"{where}: the choices are no list but {one_line(repr(cell), 60)}")
    if cell and all(isinstance(part, Mapping) for part in cell):
        texts, labels = ([_first_of(part, keys) for part in cell] for keys in (_TEXT_KEYS, _LABEL_KEYS))
        if any(text is None for text in texts):
            raise _nested(cell, where)
        return _checked(texts, labels if all(label is not None for label in labels) else (), where)
    return _unlabelled(_checked(cell, (), where))


def _of_object(cell: Mapping[str, Any], where: str) -> Choices:
    texts, labels = (_first_of(cell, keys) for keys in (_TEXT_KEYS, _LABEL_KEYS))
    if isinstance(texts, list | tuple):
        return _checked(texts, labels if isinstance(labels, list | tuple) else (), where)
    if texts is not None:  # one choice of several, and its label
        raise _nested(cell, where)
    named = {plain(label): text for label, text in cell.items()}
    order = list(named)
    if all(map(_WHOLE.fullmatch, order)):
        order.sort(key=float)
    elif all(len(label) == 1 and label.isalpha() for label in order):
        order.sort()
    if len(order) < len(cell):
        raise _nested(cell, where)
    return _checked([named[label] for label in order], order, where)


def _first_of(part: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((part[key] for key in keys if key in part), None)


def _checked(texts: Sequence[Any], labels: Sequence[Any], where: str) -> Choices:
    if any(isinstance(part, Mapping | list | tuple | bytes) for part in (*texts, *labels)):
        raise _nested(texts, where)
    if labels and (len(labels) != len(texts) or len(set(map(plain, labels))) < len(labels)):
        raise InputError(
            f"{where}: the choices have {len(texts)} texts, and their labels are not as many different ones"
        )
    return choices_of(texts, labels)


def _nested(cell: Any, where: str) -> InputError:
    shown = one_line(repr(cell), 60)
    return InputError(f"{where}: the choices are nested: {shown}; make a list of texts of them, or a column for each")


def _unlabelled(found: Choices) -> Choices:
    """Without "A.", "B.", ... before the texts, where all have the letters of their places."""
    labelled = [_LABELLED.fullmatch(text) for text in found.texts]
    if len(labelled) < 2 or not all(
        one and one[1] == letter for one, letter in zip(labelled, found.letters, strict=True)
    ):
        return found
    kept = [
        (one[2].strip(), place) for one, place in zip(labelled, found.places, strict=True) if one and one[2].strip()
    ]
    return Choices(tuple(text for text, _ in kept), tuple(place for _, place in kept)) if kept else found


def listed(text: str) -> Any:
    """The value that a text is as JSON, or as Python or numpy writes it; the text itself if it is none."""
    for read in (json.loads, _literal):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
            continue
    return text


def _literal(text: str) -> Any:
    """The value of a Python literal, or of a list of texts without commas, as numpy writes it; raises ValueError.

    Python would make one text of texts that stand beside each other.
    """
    value = ast.literal_eval(text)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline) if token.string.strip()]
    if not any(one.type == other.type == tokenize.STRING for one, other in itertools.pairwise(tokens)):
        return value
    inner = tokens[1:-1]
    if (tokens[0].string, tokens[-1].string) != ("[", "]") or any(one.type != tokenize.STRING for one in inner):
        raise ValueError("texts without a comma between them")
    return [ast.literal_eval(one.string) for one in inner]


def letter_of(place: int) -> str:
    """A for place 0, B for 1, ...; "" beyond Z."""
    return chr(ord("A") + place) if place < 26 else ""


def _by_text(answer: Any, choices: Choices) -> str | None:
    found = _LABELLED.fullmatch(plain(answer))
    possible = (str(answer), plain(answer), found[2] if found else None)
    return next((one for one in possible if one in choices.texts), None)


def _by_letter(answer: Any, choices: Choices) -> str | None:
    found = _LETTER.fullmatch(plain(answer))
    return _at(found[1].upper(), choices.letters, choices) if found else None


def _by_label(answer: Any, choices: Choices) -> str | None:
    return _at(plain(answer).lower(), [label.lower() for label in choices.labels], choices)


def _by_truth(answer: Any, choices: Choices) -> str | None:
    word = plain(answer).lower()
    same = next((words for words in (_TRUE, _FALSE) if word in words), ())
    return next((text for text in choices.texts if text.lower() in same), None)


def _by_index(answer: Any, choices: Choices) -> str | None:
    found = None if isinstance(answer, bool) else _WHOLE.fullmatch(plain(answer))
    return _at(int(found[1]), choices.places, choices) if found else None


def _by_count(answer: Any, choices: Choices) -> str | None:
    found = None if isinstance(answer, bool) else _WHOLE.fullmatch(plain(answer))
    return _at(int(found[1]) - 1, choices.places, choices) if found else None


def _at(name: Any, names: Sequence[Any], choices: Choices) -> str | None:
    return choices.texts[names.index(name)] if name in names else None


FROM_0, FROM_1 = "places from 0", "places from 1"
FORMS: Mapping[str, Callable[[Any, Choices], str | None]] = {
    "texts": _by_text,
    "letters": _by_letter,
    "labels": _by_label,
    "truth values": _by_truth,
    FROM_0: _by_index,
    FROM_1: _by_count,
}
"""Forms in which an answer names the right choice: its text; "B", "(b)" or "B."; the label of the benchmark; true or
false of yes and no; its place."""
_OF_NUMBERS = ("labels", FROM_0, FROM_1)


def form_of(pairs: Sequence[tuple[Any, Choices, str]], whole_numbers: bool = False) -> str:
    """The form of `FORMS` that fits all answers of a benchmark; one form for all, so that no row is read by chance.

    Args:
        pairs: answer, choices and place of each question with choices.
        whole_numbers: the column is one of whole numbers: labels and places come before texts.

    Raises:
        InputError: no form fits all; the sentence names the first row that the best form does not fit.
    """
    order = sorted(FORMS, key=lambda name: whole_numbers and name not in _OF_NUMBERS)
    fits = {name: [FORMS[name](answer, choices) is not None for answer, choices, _ in pairs] for name in order}
    best = max(order, key=lambda name: sum(fits[name]))
    if pairs and not all(fits[best]):
        answer, choices, where = pairs[fits[best].index(False)]
        shown = ", ".join(repr(choice[:40]) for choice in choices.texts[:8])
        raise InputError(f"{where}: the answer {one_line(answer, 60)!r} is none of the choices {shown}")
    return best


def other_count(form: str, pairs: Sequence[tuple[Any, Choices, str]], column: str) -> str:
    """A sentence where answers that are read as places from 0 or 1 could as well count from the other; else "".

    Blank choices after the last are no places: benchmarks fill rows of few choices up with them.
    """
    places = [(int(found[1]), choices) for answer, choices, _ in pairs if (found := _WHOLE.fullmatch(plain(answer)))]
    if form == FROM_0 and all(place - 1 in choices.places for place, choices in places):
        return (
            f"No answer is 0, so they could as well count from 1. If they do, make letters of them in the column "
            f"{column}, or subtract 1: read from 0 they name other choices."
        )
    other = any(_by_index(answer, choices) != _by_label(answer, choices) for answer, choices, _ in pairs)
    if form == "labels" and other and all(_by_index(answer, choices) is not None for answer, choices, _ in pairs):
        return (
            "The answers are read as the numbers of the choices, and could as well be places from 0. If they are, make "
            f"letters of them in the column {column}: read as numbers they name other choices."
        )
    if form == FROM_1 and all(place <= choices.places[-1] for place, choices in places):
        return (
            "No answer is beyond the last choice if they count from 0, but then some name a blank one, so they could "
            f"as well count from 0. If they do, make letters of them in the column {column}: read from 1 they name "
            "other choices."
        )
    return ""
