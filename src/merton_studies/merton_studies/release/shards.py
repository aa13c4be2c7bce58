"""Tables as Parquet shards that the package `datasets` loads, written in row groups: no table is held in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.files import file_sha256
from merton.results.parquet import parquet_writer, require_pyarrow
from merton_studies.release.table import Row, Table

SHARD_BYTES = 500_000_000
"""The most that a shard may have."""
_FOOTER_BYTES = 1_000_000
"""Left free in each shard for what Parquet writes behind the rows."""
_GROUP_BYTES, _GROUP_ROWS = 16_000_000, 10_000
"""A row group ends with the first of both."""


@dataclass(frozen=True)
class Shard:
    """A Parquet file of a table: its path below the dataset's folder with "/", split, rows, bytes and hash."""

    path: str
    split: str
    rows: int
    size: int
    sha256: str


@dataclass
class Written:
    """A table that was written, and its shards.

    Attributes:
        table: it.
        shards: by split and number.
        in_memory: split to its bytes as Arrow tables, which the hub shows as the size of a split.
    """

    table: Table
    shards: list[Shard] = field(default_factory=list)
    in_memory: dict[str, int] = field(default_factory=dict)

    @property
    def splits(self) -> list[str]:
        """Names of its splits, `train` before `test`."""
        return list(dict.fromkeys(shard.split for shard in self.shards))

    def rows(self, split: str | None = None) -> int:
        """Rows of a split; of all for None."""
        return sum(shard.rows for shard in self.shards if split in (None, shard.split))


def write_shards(out: Path, table: Table, about: dict[str, Any], most: int = SHARD_BYTES) -> Written:
    """Write a table into `out`/<name of the table>/; the same rows give the same bytes.

    Args:
        out: the folder of the dataset.
        table: its rows are read once.
        about: versions and hashes, kept in each file's metadata.
        most: bytes of a shard. Of a single row that is larger, the shard is larger too.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = out / table.name
    folder.mkdir()
    splits: dict[str, _Split] = {}
    for split, row in table.rows():
        if split not in splits:
            splits[split] = _Split(folder, split, table, about, most)
        splits[split].add(row)
    found = Written(table)
    for split in sorted(splits, reverse=True):  # train before test
        found.shards += splits[split].finished(out)
        found.in_memory[split] = splits[split].in_memory
    return found


class _Split:
    """The shards of one split, and the rows that wait for a row group."""

    def __init__(
        self,
        folder: Path,
        split: str,
        table: Table,
        about: dict[str, Any],
        most: int,
    ) -> None:
        self._arrow = require_pyarrow()
        self._folder, self._split, self._table, self._most = folder, split, table, most
        features = {field.name: field.feature for field in table.fields}
        metadata = {
            "huggingface": json.dumps({"info": {"features": features}}),
            "merton": json.dumps(about, sort_keys=True),
        }
        self._schema = self._arrow.schema([(one.name, one.arrow) for one in table.fields], metadata=metadata)
        self._waiting: list[Row] = []
        self._waiting_bytes = self.in_memory = 0
        self._writer: Any = None
        self._held = 0
        self._counts: list[int] = []

    def add(self, row: Row) -> None:
        self._waiting.append(row)
        self._waiting_bytes += sum(_bytes(row[name]) for name in self._table.pictures)
        if self._waiting_bytes >= _GROUP_BYTES or len(self._waiting) == _GROUP_ROWS:
            self._write()

    def finished(self, out: Path) -> list[Shard]:
        self._write()
        self._end()
        shards = []
        for number, rows in enumerate(self._counts):
            name = f"{self._split}-{number:05d}-of-{len(self._counts):05d}.parquet"
            path = self._draft(number).rename(self._folder / name)
            size, sha256 = path.stat().st_size, file_sha256(path)
            shards.append(Shard(path.relative_to(out).as_posix(), self._split, rows, size, sha256))
        return shards

    def _write(self) -> None:
        if not self._waiting:
            return
        columns = {one.name: [row[one.name] for row in self._waiting] for one in self._table.fields}
        group = self._arrow.table(columns, schema=self._schema)
        if self._held and self._held + group.nbytes + _FOOTER_BYTES > self._most:
            self._end()
        if self._writer is None:
            plain = [one.name for one in self._table.fields if one.kind != "image" and not one.depth]
            self._writer = parquet_writer(
                self._draft(len(self._counts)), self._schema, use_dictionary=plain, write_statistics=plain
            )
            self._counts.append(0)
        self._writer.write_table(group)
        self._counts[-1] += len(self._waiting)
        self._held += group.nbytes
        self.in_memory += group.nbytes
        self._waiting, self._waiting_bytes = [], 0

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer, self._held = None, 0

    def _draft(self, number: int) -> Path:
        return self._folder / f".{self._split}-{number}"


def _bytes(cell: Any) -> int:
    """Of a picture, or of a list of pictures."""
    pictures = cell if isinstance(cell, list) else [cell] if cell else []
    return sum(len(picture["bytes"]) for picture in pictures)
