"""The record as files for other programs: Parquet, CSV and JSON, the same bytes for the same content."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import sqlalchemy as sa

import merton
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.files import written_whole
from merton.results.csv_writer import write_rows
from merton.results.parquet import parquet_writer, require_pyarrow
from merton.results.schema import AGENTS, CASES, EXPERIMENTS, IMPORTS, SCHEMA_VERSION, SCORES, TRIALS
from merton.results.schema_version import readable
from merton.results.store import ResultStore

Rows = Iterator[tuple[Any, ...]]

ROWS_AT_ONCE = 5_000
"""Read from the record, so that its size plays no part in the memory that is needed."""

ROWS_OF_A_GROUP = 10_000
"""Written to a Parquet file at once, each with its own dictionaries of texts."""

_SCENE = CASES.c.seed.label("scene")  # the record's name of the number of a scene is older
_CASE = [CASES.c.task, _SCENE, CASES.c.distortion, CASES.c.level]
_PLACE = list(TRIALS.c).index(TRIALS.c.case) + 1

TABLES: dict[str, sa.Select[Any]] = {
    "trials": sa.select(*list(TRIALS.c)[:_PLACE], *_CASE, *list(TRIALS.c)[_PLACE:])
    .join_from(TRIALS, CASES)
    .order_by(TRIALS.c.experiment, TRIALS.c.id),
    "scores": sa.select(SCORES).order_by(SCORES.c.source, SCORES.c.agent, SCORES.c.case),
    "agents": sa.select(AGENTS).order_by(AGENTS.c.id),
    "cases": sa.select(
        *(_SCENE if column is CASES.c.seed else column for column in CASES.c if column is not CASES.c.group)
    ).order_by(CASES.c.id),
    "experiments": sa.select(*list(EXPERIMENTS.c)[: list(EXPERIMENTS.c).index(EXPERIMENTS.c.world)]).order_by(
        EXPERIMENTS.c.id
    ),
}
"""The tables that can be exported, each in an order that depends on its content alone."""
_ADDED: dict[str, tuple[sa.Column[Any], ...]] = {
    "trials": (CASES.c.group,),
    "cases": (CASES.c.group,),
    "experiments": (EXPERIMENTS.c.world, EXPERIMENTS.c.world_versions),
}
"""Table to its last columns that are there only if a row has a value: a group of scenes, a world (`TestCase.group`)."""

MATCHES = {"agent": "string", "case": "string", "score": "float64"}
"""Columns of the table `matches`, which is computed from trials and scores."""

DROPS = {
    "agent": "string",
    **dict.fromkeys(("success_undistorted", "success_distorted", "drop", "drop_low", "drop_high"), "float64"),
    **dict.fromkeys(("distorted_trials", "scenes"), "int64"),
}
"""Columns of the table `drops`, which is computed from trials: shares 0..1, drops -1..1 with their 95 % interval."""

COMPUTED = ("matches", "drops")


def export(
    store: ResultStore,
    path: Path,
    table: str = "trials",
    further: Mapping[str, Mapping[tuple[str, str], float]] = MappingProxyType({}),
) -> int:
    """Write a table of the record to a file, whole or not at all; the end of its name decides the format.

    Parquet and JSON name the versions and hashes behind the rows (`about`), CSV has no place for them. An unknown
    value is null, in CSV an empty cell.

    Args:
        store: the record.
        path: of the file.
        table: a name of `TABLES`, or of `COMPUTED`.
        further: columns of the table `trials` that the record has not, behind its own: name to the values by agent and
            test case.

    Returns:
        The number of rows.

    Raises:
        InputError: the format or the table is unknown.
        MissingDependencyError: Parquet is asked for and pyarrow is not installed.
        InfrastructureError: the file cannot be written, or the record cannot be read.
    """
    if path.suffix not in _WRITERS:
        raise InputError(f"cannot export to {path.name!r}: its name must end in one of {', '.join(sorted(_WRITERS))}")
    _check_table(table)
    with store.database.reading() as connection:
        kinds, each = _rows(store, connection, table, further)
        about = {
            "merton_version": merton.__version__,
            "schema_version": SCHEMA_VERSION,
            "table": table,
            **_sources(connection),
        }
        if path.suffix != ".csv":
            about["rows_sha256"] = _rows_sha256(each())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as file:
                return _WRITERS[path.suffix](file, kinds, each(), about)
        except OSError as error:
            raise InfrastructureError(f"cannot write {path}: {error.strerror}") from None


def table_rows(
    store: ResultStore,
    table: str = "trials",
    further: Mapping[str, Mapping[tuple[str, str], float]] = MappingProxyType({}),
) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Column to its type ("string", "int64" or "float64"), and the rows of a table; None is an unknown value.

    Arguments and errors as of `export`.
    """
    _check_table(table)
    with store.database.reading() as connection:
        kinds, each = _rows(store, connection, table, further)
        return kinds, list(each())


def statement_of(connection: sa.Connection, table: str) -> sa.Select[Any]:
    """The rows of a table of `TABLES`, with those of its columns that few records have if this one has them."""
    added = _ADDED.get(table, ())
    given = [readable(connection, column) for column in added]
    some = sa.select(sa.exists(sa.select(added[0].table.c.id).where(given[0] != ""))) if given else None
    return TABLES[table].add_columns(*added) if some is not None and connection.scalar(some) else TABLES[table]


def _check_table(table: str) -> None:
    if table not in (names := [*TABLES, *COMPUTED]):
        raise UnknownNameError("table", table, names)


def _rows(
    store: ResultStore, connection: sa.Connection, table: str, further: Mapping[str, Mapping[tuple[str, str], float]]
) -> tuple[dict[str, str], Callable[[], Rows]]:
    """Column to its type, and the rows, read anew whenever they are asked for, so that they are nowhere all at once."""
    kinds, each = _rows_alone(store, connection, table)
    return _widened(kinds, each, further) if further else (kinds, each)


def _rows_alone(store: ResultStore, connection: sa.Connection, table: str) -> tuple[dict[str, str], Callable[[], Rows]]:
    if table == "matches":
        matches = store.matches()
        return MATCHES, lambda: iter(matches)
    if table == "drops":
        drops = _drops(store)
        return DROPS, lambda: iter(drops)
    statement = statement_of(connection, table).execution_options(yield_per=ROWS_AT_ONCE)
    kinds = {column.name: _kind(column.type) for column in statement.selected_columns}
    return kinds, lambda: (tuple(row) for row in connection.execute(statement))


def _drops(store: ResultStore) -> list[tuple[Any, ...]]:
    """The drop of each agent that has one, by agent."""
    from merton.results.losses import by_agent  # it loads compiled statistics, which no other table needs

    return [
        (agent, loss.before, loss.after, loss.points, *loss.interval, loss.trials, loss.scenes)
        for agent, loss in by_agent(store.records()).items()
    ]


def _widened(
    kinds: dict[str, str], each: Callable[[], Rows], further: Mapping[str, Mapping[tuple[str, str], float]]
) -> tuple[dict[str, str], Callable[[], Rows]]:
    """The same with further columns of numbers, of which a trial may have none."""
    agent, case = (list(kinds).index(name) for name in ("agent", "case"))
    columns = list(further.values())

    def rows() -> Rows:
        return ((*row, *(column.get((row[agent], row[case])) for column in columns)) for row in each())

    return kinds | dict.fromkeys(further, "float64"), rows


def _kind(type_: sa.types.TypeEngine[Any]) -> str:
    if isinstance(type_, sa.Integer):
        return "int64"
    return "float64" if isinstance(type_, sa.Numeric | sa.Float) else "string"


def _sources(connection: sa.Connection) -> dict[str, list[dict[str, Any]]]:
    """The sources of the rows: agents with version and hash of weights, experiments and imports with hashes."""
    imports = sa.select(IMPORTS.c.source, IMPORTS.c.file_sha256, IMPORTS.c.file_name, IMPORTS.c.metric).order_by(
        *IMPORTS.primary_key
    )
    wanted = {**{name: statement_of(connection, name) for name in ("agents", "experiments")}, "imports": imports}
    return {name: [dict(row) for row in connection.execute(statement).mappings()] for name, statement in wanted.items()}


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _rows_sha256(rows: Rows) -> str:
    """Of the rows as one JSON list of lists."""
    digest = hashlib.sha256(b"[")
    for number, row in enumerate(rows):
        digest.update((b"," if number else b"") + _json(list(row)))
    digest.update(b"]")
    return digest.hexdigest()


def _as_json(file: BinaryIO, kinds: dict[str, str], rows: Rows, about: dict[str, Any]) -> int:
    """{"about": ..., "rows": [{column: value}]}, a line for each row."""
    file.write(b'{"about":' + _json(about) + b',\n"rows":[\n')
    written = 0
    for row in rows:
        file.write((b",\n" if written else b"") + _json(dict(zip(kinds, row, strict=True))))
        written += 1
    file.write(b"\n]}\n")
    return written


def _as_csv(file: BinaryIO, kinds: dict[str, str], rows: Rows, about: dict[str, Any]) -> int:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    written = write_rows(text, itertools.chain([tuple(kinds)], rows), "\r\n") - 1
    text.detach()  # which writes the rest, and leaves the file open
    return written


def _as_parquet(file: BinaryIO, kinds: dict[str, str], rows: Rows, about: dict[str, Any]) -> int:
    arrow = require_pyarrow()
    schema = arrow.schema(list(kinds.items()), metadata={"merton": _json(about)})
    written = 0
    with parquet_writer(file, schema) as writer:
        while some := list(islice(rows, ROWS_OF_A_GROUP)):
            columns = {name: [row[place] for row in some] for place, name in enumerate(kinds)}
            writer.write_batch(arrow.record_batch(columns, schema=schema))
            written += len(some)
    return written


_WRITERS: dict[str, Callable[[BinaryIO, dict[str, str], Rows, dict[str, Any]], int]] = {
    ".csv": _as_csv,
    ".json": _as_json,
    ".parquet": _as_parquet,
}
