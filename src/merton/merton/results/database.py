"""The database behind the record: an SQLite file (the default) or a PostgreSQL server that a lab shares.

Both give the same guarantee: a transaction that ends without an error survives the loss of this process and of power;
one that ends with an error leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError
from sqlalchemy.pool import StaticPool

from merton.errors import InfrastructureError, InputError, require
from merton.files import identity, locked_file, made_once
from merton.results.damage import ADVICE, damage
from merton.results.rows import impossible_row
from merton.results.schema import VERSION_BEFORE
from merton.results.schema_version import EMPTY, check, create, upgrade, version

RUN_FILE = "results.sqlite"
"""Name of the record in the directory of a run."""

WRITER_TIMEOUT_S = 60
"""Limit of a writer's wait for the others [s]: fifty at once on a disk that takes half a second for each commit."""

CONNECT_TIMEOUT_S = 10
"""Limit of the wait for a server to accept a connection [s]."""

_WRITER_LOCK = 0x4D6572746F6E  # "Merton": PostgreSQL's advisory lock that one writer at a time holds


class Database:
    """An open record. Safe to share between threads; not to be used after a fork.

    Args:
        where: an SQLite file (made, with its folder, unless `read_only`), the directory of a run, or a URL
            such as "postgresql://user:password@host/name".
        read_only: change nothing; works while others write.

    Attributes:
        where: the path or URL, without a password, for messages.
        dialect: "sqlite" or "postgresql".
        read_only: as given.

    Raises:
        InputError: there is no record and `read_only` is set, `where` is not a record, or another Merton made it.
        InfrastructureError: the disk or the server refuses, or the file is damaged.
        MissingDependencyError: PostgreSQL's client is not installed.
    """

    def __init__(self, where: Path | str, read_only: bool = False) -> None:
        self.read_only = read_only
        # SQLite has one connection for all threads; PostgreSQL has one for each.
        self._lock: AbstractContextManager[Any] = nullcontext()
        self._claims = ExitStack()
        self._files: dict[Path, tuple[int, int]] = {}  # of an open SQLite record: device and inode
        self._reading = threading.local()  # .connection: of the reading transaction that this thread is in
        if isinstance(where, str) and "://" in where:
            self.dialect = "postgresql"
            self._engine, self.where = _postgresql_engine(where, read_only)
        else:
            self.dialect = "sqlite"
            self._lock = threading.RLock()
            path = file_of(where)
            self.where = str(path)
            _prepare_file(path, read_only)
            self._engine = _engine_of(lambda: _connect(path, read_only))
        try:
            self._check_pages()
            self._check_version()
            self._check_rows()
            if self.dialect == "sqlite" and not read_only:
                self._files = {file: found for file in with_log(self.where) if (found := identity(file))}
        except BaseException:
            self.close()
            raise

    def transaction(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that may write: when the context is left, all of it is durable, or nothing is written.

        There is one writer at a time, so the content that is read inside does not change until its end. A second
        transaction inside one of the same `Database` is refused.

        Raises:
            InputError: a row breaks a rule of the tables; nothing of the transaction was written.
            InfrastructureError: the database refuses, or its file is not there any more; nothing of the transaction was
                written, except perhaps if the connection to a server breaks during the commit.
        """
        return self._began(write=True)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only reads: one consistent state, also while others write, and no writer waits for it.

        Inside another one of the same thread it is part of that one and sees the same state.
        """
        if (outer := getattr(self._reading, "connection", None)) is not None:
            yield outer
            return
        with self._began(write=False) as connection:
            self._reading.connection = connection
            try:
                yield connection
            finally:
                self._reading.connection = None

    @contextmanager
    def _began(self, write: bool) -> Iterator[sa.Connection]:
        try:
            with self._lock, self._engine.connect() as connection:
                if write:
                    self._check_still_there()
                if self.dialect == "sqlite":
                    connection.exec_driver_sql("BEGIN IMMEDIATE" if write and not self.read_only else "BEGIN")
                elif write:
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_WRITER_LOCK)))
                else:
                    connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield connection
                connection.commit()
                if write:
                    self._check_still_there()
        except (DBAPIError, sqlite3.Error, sa.exc.TimeoutError, sa.exc.PendingRollbackError) as error:
            raise self._explained(error) from error

    def _check_still_there(self) -> None:
        """A file without a name takes writes, and is lost when it is closed: such a write is not acknowledged."""
        for file, known in self._files.items():
            if identity(file) != known:
                raise InfrastructureError(
                    f"{file} was removed or replaced while it was in use, so nothing is stored: put it back, or start "
                    "this program again"
                )

    def claim(self, work: str, name: str) -> None:
        """Take the record, until it is closed, for a kind of work that one program at a time may do.

        Args:
            work: for the message, such as "merton people serve".
            name: of what is worked on, a plain file name; other names in the same record are free.

        Raises:
            InputError: another program has it.
            InfrastructureError: the lock cannot be made.
        """
        what = f"{work} of {name}"
        if self.dialect == "sqlite":
            taken = locked_file(Path(f"{Path(self.where).resolve()}.{name}.lock"), self._claims)
        else:
            taken = self._claim_on_server(what)
        if not taken:
            raise InputError(f"another {work} has {name!r} in the record {self.where} open: end it first")

    def _claim_on_server(self, what: str) -> bool:
        """Hold an advisory lock of PostgreSQL with a connection of its own; False if another session has it."""
        key = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big", signed=True)
        try:
            connection = self._claims.enter_context(self._engine.connect())
            taken = connection.execute(sa.select(sa.func.pg_try_advisory_lock(key))).scalar_one()
            connection.commit()  # the lock is the session's; no transaction stays open
        except DBAPIError as error:
            raise self._explained(error) from error
        if taken:
            self._claims.callback(connection.invalidate)  # a pooled session would keep the lock
        return bool(taken)

    def _explained(self, error: Exception) -> Exception:
        cause = str(error.orig if isinstance(error, DBAPIError) else error).strip().split("\n")[0]
        if isinstance(error, IntegrityError | DataError):
            return InputError(f"the result store {self.where} cannot hold this: {cause}")
        if "not a database" in cause:
            return InputError(f"{self.where} is not a result store: {cause}")
        if "malformed" in cause:
            return self._damaged(cause)
        return InfrastructureError(f"the result store {self.where} failed: {cause}")

    def insert_new(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> int:
        """Insert the rows whose key is not there yet; returns how many that were. Others stay as they are."""
        if not rows:
            return 0
        make = sqlite.insert if self.dialect == "sqlite" else postgresql.insert
        statement = make(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
        return connection.execute(statement, list(rows)).rowcount

    def forget(self) -> None:
        """Empty the log of an SQLite file, which may hold what was removed from the file itself.

        Raises:
            InfrastructureError: another process reads the log and does not end.
        """
        if self.dialect != "sqlite":
            return
        with self._lock, self._engine.connect() as connection:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
        if busy:
            raise InfrastructureError(
                f"the log of {self.where} is in use; what was removed leaves it with its next use"
            )

    def close(self) -> None:
        """Close the connections; the database cannot be used afterwards."""
        self._claims.close()
        self._engine.dispose()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_pages(self) -> None:
        """Refuse a damaged file: its whole pages would be read as if they were all."""
        if self.dialect == "sqlite":
            with self.reading() as connection:
                if found := damage(connection):
                    raise self._damaged(found)

    def _check_rows(self) -> None:
        """Refuse a file with a row that no Merton writes: readers take every value for what its column says."""
        if self.dialect == "sqlite":
            with self.reading() as connection:
                if found := impossible_row(connection):
                    raise self._damaged(found)

    def _damaged(self, found: str) -> InfrastructureError:
        return InfrastructureError(f"the result store {self.where} is damaged: {found}; {ADVICE}")

    def _check_version(self) -> None:
        """Make the tables in an empty database of a server; refuse a record of another version.

        One of the version before is brought to today's, unless it is only read.
        """
        with self.reading() as connection:
            if self.dialect == "postgresql":
                encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
                if encoding != "UTF8":
                    raise InputError(f"the database {self.where} must have the encoding UTF8, and has {encoding}")
            present = EMPTY if self.read_only else version(connection)
        if not self.read_only and present == EMPTY and self.dialect == "postgresql":
            with self.transaction() as connection:
                create(connection, self.where)
        if present == VERSION_BEFORE:
            with self.transaction() as connection:
                upgrade(connection)
        with self.reading() as connection:
            check(connection, self.where)


def file_of(where: Path | str) -> Path:
    """The SQLite file behind a path: itself, or the record of the run whose directory it is."""
    path = Path(where)
    return path / RUN_FILE if path.is_dir() else path


def with_log(where: str) -> tuple[Path, Path]:
    """An SQLite file and its log of writes, which belongs to it and is beside the file that a link leads to."""
    return Path(where), Path(f"{Path(where).resolve()}-wal")


def _engine_of(connect: Any) -> sa.Engine:
    """An SQLite engine with one connection, which begins no transaction by itself."""
    return sa.create_engine("sqlite://", creator=connect, poolclass=StaticPool)


def _prepare_file(path: Path, read_only: bool) -> None:
    if read_only:
        if not path.is_file():
            raise InputError(f"there is no result store at {path}")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(f"cannot make the folder of the result store {path}: {error}") from error
    if not path.exists():
        _create(path)


def _create(path: Path) -> None:
    """Put an empty store at `path`, whole or not at all: a reader, or a kill, never meets one without its tables."""

    def make(draft: Path) -> None:
        engine = _engine_of(lambda: _connect(draft, read_only=False))
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                create(connection, str(path))
                connection.commit()
        finally:
            engine.dispose()

    try:
        made_once(path, make)
    except (OSError, DBAPIError, sqlite3.Error) as error:
        raise InfrastructureError(f"cannot make the result store {path}: {error}") from error


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    # isolation_level None: Python's driver begins no transaction by itself, `Database._began` does.
    if not read_only:
        connection = sqlite3.connect(path, timeout=WRITER_TIMEOUT_S, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    options: dict[str, Any] = {"uri": True, "check_same_thread": False, "isolation_level": None}
    connection = sqlite3.connect(uri, timeout=WRITER_TIMEOUT_S, **options)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:
        # A WAL database in a folder we may not write to: safe to read as a still image if no writer left a log behind.
        connection.close()
        if Path(f"{path}-wal").exists():
            raise
        connection = sqlite3.connect(f"{uri}&immutable=1", **options)
    return connection


def _postgresql_engine(where: str, read_only: bool) -> tuple[sa.Engine, str]:
    """The engine, and the URL without password and query."""
    try:
        url = sa.make_url(where)
    except (ArgumentError, ValueError):
        raise InputError(f"{where.split('@')[-1]!r} is not the URL of a database") from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise InputError(
            f"a record is an SQLite file, the directory of a run or a postgresql:// URL, not {url.drivername}://"
        )
    require("psycopg", "postgres", "a record on PostgreSQL")
    given = url.query.get("options", "")
    options = f"{given if isinstance(given, str) else ' '.join(given)} -c lock_timeout={WRITER_TIMEOUT_S}s"
    if read_only:
        options += " -c default_transaction_read_only=on"
    query = {"connect_timeout": str(CONNECT_TIMEOUT_S), "application_name": "merton", **url.query, "options": options}
    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg", query=query),
        pool_pre_ping=True,  # a connection that broke while it was idle is replaced
    )
    sa.event.listen(engine, "connect", _insist_on_durability)
    return engine, url.set(query={}).render_as_string(hide_password=True)  # a query may hold secrets too


def _insist_on_durability(connection: Any, _: object) -> None:
    """Turn `synchronous_commit` on: without it a server acknowledges a commit before it is on the disk."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('synchronous_commit')")
        if cursor.fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    connection.commit()
