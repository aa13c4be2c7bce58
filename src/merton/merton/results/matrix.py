"""Foreign response matrices: agents x cases, blank where an agent was not measured on a case.

The layout of their tables: `matrix_table`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

import sqlalchemy as sa

from merton.errors import InputError
from merton.files import file_sha256
from merton.progress import OnProgress, unseen
from merton.results.database import file_of
from merton.results.matrix_table import read_table, score_of, stored_name
from merton.results.peers import read_results
from merton.results.records import AgentRecord, CaseRecord, ForeignScore
from merton.results.schema import AGENTS, CASES, IMPORTS
from merton.results.store import ResultStore, register
from merton.results.tables import file_bytes

SUFFIXES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class ResponseMatrix:
    """A response matrix that was read and checked.

    Attributes:
        agents: those of the rows.
        cases: names of the columns with scores, or of the rows of a long table.
        cells: (agent, case, score in 0..1) of every cell that is not blank.
        blanks: the number of blank cells.
        file_name, file_sha256: of the file it was read from.
        metric: that its values were mapped to scores by; empty if they were scores.
        remarks: sentences on what was left out, such as a column that sums up the others.
    """

    source: str
    agents: tuple[AgentRecord, ...]
    cases: tuple[str, ...]
    cells: tuple[tuple[str, str, float], ...]
    blanks: int
    file_name: str
    file_sha256: str
    metric: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """The result of an import: the matrix's name and size, and how many scores were new to the record.

    Attributes:
        blank_agents: of `agents`, those without any score; they are in no match.
    """

    source: str
    agents: int
    cases: int
    scores: int
    blanks: int
    new: int
    blank_agents: int = 0


def import_matrix(store: ResultStore, matrix: ResponseMatrix, on_progress: OnProgress = unseen) -> Imported:
    """Write a response matrix into the record, all of it or nothing; the same one again changes nothing.

    A matrix that has grown may be imported under the same name, as long as no score differs.

    Args:
        on_progress: called with the number of scores written, and their total.

    Raises:
        InputError: an agent is in the record with another version, a case belongs to another source, a score differs
            from the one in the record, or the file was imported by another metric.
        InfrastructureError: the record or the disk fails.
    """
    source = matrix.source
    scores = [ForeignScore(source, *cell) for cell in matrix.cells]
    with store.database.transaction() as connection:
        origin = {
            "source": source,
            "file_sha256": matrix.file_sha256,
            "file_name": matrix.file_name,
            "metric": matrix.metric or None,
        }
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        store.database.insert_new(connection, IMPORTS, [{**origin, "imported_utc": now}])
        _check_metric(connection, matrix)
        for agent in matrix.agents:
            register(store.database, connection, AGENTS, "agent", asdict(agent))
        add_cases(store, connection, [CaseRecord(case, source) for case in matrix.cases])
        new = store.write_scores(connection, scores, lambda done: on_progress(done, len(scores)))
    blank = len({agent.id for agent in matrix.agents} - {score.agent for score in scores})
    return Imported(source, len(matrix.agents), len(matrix.cases), len(scores), matrix.blanks, new, blank)


def _check_metric(connection: sa.Connection, matrix: ResponseMatrix) -> None:
    """Equal scores may come of other values: refuse a file whose values were imported by another metric."""
    same = (IMPORTS.c.source == matrix.source) & (IMPORTS.c.file_sha256 == matrix.file_sha256)
    kept = connection.scalar(sa.select(IMPORTS.c.metric).where(same)) or ""
    if kept != matrix.metric:
        was, now = (f"with --metric {name}" if name else "without --metric" for name in (kept, matrix.metric))
        raise InputError(f"{matrix.file_name} was imported as {matrix.source!r} {was}, and now {now}: do as before")


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


def is_matrix_file(name: str) -> bool:
    """Whether a user names a matrix and no record: a file by its ending, or a folder of JSON without a record."""
    path = Path(name)
    if "://" in name:
        return False
    if path.is_dir():
        return not file_of(path).is_file() and any(path.rglob("*.json"))
    return path.suffix.lower() in (*SUFFIXES, ".json")


def read_matrix(
    path: Path,
    source: str | None = None,
    *,
    agent_column: str | None = None,
    version_column: str | None = None,
    metric: str = "",
    to_score: Callable[[float], float] | None = None,
) -> ResponseMatrix:
    """Read and check a response matrix, see `matrix_table`. A blank is never a zero.

    Args:
        path: a .csv, .tsv or .parquet file; results of other programs, a .json file or a folder (`peers`).
        source: name of the matrix; the file's without its ending if None.
        agent_column: the column with the agents' ids; if None, the one of `AGENT_COLUMNS` that is there.
        version_column: the column with their versions; if None, the one of `VERSION_COLUMNS` that is there, if any.
        metric: name of the cells' metric, to be kept with an import.
        to_score: from a value of that metric to the score in 0..1, such as `rating.metric.Metric.score`; raises
            InputError for a value that the metric does not have. None: the cells are scores.

    Raises:
        InputError: the file is invalid; the sentence names line and column.
        MissingDependencyError: the file is Parquet and pyarrow is not installed.
    """
    if path.is_dir() or path.suffix.lower() == ".json":
        table, digest = read_results(path), _digest_of(path)
    elif path.suffix.lower() in SUFFIXES:
        content = file_bytes(path)
        table, digest = (
            read_table(path.name, content, agent_column, version_column),
            hashlib.sha256(content).hexdigest(),
        )
    else:
        raise InputError(
            f"a response matrix is a .csv, .tsv or .parquet file, or results of lm-eval, mteb or Inspect in .json, not "
            f"{path.name!r}"
        )
    scores = [(agent, case, score_of(cell, where, to_score)) for agent, case, cell, where in table.cells]
    cells = tuple((agent, case, score) for agent, case, score in scores if score is not None)
    return ResponseMatrix(
        source=stored_name("name of the source", source or path.stem),
        agents=table.agents,
        cases=table.cases,
        cells=cells,
        blanks=len(table.agents) * len(table.cases) - len(cells),
        file_name=stored_name("name of the file", path.name),
        file_sha256=digest,
        metric=metric,
        remarks=table.remarks,
    )


def _digest_of(path: Path) -> str:
    """The SHA-256 of a file; of a folder that of its files' names and hashes."""
    if not path.is_dir():
        return file_sha256(path)
    files = [f"{file.relative_to(path)} {file_sha256(file)}\n" for file in sorted(path.rglob("*.json"))]
    return hashlib.sha256("".join(files).encode("utf-8", "replace")).hexdigest()
