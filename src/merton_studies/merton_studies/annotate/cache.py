"""The cache of all responses, under the hash of their requests: one SQLite file.

Ours: SQLite in WAL mode rather than a directory of files, for millions of responses of a hundred bytes. A batch is one
transaction, so that it survives a kill -9 and a power cut (synchronous=FULL). Several runs may write to one file at the
same time. The file must be on a local disk, as WAL does not work over a network; workers of a cluster never open it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InfrastructureError
from merton.files import made_once

_KEYS_PER_QUERY = 500
_LOCK_TIMEOUT_S = 60.0
"""Longest wait for another writer [s]."""


@dataclass(frozen=True)
class CachedResponse:
    """A stored response: JSON (see `merton_studies.annotate.prompting`), and the time that its request took [s]."""

    response: str
    latency_s: float


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS responses "
        "(key TEXT PRIMARY KEY, response TEXT NOT NULL, latency_s REAL NOT NULL) WITHOUT ROWID"
    )
    connection.execute(
        "CREATE TABLE IF NOT EXISTS forgotten (key TEXT PRIMARY KEY, times INTEGER NOT NULL) WITHOUT ROWID"
    )


def _make(file: Path) -> None:
    """An empty cache. SQLite does not wait for others while it sets WAL, so none may find the file before."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as connection:
        _prepare(connection)


class Cache:
    """The file at `path`, created if it does not exist; to be used from one thread, as a context.

    Raises:
        InfrastructureError: here or later, the file is no such cache, or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                made_once(path, _make)
            self._connection = sqlite3.connect(path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
            _prepare(self._connection)
        except (OSError, sqlite3.Error) as error:
            raise InfrastructureError(f"{path} is no cache to read and write: {error}") from None

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def find(self, keys: Sequence[str]) -> dict[str, CachedResponse]:
        """The stored responses among some keys."""
        found: dict[str, CachedResponse] = {}
        ordered = sorted(keys)  # as in the file: a query then reads neighbouring pages, each page once
        try:
            for start in range(0, len(ordered), _KEYS_PER_QUERY):
                some = ordered[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, response, latency_s FROM responses WHERE key IN ({marks})"
                rows = self._connection.execute(query, some)
                found |= {key: CachedResponse(response, latency_s) for key, response, latency_s in rows}
        except sqlite3.Error as error:
            raise InfrastructureError(f"{self.path} cannot be read: {error}") from None
        return found

    def named(self, beginning: str) -> list[str]:
        """The keys that begin with some hexadecimal digits, in their order."""
        try:
            rows = self._connection.execute(
                "SELECT key FROM responses WHERE key >= ? AND key < ? ORDER BY key", (beginning, f"{beginning}g")
            )
            return [key for (key,) in rows]
        except sqlite3.Error as error:
            raise InfrastructureError(f"{self.path} cannot be read: {error}") from None

    def forgotten(self, keys: Sequence[str]) -> dict[str, int]:
        """Key to how often a person had its response forgotten; keys that never were are left out."""
        try:
            rows = self._connection.execute("SELECT key, times FROM forgotten")  # few: each by hand
            times = dict(rows.fetchall())
        except sqlite3.Error as error:
            raise InfrastructureError(f"{self.path} cannot be read: {error}") from None
        return {key: times[key] for key in keys if key in times}

    def forget(self, keys: Sequence[str]) -> None:
        """Delete stored responses, so that they are asked for again, and count that."""
        rows = [(key,) for key in keys]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM responses WHERE key = ?", rows)
            self._connection.executemany(
                "INSERT INTO forgotten VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET times = times + 1", rows
            )
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise InfrastructureError(f"{self.path} cannot be written: {error}") from None

    def add(self, responses: Iterable[tuple[str, CachedResponse]]) -> None:
        """Store responses, all or none; of two under one key the first is stored."""
        rows = [(key, cached.response, cached.latency_s) for key, cached in responses]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR IGNORE INTO responses VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise InfrastructureError(f"{self.path} cannot be written: {error}") from None
