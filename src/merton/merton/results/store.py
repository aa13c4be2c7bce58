"""The durable record of trials and foreign scores: a row each, nothing ever changed or removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from merton.errors import InfrastructureError, InputError
from merton.results.checking import checked_score, checked_sha256, checked_trial, require_names
from merton.results.comparison import field_differences
from merton.results.damage import ADVICE
from merton.results.database import Database, file_of
from merton.results.metrics import DEFAULT_METRIC, match_scores
from merton.results.records import (
    AgentRecord,
    CaseRecord,
    ExperimentRecord,
    ForeignScore,
    Outcome,
    Reference,
    Size,
    TestCase,
    TrialRecord,
)
from merton.results.schema import AGENTS, CASES, EXPERIMENTS, IMPORTS, SCORES, TRIALS
from merton.results.schema_version import readable

CHUNK, SCORES_CHUNK = 500, 10_000
"""Trials, and foreign scores, written at once; those of a chunk of trials are read back by one statement."""

_FLAGS = ("reference_success", "cut_short")
"""Columns of 0 and 1."""

_FIELDS = tuple(field.name for field in fields(TrialRecord))
_CHOICES: dict[str, dict[Any, Any]] = {
    "outcome": {None: None, **{item.value: item for item in Outcome}},
    "reference": {None: None, **{item.value: item for item in Reference}},
    **{name: {None: None, 0: False, 1: True} for name in _FLAGS},
}
"""Column to the value in a record of each value that it may hold."""


def _trials_and_cases(connection: sa.Connection) -> sa.Select[Any]:
    of_case = CASES.c.task, CASES.c.seed, CASES.c.distortion, CASES.c.level, readable(connection, CASES.c.group)
    return sa.select(TRIALS, *of_case).join_from(TRIALS, CASES)


class ResultStore:
    """The record of trials in a `merton.results.database.Database`; safe to share between threads.

    Args:
        where: an SQLite file (made, with its folder, unless `read_only`), the directory of a run, or a postgresql://
            URL.
        read_only: open an existing record and change nothing; works while another process writes.

    Raises:
        InputError: there is no such store and `read_only` is set, it is not a store, or another Merton made it.
        InfrastructureError: the disk or the server refuses.
    """

    def __init__(self, where: Path | str, read_only: bool = False) -> None:
        self.database = Database(where, read_only)

    def record(self, record: TrialRecord) -> bool:
        """Store one trial; on return it is on the disk and survives the loss of this process and of power.

        Returns:
            True if the trial is new, False if the same content was stored before (`wall_s` may differ).

        Raises:
            InputError: a score is NaN or out of range, a field cannot be stored, or the trial is already there with
                other content.
            InfrastructureError: the disk is full, read-only or broken, or the server cannot be reached; nothing of this
                trial was stored.
        """
        return self.record_all([record]) == 1

    def record_all(self, records: Iterable[TrialRecord], on_progress: Callable[[int], None] = lambda done: None) -> int:
        """Store trials, all of them or none, as `record` does; `on_progress` is called with the number done.

        Returns:
            The number of new ones.
        """
        checked = [checked_trial(record) for record in records]
        with self.database.transaction() as connection:
            return self.write(connection, checked, on_progress)

    def write(
        self,
        connection: sa.Connection,
        records: Sequence[TrialRecord],
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Store trials that are checked, within a transaction of the caller's; returns how many were new."""
        new = 0
        for start in range(0, len(records), CHUNK):
            chunk = records[start : start + CHUNK]
            new += self._write_chunk(connection, chunk)
            on_progress(start + len(chunk))
        return new

    def _write_chunk(self, connection: sa.Connection, records: Sequence[TrialRecord]) -> int:
        insert = self.database.insert_new
        # in the order of the records, so that rows do not depend on how those are divided into chunks
        insert(connection, EXPERIMENTS, [{"id": name} for name in dict.fromkeys(item.experiment for item in records)])
        insert(connection, AGENTS, [{"id": name} for name in dict.fromkeys(item.agent for item in records)])
        cases = {item.case.id: asdict(item.case) for item in records}
        insert(connection, CASES, [{"id": name, "source": "", **case} for name, case in cases.items()])
        new = insert(connection, TRIALS, [_row_from_record(record) for record in records])
        # Read back before the write is acknowledged: rows that were there already must be the same.
        keys = sa.tuple_(TRIALS.c.experiment, TRIALS.c.id).in_([(item.experiment, item.id) for item in records])
        rows = connection.execute(_trials_and_cases(connection).where(keys))
        stored = {(item.experiment, item.id): item for item in _records_from_rows(rows)}
        for record in records:
            known = stored[record.experiment, record.id].case
            if known == record.case and known.scene != record.case.scene:
                raise InputError(
                    f"case {record.case.id!r} is in the record as one of the scene {known.scene!r}, not "
                    f"{record.case.scene!r}: keep the two in records of their own"
                )
            if differences := field_differences(stored[record.experiment, record.id], record):
                raise InputError(
                    f"trial {record.id!r} of experiment {record.experiment!r} is already stored with other content: "
                    f"{'; '.join(differences)}"
                )
        return new

    def register_agent(
        self, id: str, version: str | None = None, weights_sha256: str | None = None, owner: str | None = None
    ) -> bool:
        """Store facts of an agent. None leaves a fact unknown, to be filled in later; a known fact cannot be changed.

        Returns:
            True if any of it was new to the record.

        Raises:
            InputError: the record has another value of a fact; another version needs another id.
        """
        if weights_sha256 is not None:
            checked_sha256(f"weights of agent {id!r}", weights_sha256)
        return self._register(AGENTS, "agent", AgentRecord(id, version, weights_sha256, owner))

    def register_experiment(
        self,
        id: str,
        name: str | None = None,
        seed: int | None = None,
        spec_sha256: str | None = None,
        merton_version: str | None = None,
        created_utc: str | None = None,
        world: str | None = None,
        world_versions: str | Mapping[str, str] | None = None,
    ) -> bool:
        """Store facts of an experiment, by the rules of `register_agent`."""
        if isinstance(world_versions, Mapping):
            world_versions = json.dumps(dict(world_versions), sort_keys=True)
        if spec_sha256 is not None:
            checked_sha256(f"file of experiment {id!r}", spec_sha256)
        about = ExperimentRecord(id, name, seed, spec_sha256, merton_version, created_utc, world, world_versions)
        return self._register(EXPERIMENTS, "experiment", about)

    def register_case(self, case: TestCase, reference_image: str | None = None) -> bool:
        """Store the undistorted picture of a test case (SHA-256 of its file), by the rules of `register_agent`."""
        if reference_image is not None:
            checked_sha256(f"reference image of case {case.id!r}", reference_image)
        about = CaseRecord(case.id, reference_image=reference_image, **case.facts)
        return self._register(CASES, "case", about)

    def write_scores(
        self,
        connection: sa.Connection,
        scores: Sequence[ForeignScore],
        on_progress: Callable[[int], None] = lambda done: None,
    ) -> int:
        """Store the scores of one source, whose agents and cases are there, within a transaction of the caller's.

        Returns:
            The number of new ones.

        Raises:
            InputError: a score is NaN or out of range, or stored already with another value.
        """
        for item in scores:
            checked_score(f"the score of {item.agent!r} on {item.case!r}", item.score)
        new = 0
        for start in range(0, len(scores), SCORES_CHUNK):
            chunk = scores[start : start + SCORES_CHUNK]
            new += self.database.insert_new(connection, SCORES, [asdict(item) for item in chunk])
            on_progress(start + len(chunk))
        if new < len(scores):
            rows = connection.execute(sa.select(SCORES).where(SCORES.c.source == scores[0].source))
            stored = {(row.agent, row.case): row.score for row in rows}
            for item in scores:
                if (known := stored[item.agent, item.case]) != item.score:
                    raise InputError(
                        f"the score of {item.agent!r} on {item.case!r} is already stored as {known!r}, not "
                        f"{item.score!r}; import the new scores under another source name"
                    )
        return new

    def _register(self, table: sa.Table, kind: str, about: AgentRecord | ExperimentRecord | CaseRecord) -> bool:
        with self.database.transaction() as connection:
            return register(self.database, connection, table, kind, asdict(about))

    def experiments(self) -> list[str]:
        """The ids of experiments with at least one trial, sorted."""
        with self.database.reading() as connection:
            return list(connection.scalars(sa.select(TRIALS.c.experiment).distinct().order_by(TRIALS.c.experiment)))

    def ids(self, experiment: str) -> list[str]:
        """The ids of the experiment's stored trials, sorted."""
        statement = sa.select(TRIALS.c.id).where(TRIALS.c.experiment == experiment).order_by(TRIALS.c.id)
        with self.database.reading() as connection:
            return list(connection.scalars(statement))

    def successes(self, experiment: str) -> dict[str, bool | None]:
        """The success of each stored trial of the experiment by its id, in their order; None where none is known."""
        statement = (
            sa.select(TRIALS.c.id, TRIALS.c.success).where(TRIALS.c.experiment == experiment).order_by(TRIALS.c.id)
        )
        with self.database.reading() as connection:
            return {id: None if success is None else bool(success) for id, success in connection.execute(statement)}

    def records(
        self, experiment: str | None = None, *, agent: str | None = None, cases: Collection[str] | None = None
    ) -> list[TrialRecord]:
        """The stored trials of an experiment, or of all, ordered by experiment and trial id.

        Args:
            agent: whose trials alone are wanted.
            cases: ids of the cases whose trials alone are wanted; rows of others are passed over one by one.
        """
        with self.database.reading() as connection:
            statement = _trials_and_cases(connection).order_by(TRIALS.c.experiment, TRIALS.c.id)
            if experiment is not None:
                statement = statement.where(TRIALS.c.experiment == experiment)
            if agent is not None:
                statement = statement.where(TRIALS.c.agent == agent)
            return list(_records_from_rows(connection.execute(statement), cases))

    def experiment_records(self) -> list[ExperimentRecord]:
        """All experiments, by id."""
        return [ExperimentRecord(**row) for row in self._rows_of(EXPERIMENTS)]

    def agents(self) -> list[AgentRecord]:
        """Every agent, by id."""
        return [AgentRecord(**row) for row in self._rows_of(AGENTS)]

    def cases(self) -> list[CaseRecord]:
        """Every test case, Merton's own and foreign ones, by id."""
        return [CaseRecord(**row) for row in self._rows_of(CASES)]

    def scores(self, source: str | None = None) -> list[ForeignScore]:
        """The foreign scores of a source, or of all, ordered by source, agent and case."""
        columns = [SCORES.c[field.name] for field in fields(ForeignScore)]
        statement = sa.select(*columns).order_by(SCORES.c.source, SCORES.c.agent, SCORES.c.case)
        if source is not None:
            statement = statement.where(SCORES.c.source == source)
        with self.database.reading() as connection:
            return [ForeignScore(*row) for row in connection.execute(statement)]

    def import_metrics(self) -> dict[str, str]:
        """Source to the metric that its values were mapped to scores by; those that were scores are left out."""
        rows = self._all(sa.select(IMPORTS.c.source, IMPORTS.c.metric).distinct().order_by(IMPORTS.c.metric))
        found: dict[str, list[str]] = {}
        for row in rows:
            if row["metric"]:
                found.setdefault(row["source"], []).append(row["metric"])
        return {source: " and ".join(metrics) for source, metrics in found.items()}

    def sizes(self) -> tuple[list[Size], list[Size]]:
        """The size of each experiment, and of each foreign source, by name."""
        trials, scores = (
            sa.select(
                table.c[name].label("name"),
                sa.func.count(table.c.agent.distinct()).label("agents"),
                sa.func.count(table.c.case.distinct()).label("cases"),
                sa.func.count().label("results"),
            )
            .group_by(table.c[name])
            .order_by(table.c[name])
            for table, name in ((TRIALS, "experiment"), (SCORES, "source"))
        )
        return [Size(**row) for row in self._all(trials)], [Size(**row) for row in self._all(scores)]

    def matches(self, metric: str = DEFAULT_METRIC) -> list[tuple[str, str, float]]:
        """(agent, case, score of the agent in 0..1) of every scored trial and every foreign score, sorted.

        Raises as `merton.results.metrics.match_scores`.
        """
        with self.database.reading():
            own, foreign = match_scores(self.records(), metric), self.scores()
        return sorted([*own, *((item.agent, item.case, item.score) for item in foreign)])

    def _rows_of(self, table: sa.Table) -> list[dict[str, Any]]:
        """Every row of a table, by id."""
        with self.database.reading() as connection:
            columns = [readable(connection, column) for column in table.c]
            return [dict(row) for row in connection.execute(sa.select(*columns).order_by(table.c.id)).mappings()]

    def _all(self, statement: sa.Select[Any]) -> list[dict[str, Any]]:
        with self.database.reading() as connection:
            return [dict(row) for row in connection.execute(statement).mappings()]

    def close(self) -> None:
        """Close the connections; the store cannot be used afterwards."""
        self.database.close()

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_record(where: str | Path, read_only: bool = False) -> ResultStore:
    """The record a user names on a command line: a run's directory, an SQLite file or a PostgreSQL URL.

    Raises:
        InputError: there is none. Unlike `ResultStore` this makes no file, since the name may be a typing error.
    """
    if "://" not in str(where) and not file_of(where).is_file():
        raise InputError(f"there is no result store at {file_of(where)}")
    return ResultStore(where, read_only)


def register(database: Database, connection: sa.Connection, table: sa.Table, kind: str, about: dict[str, Any]) -> bool:
    """Insert a row by its id, or fill in the NULLs of the row that is there; True if anything was new.

    Raises:
        InputError: the row has other content, or a text is not printable.
    """
    require_names(kind, about)
    id = about["id"]
    if database.insert_new(connection, table, [about]):
        return True
    known = connection.execute(sa.select(table).where(table.c.id == id)).mappings().one()
    changes = {name: value for name, value in about.items() if value is not None and value != known[name]}
    for name, value in changes.items():
        if known[name] is not None:
            why = (
                "its scene begins with another picture, as in another program or another version of it: keep the two "
                "in records of their own"
                if name == "reference_image"
                else f"a different {kind} needs an id of its own"
            )
            raise InputError(f"{kind} {id!r} is in the record with {name} {known[name]!r}, not {value!r}; {why}")
    if changes:
        connection.execute(sa.update(table).where(table.c.id == id).values(changes))
    return bool(changes)


def _row_from_record(record: TrialRecord) -> dict[str, Any]:
    row = {field.name: getattr(record, field.name) for field in fields(TrialRecord)}
    row |= {name: None if row[name] is None else int(row[name]) for name in _FLAGS}
    reference = record.reference.value if record.reference else None
    return {**row, "id": record.id, "case": record.case.id, "outcome": record.outcome.value, "reference": reference}


def _records_from_rows(rows: sa.CursorResult[Any], wanted: Collection[str] | None = None) -> Iterator[TrialRecord]:
    """The records of rows of `_TRIALS_AND_CASES`, of the wanted cases alone; equal cases and texts are one object."""
    columns = list(rows.keys())
    id_of, case_id_of = itemgetter(columns.index("id")), itemgetter(columns.index("case"))
    values_of = itemgetter(*(columns.index(name) for name in _FIELDS))
    case_of = itemgetter(*(columns.index(field.name) for field in fields(TestCase)))
    cases: dict[str, TestCase] = {}
    texts: dict[str, str] = {}
    for row in rows:
        case_id = case_id_of(row)
        if wanted is not None and case_id not in wanted:
            continue
        if (case := cases.get(case_id)) is None:
            case = cases[case_id] = TestCase(*case_of(row))
        values = dict(zip(_FIELDS, values_of(row), strict=True))
        for name, known in _CHOICES.items():
            if values[name] not in known:
                raise InfrastructureError(
                    f"the record is damaged: the {name} of trial {id_of(row)!r} is {values[name]!r}; {ADVICE}"
                )
            values[name] = known[values[name]]
        for name in ("experiment", "agent", "error_message"):
            values[name] = texts.setdefault(values[name], values[name])
        values["case"] = case
        yield TrialRecord(**values)
