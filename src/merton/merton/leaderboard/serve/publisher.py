"""The snapshot and the pages that are served. New ones are made in the background; nobody who asks waits for them."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path

import sqlalchemy as sa

from merton.errors import InfrastructureError
from merton.leaderboard import site
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Snapshot
from merton.leaderboard.snapshot.store import StoredSnapshot
from merton.leaderboard.submissions.receipts import Attempt, Receipt, attempts, current_window, submissions
from merton.processes import stop_workers, terminate_workers, worker_pool
from merton.results.database import file_of
from merton.results.store import ResultStore, open_record

LOOK_EVERY_S = 5.0
"""How often the record is looked at [s]."""
REST_FACTOR = 5.0
"""After a snapshot that took t the next one waits for at least this many times t, so that a busy record cannot keep a
core busy."""

_POSTGRESQL_COUNTERS = (
    "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables "
    "WHERE schemaname = current_schema() ORDER BY relname"
)
"""What the server counts of the rows that were ever written; it lags behind by a second, never for good."""

_log = logging.getLogger("merton.leaderboard")


class PagesError(InfrastructureError):
    """The pages of a board cannot be written."""


@dataclass(frozen=True)
class Edition:
    """A snapshot, whose pages are in a folder, and what else the record said at that moment.

    Attributes:
        snapshot: what the pages and the API show.
        sha256: of the snapshot's canonical bytes.
        submissions: everything that was ever accepted, in the order it came.
        attempts: everybody who tried, in order.
        kept: the snapshots that the record keeps, oldest first.
    """

    snapshot: Snapshot
    sha256: str
    submissions: tuple[Receipt, ...]
    attempts: tuple[Attempt, ...]
    kept: tuple[StoredSnapshot, ...]


Make = Callable[[str, Path], Edition]
"""From a record, and a folder for its pages."""


@dataclass(frozen=True)
class Published(Edition):
    """What is served. Nothing of it changes; a newer one takes its place, and its files go when nobody reads them.

    Attributes:
        head: the snapshot without its contents, for the layout of further pages.
        since_utc: when it was put here.
        files: address, such as "agents/hold.html", to file.
        agents, cases: id to index into the snapshot.
    """

    head: Snapshot
    since_utc: str
    files: Mapping[str, Path]
    agents: Mapping[str, int]
    cases: Mapping[str, int]

    def agent(self, id: str) -> AgentRow | None:
        """The agent's row, or None."""
        return self.snapshot.agents[self.agents[id]] if id in self.agents else None

    def case(self, id: str) -> CaseRow | None:
        """The test case's row, or None."""
        return self.snapshot.cases[self.cases[id]] if id in self.cases else None


class Publisher:
    """Keeps `current` up to date with a record.

    Args:
        record: run directory, SQLite file or PostgreSQL URL.

    Attributes:
        current: what is served; always whole.
        problem: why it could not be renewed, one sentence without paths; None if all is well.

    Raises:
        InputError: there is no such record.
        InfrastructureError: it cannot be read, and keeps no earlier snapshot; or the disk refuses the pages.
    """

    def __init__(self, record: str) -> None:
        self.record = record
        self.problem: str | None = None
        self._mark: object = None
        self._stop = threading.Event()
        self._look_now = threading.Event()
        self._thread: threading.Thread | None = None
        self._workers: ProcessPoolExecutor | None = None
        self.current = self._first()

    def start(self) -> None:
        """Begin to watch the record, in a thread of its own."""
        self._thread = threading.Thread(target=self._watch, name="publisher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch, and a snapshot that is being taken."""
        self._stop.set()
        self._look_now.set()
        while self._thread is not None and self._thread.is_alive():
            if (workers := self._workers) is not None:
                terminate_workers(workers)  # the thread that waits for it shuts it down
            self._thread.join(0.05)

    def look_now(self, anew: bool = False) -> None:
        """Have the record looked at soon; with `anew` the pages are written even if it is the same. Returns at once."""
        if anew:
            self._mark = None
        self._look_now.set()

    def refresh(self, make: Make | None = None) -> bool:
        """Renew `current` if the record has changed. A failure leaves it as it is and is told in `problem`.

        Args:
            make: how an edition is made; `make_edition` if None, in this process and thread.

        Returns:
            Whether `current` is a new one.
        """
        try:
            mark = change_mark(self.record)
            if mark == self._mark and self.problem is None:
                return False
            self.current = _published(self.record, make or make_edition)
        except Exception as error:  # whatever it is, the old board is better than none
            self._failed(error)
            return False
        self._mark, self.problem = mark, None
        return True

    def _first(self) -> Published:
        self._mark = change_mark(self.record)
        try:
            return _published(self.record, make_edition)
        except PagesError:
            raise
        except InfrastructureError as error:
            published = _published(self.record, _kept_edition)
            self._failed(error)
            return published

    def _failed(self, error: Exception) -> None:
        """Where the record is, and how it is read, is for the log and not for strangers."""
        if self._stop.is_set():
            return
        problem = "the pages cannot be written" if isinstance(error, PagesError) else "the record cannot be read"
        if self.problem != problem:
            _log.warning("%s, so the older board is served: %s: %s", problem, type(error).__name__, error)
        self.problem = problem

    def _watch(self) -> None:
        rest_s = 0.0
        while not self._stop.wait(rest_s):
            self._look_now.wait(LOOK_EVERY_S)
            self._look_now.clear()
            if self._stop.is_set():
                return
            started = time.monotonic()
            self.refresh(self._made_elsewhere)
            rest_s = REST_FACTOR * (time.monotonic() - started)

    def _made_elsewhere(self, record: str, folder: Path) -> Edition:
        """`make_edition` in another process, which is there for this one: rating must not slow down those who ask."""
        self._workers = worker_pool(1)
        try:
            return self._workers.submit(make_edition, record, folder).result()
        finally:
            workers, self._workers = self._workers, None
            stop_workers(workers)


def make_edition(record: str, folder: Path) -> Edition:
    """Take a snapshot and write its pages into a new folder.

    Raises:
        PagesError: the pages cannot be written.
        MertonError: the record cannot be read.
    """
    with open_record(record, read_only=True) as store:
        return _edition(store, snapshots.take(store), folder)


def _kept_edition(record: str, folder: Path) -> Edition:
    """The same of the newest snapshot that the record keeps, where none can be taken."""
    with open_record(record, read_only=True) as store:
        kept = snapshots.latest(store)
        if kept is None:
            raise InfrastructureError("the record cannot be read, and it keeps no earlier snapshot")
        return _edition(store, kept, folder)


def _edition(store: ResultStore, snapshot: Snapshot, folder: Path) -> Edition:
    with store.database.reading() as connection:
        receipts, tried = tuple(submissions(connection)), tuple(attempts(connection))
    try:
        site.write_site(snapshot, folder, store, served=True)
    except (InfrastructureError, OSError) as error:
        raise PagesError(f"the pages of the board cannot be written: {error}") from error
    return Edition(
        snapshot=snapshot,
        sha256=hashlib.sha256(snapshots.to_json(snapshot)).hexdigest(),
        submissions=receipts,
        attempts=tried,
        kept=tuple(snapshots.snapshots(store)),
    )


def _published(record: str, make: Make) -> Published:
    """An edition, with its pages in a folder that goes when nobody uses it any more."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="merton_leaderboard_"))
    except OSError as error:
        raise PagesError(f"the pages of the board cannot be written: {error.strerror}") from error
    try:
        root = folder / "site"
        edition = make(record, root)
        published = Published(
            **{field.name: getattr(edition, field.name) for field in fields(Edition)},
            head=replace(edition.snapshot, agents=(), cases=(), matches=(), boards=()),
            since_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            files={file.relative_to(root).as_posix(): file for file in root.rglob("*") if file.is_file()},
            agents={agent.id: index for index, agent in enumerate(edition.snapshot.agents)},
            cases={case.id: index for index, case in enumerate(edition.snapshot.cases)},
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(published, shutil.rmtree, folder, ignore_errors=True)
    return published


def change_mark(record: str) -> object:
    """A value that differs whenever the board would; it may differ without that. Cheap.

    Raises:
        InputError: there is no such record.
        InfrastructureError: it cannot be reached.
    """
    window = current_window(datetime.now(timezone.utc))  # what was submitted comes onto the board by the calendar
    if "://" in record:
        with ResultStore(record, read_only=True) as store, store.database.reading() as connection:
            counters = connection.execute(sa.text(_POSTGRESQL_COUNTERS)).all()
        return window, *(tuple(row) for row in counters)
    path = file_of(record)
    marks: list[object] = [window]
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            found = file.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InfrastructureError(f"the record cannot be reached: {error.strerror}") from error
        if found.st_size:  # a reader leaves an empty log behind
            marks.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(marks)
