"""Tables that exports write: the same rows give the same bytes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from merton.files import write_file
from merton.people.ledger import Answer


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table as CSV; texts that a spreadsheet would run as a formula get an apostrophe before them.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
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


def _plain(cell: object) -> object:
    is_formula = isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{cell}" if is_formula else cell
