"""Foreign tables, CSV, TSV, Parquet or JSON Lines: read row by row, each row with its place for messages.

The one reader of tables: what separates cells is found in the header, a byte order mark and an index of pandas are left
out, NaN is a missing value as pandas, polars and `datasets` write it, and a cell may be as long as a picture in base64.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from merton.errors import InfrastructureError, InputError
from merton.files import refuse_folder
from merton.results.checking import MAX_NAME
from merton.results.csv_writer import text_of
from merton.results.parquet import parquet_file, require_pyarrow
from merton.results.text import one_line

READABLE = (".csv", ".tsv", ".jsonl", ".parquet")
MISSING_TEXTS = ("nan", "NaN", "NAN", "<NA>")
"""Texts of a cell that are a missing value: NaN as polars and numpy write it, and pandas' own."""
NAMELESS = ("", "Unnamed: 0")
"""Names of the first column where pandas wrote its index as CSV, and where it read and wrote that again."""
_PARQUET_INDEX = "__index_level_0__"
_SEPARATORS = (",", ";", "\t")
_SEPARATOR_SAID = re.compile(r'"?sep=([,;|\t])"?(?=\r?\n|\r)')
"""Excel's own line before the header."""

Cells = tuple[str, list[Any]]
"""The place of a row, such as "scores.csv, line 2", and its cells: texts, numbers or None; those of CSV are texts."""
Row = tuple[str, dict[str, Any]]
"""The place of a row, and column to value."""

_COMMENTS = re.compile(r"(?:# [^\r\n]*(?:\r\n|\r|\n))+")
"""Lines before the header that begin with "# ", such as the name of the file on a page; a column may be called "#"."""
_NO_NEWLINE = re.compile(r"[^\r\n]+")

csv.field_size_limit(2**31 - 1)  # a picture in base64 is one cell, and the file is in memory already
_QUOTED = re.compile('"[^"]*"')
DECIMAL_COMMA = re.compile(r"[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))", re.ASCII)
"""A number with a decimal comma; not 1,200, which may be a number of four digits."""
_WITH_COMMA = re.compile(r"([+-]?\d+),(\d+)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def read_rows(path: Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """Every row of a table by the names of its columns.

    Args:
        path: a file whose name ends in .csv or .tsv (UTF-8, a header), .jsonl (an object a line) or .parquet.
        columns: the columns it must have, in large or small letters; a table with two that differ in these alone is
            refused.
        optional: the columns it may have besides.

    Raises:
        InputError: there is no such file, a column is missing or unknown, or a row has another length; with the line.
        InfrastructureError: the disk fails.
        MissingDependencyError: Parquet without pyarrow.
    """
    lower = {name.lower(): name for name in (*columns, *optional)}
    for where, found in named_rows(path, READABLE):
        row = {name if name in lower.values() else lower.get(name.lower(), name): cell for name, cell in found.items()}
        if len(row) < len(found):
            raise InputError(f"{where}: two columns differ in large and small letters alone")
        _check_columns(where, list(row), columns, optional)
        yield where, row


def named_rows(path: Path, readable: Sequence[str]) -> Iterator[Row]:
    """Every row of a table, column as it is written to value.

    Args:
        path: a file whose name ends in one of `readable`.
        readable: of .csv, .tsv, .jsonl, .parquet and .json, which is a list of objects.

    Raises:
        InputError, InfrastructureError, MissingDependencyError: as `read_rows`, but for the columns.
    """
    suffix = path.suffix.lower()
    if suffix not in readable:
        raise InputError(f"{path}: the name of a table must end in one of: {', '.join(readable)}")
    if suffix == ".json":
        for where, row in json_entries(path, json_value(path)):
            yield where, {name: without_nan(cell) for name, cell in row.items()}
    elif suffix == ".jsonl":
        yield from json_objects(str(path), file_bytes(path))
    else:
        rows = read_cells(str(path), file_bytes(path))
        _, header = next(rows)
        of_csv = suffix != ".parquet"
        for where, cells in rows:
            yield where, dict(zip(header, map(text_of, cells) if of_csv else cells, strict=True))


def read_cells(name: str, content: bytes) -> Iterator[Cells]:
    """The header of a CSV or Parquet table, then its rows, all of the header's length; blank lines are passed over.

    Cells of CSV are separated by what the header has most of, commas, semicolons or tabs outside quotes; those of .tsv
    by tabs; or by what a line "sep=;" before the header says, as Excel has it. Lines that begin with "# " before the
    header are comments. A first column without a name that holds
    whole numbers is an index of pandas and is left out; one of texts that Parquet holds is the first, without a name. A
    missing value (`MISSING_TEXTS`, NaN) is "" in CSV and None in Parquet.

    Args:
        name: of the file, for messages; Parquet if it ends so, else CSV.
        content: of the file.

    Raises:
        InputError: no such table, no header, a column that stands twice, or a row of another length; with the line.
        MissingDependencyError: Parquet without pyarrow.
    """
    rows = _parquet(name, content) if name.lower().endswith(".parquet") else _csv(name, content)
    where, header = next(rows, (name, []))
    if not header:
        raise InputError(f"{where}: is empty; its first line must name the columns")
    header = [str(column).strip() for column in header]
    first: dict[str, int] = {}
    for place, column in enumerate(header, 1):
        if first.setdefault(column, place) < place:
            raise InputError(f"{where}: columns {first[column]} and {place} are both called {one_line(column)!r}")
    rows = _of_length(rows, len(header))
    start = next(rows, None)
    nameless = [0] if header[0] in NAMELESS else []
    index = [place for place in nameless if start and _is_whole(start[1][place])]
    kept = [place for place in range(len(header)) if place not in index]
    yield where, [header[place] for place in kept]
    for where, row in itertools.chain([start] if start else [], rows):
        if not all(_is_whole(row[place]) for place in index):
            raise InputError(
                f"{where}: column {index[0] + 1} has no name in the header, and is not an index of whole numbers"
            )
        yield where, [row[place] for place in kept]


def _of_length(rows: Iterator[Cells], columns: int) -> Iterator[Cells]:
    for where, row in rows:
        if len(row) != columns:
            raise InputError(f"{where}: has {len(row)} cells, but the header names {columns} columns")
        yield where, row


def _is_whole(cell: Any) -> bool:
    return (isinstance(cell, int) and not isinstance(cell, bool)) or (isinstance(cell, str) and cell.isdecimal())


def read_columns(path: Path, columns: Sequence[str]) -> list[list[Any]]:
    """The named columns of a Parquet file, or of all Parquet files in a folder; other columns are ignored.

    Raises:
        InputError: there is no such file, or a column is missing.
        InfrastructureError: the disk fails.
        MissingDependencyError: pyarrow is not installed.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: holds no .parquet file")
    found: list[list[Any]] = [[] for _ in columns]
    for file in files:
        names, cells = _parquet_columns(str(file), file_bytes(file), columns)
        _check_columns(str(file), names, columns, names)
        for place, column in enumerate(columns):
            found[place] += cells[names.index(column)]
    return found


def file_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        InputError: there is no such file, or it is a folder.
        InfrastructureError: the disk fails.
    """
    refuse_folder(path, path.suffix)
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except OSError as error:
        raise InfrastructureError(f"cannot read {path}: {error.strerror or error}") from None


def utf8_text(name: str, content: bytes) -> str:
    """The text of a file, without a byte order mark; raises InputError with the line of a byte that is not UTF-8.

    UTF-16 is read, too, if it begins with its mark, as that of a spreadsheet's "Unicode text" does.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            raise InputError(f"{name} is not a text file: it begins as UTF-16, and is none; save it as UTF-8") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: is not UTF-8 text") from None


def json_value(path: Path) -> Any:
    """The value in a JSON file, UTF-8 or UTF-16 with its mark; NaN is None.

    Raises:
        InputError: there is no such file, or it is not JSON, or nested too deep to be read.
        InfrastructureError: the disk fails.
    """
    text = utf8_text(str(path), file_bytes(path))
    try:
        return without_nan(json.loads(text))
    except RecursionError:
        raise InputError(f"{path} is nested too deep to be read") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {one_line(error, 200)}") from None


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; as `json_value`, and refused if it is none."""
    found = json_value(path)
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a JSON object")
    return found


def json_entries(path: Path, value: Any) -> list[Row]:
    """The objects of a list in a JSON file; raises InputError for another value, or an empty list."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value) or not value:
        raise InputError(f"{path} is not a list of JSON objects")
    return [(f"{path}, entry {number}", row) for number, row in enumerate(value, 1)]


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
    number = plain_number(value)
    if number is None or not low <= number <= high:
        shown = "nothing" if value in (None, "") else repr(value)[:40]
        raise InputError(
            f"{where}: {column} is {shown}; it must be a number from {low:g} to {high:g}{point_wanted(value)}"
        )
    return number


def plain_text(cell: Any) -> str:
    """A cell as text on one line, a whole float without its point, as pandas writes whole numbers beside a missing one;
    "" for a missing value."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = "" if cell is None or cell != cell else " ".join(str(cell).split())
    return "" if text in MISSING_TEXTS else text


def point_wanted(cell: object) -> str:
    """The remedy for a number with a comma, or ""."""
    found = _WITH_COMMA.fullmatch(cell.strip()) if isinstance(cell, str) else None
    if found is None:
        return ""
    if DECIMAL_COMMA.fullmatch(found[0]):
        return ", with a decimal point"
    return f"; write {one_line(found[1] + found[2], 40)} or {one_line(f'{found[1]}.{found[2]}', 40)}"


def without_nan(value: Any) -> Any:
    """A cell as it is, but None for a missing value: NaN, also within lists and objects, and `MISSING_TEXTS` alone."""
    if isinstance(value, str):
        return None if value.strip() in MISSING_TEXTS else value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return _nested_without_nan(value)


def _nested_without_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [_nested_without_nan(part) for part in value]
    if isinstance(value, dict):
        return {key: _nested_without_nan(part) for key, part in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def plain_number(cell: object) -> float | None:
    """The number in a cell, perhaps NaN or infinite if it is not a text; None for anything else.

    A text must be a number as a spreadsheet writes it: "nan", "1_0" and digits of another script are refused.
    """
    if isinstance(cell, str):
        return float(cell) if _NUMBER.fullmatch(cell.strip()) else None
    if isinstance(cell, bool) or not isinstance(cell, int | float | Decimal):
        return None
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _check_columns(where: str, found: Iterable[str], columns: Sequence[str], optional: Sequence[str]) -> None:
    found = list(found)
    for column in columns:
        if column not in found:
            raise InputError(f"{where}: column {column!r} is missing; it needs: {', '.join(columns)}")
    for column in found:
        if column not in (*columns, *optional):
            raise InputError(
                f"{where}: unknown column {column[:40]!r}; choose from: {', '.join((*columns, *optional))}"
            )


def _csv(name: str, content: bytes) -> Iterator[Cells]:
    text = utf8_text(name, content)
    comments = _COMMENTS.match(text)
    start = comments.end() if comments else 0
    said = _SEPARATOR_SAID.match(text, start)
    # these lines stay, blank, so that others keep their numbers
    text = _NO_NEWLINE.sub("", text[:start]) + text[said.end() if said else start :]
    separator = said[1] if said else "\t" if name.lower().endswith(".tsv") else _separator(text)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for cells in lines:
            if cells:  # a blank line is not a row
                yield f"{name}, line {lines.line_num}", ["" if without_nan(cell) is None else cell for cell in cells]
    except csv.Error as error:
        raise InputError(f"{name}, line {lines.line_num}: is no CSV: {error}") from None


def _separator(text: str) -> str:
    """The separator that the first line with content has most of outside quotes; a comma where there is none."""
    head = next((line for line in _QUOTED.sub("", text[: 1 << 16]).splitlines() if line.strip()), "")
    return max(_SEPARATORS, key=head.count)


def json_objects(name: str, content: bytes) -> Iterator[Row]:
    """The objects of JSON Lines with their places, blank lines passed over; NaN is None.

    Raises:
        InputError: a line that is not a JSON object, or has a key twice; with the line.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    for number, line in enumerate(utf8_text(name, content).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            row = json.loads(line, object_pairs_hook=once)
            if not isinstance(row, dict):
                raise InputError(f"{where}: must be an object with the columns as keys")
            row = {key: without_nan(value) for key, value in row.items()}
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: is not JSON: {str(error).splitlines()[0]}") from None
        yield where, row


def _parquet(name: str, content: bytes) -> Iterator[Cells]:
    names, columns = _parquet_columns(name, content)
    if _PARQUET_INDEX in names:  # as pandas writes its index into CSV
        columns.insert(0, columns.pop(place := names.index(_PARQUET_INDEX)))
        names = ["", *names[:place], *names[place + 1 :]]
    yield name, names
    for number, cells in enumerate(zip(*columns, strict=True), 1):
        yield f"{name}, row {number}", [without_nan(cell) for cell in cells]


def _parquet_columns(
    name: str, content: bytes, wanted: Sequence[str] | None = None
) -> tuple[list[str], list[list[Any]]]:
    """Names and values of the columns, of those that are wanted if only some are."""
    arrow = require_pyarrow()
    try:
        table = parquet_file(content).read(columns=wanted and list(wanted))
        return table.column_names, [column.to_pylist() for column in table.columns]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{name}: is no Parquet table: {one_line(error, 200)}") from None
