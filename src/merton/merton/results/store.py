"""The durable record of trials: one SQLite file, one row a trial, nothing ever changed or removed."""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import StaticPool

from merton.errors import InfrastructureError, InputError
from merton.results.records import Outcome, TestCase, TrialRecord

SCHEMA_VERSION = 1
"""Stored in the file as `PRAGMA user_version`."""

SCORE_RANGES = {"cognition": 1.0, "decision": 1.0, "execution": 100.0}
"""Score name to its maximum; the minimum is 0."""

_TRIALS = sa.Table(
    "trials",
    sa.MetaData(),
    sa.Column("experiment", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("agent", sa.Text, nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("seed", sa.Integer, nullable=False),
    sa.Column("distortion", sa.Text, nullable=False),
    sa.Column("level", sa.Integer, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("cognition", sa.Double),
    sa.Column("decision", sa.Double),
    sa.Column("execution", sa.Double),
    sa.Column("distance_m", sa.Double),
    sa.Column("steps", sa.Integer, nullable=False),
    sa.Column("simulated_s", sa.Double, nullable=False),
    sa.Column("wall_s", sa.Double, nullable=False),
    sa.Column("error_code", sa.Integer, nullable=False),
    sa.Column("error_message", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)


class ResultStore:
    """Trial records in an SQLite file (WAL, synchronous=FULL) behind one connection; safe to share between threads.

    Args:
        path: the file; made, with its folder, unless `read_only`.
        read_only: open what is there and change nothing; works while another process writes.

    Raises:
        InputError: `read_only` and there is no such file, or the file is not a store of this schema version.
        InfrastructureError: the disk refuses.
    """

    def __init__(self, path: Path | str, read_only: bool = False) -> None:
        self.path = Path(path)
        if read_only and not self.path.is_file():
            raise InputError(f"there is no result store at {self.path}")
        if not read_only:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InfrastructureError(f"cannot make the folder of the result store {self.path}: {error}") from error
            if not self.path.exists():
                _create(self.path)
        self._lock = threading.Lock()
        self._engine = sa.create_engine(
            "sqlite://", creator=lambda: _connect(self.path, read_only), poolclass=StaticPool
        )
        try:
            with self._transaction() as connection:
                self._check_version(connection)
        except BaseException:
            self.close()
            raise

    def _check_version(self, connection: sa.Connection) -> None:
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        if version != SCHEMA_VERSION:
            raise InputError(
                f"the result store {self.path} has schema version {version}; this Merton reads version {SCHEMA_VERSION}"
            )

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            with self._lock, self._engine.begin() as connection:
                yield connection
        except (DatabaseError, sqlite3.Error) as error:
            cause = error.orig if isinstance(error, DatabaseError) else error
            if "not a database" in str(cause):
                raise InputError(f"{self.path} is not a result store: {cause}") from error
            raise InfrastructureError(f"the result store {self.path} failed: {cause}") from error

    def record(self, record: TrialRecord) -> bool:
        """Store one trial; on return it is on the disk and survives the loss of this process and of power.

        Returns:
            True if the trial is new, False if the same content was stored before (`wall_s` may differ).

        Raises:
            InputError: a score is NaN or out of range, a field cannot be stored, or the trial is already there with
                other content.
            InfrastructureError: the disk is full, read-only or broken; nothing of this trial was stored.
        """
        record = _checked(record)
        with self._transaction() as connection:
            statement = insert(_TRIALS).values(_row_from_record(record)).on_conflict_do_nothing()
            if connection.execute(statement).rowcount == 1:
                return True
            key = (_TRIALS.c.experiment == record.experiment) & (_TRIALS.c.id == record.id)
            stored = _record_from_row(connection.execute(sa.select(_TRIALS).where(key)).one()._asdict())
        if differences := _field_differences(stored, record):
            raise InputError(
                f"trial {record.id!r} of experiment {record.experiment!r} is already stored with other content: "
                f"{'; '.join(differences)}"
            )
        return False

    def experiments(self) -> list[str]:
        """The ids of the experiments that have at least one trial, sorted."""
        with self._transaction() as connection:
            return list(connection.scalars(sa.select(_TRIALS.c.experiment).distinct().order_by(_TRIALS.c.experiment)))

    def ids(self, experiment: str) -> list[str]:
        """The ids of the experiment's stored trials, sorted."""
        statement = sa.select(_TRIALS.c.id).where(_TRIALS.c.experiment == experiment).order_by(_TRIALS.c.id)
        with self._transaction() as connection:
            return list(connection.scalars(statement))

    def records(self, experiment: str) -> list[TrialRecord]:
        """The experiment's stored trials, ordered by trial id; empty if there are none."""
        statement = sa.select(_TRIALS).where(_TRIALS.c.experiment == experiment).order_by(_TRIALS.c.id)
        with self._transaction() as connection:
            rows = connection.execute(statement).mappings().all()
        return [_record_from_row(dict(row)) for row in rows]

    def close(self) -> None:
        """Close the connection; the store cannot be used afterwards."""
        self._engine.dispose()

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def compare(first: list[TrialRecord], second: list[TrialRecord]) -> list[str]:
    """What differs between two runs of one experiment, a line each, ordered by trial id; empty if nothing does.

    Trials are matched by id. `wall_s` never counts, nor does the experiment's id: a run may have been given a new name.
    """
    ours, theirs = {item.id: item for item in first}, {item.id: item for item in second}
    lines = []
    for trial in sorted(ours.keys() | theirs.keys()):
        if trial not in theirs:
            lines.append(f"{trial}: only in the first")
        elif trial not in ours:
            lines.append(f"{trial}: only in the second")
        else:
            lines.extend(f"{trial}: {difference}" for difference in _field_differences(ours[trial], theirs[trial]))
    return lines


def _create(path: Path) -> None:
    """Put an empty store at `path`, whole or not at all: a reader, or a kill, never meets one without its table."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.unlink(missing_ok=True)
        engine = sa.create_engine("sqlite://", creator=lambda: _connect(draft, read_only=False), poolclass=StaticPool)
        try:
            with engine.begin() as connection:
                _TRIALS.create(connection)
                connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
        finally:
            engine.dispose()
        with contextlib.suppress(FileExistsError):  # another writer was faster
            os.link(draft, path)
        draft.unlink()
    except (OSError, DatabaseError, sqlite3.Error) as error:
        raise InfrastructureError(f"cannot make the result store {path}: {error}") from error


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        connection = sqlite3.connect(path, timeout=10.0, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=10.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
    except sqlite3.OperationalError:
        # A WAL database in a folder we may not write to: safe to read as a still image if no writer left a log behind.
        connection.close()
        if Path(f"{path}-wal").exists():
            raise
        connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, check_same_thread=False)
    return connection


def _checked(record: TrialRecord) -> TrialRecord:
    """The record with plain Python numbers, as it will be read back; raises InputError for what must not be stored."""
    changes: dict[str, Any] = {"outcome": _outcome(record)}
    for name, maximum in SCORE_RANGES.items():
        changes[name] = _number(record, name, getattr(record, name), maximum)
    changes["distance_m"] = _number(record, "distance_m", record.distance_m, math.inf)
    for name in ("simulated_s", "wall_s"):
        changes[name] = _number(record, name, getattr(record, name), math.inf)
    for name in ("steps", "error_code"):
        changes[name] = _integer(record, name, getattr(record, name), 2**31 - 1)
    changes["case"] = replace(
        record.case,
        seed=_integer(record, "seed", record.case.seed, 2**63 - 1),
        level=_integer(record, "level", record.case.level, 5),
    )
    # An error text may quote raw bytes of a broken server; losing a result over that would be worse than a "?".
    changes["error_message"] = record.error_message.encode("utf-8", "replace").decode("utf-8")
    for name, text in (("experiment", record.experiment), ("agent", record.agent), ("case", record.case.id)):
        if not text or not text.isprintable():
            raise InputError(f"the {name} of trial {record.id!r} must be printable text, got {text!r}")
    if changes["outcome"] is Outcome.INFRASTRUCTURE and record.execution is not None:
        raise InputError(f"trial {record.id!r} ended in an infrastructure fault, so it cannot have an execution score")
    return replace(record, **changes)


def _outcome(record: TrialRecord) -> Outcome:
    try:
        return Outcome(record.outcome)
    except ValueError:
        choices = ", ".join(outcome.value for outcome in Outcome)
        raise InputError(
            f"unknown outcome {record.outcome!r} of trial {record.id!r}; choose one of: {choices}"
        ) from None


def _number(record: TrialRecord, name: str, value: float | None, maximum: float) -> float | None:
    if value is None:
        return None
    try:
        is_valid = math.isfinite(value) and 0.0 <= value <= maximum
    except TypeError:
        is_valid = False
    if not is_valid:
        valid = f"in 0 .. {maximum:g}" if math.isfinite(maximum) else "finite and not negative"
        raise InputError(f"{name} of trial {record.id!r} must be {valid}, got {value!r}")
    return float(value)


def _integer(record: TrialRecord, name: str, value: int, maximum: int) -> int:
    if not isinstance(value, Integral) or not 0 <= value <= maximum:
        raise InputError(f"{name} of trial {record.id!r} must be a whole number in 0 .. {maximum}, got {value!r}")
    return int(value)


def _row_from_record(record: TrialRecord) -> dict[str, Any]:
    row = {field.name: getattr(record, field.name) for field in fields(TrialRecord) if field.name != "case"}
    case = {field.name: getattr(record.case, field.name) for field in fields(TestCase)}
    return {**row, **case, "id": record.id, "outcome": record.outcome.value}


def _record_from_row(row: dict[str, Any]) -> TrialRecord:
    case = TestCase(**{field.name: row.pop(field.name) for field in fields(TestCase)})
    del row["id"]
    return TrialRecord(**{**row, "case": case, "outcome": Outcome(row["outcome"])})


def _field_differences(first: TrialRecord, second: TrialRecord) -> list[str]:
    pairs = [
        (field.name, getattr(first, field.name), getattr(second, field.name))
        for field in fields(TrialRecord)
        if field.name not in ("experiment", "wall_s")
    ]
    return [f"{name} {_shown(ours)} against {_shown(theirs)}" for name, ours, theirs in pairs if ours != theirs]


def _shown(value: object) -> str:
    return value.value if isinstance(value, Outcome) else repr(value)
