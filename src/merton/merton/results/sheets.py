"""Workbooks of spreadsheets, .xlsx, read as tables of texts with the standard library alone."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from merton.errors import InputError
from merton.results.tables import file_bytes
from merton.results.text import one_line

_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def sheet_rows(file: Path, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Place and cells by column of the rows below the first line with these columns, of the first sheet that has one.

    Args:
        file: of the form .xlsx.
        columns: names that the line must have, in large or small letters.

    Returns:
        Each row that is not blank: column as the line names it, in small letters, to the text of the cell, "" for none.

    Raises:
        InputError: no such file, no workbook, or no sheet with these columns.
        InfrastructureError: the disk fails.
    """
    content = file_bytes(file)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as book:
            texts = _shared_texts(book)
            sheets = sorted(name for name in book.namelist() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name))
            tables = [list(_lines(ElementTree.fromstring(book.read(name)), texts)) for name in sheets]
    except (zipfile.BadZipFile, ElementTree.ParseError, KeyError, ValueError, IndexError) as error:
        raise InputError(f"{file.name} is no readable .xlsx file: {one_line(error, 100)}") from None
    for table in tables:
        for place, (_, line) in enumerate(table):
            at = {value.strip().lower(): column for column, value in line.items() if value.strip()}
            if set(columns) <= set(at):
                return [
                    (f"{file}, row {number}", {name: cells.get(column, "") for name, column in at.items()})
                    for number, cells in table[place + 1 :]
                    if any(cells.values())
                ]
    raise InputError(f"{file.name} has no sheet with the columns {', '.join(columns)}")


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    tree = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
    return ["".join(part.text or "" for part in item.iter(f"{_SPACE}t")) for item in tree.iter(f"{_SPACE}si")]


def _lines(sheet: Any, texts: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Number of each row, and column letters to text."""
    for place, row in enumerate(sheet.iter(f"{_SPACE}row"), 1):
        found = {}
        for cell in row.iter(f"{_SPACE}c"):
            value = "".join(part.text or "" for part in cell if part.tag in (f"{_SPACE}v", f"{_SPACE}is"))
            if cell.get("t") == "inlineStr":
                value = "".join(part.text or "" for part in cell.iter(f"{_SPACE}t"))
            letters = re.sub(r"\d", "", cell.get("r", ""))
            found[letters] = texts[int(value)] if cell.get("t") == "s" else value
        yield int(row.get("r", place)), found
