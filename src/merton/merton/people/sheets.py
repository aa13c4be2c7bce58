"""Tables that exports write: the same rows give the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from merton.files import write_file
from merton.people.ledger import Answer
from merton.results.export import formula_safe


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table as CSV: numbers as they are, texts so that no spreadsheet runs them, None as an empty cell.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([formula_safe(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    write_file(path, text.getvalue().encode())
    return path


def first_answers(answers: Iterable[Answer]) -> list[Answer]:
    """Each rater's first answer to each item, without gold items.

    Repeats tell how far a rater agrees with themselves, gold items how well they look; neither is another opinion.
    """
    found: dict[tuple[str, str], Answer] = {}
    for answer in sorted(answers, key=lambda one: (one.rater, one.number)):
        if answer.kind not in ("repeat", "gold", "review"):
            found.setdefault((answer.rater, answer.item), answer)
    return list(found.values())
