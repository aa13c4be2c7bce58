"""Parquet through pyarrow: the package, and a table as the bytes of a file."""

from __future__ import annotations

import io
from typing import Any

from merton.errors import require


def require_pyarrow() -> Any:
    """The package pyarrow with its part parquet; raises MissingDependencyError if it is not installed."""
    require("pyarrow.parquet", "dataset", "Parquet")
    return require("pyarrow", "dataset", "Parquet")


def parquet_bytes(table: Any) -> bytes:
    """A `pyarrow.Table` as a Parquet file, compressed by zstd; the same table gives the same bytes."""
    content = io.BytesIO()
    require_pyarrow().parquet.write_table(table, content, compression="zstd")
    return content.getvalue()
