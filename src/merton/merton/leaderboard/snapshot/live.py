"""The board of a record while results come in, computed in another process, so that nobody waits for it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from merton.errors import MertonError
from merton.processes import stop_workers, worker_pool

PERIOD_S = 2.0
"""Between two boards at least [s]."""
REST_FACTOR = 4.0
"""After a board that took t the next one waits this many times t: a large record must not keep a core to itself."""

NICENESS = 10
"""Of the process that rates: on a busy machine robots and answers come first."""


@dataclass(frozen=True)
class Line:
    """A rated player, Elo points, by the method that gives the ranks."""

    id: str
    mean: float
    deviation: float
    matches: int


@dataclass(frozen=True)
class LiveBoard:
    """What a record says now.

    Attributes:
        experiment: the only one in it; empty if there are several, or none.
        agents, cases: the rated ones.
        text: the board for a terminal.
        problem: what did not work, a sentence; then the board lacks something, or there is none; empty if all is well.
    """

    experiment: str = ""
    agents: tuple[Line, ...] = ()
    cases: tuple[Line, ...] = ()
    text: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Made:
    """What became of a board: what `show` made of it, and `LiveBoard.problem`; without a process there is neither."""

    shown: Any
    problem: str


def as_it_is(board: LiveBoard) -> LiveBoard:
    """The board itself."""
    return board


class LiveBoards:
    """Makes boards of a run that goes on, or of a shared record into which the run is merged before.

    Args:
        record: the shared one; empty for none: then the board is that of the run.
        show: makes of a board what the caller wants to have, a function of a module. It works in the other process as
            well: thousands of ratings take 0.2 s to become a message, and answers would wait for that.
    """

    def __init__(self, record: str = "", show: Callable[..., Any] = as_it_is) -> None:
        self.record = record
        self._show = show
        self._changed: dict[str, None] = {}  # in order, the latest last
        self._is_due = bool(record)  # what is there already is shown without waiting for a result
        self._pool: ProcessPoolExecutor | None = None
        self._work: Future[Made] | None = None
        self._taken: dict[str, None] = {}
        self._started = self._rest_until = -float("inf")

    @property
    def is_busy(self) -> bool:
        """Whether a board is being made."""
        return self._work is not None and not self._work.done()

    def changed(self, run: str) -> None:
        """A result was stored in a run's record."""
        self._changed.pop(run, None)
        self._changed[run] = None
        self._is_due = True

    def poll(self, *given: Any) -> Made | None:
        """A board that is new since the last call, or None; to be called often, returns at once.

        If this call begins a board, `given` goes to its `show`, after the board.
        """
        now = time.monotonic()
        if self._work is None:
            if self._is_due and now >= self._rest_until:
                self._begin(now, given)
            return None
        if not self._work.done():
            return None
        work, self._work = self._work, None
        self._rest_until = now + max(PERIOD_S, REST_FACTOR * (now - self._started))
        try:
            made = work.result()
        except Exception as error:  # the process was killed, or could not be started
            self._pool = None
            made = Made(None, f"the process that rates has failed: {type(error).__name__}: {error}")
        if made.problem:  # nothing of what it was to take in counts as taken in
            self._changed = {**self._taken, **self._changed}
            self._is_due = True
        return made

    def close(self) -> str:
        """End the process, and take into the shared record what is not there yet; returns what did not work."""
        if self._pool is not None:
            stop_workers(self._pool)
        left = {**(self._taken if self._work is not None else {}), **self._changed}
        return _merged(tuple(left), self.record) if self.record and left else ""

    def _begin(self, now: float, given: tuple[Any, ...]) -> None:
        self._taken, self._changed, self._is_due = self._changed, {}, False
        if self._pool is None:
            self._pool = worker_pool(1)
        self._work = self._pool.submit(_in_background, tuple(self._taken), self.record, self._show, given)
        self._started = now


def _in_background(runs: tuple[str, ...], record: str, show: Callable[..., Any], given: tuple[Any, ...]) -> Made:
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    board = board_of(runs, record)
    return Made(show(board, *given), board.problem)


def board_of(runs: tuple[str, ...], record: str = "") -> LiveBoard:
    """Merge the runs into the shared record and rate that; without one, rate the last of the runs.

    If the shared record cannot be reached, the board is that of the last run, and `problem` says why.
    """
    problem = _merged(runs, record) if record else ""
    try:
        if record and not problem:
            return _rated(record, "")
        return _rated(runs[-1], problem) if runs else LiveBoard(problem=problem)
    except MertonError as error:
        return LiveBoard(problem=problem or str(error))


def _merged(runs: tuple[str, ...], record: str) -> str:
    """Merge, and say what did not work."""
    from merton.results.merge import merge
    from merton.results.store import ResultStore, open_record

    try:
        with ResultStore(record) as target:
            for run in runs:
                if not _is_same(run, record):
                    with open_record(run, read_only=True) as source:
                        merge(source, target)
    except MertonError as error:
        return f"the shared record could not be brought up to date: {error}"
    return ""


def _is_same(run: str, record: str) -> bool:
    if "://" in record:
        return False
    from merton.results.database import file_of

    return file_of(run).resolve() == file_of(record).resolve()


def _rated(where: str, problem: str) -> LiveBoard:
    from merton.leaderboard.snapshot import store as snapshot
    from merton.leaderboard.terminal import render_snapshot
    from merton.results.store import open_record

    with open_record(where, read_only=True) as store:
        taken = snapshot.take(store, checks=False)
    lines = [
        tuple(Line(row.id, row.standing.mean, row.standing.deviation, row.matches) for row in rows if row.standing)
        for rows in (taken.agents, taken.cases)
    ]
    experiment = taken.experiments[0] if len(taken.experiments) == 1 else ""
    return LiveBoard(experiment, lines[0], lines[1], render_snapshot(taken), problem)
