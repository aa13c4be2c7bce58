"""Tables of scores that come from outside: CSV, JSON Lines or Parquet, read row by row, each with where it stands."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from merton.errors import InputError, require

READABLE = (".csv", ".jsonl", ".parquet")
MAX_NAME = 200
"""Characters a name may have."""

Row = tuple[str, dict[str, Any]]


def read_rows(path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """Every row of the table as (where it stands, column to value); values of CSV are texts.

    Args:
        path: a file whose name ends in .csv (comma, UTF-8, a header), .jsonl (an object a line) or .parquet.
        columns: what it must have.
        optional: what it may have besides.

    Raises:
        InputError: unreadable, a column missing or unknown, or a row of another length; with the line.
        MissingDependencyError: Parquet without pyarrow.
    """
    readers = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
    if path.suffix.lower() not in readers:
        raise InputError(f"{path}: the name of a table must end in one of: {', '.join(READABLE)}")
    try:
        for where, row in readers[path.suffix.lower()](path):
            _check_columns(where, list(row), columns, optional)
            yield where, row
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None


def name_in(where: str, row: dict[str, Any], column: str) -> str:
    """The name in a column, without white space around it; raises InputError if it is none."""
    value = row[column]
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {column} is empty or no text; write a name")
    if len(value.strip()) > MAX_NAME:
        raise InputError(f"{where}: {column} has {len(value.strip())} characters; at most {MAX_NAME} are allowed")
    return value.strip()


def number_in(where: str, row: dict[str, Any], column: str, low: float, high: float) -> float:
    """The number in a column; raises InputError if it is none, not finite, or outside low..high."""
    value = row[column]
    try:
        odd = isinstance(value, str) and ("_" in value or not value.isascii())  # float() takes 1_0 and other digits
        number = math.nan if odd or isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        shown = "nothing" if value in (None, "") else repr(value)[:40]
        raise InputError(f"{where}: {column} is {shown}; it must be a number from {low:g} to {high:g}")
    return number


def _check_columns(where: str, found: list[str], columns: Sequence[str], optional: Sequence[str]) -> None:
    for column in columns:
        if column not in found:
            raise InputError(f"{where}: column {column!r} is missing; it needs: {', '.join(columns)}")
    for column in found:
        if column not in (*columns, *optional):
            raise InputError(
                f"{where}: unknown column {column[:40]!r}; choose from: {', '.join((*columns, *optional))}"
            )


def _csv(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            header = [column.strip() for column in next(lines, [])]
            if not header:
                raise InputError(f"{path}: is empty; its first line must name the columns")
            if len(set(header)) < len(header):
                raise InputError(f"{path}, line 1: a column is named twice")
            for values in lines:
                where = f"{path}, line {lines.line_num}"
                if not values:
                    continue  # a blank line
                if len(values) != len(header):
                    raise InputError(f"{where}: has {len(values)} values, but the header names {len(header)} columns")
                yield where, dict(zip(header, values, strict=True))
        except csv.Error as error:
            raise InputError(f"{path}, line {lines.line_num}: is no CSV: {error}") from None


def _jsonl(path: Path) -> Iterator[Row]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                row = json.loads(line, object_pairs_hook=once)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: is no JSON: {str(error).splitlines()[0]}") from None
            if not isinstance(row, dict):
                raise InputError(f"{where}: must be an object with the columns as keys")
            yield where, row


def _parquet(path: Path) -> Iterator[Row]:
    pyarrow = require("pyarrow", "dataset", "Parquet")
    parquet = require("pyarrow.parquet", "dataset", "Parquet")
    try:
        number = 0
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: is no Parquet table: {str(error).splitlines()[0]}") from None
