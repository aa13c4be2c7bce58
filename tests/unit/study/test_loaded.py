"""A run from Python: `merton.load`, its records, and its tables as frames."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
from fake_run import make_fake_run

import merton
from merton.errors import InputError, MissingDependencyError
from merton.results.csv_writer import text_of
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.study.report import write_report

TABLES = ("trials", "drops", "scores", "matches", "agents", "cases", "experiments")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its report, and so with its trials.csv."""
    folder = tmp_path_factory.mktemp("loaded") / "runs" / "first"
    make_fake_run(folder, distortions=("gaussian_blur",), tasks=("pick",))
    (folder / "experiment.yaml").write_text("name: first\n", encoding="utf-8")
    write_report(folder)
    return folder


def test_the_frame_has_the_rows_and_columns_of_trials_csv(run: Path) -> None:
    pytest.importorskip("pandas")
    frame = merton.load(run).frame()
    with (run / "trials.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert list(frame.columns) == header
    assert len(frame) == len(rows) == 18
    for name, cells in zip(header, zip(*rows, strict=True), strict=True):
        for value, cell in zip(frame[name], cells, strict=True):
            if isinstance(value, str):
                assert value == text_of(cell)
            elif cell == "":
                assert value != value or value is None
            else:
                assert float(value) == float(cell)


def test_numbers_are_numbers_and_unknown_ones_are_missing(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    ends = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE)
    with ResultStore(tmp_path / "lab.sqlite") as store:
        for seed, outcome in enumerate(ends):
            score = None if outcome is Outcome.INFRASTRUCTURE else 50.0
            store.record(TrialRecord("one", "servo", TestCase("pick", seed, "jpeg", 3), outcome, execution=score))
    frame = merton.load(tmp_path / "lab.sqlite").frame()
    kinds = {"level": "i", "scene": "i", "steps": "i", "success": "f", "execution": "f", "distance_m": "f"}
    assert {name: frame[name].dtype.kind for name in kinds} == kinds
    assert frame.success.isna().tolist() == [False, False, True]
    assert frame.success.mean() == 0.5
    assert frame.distance_m.isna().all()
    assert frame.error_message.tolist() == ["", "", ""]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_that_can_be_exported_is_a_frame(run: Path, table: str) -> None:
    pytest.importorskip("pandas")
    assert len(merton.load(run).frame(table)) == {"trials": 18, "drops": 3, "matches": 18, "agents": 3, "cases": 6}.get(
        table, 0 if table == "scores" else 1
    )


def test_an_unknown_table_is_named_with_the_tables(run: Path) -> None:
    pytest.importorskip("pandas")
    with pytest.raises(InputError, match=r"trails.*trials"):
        merton.load(run).frame("trails")


def test_records_and_about_are_those_of_the_run(run: Path) -> None:
    loaded = merton.load(run)
    assert len(loaded.records) == 18
    assert {record.agent for record in loaded.records} == {"oracle", "servo", "hold"}
    assert loaded.about["id"] == "quickstart-20260314-092653"
    assert repr(loaded) == f"merton.load({str(run)!r})"


def test_a_run_is_found_by_its_name_and_as_the_latest(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parents[1])
    assert len(merton.load("first").records) == len(merton.load("latest").records) == len(merton.load().records) == 18
    with pytest.raises(InputError, match="did you mean 'first'"):
        merton.load("frist")


def test_a_record_file_has_records_and_no_run(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(run / "results.sqlite", tmp_path / "lab.sqlite"))
    loaded = merton.load(copy)
    assert (len(loaded.records), loaded.about, loaded.path) == (18, {}, None)
    assert merton.load(run / "results.sqlite").about["seed"] == merton.load(run).about["seed"]
    with pytest.raises(InputError, match="no result store"):
        merton.load(tmp_path / "lost.sqlite")


def test_the_frame_of_a_record_alone_has_no_scores_of_outputs(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    copy = shutil.copy(run / "results.sqlite", tmp_path / "lab.sqlite")
    assert set(merton.load(run).frame().columns) - set(merton.load(copy).frame().columns) == {"slots", "own_spread"}


def test_episodes_of_other_programs_are_read_by_their_record(run: Path, tmp_path: Path) -> None:
    """Their folder has design.yaml in place of experiment.yaml."""
    folder = tmp_path / "episodes"
    folder.mkdir()
    shutil.copy(run / "results.sqlite", folder)
    (folder / "run.json").write_text('{"id": "episodes", "kind": "episodes"}', encoding="utf-8")
    (folder / "design.yaml").write_text("name: episodes\n", encoding="utf-8")
    loaded = merton.load(folder)
    assert (loaded.about["kind"], len(loaded.records)) == ("episodes", 18)


def test_without_pandas_one_sentence_says_how_to_get_it(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"a frame needs pandas: install it with .*\[frame\]"):
        merton.load(run).frame()
