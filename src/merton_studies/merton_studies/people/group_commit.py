"""Writes of many threads that share transactions: each one is on the disk when its call returns.

A commit to a disk takes milliseconds however little it holds, so writes that arrive during one wait together and are
committed by the next ("group commit"; DeWitt et al., "Implementation techniques for main memory database systems",
SIGMOD 1984, section 5.2).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import sqlalchemy as sa

from merton.errors import InfrastructureError, InputError
from merton.results.database import Database

MOST_AT_ONCE = 200
"""Writes of one transaction, at most, so that none waits for an endless queue."""

_Result = TypeVar("_Result")
_Write = Callable[[sa.Connection], Any]


class GroupCommit:
    """The one thread that writes to a database; safe to share between threads, not to be used after a fork.

    Args:
        database: open for writing; others may read from it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[tuple[_Write, Future[Any]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # held for the moment of entering the queue
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def run(self, write: Callable[[sa.Connection], _Result]) -> _Result:
        """Run a write in a transaction that it may share with others; returns when that is on the disk.

        Args:
            write: raises InputError, if at all, before it has changed anything; it may run a second time if the
                transaction that it shared was refused because of another write.

        Raises:
            InputError: of `write`, or of the tables; nothing of it was written.
            InfrastructureError: the database refuses, or `close` was called.
        """
        future: Future[_Result] = Future()
        with self._lock:
            if self._closed:
                raise InfrastructureError(f"the result store {self._database.where} is closed")
            self._waiting.put((write, future))
        return future.result()

    def close(self) -> None:
        """Take no more writes; returns when those that wait are on the disk."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            entry = self._waiting.get()
            batch = []
            while entry is not None:
                batch.append(entry)
                if len(batch) == MOST_AT_ONCE or self._waiting.empty():
                    break
                entry = self._waiting.get()
            self._commit(batch)
            if entry is None:
                return

    def _commit(self, batch: list[tuple[_Write, Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            with self._database.transaction() as connection:
                for write, future in batch:
                    try:
                        outcomes.append((future, write(connection), None))
                    except InputError as error:
                        outcomes.append((future, None, error))
        except InputError as error:  # a rule of the tables: all was taken back, because of one of them
            if len(batch) > 1:
                for one in batch:
                    self._commit([one])
                return
            outcomes = [(batch[0][1], None, error)]
        except BaseException as error:
            outcomes = [(future, None, error) for _, future in batch]
        for future, result, refusal in outcomes:
            if refusal is None:
                future.set_result(result)
            else:
                future.set_exception(refusal)
