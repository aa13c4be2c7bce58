"""The sampling group of a case: tasks of one group share their scenes, in the record and in all that it gives."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import new_database
from test_store import trial

from merton.errors import InfrastructureError, InputError
from merton.leaderboard.snapshot import store as snapshot
from merton.results.comparison import compare
from merton.results.database import Database
from merton.results.export import export
from merton.results.merge import merge
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.schema import ADDED, SCHEMA_VERSION, VERSION_BEFORE
from merton.results.schema_version import version
from merton.results.store import ResultStore


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "record.sqlite") if request.param == "sqlite" else new_database()


def in_group(seed: int, task: str = "open-drawer", group: str = "kitchen") -> TrialRecord:
    case = TestCase(task, seed, "jpeg", 2, group)
    return trial(1, case=case, outcome=Outcome.FAILURE if seed else Outcome.SUCCESS, progress=float(not seed))


def columns_of(connection: sa.Connection) -> set[str]:
    return {column["name"] for column in sa.inspect(connection).get_columns("cases")}


def make_older(where: str, *further: str) -> None:
    """Turn a record into one of the version before, which had no column for groups; then carry out `further`."""
    with Database(where) as database, database.transaction() as connection:
        for column in ADDED:
            connection.exec_driver_sql(f'ALTER TABLE {column.table.name} DROP COLUMN "{column.name}"')
        is_file = database.dialect == "sqlite"
        mark = "PRAGMA user_version = {}" if is_file else "UPDATE schema_version SET version = {}"
        for statement in (mark.format(VERSION_BEFORE), *further):
            connection.exec_driver_sql(statement)


def test_tasks_of_a_group_share_a_scene_and_a_case_is_its_id_whatever_the_group() -> None:
    one, other = TestCase("open-drawer", 4, "jpeg", 2, "kitchen"), TestCase("close-drawer", 4, "jpeg", 2, "kitchen")
    assert (one.scene, other.scene, one.reference.scene) == ("kitchen.4",) * 3
    bare = replace(one, group="")
    assert (bare.scene, bare.id, bare, hash(bare)) == ("open-drawer.4", one.id, one, hash(one))
    assert sorted([other, bare, one])[1:] == [bare, one]
    assert TestCase("test-pick", 4, "jpeg", 2, "test") == TestCase("test-pick", 4, "jpeg", 2)
    assert "group" not in TestCase("test-pick", 4, "jpeg", 2, "test").facts, "the name says it already"
    assert TestCase(**one.facts).group == "kitchen"


def test_a_group_is_stored_merged_exported_and_on_a_board(where: str, tmp_path: Path) -> None:
    records = [in_group(seed, task) for seed in (0, 1, 2) for task in ("open-drawer", "close-drawer")]
    with ResultStore(where) as store:
        store.record_all(records)
    with ResultStore(where, read_only=True) as store, ResultStore(tmp_path / "lab.sqlite") as lab:
        merge(store, lab)
        for read in (store, lab):
            assert {record.case.scene for record in read.records()} == {"kitchen.0", "kitchen.1", "kitchen.2"}
            assert {case.group for case in read.cases()} == {"kitchen"}
        for table, end in (("trials", "csv"), ("cases", "csv"), ("trials", "parquet"), ("trials", "json")):
            export(store, tmp_path / f"{table}.{end}", table)
        for table in ("trials", "cases"):
            rows = list(csv.DictReader((tmp_path / f"{table}.csv").read_text().splitlines()))
            assert list(rows[0])[-1] == "group"
            assert {row["group"] for row in rows} == {"kitchen"}
        board = snapshot.take(store)
    assert {case.unit for case in board.cases} == {(True, f"kitchen.{seed}") for seed in (0, 1, 2)}
    assert board.agents[0].trial_scenes == 3
    assert snapshot.from_json(snapshot.to_json(board)) == board
    apart = snapshot.of_trials([replace(record, case=replace(record.case, group="")) for record in records])
    assert apart.inputs_sha256 != board.inputs_sha256
    assert apart.agents[0].trial_scenes == 6


def test_two_groups_of_one_case_are_never_mixed(where: str, tmp_path: Path) -> None:
    with ResultStore(where) as store, ResultStore(tmp_path / "other.sqlite") as other:
        store.record(in_group(0))
        other.record(in_group(0, group=""))
        known = store.records()
        for mistaken in (
            in_group(0, group="garage"),
            in_group(0, group=""),
            replace(in_group(0, group="x"), agent="b"),
        ):
            with pytest.raises(InputError, match=r"in the record as one of the scene 'kitchen\.0', not "):
                store.record(mistaken)
        for source, target in ((store, other), (other, store)):
            with pytest.raises(InputError, match="is in the record with group"):
                merge(source, target)
        assert store.records() == known
        assert compare(store.records(), other.records()) == [
            "servo.open-drawer.0.jpeg.2: scene 'kitchen.0' against 'open-drawer.0'"
        ]


def test_without_a_group_no_file_says_a_word_of_it(where: str, tmp_path: Path) -> None:
    with ResultStore(where) as store:
        store.record_all([trial(1), trial(2)])
        for table in ("trials", "cases"):
            export(store, tmp_path / f"{table}.csv", table)
            assert "group" not in (tmp_path / f"{table}.csv").read_text()
        board = json.loads(snapshot.to_json(snapshot.take(store)))
    assert all("group" not in case for case in board["cases"])


@pytest.mark.parametrize(
    "use", [lambda store: store.records(), lambda store: store.cases(), ResultStore.experiment_records, snapshot.take]
)
def test_a_record_of_the_version_before_is_read_as_it_is(where: str, use: Callable[[ResultStore], object]) -> None:
    with ResultStore(where) as store:
        store.record_all([trial(1), trial(2)])
        expected = use(store)
    make_older(where)
    with ResultStore(where, read_only=True) as store:
        assert use(store) == expected
        with store.database.reading() as connection:
            assert (version(connection), "group" in columns_of(connection)) == (VERSION_BEFORE, False)


def test_a_record_of_the_version_before_gets_the_column_when_it_is_opened_to_be_written(where: str) -> None:
    with ResultStore(where) as store:
        store.record(trial(1))
    make_older(where)
    with ResultStore(where, read_only=True) as reader, ResultStore(where) as store:
        assert store.record(trial(1)) is False
        assert store.record(in_group(3)) is True
        assert reader.records() == store.records()
        assert {record.case.scene for record in reader.records()} == {trial(1).case.scene, "kitchen.3"}
        with reader.database.reading() as connection:
            assert version(connection) == SCHEMA_VERSION


def test_a_damaged_record_of_the_version_before_is_found(tmp_path: Path) -> None:
    where = str(tmp_path / "record.sqlite")
    with ResultStore(where) as store:
        store.record(trial(1))
    make_older(where, "UPDATE cases SET level = -1")
    with pytest.raises(InfrastructureError, match="level is below 0"):
        ResultStore(where, read_only=True)
