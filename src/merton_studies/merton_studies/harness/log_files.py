"""Files of predictions, in the forms of other programs, read row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.results.sheets import sheet_rows
from merton.results.tables import READABLE, Row, named_rows, plain_text
from merton.results.text import one_line

LMMS_EVAL, VLMEVALKIT, PLAIN = "lmms-eval", "VLMEvalKit", "table"
IDS = ("id", "question_id", "item", "index")
"""Columns with the id of a question, the first that is there."""
FAILED = "Failed to obtain answer"
"""What VLMEvalKit writes in place of a prediction where the model failed."""
PREDICTION = "prediction"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Entry:
    """A row of a log.

    Attributes:
        where: place in the file.
        ids: names of the question, the first that the benchmark has counts.
        prediction: raw text of the model; "" where `failure` says why there is none.
        failure: the reason why there is no prediction.
        text: of the question, "" where the row does not have it.
        choices: in their order; empty where the row does not have them.
        target: the right answer, as text; "" where the row does not have it.
    """

    where: str
    ids: tuple[str, ...]
    prediction: str
    failure: str = ""
    text: str = ""
    choices: tuple[str, ...] = ()
    target: str = ""


def read_log(path: Path) -> tuple[str, list[Entry]]:
    """The form of a file of predictions, and its rows.

    Raises:
        InputError: no such file, one of another form, without rows, or a row without an id; with the line.
    """
    rows = list(_rows(path))
    if not rows:
        raise InputError(f"{path}: has no rows")
    columns = set().union(*(row for _, row in rows))
    if "doc_id" in columns and {"filtered_resps", "resps"} & columns:
        return LMMS_EVAL, [_of_lmms_eval(where, row) for where, row in rows]
    key = next((name for name in IDS if name in columns), None)
    if key is None or PREDICTION not in columns:
        raise InputError(
            f"{path}: is no file of predictions: it has {', '.join(sorted(columns)[:8])}; it needs {PREDICTION} and "
            f"one of {', '.join(IDS)}, or doc_id and filtered_resps as lmms-eval writes them"
        )
    form = VLMEVALKIT if key == "index" else PLAIN
    return form, [_of_table(where, row, key) for where, row in rows]


def _rows(path: Path) -> Iterator[Row]:
    if path.suffix.lower() == ".xlsx":  # as VLMEvalKit writes it unless PRED_FORMAT says otherwise
        yield from _with_letters(sheet_rows(path, (PREDICTION,)))
    else:
        yield from named_rows(path, (*READABLE, ".json", ".xlsx"))


def _with_letters(rows: Sequence[tuple[str, dict[str, str]]]) -> Iterator[Row]:
    """Rows of a sheet, whose columns are in small letters, with those of choices in large ones."""
    for where, row in rows:
        yield where, {name.upper() if len(name) == 1 else name: cell for name, cell in row.items()}


def _of_table(where: str, row: Mapping[str, Any], key: str) -> Entry:
    """A row with an id and a prediction; of VLMEvalKit also with the question, its choices and the right answer."""
    name = plain_text(row.get(key))
    if not name:
        raise InputError(f"{where}: {key} is empty; write the id of the question")
    prediction, failure = _said(row.get(PREDICTION))
    if key != "index":
        return Entry(where, (name,), prediction, failure, _text(row.get("question")))
    choices = tuple(filter(None, (_text(row.get(letter)) for letter in LETTERS)))
    return Entry(where, (name,), prediction, failure, _text(row.get("question")), choices, _text(row.get("answer")))


def _of_lmms_eval(where: str, row: Mapping[str, Any]) -> Entry:
    """A sample: the document's own id counts before its place in the split, `filtered_resps` before `resps`."""
    given = row.get("doc")
    doc: dict[str, Any] = given if isinstance(given, dict) else {}
    ids = [plain_text(doc.get(name)) for name in IDS if not isinstance(doc.get(name), dict | list)]
    names = tuple(filter(None, (*ids, plain_text(row.get("doc_id")))))
    if not names:
        raise InputError(f"{where}: doc_id is empty")
    prediction, failure = _said(_first(row.get("filtered_resps")) or _first(row.get("resps")))
    return Entry(where, names, prediction, failure, _text(doc.get("question")), (), _text(row.get("target")))


def _first(value: Any) -> Any:
    """The answer in a list of answers, however nested: [["A"]] is A."""
    while isinstance(value, list):
        value = value[0] if value else None
    return value


def _said(cell: Any) -> tuple[str, str]:
    """A prediction, or the reason why there is none."""
    if isinstance(cell, Mapping | Sequence) and not isinstance(cell, str):
        text = json.dumps(cell, ensure_ascii=False)
    else:
        text = "" if cell is None else plain_text(cell) if isinstance(cell, float) else str(cell)
    if not text.strip():
        return "", "its prediction in the log is blank"
    if text.startswith(FAILED):
        return "", f"the log says: {one_line(text, 200)}"
    return text, ""


def _text(cell: Any) -> str:
    return plain_text(cell) if isinstance(cell, str | int | float) else ""
