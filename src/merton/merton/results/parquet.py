"""Parquet through pyarrow: the package, tables of files, and a table as the bytes of a file."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from merton.errors import InputError, require
from merton.files import refuse_folder
from merton.results.text import one_line


def require_pyarrow() -> Any:
    """The package pyarrow with its part parquet; raises MissingDependencyError if it is not installed."""
    require("pyarrow.parquet", "dataset", "Parquet")
    return require("pyarrow", "dataset", "Parquet")


def parquet_bytes(table: Any) -> bytes:
    """A `pyarrow.Table` as a Parquet file, compressed by zstd; the same table gives the same bytes."""
    content = io.BytesIO()
    require_pyarrow().parquet.write_table(table, content, compression="zstd")
    return content.getvalue()


def parquet_writer(file: BinaryIO | Path, schema: Any, **layout: Any) -> Any:
    """A `pyarrow.parquet.ParquetWriter`, compressed by zstd, for a table that does not fit into memory.

    Args:
        file: to write to; the writer closes no file that it is given open.
        schema: a `pyarrow.Schema`.
        **layout: further arguments of the writer, such as `use_dictionary`.
    """
    return require_pyarrow().parquet.ParquetWriter(file, schema, compression="zstd", **layout)


def parquet_file(content: bytes) -> Any:
    """The bytes of a file as a `pyarrow.parquet.ParquetFile`.

    It reads a copy that is Arrow's own. Arrow's threads let go of what they read a little later, and one that lets go
    of an object of Python while the interpreter ends aborts the process (pyarrow 26.0.1, CPython 3.11).

    Raises:
        pyarrow.ArrowException: they are no Parquet file.
        MissingDependencyError: pyarrow is not installed.
    """
    arrow = require_pyarrow()
    copy = arrow.BufferOutputStream()
    copy.write(content)
    return arrow.parquet.ParquetFile(arrow.BufferReader(copy.getvalue()))


def read_schema(path: Path, columns: Sequence[str]) -> Any:
    """The `pyarrow.Schema` of a Parquet file; raises as `read_columns`."""
    return _checked(path, columns, require_pyarrow().parquet.read_schema)


def read_columns(path: Path, columns: Sequence[str], dictionaries: Sequence[str] = ()) -> Any:
    """These columns of a Parquet file as a `pyarrow.Table`, some of them dictionary-encoded.

    Raises:
        InputError: there is no such file, it is not a Parquet table, or a column is missing.
        MissingDependencyError: pyarrow is not installed.
    """
    read = require_pyarrow().parquet.read_table
    table = _checked(path, columns, lambda file: read(file, partitioning=None, read_dictionary=list(dictionaries)))
    return table.select(list(columns))


def read_rows(path: Path, columns: Sequence[str], column: str, value: int) -> Any:
    """These columns of the rows in which a column has a value, as a `pyarrow.Table`; other row groups are not read.

    Raises:
        As `read_columns`.
    """
    arrow = require_pyarrow()
    kind = read_schema(path, [*columns, column]).field(column).type
    if not arrow.types.is_integer(kind):
        raise InputError(f"{path}: column {column!r} must be of whole numbers, got {kind}")
    read = require_pyarrow().parquet.read_table
    return _checked(
        path,
        columns,
        lambda file: read(file, columns=list(columns), filters=[(column, "=", value)], partitioning=None),
    )


def metadata(schema: Any) -> dict[str, Any]:
    """The facts about a table that Merton wrote into its schema; empty for a foreign one."""
    try:
        found = json.loads((schema.metadata or {}).get(b"merton", b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _checked(path: Path, columns: Sequence[str], read: Callable[[Path], Any]) -> Any:
    """The table or schema that `read` makes of a file, which has these columns."""
    arrow = require_pyarrow()
    refuse_folder(path, ".parquet")  # pyarrow takes all files of a folder for one table
    try:
        found = read(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: is no Parquet table: {one_line(error, 200)}") from None
    names = getattr(found, "schema", found).names
    for column in columns:
        if column not in names:
            raise InputError(f"{path}: column {column!r} is missing; it needs: {', '.join(columns)}")
    return found
