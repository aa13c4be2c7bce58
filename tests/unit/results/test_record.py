"""One promise, two databases: every test here runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import csv
import hashlib
import math
import os
import random
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import new_database
from test_store import trial

from merton import __version__
from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.experiment.run import RunDirectory
from merton.leaderboard.snapshot import store as snapshot
from merton.results.export import export
from merton.results.merge import merge
from merton.results.records import AgentRecord, CaseRecord, ExperimentRecord, Outcome, Reference, TestCase, TrialRecord
from merton.results.schema import METADATA, SUBMISSIONS, TRIALS
from merton.results.store import ResultStore, open_record
from patience import until

HASH = "0123456789abcdef" * 4


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place for a record, with nothing there yet."""
    return str(tmp_path / "record.sqlite") if request.param == "sqlite" else new_database()


def test_records_are_read_back_equal_and_in_order_of_code_points(where: str) -> None:
    records = [trial(number, agent=agent) for number in (10, 2, 1) for agent in ("zeta", "Zeta", "_a", "Ärger")]
    records.append(trial(3, outcome=Outcome.INFRASTRUCTURE, cognition=None, decision=None, execution=None))
    records.append(trial(4, error_message="torn \udcff and \0", case=TestCase("pick", 2**63 - 1, "reference", 0)))
    with ResultStore(where) as store:
        assert all(store.record(record) for record in records)
    with ResultStore(where, read_only=True) as store:
        records[-1] = replace(records[-1], error_message="torn ? and ?")
        assert store.records("study") == sorted(records, key=lambda record: record.id)
        assert store.ids("study") == sorted(record.id for record in records)
        assert [agent.id for agent in store.agents()] == ["Zeta", "_a", "servo", "zeta", "Ärger"]
        assert store.experiments() == ["study"]
        assert store.records("another") == []


def test_every_score_is_read_back_and_exported(where: str, tmp_path: Path) -> None:
    known = {"progress": 0.75, "path_m": 0.125, "angle_rad": math.pi, "reference_success": False, "cut_short": True}
    scored = trial(1, reference=Reference.ORACLE, **known)
    done = trial(2, outcome=Outcome.SUCCESS, progress=1.0, execution=100.0, reference=Reference.NONE, cut_short=False)
    lost = trial(3, outcome=Outcome.INFRASTRUCTURE, execution=None)
    with ResultStore(where) as store:
        store.record_all([scored, done, lost])
        assert store.records("study") == [scored, done, lost]
        assert repr(store.successes("study")) == repr({scored.id: False, done.id: True, lost.id: None})
        assert store.successes("another") == {}
        assert [type(record.cut_short) for record in store.records()] == [bool, bool, type(None)]
        export(store, tmp_path / "trials.csv")
    lines = list(csv.DictReader((tmp_path / "trials.csv").open(encoding="utf-8")))
    names = ("success", "progress", "reference", "reference_success", "cut_short")
    assert [tuple(line[name] for name in names) for line in lines] == [
        ("0", "0.75", "oracle", "0", "1"),
        ("1", "1.0", "none", "", "0"),
        ("", "", "", "", ""),
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"progress": 1.0}, "progress of .* is 1.0 and its outcome 'failure'"),
        ({"progress": float("nan")}, r"progress of .* must be in 0 \.\. 1"),
        ({"progress": 0.5, "outcome": Outcome.SUCCESS}, "1 exactly for a success"),
        ({"progress": 0.0, "outcome": Outcome.INFRASTRUCTURE, "execution": None}, "cannot have the score progress"),
        ({"angle_rad": 3.2}, "angle_rad"),
        ({"path_m": -0.1}, "path_m"),
        ({"reference": "mine"}, "unknown reference 'mine' .* own, oracle, none"),
    ],
)
def test_scores_that_contradict_the_outcome_are_refused(tmp_path: Path, changes: dict, says: str) -> None:
    with ResultStore(tmp_path / "record.sqlite") as store, pytest.raises(InputError, match=says):
        store.record(trial(1, **changes))


def test_the_same_again_is_stored_once_and_other_content_is_refused(where: str) -> None:
    with ResultStore(where) as store:
        assert store.record(trial()) is True
        assert store.record(trial(wall_s=99.0)) is False
        assert store.record(trial(experiment="other")) is True
        with pytest.raises(InputError, match=r"servo\.pick\.0\.gaussian_blur\.3.*execution 93.125 against 12.0"):
            store.record(trial(execution=12.0))
        assert store.records("study") == [trial()]


def test_many_trials_are_all_stored_or_none(where: str) -> None:
    many = [trial(number) for number in range(1200)]
    told: list[int] = []
    with ResultStore(where) as store:
        store.record(trial(1100))
        assert store.record_all(many, told.append) == 1199
        assert told == [500, 1000, 1200]
        assert store.record_all(many) == 0
        with pytest.raises(InputError, match="already stored with other content"):
            store.record_all([trial(5000), trial(7, decision=0.0)])
        assert store.records() == sorted(many, key=lambda record: record.id)


def test_a_case_has_the_task_scene_and_level_of_its_id(where: str) -> None:
    """Two cases that would share an id are told apart, not mixed up."""
    with ResultStore(where) as store:
        store.record(trial(case=TestCase("a", 0, "b.1.c", 2)))
        with pytest.raises(InputError, match="other content"):
            store.record(trial(experiment="other", case=TestCase("a.0.b", 1, "c", 2)))


def test_facts_of_agents_experiments_and_cases_are_added_and_never_changed(where: str) -> None:
    with ResultStore(where) as store:
        store.record(trial())
        assert store.agents() == [AgentRecord("servo")]
        assert store.register_agent("servo", version="1.0") is True
        assert store.register_agent("servo", "1.0", HASH, "lab") is True
        assert store.register_agent("servo", owner="lab") is False
        assert store.register_agent("new", owner="lab") is True
        with pytest.raises(InputError, match=r"agent 'servo' is in the record with version '1.0', not '2.0'.*own"):
            store.register_agent("servo", version="2.0")
        with pytest.raises(InputError, match="SHA-256"):
            store.register_agent("servo", weights_sha256="abc")
        assert store.agents() == [AgentRecord("new", owner="lab"), AgentRecord("servo", "1.0", HASH, "lab")]
        assert store.register_experiment("study", "blur", 7, HASH, "0.1.0", "2026-11-21T08:00:00+00:00") is True
        assert store.register_experiment("study", seed=7) is False
        with pytest.raises(InputError, match="seed 7, not 8"):
            store.register_experiment("study", seed=8)
        assert store.experiment_records()[0] == ExperimentRecord(
            "study", "blur", 7, HASH, "0.1.0", "2026-11-21T08:00:00+00:00"
        )
        versions = {f"package {number}": "1.0" for number in range(100)}
        assert store.register_experiment("far", world="libero", world_versions=versions) is True
        assert store.register_case(trial().case, HASH) is True
        case = CaseRecord("pick.0.gaussian_blur.3", "", "pick", 0, "gaussian_blur", 3, HASH)
        assert store.cases() == [case]


def test_a_run_stores_its_facts_and_those_of_its_agents(where: str, tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("{name: tiny, seed: 5, agents: [{id: mine, vla: servo}], tasks: [pick], levels: [0]}\n")
    run = RunDirectory.create(tmp_path / "runs", file, "first")
    with ResultStore(where) as store:
        for _ in range(2):  # as after --resume
            run.register(store)
        assert store.agents() == [AgentRecord("mine", "describe + servo")]
        (about,) = store.experiment_records()
        assert (about.id, about.name, about.seed, about.merton_version) == ("first", "tiny", 5, __version__)
        assert about.spec_sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
        assert about.created_utc is not None
        assert about.created_utc.endswith("+00:00")
        file.write_text("{name: tiny, seed: 5, agents: [{id: mine, vla: hold}], tasks: [pick], levels: [0]}\n")
        with pytest.raises(InputError, match=r"agent 'mine' is in the record with version 'describe \+ servo', not"):
            RunDirectory.create(tmp_path / "runs", file, "second").register(store)


@pytest.mark.parametrize("name", ["", "evil\u202egnp", "two\nlines", "x" * 10_000, "nul\0"])
def test_names_that_could_lie_are_refused(where: str, name: str) -> None:
    with ResultStore(where) as store:
        with pytest.raises(InputError, match="agent"):
            store.register_agent(name)
        with pytest.raises(InputError, match="owner of agent 'fine'"):
            store.register_agent("fine", owner=name or "\n")
        assert store.agents() == []


def test_matches_are_a_view_of_trials_and_scores(where: str) -> None:
    with ResultStore(where) as store:
        store.record(trial(0))
        store.record(trial(1, execution=None))
        store.record(trial(2, execution=100.0, agent="hold"))
        failed, done = ("servo", trial(0).case.id), ("hold", trial(2).case.id)
        assert store.matches("execution") == [(*done, 1.0), (*failed, 93.125 / 100.0)]
        assert store.matches() == [(*done, 0.0), (*failed, 0.0), ("servo", trial(1).case.id, 0.0)], "by success"


def test_the_database_itself_refuses_scores_that_are_none(where: str) -> None:
    """The last check, for a program that writes past the others."""
    with ResultStore(where) as store:
        store.record(trial())
        for change in ({"cognition": 1.5}, {"execution": -1.0}, {"outcome": "infrastructure", "execution": 5.0}):
            with pytest.raises(InputError, match="cannot hold this"), store.database.transaction() as connection:
                connection.execute(sa.update(TRIALS).values(change))
        assert store.records("study") == [trial()]


def test_a_reader_sees_a_running_writer_and_cannot_write(where: str) -> None:
    with ResultStore(where) as writer, ResultStore(where, read_only=True) as reader:
        writer.record(trial(1))
        assert reader.ids("study") == [trial(1).id]
        with pytest.raises(InfrastructureError, match=r"read-?only"):
            reader.record(trial(2))
        with writer.database.transaction() as connection:  # readers do not wait for writers
            connection.execute(sa.update(TRIALS).values(steps=5))
            assert reader.records("study") == [trial(1)]
        assert reader.records("study") == [trial(1, steps=5)]


def test_a_reading_transaction_is_one_state(where: str) -> None:
    count = sa.select(sa.func.count()).select_from(TRIALS)
    with ResultStore(where) as writer, ResultStore(where, read_only=True) as reader:
        writer.record(trial(1))
        with reader.database.reading() as connection:
            assert connection.scalar(count) == 1
            writer.record(trial(2))
            assert connection.scalar(count) == 1
        assert len(reader.ids("study")) == 2


def test_a_read_of_a_whole_record_sees_one_state(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process registers an agent and stores its trial between two reads of a snapshot, or of a merge."""
    with ResultStore(where) as writer, ResultStore(where, read_only=True) as reader:
        writer.record(trial(1))
        writer.register_agent("servo", "1.0")
        calm = snapshot.to_json(snapshot.take(reader))
        read_agents = reader.agents
        late = iter(range(10, 20))

        def agents_and_then_a_write() -> list[AgentRecord]:
            found = read_agents()
            number = next(late)
            writer.register_agent(f"late {number}", "2.0")
            writer.record(trial(number, agent=f"late {number}"))
            return found

        monkeypatch.setattr(reader, "agents", agents_and_then_a_write)
        assert snapshot.to_json(snapshot.take(reader)) == calm
        with ResultStore(tmp_path / "lab.sqlite") as lab:
            merge(reader, lab)
            assert sorted(agent.id for agent in lab.agents()) == ["late 10", "servo"]
            assert {item.agent for item in lab.records()} == {"late 10", "servo"}
            assert {agent.id: agent.version for agent in lab.agents()}["late 10"] == "2.0"


def test_an_error_inside_a_transaction_undoes_all_of_it(where: str) -> None:
    with ResultStore(where) as store:
        store.record(trial(1))
        with pytest.raises(ZeroDivisionError), store.database.transaction() as connection:
            assert connection.execute(sa.delete(TRIALS)).rowcount / 0
        assert store.records("study") == [trial(1)]


def test_a_transaction_inside_another_is_refused_and_undoes_both(tmp_path: Path) -> None:
    """SQLite has one connection; PostgreSQL would let the second one wait for the first."""
    with ResultStore(tmp_path / "r.sqlite") as store:

        def write_twice() -> None:
            with store.database.transaction() as outer:
                store.write(outer, [trial(1)])
                store.record(trial(2))

        with pytest.raises(InfrastructureError, match="within a transaction"):
            write_twice()
        assert store.records() == []
        assert store.record(trial(3)) is True


def test_two_stores_and_many_threads_write_at_once(where: str) -> None:
    with ResultStore(where) as one, ResultStore(where) as two, ThreadPoolExecutor(16) as pool:
        # Each trial is written twice, once through either store.
        new = list(pool.map(lambda number: (one, two)[number % 2].record(trial(number // 2)), range(80)))
        assert sum(new) == 40
        assert one.records("study") == two.records("study")
        assert len(one.ids("study")) == 40


def test_content_read_inside_a_transaction_does_not_change_until_its_end(where: str) -> None:
    """Count, then add if there is room: with one writer at a time no other comes between."""
    count = sa.select(sa.func.count()).select_from(SUBMISSIONS)

    def submit(number: int) -> None:
        with ResultStore(where) as store, store.database.transaction() as connection:
            if connection.scalar(count) == 0:
                store.database.insert_new(connection, SUBMISSIONS, [submission(str(number), f"maker {number}")])

    ResultStore(where).close()
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(submit, range(10)))
    with ResultStore(where) as store, store.database.reading() as connection:
        assert connection.scalar(count) == 1


def submission(id: str, manufacturer: str, status: str = "accepted", month: str = "2026-11") -> dict[str, str]:
    other = ("agent", "version", "weights_sha256", "harness_version", "dataset_sha256", "received_utc", "window")
    known = {"id": id, "manufacturer": manufacturer, "status": status, "month": month}
    return {**dict.fromkeys((*other, "archive_sha256", "manifest"), "x"), **known}


def test_one_accepted_submission_a_month_and_withdrawing_buys_no_second_try(where: str) -> None:
    with ResultStore(where) as store:
        insert = store.database.insert_new
        with store.database.transaction() as connection:
            assert insert(connection, SUBMISSIONS, [submission("1", "a", "withdrawn")]) == 1
            assert insert(connection, SUBMISSIONS, [submission("2", "a")]) == 0
            assert insert(connection, SUBMISSIONS, [submission("3", "a", "rejected")]) == 1
            assert insert(connection, SUBMISSIONS, [submission("4", "a", month="2026-12")]) == 1
            assert insert(connection, SUBMISSIONS, [submission("5", "b")]) == 1
        with pytest.raises(InputError, match="known_status"), store.database.transaction() as connection:
            insert(connection, SUBMISSIONS, [submission("6", "c", "perhaps")])


def test_a_killed_writer_loses_nothing_it_acknowledged(where: str) -> None:
    """Fault 12, kill -9 at a random moment; test_snapshot.py does it 100 times."""
    ResultStore(where).close()
    draw, acknowledged = random.Random(7), set()
    kills = 20
    for attempt in range(kills):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            with ResultStore(where) as store:
                for number in range(1000):
                    store.record(trial(attempt * 1000 + number))
                    os.write(send, b"+")
            os._exit(0)
        os.close(send)
        count = sum(len(os.read(receive, 1)) for _ in range(draw.randrange(1, 6)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while chunk := os.read(receive, 100):  # acknowledged between our last look and the kill
            count += len(chunk)
        os.close(receive)
        acknowledged |= {trial(attempt * 1000 + number).id for number in range(count)}
    with ResultStore(where) as store:
        assert store.record(trial(10**6)) is True  # the dead hold no lock; the server has undone their last one
        records = [record for record in store.records("study") if record.case.seed != 10**6]
    assert len(acknowledged) >= kills
    assert acknowledged <= {record.id for record in records}
    assert len(records) <= len(acknowledged) + kills  # at most one more per kill: stored, not yet acknowledged
    assert all(record == trial(record.case.seed) for record in records)


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_torn_tail_costs_no_earlier_trial(tmp_path: Path, damage: str) -> None:
    """Fault 13: the last pages of SQLite's log did not reach the disk whole, as when power fails."""
    path = tmp_path / "r.sqlite"
    child = os.fork()
    if child == 0:
        store = ResultStore(path)
        for number in range(20):
            store.record(trial(number))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    log = Path(f"{path}-wal")
    content = log.read_bytes()
    log.write_bytes(content[:-100] if damage == "cut" else content[:-100] + bytes(range(100)))
    with ResultStore(path) as store:
        kept = [record.case.seed for record in store.records()]
        assert sorted(kept) == list(range(len(kept)))
        assert len(kept) == 19
        assert store.record(trial(19)) is True


def test_a_record_of_another_version_is_refused(where: str) -> None:
    with ResultStore(where) as store, store.database.transaction() as connection:
        if store.database.dialect == "sqlite":
            connection.exec_driver_sql("PRAGMA user_version = 77")
        else:
            connection.exec_driver_sql("UPDATE schema_version SET version = 77")
    for read_only in (False, True):
        with pytest.raises(
            InputError, match="version 77, made by another Merton; this one reads version 7 and 8 alone"
        ):
            ResultStore(where, read_only)


def test_a_record_is_made_once_however_many_open_it_first(where: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: ResultStore(where), range(8)))
    for store in stores:
        assert store.experiments() == []
        store.close()


def test_the_tables_are_those_of_the_schema(where: str) -> None:
    with ResultStore(where) as store, store.database.reading() as connection:
        found = set(sa.inspect(connection).get_table_names())
    assert set(METADATA.tables) <= found <= {*METADATA.tables, "schema_version", "sqlite_sequence"}


def test_reading_makes_no_record(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result store"):
        open_record(str(tmp_path / "misspelt.sqlite"))
    with pytest.raises(InputError, match=r"no result store at .*results\.sqlite"):
        open_record(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    url = new_database()
    with pytest.raises(InputError, match="no result store at postgresql://"):
        ResultStore(url, read_only=True)


def test_a_run_is_opened_by_its_directory(tmp_path: Path) -> None:
    with ResultStore(tmp_path / "results.sqlite") as store:
        store.record(trial())
    with open_record(str(tmp_path)) as store:
        assert store.records() == [trial()]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("mysql://root:secret@host/db", "not mysql://"),
        ("postgresql://user:secret@host:port/db", "is not the URL"),
    ],
)
def test_a_url_that_is_none_is_refused_without_its_password(url: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        ResultStore(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_an_infrastructure_error(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(InfrastructureError, match=r"merton:\*\*\*@.* failed") as caught:
        ResultStore(f"postgresql://merton:secret@/nothing?host={tmp_path}&password=secret")
    assert "secret" not in str(caught.value)


def test_a_lost_connection_is_an_infrastructure_error_and_leaves_nothing_half_written() -> None:
    url = new_database()
    mine = sa.text("SELECT pg_backend_pid()")
    with ResultStore(url) as store, ResultStore(url) as other:
        store.record(trial(1))

        def write_through_a_cut() -> None:
            with store.database.transaction() as connection:
                assert store.write(connection, [trial(2)]) == 1
                end(other, connection.scalar(mine))
                store.write(connection, [trial(3)])

        with pytest.raises(InfrastructureError, match="failed"):
            write_through_a_cut()
        assert other.records("study") == [trial(1)]
        with store.database.reading() as connection:
            idle = connection.scalar(mine)
        end(other, idle)
        assert store.record(trial(4)) is True  # it connects again


def end(store: ResultStore, backend: int | None) -> None:
    """End another connection's server process and wait until it is gone, as a crash or a cut cable would."""
    with store.database.reading() as connection:
        assert connection.scalar(sa.text("SELECT pg_terminate_backend(:pid, 20000)"), {"pid": backend})


def test_a_crash_of_the_server_loses_nothing_it_acknowledged() -> None:
    """kill -9 of one of its processes: it ends all others, too, and recovers from its log."""
    url = new_database()
    with ResultStore(url) as store:
        for number in range(20):
            store.record(trial(number))
        with store.database.reading() as connection:
            backend = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        assert backend is not None
        os.kill(backend, signal.SIGKILL)

        def records_again() -> list[TrialRecord]:
            """Empty until the server is back."""
            try:
                return store.records()
            except InfrastructureError:
                return []

        records = until(records_again)
    assert sorted(record.case.seed for record in records) == list(range(20))


def test_a_server_is_set_to_acknowledge_durable_commits_only() -> None:
    url = new_database()
    with ResultStore(f"{url}&options=-csynchronous_commit%3Doff") as store, store.database.reading() as connection:
        assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"


def test_a_database_that_cannot_hold_all_names_is_refused() -> None:
    url = new_database()
    name = "a_latin_one"
    with ResultStore(url) as store:
        raw = store.database._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        raw.execute(sa.text(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"))
        raw.close()
    with pytest.raises(InputError, match="UTF8"):
        ResultStore(str(sa.make_url(url).set(database=name)))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("agents (id text PRIMARY KEY)", "tables of another program, such as agents"),
        ("schema_version (version text)", "is not a result store"),
        ("schema_version (version integer, installed_by text)", "is not a result store"),
    ],
)
def test_a_database_of_another_program_is_left_alone(table: str, sentence: str) -> None:
    url = new_database()
    name, filled = table.split()[0], "INSERT INTO schema_version (version) VALUES ('1')"
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {table}")
        if name == "schema_version":
            connection.exec_driver_sql(filled)
    for read_only in (False, True):
        with pytest.raises(InputError, match="no result store" if read_only and name == "agents" else sentence):
            ResultStore(url, read_only)
    assert sa.inspect(engine).get_table_names() == [name]
    engine.dispose()


def test_a_writer_waits_a_limited_time(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merton.results.database.WRITER_TIMEOUT_S", 1)
    one, two = ResultStore(where), ResultStore(where)
    with one.database.transaction(), pytest.raises(InfrastructureError, match="lock"):
        two.record(trial())
    one.close()
    two.close()
    with ResultStore(where) as store:
        assert store.record(trial()) is True


def test_the_client_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"merton\[postgres\]"):
        ResultStore("postgresql://host/db")
