"""The board of a record while results arrive, computed in another process, so that no caller waits for it."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from merton.errors import MertonError
from merton.processes import stop_workers, worker_pool

PERIOD_S = 2.0
"""Least time from the start of a board to that of the next one [s]."""
CORE_SHARE = 0.03
"""Share of one core that boards may take: after one that cost t of processor time, the next one begins t / CORE_SHARE
after its start. Every board rates the whole record, so the period grows with the record."""
LAST_LIMIT_S = 5.0
"""Longest wait for the last board [s], shorter than the time that a node has to end."""

NICENESS = 10
"""Niceness of the rating process: on a busy machine, robots and answers have priority."""


@dataclass(frozen=True)
class RatedPlayer:
    """A rated player, Elo points, by the method that gives the ranks."""

    id: str
    mean: float
    deviation: float
    matches: int


@dataclass(frozen=True)
class LiveBoard:
    """The board of a record at one moment.

    Attributes:
        experiment: the only one in the record; empty if it has several, or none.
        agents, cases: the rated ones.
        text: the board for a terminal.
        problem: why the board is incomplete or missing, a sentence; empty if it is complete.
    """

    experiment: str = ""
    agents: tuple[RatedPlayer, ...] = ()
    cases: tuple[RatedPlayer, ...] = ()
    text: str = ""
    problem: str = ""


@dataclass(frozen=True)
class ShownBoard:
    """A board in the form that `show` gave it.

    Attributes:
        shown: the result of `show`; None if the rating process failed.
        problem: as in `LiveBoard`, or why the rating process failed.
        cost_s: processor time that it took [s].
    """

    shown: Any
    problem: str
    cost_s: float = 0.0


def unchanged(board: LiveBoard) -> LiveBoard:
    """The board itself."""
    return board


class LiveBoards:
    """Boards of a run while it goes on, or of a shared record that the run is merged into.

    Args:
        record: the shared one; if empty, the board is that of the run.
        show: a module's function that turns a board into another form, such as a message. It is called in the rating
            process: to make a message of thousands of ratings takes 0.2 s, and answers would wait for it.

    Attributes:
        period_s: least time from the start of the last board to that of the next one [s].
    """

    def __init__(self, record: str = "", show: Callable[..., Any] = unchanged) -> None:
        self.record = record
        self._show = show
        self._changed: dict[str, None] = {}  # runs with new results, the latest last
        self._is_due = bool(record)  # a shared record is shown without waiting for a result
        self._pool: ProcessPoolExecutor | None = None
        self._work: Future[ShownBoard] | None = None
        self._merging: dict[str, None] = {}
        self._started = -float("inf")
        self.period_s = PERIOD_S

    @property
    def is_busy(self) -> bool:
        """Whether a board is being computed."""
        return self._work is not None and not self._work.done()

    def changed(self, run: str) -> None:
        """A result was stored in a run's record."""
        self._changed.pop(run, None)
        self._changed[run] = None
        self._is_due = True

    def poll(self, *arguments: Any) -> ShownBoard | None:
        """A board that is new since the last call, or None; returns at once and is to be called often.

        If this call begins a board, `show` gets these arguments after the board.
        """
        now = time.monotonic()
        if self._work is None:
            if self._is_due and now >= self._started + self.period_s:
                self._begin(now, arguments)
            return None
        if not self._work.done():
            return None
        work, self._work = self._work, None
        try:
            board = work.result()
        except Exception as error:  # the process was killed, or could not be started
            self._pool = None
            board = ShownBoard(None, f"the process that rates has failed: {type(error).__name__}: {error}")
        self.period_s = max(PERIOD_S, board.cost_s / CORE_SHARE)
        if board.problem:  # its runs are still to be merged
            self._changed = {**self._merging, **self._changed}
            self._is_due = True
        return board

    def last(self, *arguments: Any) -> ShownBoard | None:
        """The board of all results there are, as soon as it is made; None if `poll` gave it before.

        Waits for it, up to `LAST_LIMIT_S`. Arguments as for `poll`.
        """
        newest, end = None, time.monotonic() + LAST_LIMIT_S
        while (self._work is not None or self._is_due) and time.monotonic() < end:
            self.period_s = 0.0
            if (board := self.poll(*arguments)) is not None:
                newest = board
                if board.problem:
                    break
            time.sleep(0.01)
        return newest

    def close(self) -> str:
        """End the process and merge the runs that the shared record lacks; returns why that failed, or ""."""
        if self._pool is not None:
            stop_workers(self._pool)
        missing = {**(self._merging if self._work is not None else {}), **self._changed}
        return _merged(tuple(missing), self.record) if self.record and missing else ""

    def _begin(self, now: float, arguments: tuple[Any, ...]) -> None:
        self._merging, self._changed, self._is_due = self._changed, {}, False
        if self._pool is None:
            self._pool = worker_pool(1)
        self._work = self._pool.submit(_in_background, tuple(self._merging), self.record, self._show, arguments)
        self._started = now


def _in_background(
    runs: tuple[str, ...], record: str, show: Callable[..., Any], arguments: tuple[Any, ...]
) -> ShownBoard:
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    importlib.import_module("merton.leaderboard.snapshot.store")  # once, and so no part of the cost
    started_s = time.process_time()
    board = board_of(runs, record)
    return ShownBoard(show(board, *arguments), board.problem, time.process_time() - started_s)


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
    """Merge the runs into the record; returns why that failed, or ""."""
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


def _rated(record: str, problem: str) -> LiveBoard:
    from merton.leaderboard.snapshot import store as snapshot
    from merton.leaderboard.snapshot.terminal import render_snapshot
    from merton.results.store import open_record

    with open_record(record, read_only=True) as store:
        current = snapshot.take(store, checks=False)
    agents, cases = (
        tuple(
            RatedPlayer(row.id, row.standing.mean, row.standing.deviation, row.matches) for row in rows if row.standing
        )
        for rows in (current.agents, current.cases)
    )
    experiment = current.experiments[0] if len(current.experiments) == 1 else ""
    return LiveBoard(experiment, agents, cases, render_snapshot(current), problem)
