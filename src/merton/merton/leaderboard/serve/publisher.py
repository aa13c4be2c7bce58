"""The snapshot and the pages that are served. New ones are made in the background: no request waits for them."""

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

from merton.errors import InfrastructureError, InputError, MertonError
from merton.leaderboard import site
from merton.leaderboard.board import Board, plain_values, to_json
from merton.leaderboard.published.tables import Tables
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.snapshot.store import StoredSnapshot
from merton.leaderboard.submissions.applications import ApplicationReceipt, applications
from merton.leaderboard.submissions.receipts import Attempt, Receipt, attempts, current_window, submissions
from merton.processes import stop_workers, terminate_workers, worker_pool
from merton.results.database import file_of
from merton.results.metrics import DEFAULT_METRIC, checked_metric
from merton.results.store import ResultStore, open_record

CHECK_PERIOD_S = 5.0
"""Period of the check whether the record has changed [s]."""
PAUSE_FACTOR = 5.0
"""After a snapshot that took t the next one waits for at least this many times t, so that a busy record cannot keep a
core busy."""

_POSTGRESQL_COUNTERS = (
    "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables "
    "WHERE schemaname = current_schema() ORDER BY relname"
)
"""The server's counts of rows written so far; they lag behind by about a second."""

_log = logging.getLogger("merton.leaderboard")


class PagesError(InfrastructureError):
    """The pages of a board cannot be written."""


class TablesError(InputError):
    """A table of the boards under published rules is not as it should be."""


@dataclass(frozen=True)
class Edition:
    """A snapshot with pages in a folder, and the submissions, applications, attempts and stored snapshots of then.

    All lists are complete, the oldest entry first; `sha256` is that of the snapshot's canonical bytes, `boards_sha256`
    that of all boards'. `boards` are those on the pages, each with the address of its page.
    """

    snapshot: Snapshot
    sha256: str
    submissions: tuple[Receipt, ...]
    attempts: tuple[Attempt, ...]
    stored: tuple[StoredSnapshot, ...]
    applications: tuple[ApplicationReceipt, ...]
    boards: tuple[tuple[Board, str], ...]
    boards_sha256: str


Make = Callable[[str, Path, "str | None", str, Tables], Edition]
"""Makes the edition of a record, with its pages in a folder, under a title (see `write_site`), by a metric, with the
boards of tables."""


@dataclass(frozen=True)
class Published(Edition):
    """The edition that is served. It never changes: a newer one replaces it.

    Its files are removed with the last reference to it.

    Attributes:
        head: the snapshot without its contents, for the layout of further pages.
        since_utc: when it was first served.
        files: address, such as "agents/hold.html", to file.
        agents, cases: id to index into the snapshot.
    """

    head: Snapshot
    since_utc: str
    files: Mapping[str, Path]
    agents: Mapping[str, int]
    cases: Mapping[str, int]


class Publisher:
    """Keeps `current` up to date with a record.

    Args:
        record: run directory, SQLite file or PostgreSQL URL.
        title: of the pages, as in `write_site`.
        metric: of `merton.results.metrics`, by which trials are rated.
        tables: of boards under published rules; they are watched as the record is.

    Attributes:
        current: the edition that is served; always whole.
        problem: why it could not be renewed, one sentence without paths; None if it is up to date.

    Raises:
        InputError: there is no such record, no such metric, the metric needs trials that are not there, or a table is
            wrong.
        InfrastructureError: it cannot be read and holds no earlier snapshot; or the pages cannot be written.
    """

    def __init__(
        self, record: str, title: str | None = None, metric: str = DEFAULT_METRIC, tables: Tables | None = None
    ) -> None:
        self.record, self.title, self.metric = record, title, checked_metric(metric)
        self.tables = tables or Tables()
        self.problem: str | None = None
        self._state: object = None
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._workers: ProcessPoolExecutor | None = None
        self._page = threading.Lock()
        self.current = self._first()

    def start(self) -> None:
        """Begin to watch the record in a thread."""
        self._thread = threading.Thread(target=self._watch, name="publisher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch, and a snapshot that is being taken."""
        self._stop.set()
        self._wake.set()
        while self._thread is not None and self._thread.is_alive():
            if (workers := self._workers) is not None:
                terminate_workers(workers)  # the thread that waits for it shuts it down
            self._thread.join(0.05)

    def check_now(self, force: bool = False) -> None:
        """Check the record soon; with `force` the pages are written even if it has not changed. Returns at once."""
        if force:
            self._state = None
        self._wake.set()

    def show_submissions(self) -> None:
        """Write the page of submissions again, at once; all else waits for the next edition, and so it does after a
        fault."""
        with self._page:
            published = self.current
            try:
                with open_record(self.record, read_only=True) as store:
                    site.write_submissions(published.head, published.files["submissions.html"], store, self.title)
            except (MertonError, OSError) as error:
                _log.warning("the page of submissions is not renewed: %s", error)

    def refresh(self, make: Make | None = None) -> bool:
        """Renew `current` if the record has changed. A failure leaves it as it is and is stated in `problem`.

        Args:
            make: makes the edition; `make_edition` if None, in this process and thread.

        Returns:
            Whether `current` is a new one.
        """
        try:
            state = self._state_now()
            if state == self._state and self.problem is None:
                return False
            self.current = self._made(make or make_edition)
        except Exception as error:  # after any fault the old board is better than none
            self._failed(error)
            return False
        self._state, self.problem = state, None
        return True

    def _first(self) -> Published:
        self._state = self._state_now()
        try:
            return self._made(make_edition)
        except PagesError:
            raise
        except InfrastructureError as error:
            published = self._made(_stored_edition)
            self._failed(error)
            return published

    def _state_now(self) -> object:
        return record_state(self.record), self.tables.state()

    def _made(self, make: Make) -> Published:
        return _published(self.record, make, self.title, self.metric, self.tables)

    def _failed(self, error: Exception) -> None:
        """State the problem without paths; place and cause go to the log alone."""
        if self._stop.is_set():
            return
        problem = "the record cannot be read"
        if isinstance(error, PagesError):
            problem = "the pages cannot be written"
        elif isinstance(error, TablesError):
            problem = "a table of the boards cannot be used"
        if self.problem != problem:
            _log.warning("%s, so the older board is served: %s: %s", problem, type(error).__name__, error)
        self.problem = problem

    def _watch(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            self._wake.wait(CHECK_PERIOD_S)
            self._wake.clear()
            if self._stop.is_set():
                return
            started = time.monotonic()
            self.refresh(self._made_in_process)
            pause_s = PAUSE_FACTOR * (time.monotonic() - started)

    def _made_in_process(self, record: str, folder: Path, title: str | None, metric: str, tables: Tables) -> Edition:
        """`make_edition` in another process, so that rating does not slow down requests."""
        self._workers = worker_pool(1)
        try:
            return self._workers.submit(make_edition, record, folder, title, metric, tables).result()
        finally:
            workers, self._workers = self._workers, None
            stop_workers(workers)


def make_edition(
    record: str,
    folder: Path,
    title: str | None = None,
    metric: str = DEFAULT_METRIC,
    tables: Tables = Tables(),  # noqa: B008  (it is never changed)
) -> Edition:
    """Take a snapshot and write its pages into a new folder; the same snapshot as `leaderboard show` and `build` take.

    Raises:
        InputError: the metric needs trials that are not there.
        TablesError: a table is wrong.
        PagesError: the pages cannot be written.
        MertonError: the record cannot be read.
    """
    with open_record(record, read_only=True) as store:
        return _edition(store, snapshots.take(store, metric=metric), folder, title, tables)


def _stored_edition(record: str, folder: Path, title: str | None, metric: str, tables: Tables) -> Edition:
    """The edition of the newest snapshot by the metric that the record holds, if none can be taken."""
    with open_record(record, read_only=True) as store:
        stored = snapshots.latest(store, metric)
        if stored is None:
            raise InfrastructureError("the record cannot be read, and it holds no earlier snapshot")
        return _edition(store, stored, folder, title, tables)


def _edition(store: ResultStore, snapshot: Snapshot, folder: Path, title: str | None, tables: Tables) -> Edition:
    with store.database.reading() as connection:
        receipts, tried = tuple(submissions(connection)), tuple(attempts(connection))
        applied = tuple(one.receipt for one in applications(connection))
    try:
        published = tables.boards(store)
    except InputError as error:
        raise TablesError(str(error)) from error
    boards = site.all_boards(snapshot, published)
    pages = site.board_files(boards)
    try:
        site.write_site(snapshot, folder, store, published=published, served=True, title=title)
    except (InfrastructureError, OSError) as error:
        raise PagesError(f"the pages of the board cannot be written: {error}") from error
    return Edition(
        snapshot=snapshot,
        sha256=hashlib.sha256(snapshots.to_json(snapshot)).hexdigest(),
        submissions=receipts,
        attempts=tried,
        stored=tuple(snapshots.snapshots(store)),
        applications=applied,
        boards=tuple((board, f"boards/{pages[board.name]}.html") for board in boards),
        boards_sha256=hashlib.sha256(to_json({"boards": [plain_values(board) for board in boards]})).hexdigest(),
    )


def _published(record: str, make: Make, title: str | None, metric: str, tables: Tables) -> Published:
    """An edition, with its pages in a folder that is removed with the last reference to it."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="merton_leaderboard_"))
    except OSError as error:
        raise PagesError(f"the pages of the board cannot be written: {error.strerror}") from error
    try:
        root = folder / "site"
        edition = make(record, root, title, metric, tables)
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


def record_state(record: str) -> object:
    """A value that is cheap to get and changes whenever the board would change; it may change more often.

    Raises:
        InputError: there is no such record.
        InfrastructureError: it cannot be reached.
    """
    window = current_window(datetime.now(timezone.utc))  # new submissions appear on the board when it begins
    if "://" in record:
        with ResultStore(record, read_only=True) as store, store.database.reading() as connection:
            counters = connection.execute(sa.text(_POSTGRESQL_COUNTERS)).all()
        return window, *(tuple(row) for row in counters)
    path = file_of(record)
    state: list[object] = [window]
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            found = file.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InfrastructureError(f"the record cannot be reached: {error.strerror}") from error
        if found.st_size:  # a reader leaves an empty log behind
            state.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(state)
