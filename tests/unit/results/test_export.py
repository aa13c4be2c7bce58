"""Exports say the same as the record, the same way each time, and no spreadsheet runs them."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from postgres import new_database
from test_store import trial
from typer.testing import CliRunner

from merton import __version__
from merton.cli import results as commands
from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.results import csv_writer
from merton.results.csv_writer import FORMULA_STARTS, formula_safe
from merton.results.export import TABLES, export
from merton.results.merge import Merged, merge
from merton.results.records import ForeignScore, Outcome, TrialRecord
from merton.results.schema import SCHEMA_VERSION
from merton.results.store import ResultStore

HASH = "0123456789abcdef" * 4
RECORDS = [
    trial(0, agent="=cmd|' /C calc'!A0", error_message='@SUM(1+1)\r\nsecond "line", <b>'),
    trial(1, agent="-1+2", execution=0.0, decision=1 / 3, cognition=1e-17),
    trial(2, agent="'quoted", error_message="\tstarts with a tab"),
    trial(3, agent="Ärger", outcome=Outcome.INFRASTRUCTURE, cognition=None, decision=None, execution=None),
]


def fill(store: ResultStore, records: list[TrialRecord]) -> None:
    for record in records:
        store.record(record)
    store.register_agent("Ärger", "1.0", HASH, "lab")
    store.register_experiment("study", "blur", 7, HASH, "0.1.0")


@pytest.fixture
def store(tmp_path: Path) -> ResultStore:
    store = ResultStore(tmp_path / "record.sqlite")
    fill(store, RECORDS)
    return store


def unsafe(text: str) -> str:
    """The documented way back."""
    return text[1:] if text.startswith("'") else text


@given(st.text())
def test_a_text_survives_being_made_safe(text: str) -> None:
    safe = formula_safe(text)
    assert unsafe(safe) == text
    assert not safe.startswith(FORMULA_STARTS)


def test_csv_is_read_back_whole_and_numbers_are_unchanged(store: ResultStore, tmp_path: Path) -> None:
    """Fault 18."""
    assert export(store, tmp_path / "trials.csv") == len(RECORDS)
    text = (tmp_path / "trials.csv").read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    for row, record in zip(rows, store.records(), strict=True):
        assert not any(cell.startswith(FORMULA_STARTS) for cell in row.values())
        assert unsafe(row["agent"]) == record.agent
        assert unsafe(row["error_message"]) == record.error_message
        assert unsafe(row["id"]) == record.id
        for name in ("cognition", "decision", "execution", "distance_m"):
            assert (float(row[name]) if row[name] else None) == getattr(record, name)
        assert row["outcome"] == record.outcome.value
    assert "1e-17" in text
    assert "'1e-17" not in text


def test_json_names_the_sources_of_the_rows(store: ResultStore, tmp_path: Path) -> None:
    export(store, tmp_path / "trials.json")
    content = json.loads((tmp_path / "trials.json").read_text(encoding="utf-8"))
    assert [row["id"] for row in content["rows"]] == store.ids("study")
    assert content["rows"][-1]["execution"] is None
    about = content["about"]
    assert (about["merton_version"], about["schema_version"], about["table"]) == (__version__, SCHEMA_VERSION, "trials")
    assert {"id": "Ärger", "version": "1.0", "weights_sha256": HASH, "owner": "lab"} in about["agents"]
    assert about["experiments"][0]["spec_sha256"] == HASH
    assert len(about["rows_sha256"]) == 64


def test_parquet_has_types_and_nulls(store: ResultStore, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export(store, tmp_path / "trials.parquet")
    table = parquet.read_table(tmp_path / "trials.parquet")
    rows = table.to_pylist()
    assert [row["execution"] for row in rows] == [record.execution for record in store.records()]
    assert [row["agent"] for row in rows] == [record.agent for record in store.records()]  # as it is: nothing runs here
    assert str(table.schema.field("execution").type) == "double"
    assert str(table.schema.field("scene").type) == "int64"
    assert json.loads(table.schema.metadata[b"merton"])["agents"][-1]["weights_sha256"] == HASH


def test_parquet_is_written_group_by_group(store: ResultStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    export(store, whole)
    monkeypatch.setattr("merton.results.export.ROWS_OF_A_GROUP", 2)
    assert export(store, parts) == len(RECORDS)
    assert parquet.ParquetFile(parts).num_row_groups == (len(RECORDS) + 1) // 2 > 1
    assert parquet.read_table(parts).equals(parquet.read_table(whole), check_metadata=True)


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_the_order_of_storage_changes_no_byte(store: ResultStore, tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    export(store, tmp_path / f"one.{ending}")
    shuffled = RECORDS[:]
    random.Random(1).shuffle(shuffled)
    with ResultStore(tmp_path / "other.sqlite") as other:
        fill(other, shuffled)
        export(other, tmp_path / f"other.{ending}")
    assert (tmp_path / f"one.{ending}").read_bytes() == (tmp_path / f"other.{ending}").read_bytes()


def test_either_database_exports_the_same_bytes(store: ResultStore, tmp_path: Path) -> None:
    with ResultStore(new_database()) as shared:
        merge(store, shared)
        for table in TABLES:
            export(store, tmp_path / "one.json", table)
            export(shared, tmp_path / "other.json", table)
            assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()


def test_a_refused_export_names_the_reason(store: ResultStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"must end in one of \.csv, \.json, \.parquet"):
        export(store, tmp_path / "trials.xlsx")
    with pytest.raises(InputError, match=r"unknown table 'secrets'; .*choose one of: agents, cases"):
        export(store, tmp_path / "t.csv", "secrets")
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match="cannot write"):
        export(store, tmp_path / "file" / "t.csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"merton\[dataset\]"):
        export(store, tmp_path / "t.parquet")
    assert sorted(os.listdir(tmp_path)) == ["file", "record.sqlite", "record.sqlite-shm", "record.sqlite-wal"]


@pytest.fixture(params=["sqlite", "postgresql"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "shared.sqlite") if request.param == "sqlite" else new_database()


def test_a_run_is_taken_into_a_shared_record_once(store: ResultStore, tmp_path: Path, shared: str) -> None:
    with ResultStore(shared) as lab, ResultStore(tmp_path / "second.sqlite") as second:
        told: list[tuple[int, int]] = []
        assert merge(store, lab, lambda *done: told.append(done)) == Merged(1, 4, 4, 0, 0)
        assert told[-1] == (4, 4)
        assert merge(store, lab) == Merged(1, 4, 0, 0, 0)
        store.record(trial(9))
        second.record(trial(0, experiment="another"))
        assert merge(store, lab) == Merged(1, 5, 1, 0, 0)
        assert merge(second, lab) == Merged(1, 1, 1, 0, 0)
        assert lab.records("study") == store.records("study")
        assert lab.records("another") == second.records("another")
        assert lab.agents() == store.agents()
        assert lab.experiment_records()[-1] == store.experiment_records()[0]


def test_a_merge_that_contradicts_the_record_changes_nothing(store: ResultStore, tmp_path: Path, shared: str) -> None:
    with ResultStore(shared) as lab, ResultStore(tmp_path / "second.sqlite") as second:
        merge(store, lab)
        second.record(trial(50, agent="new"))
        second.record(RECORDS[1].__class__(**{**RECORDS[1].__dict__, "execution": 1.0}))
        before = lab.records(), lab.agents(), lab.cases()
        with pytest.raises(InputError, match=r"-1\+2\.pick\.1.*execution 0.0 against 1.0"):
            merge(second, lab)
        assert (lab.records(), lab.agents(), lab.cases()) == before


def test_the_commands_take_in_list_merge_and_export(store: ResultStore, tmp_path: Path) -> None:
    store.close()
    run, shared = str(tmp_path / "record.sqlite"), str(tmp_path / "shared.sqlite")
    (tmp_path / "matrix.csv").write_text("model,revision,[bold]STS,b\nmine,v1,0.5,\nother,v2,1,0\nnone,v1,,\n")

    def merton_results(*words: str) -> str:
        result = CliRunner().invoke(commands.app, list(words), catch_exceptions=False, env={"COLUMNS": "120"})
        assert result.exit_code == 0, result.output
        return result.output

    imported = merton_results("import", run, f"{tmp_path}/matrix.csv")
    assert "3 agents x 2 cases, 3 scores (3 new), 3 blanks" in imported
    assert "1 agent has no score at all" in imported
    assert "1 experiments, 4 trials (4 new), 3 foreign scores (3 new)" in merton_results("merge", run, shared)
    listed = merton_results("list", shared)
    assert "study" in listed
    assert "Merton 0.1.0" in listed
    assert "matrix" in listed
    assert "3 rows of scores" in merton_results("export", shared, "--out", f"{tmp_path}/s.csv", "--table", "scores")
    with ResultStore(shared, read_only=True) as lab:
        assert lab.scores("matrix")[0] == ForeignScore("matrix", "mine", "[bold]STS", 0.5)
    with pytest.raises(InputError, match="no result store"):
        merton_results("list", f"{tmp_path}/misspelt.sqlite")


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=2, max_size=2))
def test_a_table_is_read_back_and_no_cell_is_a_formula(cells: list[str]) -> None:
    text = csv_writer.csv_text(("a", "b"), [cells])
    _, row = csv.reader(io.StringIO(text, newline=""))
    assert not any(cell.startswith(FORMULA_STARTS) for cell in row)
    assert [csv_writer.text_of(cell) for cell in row] == cells
