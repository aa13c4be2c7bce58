"""The one writer of CSV: every text that came from outside is written so that no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

from merton.files import write_file

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a text that a spreadsheet runs as a formula."""


def formula_safe(text: str) -> str:
    """Text for a cell of a CSV file that no spreadsheet runs: an apostrophe stands before a formula.

    Before a text that begins with an apostrophe, too, so that nothing is lost: `text_of` gives the text back.
    """
    return f"'{text}" if text.startswith((*FORMULA_STARTS, "'")) else text


def text_of(cell: str) -> str:
    """The text that `formula_safe` made a cell of; a text that it makes no cell of, such as 'tis, stays as it is."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*FORMULA_STARTS, "'")) else cell


class _Lines:
    r"""A file that csv.writer writes to with "\r\n", so that a lone \r or \n in a text is quoted."""

    def __init__(self, file: TextIO, line_end: str) -> None:
        self._file, self._line_end = file, line_end

    def write(self, line: str) -> int:
        return self._file.write(line.removesuffix("\r\n") + self._line_end)


def write_rows(file: TextIO, rows: Iterable[Sequence[object]], line_end: str = "\n") -> int:
    """Write rows, the header among them; returns their number.

    Args:
        file: to write to, opened without translation of line ends.
        rows: numbers are written as they are, texts by `formula_safe`, None as an empty cell.
        line_end: of each row.
    """
    writer = csv.writer(_Lines(file, line_end), lineterminator="\r\n")
    written = 0
    for row in rows:
        writer.writerow([formula_safe(cell) if isinstance(cell, str) else cell for cell in row])
        written += 1
    return written


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, see `write_rows`; the same rows give the same text."""
    text = io.StringIO()
    write_rows(text, [header, *rows])
    return text.getvalue()


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """Write a table as CSV, see `write_rows`; the same rows give the same bytes.

    Raises:
        InfrastructureError: the file cannot be written.
    """
    content = csv_text(header, rows).encode("utf-8", "replace")  # half of a character, as a browser may send
    write_file(path, content)
    return path
