"""Foreign response matrices: agents x cases, blank where an agent was not put to a case.

A row is an agent, a column a case, a cell the agent's score in 0..1. The columns that say who the agent is are known by
their names (`AGENT_COLUMNS`, `VERSION_COLUMNS`) or named by the caller.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from merton.errors import InfrastructureError, InputError, require
from merton.results.checking import checked_name
from merton.results.export import FORMULA_STARTS
from merton.results.records import AgentRecord, CaseRecord, ForeignScore
from merton.results.schema import AGENTS, CASES, IMPORTS
from merton.results.store import ResultStore, register

AGENT_COLUMNS = ("agent", "model", "model_name", "system")
VERSION_COLUMNS = ("version", "revision", "model_revision")

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class ResponseMatrix:
    """A response matrix as it was read.

    Attributes:
        source: its name.
        agents: one for each row.
        cases: names of the columns with scores.
        cells: (agent, case, score in 0..1) of every cell that is not blank.
        blanks: how many are.
        file_name, file_sha256: where it came from.
    """

    source: str
    agents: tuple[AgentRecord, ...]
    cases: tuple[str, ...]
    cells: tuple[tuple[str, str, float], ...]
    blanks: int
    file_name: str
    file_sha256: str


@dataclass(frozen=True)
class Imported:
    """What an import brought: the matrix's name and size, and how many scores were new to the record."""

    source: str
    agents: int
    cases: int
    scores: int
    blanks: int
    new: int


def import_matrix(
    store: ResultStore, matrix: ResponseMatrix, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> Imported:
    """Take a response matrix into the record, all of it or nothing; the same one again changes nothing.

    A matrix that has grown may be imported under the same name, as long as no score differs.

    Args:
        store: the record.
        matrix: what `read_matrix` found.
        on_progress: told how many scores of how many are written.

    Raises:
        InputError: an agent is in the record with another version, a case belongs to another source, or a score differs
            from the one in the record.
        InfrastructureError: the record or the disk fails.
    """
    source = matrix.source
    scores = [ForeignScore(source, *cell) for cell in matrix.cells]
    with store.database.transaction() as connection:
        origin = {"source": source, "file_sha256": matrix.file_sha256, "file_name": matrix.file_name}
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        store.database.insert_new(connection, IMPORTS, [{**origin, "imported_utc": now}])
        for agent in matrix.agents:
            register(store.database, connection, AGENTS, "agent", asdict(agent))
        add_cases(store, connection, [CaseRecord(case, source) for case in matrix.cases])
        new = store.write_scores(connection, scores, lambda done: on_progress(done, len(scores)))
    return Imported(source, len(matrix.agents), len(matrix.cases), len(scores), matrix.blanks, new)


def add_cases(store: ResultStore, connection: sa.Connection, cases: Sequence[CaseRecord]) -> None:
    """Put foreign cases into the record; raises InputError if one of their ids is a case of another source."""
    store.database.insert_new(connection, CASES, [asdict(case) for case in cases])
    owners = {row.id: row.source for row in connection.execute(sa.select(CASES.c.id, CASES.c.source))}
    for case in cases:
        if owners[case.id] != case.source:
            other = f"of {owners[case.id]!r}" if owners[case.id] else "of Merton's own"
            raise InputError(
                f"the record has a case {case.id!r} {other} already; rename the column, or import under that name"
            )


def read_matrix(
    path: Path, source: str | None = None, *, agent_column: str | None = None, version_column: str | None = None
) -> ResponseMatrix:
    """Read and check a response matrix. A blank is never a zero.

    Args:
        path: a .csv or .parquet file.
        source: name of the matrix; the file's without its ending if None.
        agent_column: the column with the agents' ids; if None, the one of `AGENT_COLUMNS` that is there.
        version_column: the column with their versions; if None, the one of `VERSION_COLUMNS` that is there, if any.

    Raises:
        InputError: the file is not as it should be; line and column are named.
        MissingDependencyError: the file is Parquet and pyarrow is not installed.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a directory; a response matrix is a .csv or .parquet file") from None
    except OSError as error:
        raise InfrastructureError(f"cannot read {path}: {error.strerror}") from None
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"a response matrix is a .csv or .parquet file, not {path.name!r}")
    rows = _csv_rows(path.name, content) if path.suffix == ".csv" else _parquet_rows(path.name, content)
    where, header = next(rows, ("", []))
    header = [name.strip() if isinstance(name, str) else name for name in header]
    agent_at, version_at = _id_columns(path.name, header, agent_column, version_column)
    places = [place for place in range(len(header)) if place not in (agent_at, version_at)]
    if not places:
        raise InputError(f"{path.name} has no column of scores beside those of the agents")
    for place in places:
        _tame(f"case in column {place + 1} of {path.name}", header[place])
    agents: dict[str, AgentRecord] = {}
    lines: dict[str, str] = {}
    cells: list[tuple[str, str, float]] = []
    blanks = 0
    for where, row in rows:
        at = f"{where} of {path.name}"
        if len(row) != len(header):
            raise InputError(f"{at} has {len(row)} cells, the header has {len(header)}")
        agent = _tame(f"agent in {at}", _text(row[agent_at]))
        if agent in agents:
            raise InputError(f"agent {agent!r} is in {lines[agent]} and again in {at}; each agent has one row")
        version = _text(row[version_at]) if version_at is not None else ""
        agents[agent] = AgentRecord(agent, _tame(f"version in {at}", version) if version else None)
        lines[agent] = where
        for place in places:
            score = _score(row[place], f"{at}, column {place + 1} ({header[place]})")
            if score is None:
                blanks += 1
            else:
                cells.append((agent, header[place], score))
    if not agents:
        raise InputError(f"{path.name} has no agents: there is nothing below its header")
    return ResponseMatrix(
        source=_tame("name of the source", source or path.stem),
        agents=tuple(agents.values()),
        cases=tuple(header[place] for place in places),
        cells=tuple(cells),
        blanks=blanks,
        file_name=_tame("name of the file", path.name),
        file_sha256=hashlib.sha256(content).hexdigest(),
    )


Row = tuple[str, list[Any]]
"""Where it stands, for messages, and its cells: text, numbers or None."""


def _csv_rows(name: str, content: bytes) -> Iterator[Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"line {line} of {name} is not UTF-8 text") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:  # a blank line is no agent
                yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} of {name} is not CSV: {error}") from None


def _parquet_rows(name: str, content: bytes) -> Iterator[Row]:
    arrow = require("pyarrow", "dataset", "Parquet")
    parquet = require("pyarrow.parquet", "dataset", "Parquet")
    try:
        table = parquet.ParquetFile(arrow.BufferReader(content)).read()
        columns = [table.column(place).to_pylist() for place in range(table.num_columns)]
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{name} is not a Parquet file: {str(error).splitlines()[0][:200]}") from None
    yield "the header", list(table.column_names)
    for number in range(table.num_rows):
        yield f"row {number + 1}", [column[number] for column in columns]


def _id_columns(name: str, header: Sequence[str], agent: str | None, version: str | None) -> tuple[int, int | None]:
    """Places of the agents' ids and versions."""
    seen: dict[str, int] = {}
    for place, column in enumerate(header):
        if column in seen:
            raise InputError(f"columns {seen[column] + 1} and {place + 1} of {name} are both called {column[:80]!r}")
        seen[column] = place
    shown = ", ".join(repr(column[:40]) for column in header[:6]) or "none"
    found = []
    for what, given, known in (("agents", agent, AGENT_COLUMNS), ("versions", version, VERSION_COLUMNS)):
        here = [column for column in ((given,) if given else known) if column in seen]
        if given and not here:
            raise InputError(f"{name} has no column {given!r}; it has {shown}")
        if not given and len(here) > 1:
            raise InputError(f"{name} has the columns {' and '.join(here)}; say which one holds the {what}")
        found.append(seen[here[0]] if here else None)
    if found[0] is None:
        raise InputError(
            f"{name} has no column of agents, called {', '.join(AGENT_COLUMNS)} or as you say; it has {shown}"
        )
    return found[0], found[1]


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _tame(what: str, name: str) -> str:
    """A name that may be stored and shown; raises InputError for long, invisible or formula-like ones."""
    checked_name(what, name)
    if name.startswith(FORMULA_STARTS):
        raise InputError(f"the {what} looks like a formula of a spreadsheet: {name[:80]!r}")
    return name


def _score(cell: Any, at: str) -> float | None:
    """The number in a cell; None if it is blank."""
    if isinstance(cell, str):
        cell = cell.strip()
        if not cell:
            return None
        if not _NUMBER.fullmatch(cell):
            raise InputError(f"{at}: {cell[:40]!r} is not a number; leave the cell blank if there is no score")
        cell = float(cell)
    if cell is None:
        return None
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise InputError(f"{at}: {str(cell)[:40]!r} is not a number")
    if not math.isfinite(cell) or not 0.0 <= cell <= 1.0:
        raise InputError(f"{at}: the score {cell!r} is not in 0 .. 1; rescale the matrix first")
    return float(cell) + 0.0
