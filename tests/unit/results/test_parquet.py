"""Parquet from memory."""

from __future__ import annotations

import sys

import pytest


def test_a_reader_of_bytes_holds_no_object_of_python() -> None:
    """Else a thread of Arrow that lets go of it while the interpreter ends aborts the process (seen in 3 of 65 starts
    of `merton curate show`)."""
    arrow = pytest.importorskip("pyarrow")
    from merton.results.parquet import parquet_bytes, parquet_file

    content = parquet_bytes(arrow.table({"a": [1, 2], "b": ["x", "y"]}))
    before = sys.getrefcount(content)
    file = parquet_file(content)
    assert sys.getrefcount(content) == before
    assert file.read().to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
