"""A record of an older Merton is not lost: it is read as it is, and brought up to date when it is written."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import new_database
from test_store import trial

from merton.errors import InputError
from merton.results import migrations
from merton.results.matrix import import_matrix, read_matrix
from merton.results.records import AgentRecord, CaseRecord, ExperimentRecord, Outcome, Reference, TestCase, TrialRecord
from merton.results.schema import IMPORTS, SCHEMA_VERSION, SUBMISSION_EVENTS, TRIALS
from merton.results.store import ResultStore
from patience import stretched

VERSION_1 = """
CREATE TABLE trials (
    experiment TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    task TEXT NOT NULL,
    seed INTEGER NOT NULL,
    distortion TEXT NOT NULL,
    level INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    cognition DOUBLE,
    decision DOUBLE,
    execution DOUBLE,
    distance_m DOUBLE,
    steps INTEGER NOT NULL,
    simulated_s DOUBLE NOT NULL,
    wall_s DOUBLE NOT NULL,
    error_code INTEGER NOT NULL,
    error_message TEXT NOT NULL,
    PRIMARY KEY (experiment, id)
) WITHOUT ROWID;
"""
"""As `.schema` of the sqlite3 shell shows it in a results.sqlite that Merton 0.1.0 wrote."""

RECORDS = [
    trial(0),
    trial(1, agent="hold", execution=None, outcome=Outcome.INFRASTRUCTURE, cognition=None),
    trial(2**62, case=TestCase("place", 2**62, "reference", 0), distance_m=None, error_message="Ärger, 'quoted'"),
    trial(0, experiment="other", execution=1 / 3),
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file of version 1, in WAL mode as they all were."""
    path = tmp_path / "results.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"{VERSION_1} PRAGMA user_version = 1;")
        for record in RECORDS:
            connection.execute(f"INSERT INTO trials VALUES ({', '.join('?' * 17)})", as_row(record))
    connection.close()
    return path


def as_row(record: TrialRecord) -> tuple[object, ...]:
    case = record.case
    head = (record.experiment, record.id, record.agent, case.task, case.seed, case.distortion, case.level)
    scores = (record.outcome.value, record.cognition, record.decision, record.execution, record.distance_m)
    return (*head, *scores, record.steps, record.simulated_s, record.wall_s, record.error_code, record.error_message)


def check(store: ResultStore) -> None:
    expected = sorted(RECORDS, key=lambda record: (record.experiment, record.id))
    assert [record for record in store.records() if record.experiment != "third"] == expected
    assert store.agents() == [AgentRecord("hold"), AgentRecord("servo")]
    assert store.experiment_records()[:2] == [ExperimentRecord("other"), ExperimentRecord("study")]
    assert CaseRecord(f"place.{2**62}.reference.0", "", "place", 2**62, "reference", 0) in store.cases()
    assert len(store.matches("execution")) == 3


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_reading_an_old_file_shows_everything_and_leaves_it_alone(old: Path) -> None:
    before = old.read_bytes()
    with ResultStore(old, read_only=True) as store:
        check(store)
    assert old.read_bytes() == before


def test_an_old_file_that_cannot_be_written_is_read_all_the_same(old: Path) -> None:
    old.chmod(0o444)
    old.parent.chmod(0o555)
    try:
        with ResultStore(old, read_only=True) as store:
            check(store)
    finally:
        old.parent.chmod(0o755)


def test_writing_to_an_old_file_brings_it_up_to_date_once(old: Path) -> None:
    for new in (True, False):
        with ResultStore(old) as store:
            check(store)
            assert store.record(trial(0)) is False
            assert store.record(trial(0, experiment="third", execution=None)) is new
            with store.database.reading() as connection:
                assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        assert version(old) == SCHEMA_VERSION


def test_a_kill_in_the_middle_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last thing a migration does is to note the version; a process dies just before."""

    def die(_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(migrations, "set_version", die)
        ResultStore(old)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert version(old) == 1
    with ResultStore(old) as store:
        check(store)
    assert version(old) == SCHEMA_VERSION


def test_two_that_open_an_old_file_at_once_migrate_it_once(old: Path) -> None:
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        try:
            barrier.wait(stretched(60))
            with ResultStore(old) as store:
                check(store)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert version(old) == SCHEMA_VERSION


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "browser.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    for read_only in (False, True):
        with pytest.raises(InputError, match="is not a result store"):
            ResultStore(path, read_only)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


VERSION_2 = """
CREATE TABLE trials (
    experiment TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    "case" TEXT NOT NULL,
    outcome TEXT NOT NULL,
    cognition DOUBLE PRECISION,
    decision DOUBLE PRECISION,
    execution DOUBLE PRECISION,
    distance_m DOUBLE PRECISION,
    steps INTEGER NOT NULL,
    simulated_s DOUBLE PRECISION NOT NULL,
    wall_s DOUBLE PRECISION NOT NULL,
    error_code INTEGER NOT NULL,
    error_message TEXT NOT NULL,
    PRIMARY KEY (experiment, id),
    CONSTRAINT cognition_in_range CHECK (cognition >= 0 AND cognition <= 1),
    CONSTRAINT decision_in_range CHECK (decision >= 0 AND decision <= 1),
    CONSTRAINT execution_in_range CHECK (execution >= 0 AND execution <= 100),
    CONSTRAINT a_fault_has_no_score CHECK (outcome <> 'infrastructure' OR execution IS NULL),
    FOREIGN KEY(experiment) REFERENCES experiments (id),
    FOREIGN KEY(agent) REFERENCES agents (id),
    FOREIGN KEY("case") REFERENCES cases (id)
)
"""
"""As SQLAlchemy wrote it for schema version 2; every other table is as it was."""

SETTLED = [
    replace(trial(number), outcome=outcome, progress=progress, execution=score, error_code=code, cut_short=cut_short)
    for number, (outcome, progress, score, code, cut_short) in enumerate(
        [
            (Outcome.SUCCESS, 1.0, 100.0, 0, False),
            (Outcome.FAILURE, None, 93.125, 0, False),
            (Outcome.FAILURE, None, 93.125, 303, None),
            (Outcome.EMERGENCY_STOP, 0.0, 0.0, 304, None),
            (Outcome.INVALID_ACTION, 0.0, 0.0, 101, None),
            (Outcome.INFRASTRUCTURE, None, None, 400, None),
        ]
    )
]


@pytest.fixture(params=["sqlite", "postgresql"])
def version_2(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A record of version 2 with `SETTLED`."""
    where = str(tmp_path / "results.sqlite") if request.param == "sqlite" else new_database()
    with ResultStore(where) as store:
        store.record_all(SETTLED)
        with store.database.transaction() as connection:
            names = [column.name for column in TRIALS.c if column.name not in {"success", *migrations.NEW_IN_3}]
            rows = connection.execute(sa.select(*(TRIALS.c[name] for name in names))).all()
            connection.exec_driver_sql("DROP TABLE trials")
            connection.exec_driver_sql(VERSION_2)
            old = sa.table("trials", *(sa.column(name) for name in names))
            connection.execute(sa.insert(old), [row._asdict() for row in rows])
            if request.param == "sqlite":
                connection.exec_driver_sql("PRAGMA user_version = 2")
            else:
                connection.exec_driver_sql("UPDATE schema_version SET version = 2")
    return where


def test_version_2_gets_the_scores_that_follow_from_its_outcomes(version_2: str) -> None:
    for new in (True, False):
        with ResultStore(version_2) as store:
            assert store.records("study") == SETTLED
            assert store.record(trial(0, experiment="third", progress=0.5, reference=Reference.ORACLE)) is new
            with store.database.reading() as connection:
                assert migrations.version(connection) == SCHEMA_VERSION
                rows = connection.execute(sa.text("SELECT success FROM trials ORDER BY experiment, id")).scalars()
                assert rows.all() == [1, 0, 0, 0, 0, None, 0]
                tables = sa.inspect(connection).get_table_names()
            assert not [name for name in tables if "older" in name]


def update(store: ResultStore, change: str) -> None:
    with store.database.transaction() as connection:
        connection.exec_driver_sql(f"UPDATE trials SET {change}")


def test_a_migrated_record_refuses_what_a_new_one_refuses(version_2: str) -> None:
    with ResultStore(version_2) as store:
        for change in (
            "progress = 1 WHERE outcome = 'failure'",
            "progress = 0.5 WHERE outcome = 'success'",
            "progress = 0 WHERE outcome = 'infrastructure'",
            "reference = 'mine'",
            "cut_short = 2",
        ):
            with pytest.raises(InputError, match="cannot hold this"):
                update(store, change)
        assert store.records("study") == SETTLED


def test_version_3_learns_of_abstentions(tmp_path: Path) -> None:
    """Its table of trials, as SQLAlchemy wrote it, was today's without the success of an abstention."""
    path = tmp_path / "results.sqlite"
    with ResultStore(path) as store:
        store.record_all(SETTLED)
    with closing(sqlite3.connect(path)) as connection, connection:
        (today,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'trials'").fetchone()
        columns = ", ".join(f'"{column.name}"' for column in TRIALS.c if column.name != "success")
        connection.execute("ALTER TABLE trials RENAME TO copy")
        connection.execute(today.replace(" WHEN 'abstained' THEN 0", ""))
        connection.execute(f"INSERT INTO trials ({columns}) SELECT {columns} FROM copy")
        connection.execute("DROP TABLE copy")
        connection.execute("PRAGMA user_version = 3")
    refused = replace(trial(9), outcome=Outcome.ABSTAINED, execution=0.0, progress=0.0, error_code=311)
    with ResultStore(path) as store:
        assert sorted(store.records(), key=lambda item: item.case) == sorted(SETTLED, key=lambda item: item.case)
        store.record(refused)
        with store.database.reading() as connection:
            stored = connection.execute(sa.select(TRIALS.c.success).where(TRIALS.c.outcome == "abstained")).all()
        assert stored == [(0,)]
    assert version(path) == SCHEMA_VERSION


@pytest.mark.parametrize("server", [False, True])
def test_version_5_learns_of_evaluations(server: bool, tmp_path: Path) -> None:
    """Its tables were today's without the steps of evaluations."""
    where = new_database() if server else str(tmp_path / "results.sqlite")
    with ResultStore(where) as store:
        store.record_all(SETTLED)
        with store.database.transaction() as connection:
            connection.exec_driver_sql("DROP TABLE submission_events")
            connection.exec_driver_sql("UPDATE schema_version SET version = 5" if server else "PRAGMA user_version = 5")
    with ResultStore(where) as store:
        assert sorted(store.records(), key=lambda item: item.case) == sorted(SETTLED, key=lambda item: item.case)
        with store.database.reading() as connection:
            assert migrations.version(connection) == SCHEMA_VERSION
            assert connection.execute(sa.select(SUBMISSION_EVENTS)).all() == []


def test_version_6_learns_of_the_metrics_of_imports(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    (tmp_path / "m.csv").write_text("model,a\none,1\n")
    with ResultStore(path) as store:
        import_matrix(store, read_matrix(tmp_path / "m.csv"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE imports DROP COLUMN metric")
        connection.execute("PRAGMA user_version = 6")
    (tmp_path / "m.csv").write_text("model,a\ntwo,0\n")
    with ResultStore(path) as store:
        import_matrix(store, read_matrix(tmp_path / "m.csv", metric="pass_all", to_score=float))
        with store.database.reading() as connection:
            kept = [row.metric for row in connection.execute(sa.select(IMPORTS).order_by(IMPORTS.c.imported_utc))]
    assert sorted(kept, key=str) == [None, "pass_all"]
    assert version(path) == SCHEMA_VERSION
