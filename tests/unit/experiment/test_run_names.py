"""Runs by name: `latest`, near misses, `merton runs`, and the recording of a run."""

from __future__ import annotations

import json
import shutil
import webbrowser
from pathlib import Path

import pytest
from fake_run import make_fake_run
from typer.testing import CliRunner

from merton.cli.console import record_named
from merton.cli.main import app
from merton.cli.recordings import recording_named
from merton.errors import InputError
from merton.experiment.run_names import find_run, run_folders, summarize
from merton.files import resource


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three runs, the newest of which is "middle"; one stands beside it."""
    monkeypatch.chdir(tmp_path)
    for name, hour in (("first-one", 8), ("middle", 12), ("second-one", 10)):
        folder = tmp_path / "runs" / name
        make_fake_run(folder, agents=("servo",), distortions=("jpeg",), tasks=("pick",), seeds=1)
        shutil.copy(resource("merton_bringup", "config/experiments/quickstart.yaml"), folder / "experiment.yaml")
        about = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(
            json.dumps({**about, "id": "quickstart", "created": f"2026-05-01T{hour:02}:00:00+00:00"})
        )
    return Path("runs")


def merton(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_the_newest_is_the_one_begun_last(runs: Path) -> None:
    assert [folder.name for folder in run_folders()] == ["middle", "second-one", "first-one"]
    assert find_run("latest") == runs / "middle"
    assert find_run("first-one") == find_run("runs/first-one") == runs / "first-one"
    assert record_named("latest") == "runs/middle"
    Path("latest").touch()
    assert record_named("latest") == "runs/middle", "a file of that name is no record"
    assert record_named("postgresql://host/latest") == "postgresql://host/latest"
    assert record_named("lab.sqlite") == "lab.sqlite"


@pytest.mark.parametrize(
    ("name", "near"),
    [("fisrt-one", "first-one"), ("runs/secondone", "second-one"), ("last", "latest"), ("LATEST", "lat")],
)
def test_a_mistyped_run_is_answered_with_the_near_one(runs: Path, name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"there is no run '{name}'; did you mean '{near}.*`merton runs` lists all"):
        find_run(name)


def test_without_runs_the_way_to_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="there is no run below runs yet: merton demo makes one"):
        find_run("latest")
    assert "there is no run below runs yet" in merton("runs")


def test_runs_are_listed_with_how_far_they_are(runs: Path) -> None:
    (runs / "first-one" / "run.json").write_text("{")
    (runs / "second-one" / "experiment.yaml").write_text("name: [")
    (runs / "middle" / "report.html").write_text("")
    lines = merton("runs").splitlines()
    assert [line.split()[0] for line in lines if line.strip()][:2] == ["run", "first-one"], "changed just now"
    assert next(line for line in lines if line.startswith("middle ")).split()[-3:] == ["of", "448", "unfinished"]
    assert next(line for line in lines if line.startswith("second-one ")).split()[-1] == "unreadable"
    assert "second-one/experiment.yaml, line" in lines[-1]
    summary = summarize(runs / "middle")
    assert (summary.planned, summary.is_finished, summary.has_report) == (448, False, True)


def test_a_report_is_opened_or_its_place_said(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)))
    with pytest.raises(InputError, match="no run below runs has a report yet: merton report runs/middle"):
        merton("runs", "--open")
    merton("report", "latest", "--open")
    assert "no browser was found here; open file://" in merton("runs", "--open")
    assert opened == [(runs / "middle" / "report.html").resolve().as_uri()] * 2


@pytest.mark.parametrize(
    ("verdict", "state"),
    [("not worse", "passed"), ("worse", "worse"), ("not resolved", "not resolved"), (None, "unfinished")],
)
def test_a_gate_has_a_state_of_its_own_and_is_never_the_latest(runs: Path, verdict: str | None, state: str) -> None:
    about = json.loads((runs / "middle" / "run.json").read_text())
    (runs / "middle" / "run.json").write_text(json.dumps({**about, "kind": "gate", "verdict": verdict}))
    assert find_run("latest") == runs / "second-one"
    assert summarize(runs / "middle").state == state
    line = next(line for line in merton("runs").splitlines() if line.startswith("middle "))
    assert line.endswith(state) or line.split()[-len(state.split()) :] == state.split()
    assert " of " not in line, "a gate has no number of trials beforehand"


def test_without_a_run_of_an_experiment_nothing_is_the_latest(runs: Path) -> None:
    for folder in run_folders():
        (folder / "gate.md").touch()  # of an older Merton, whose run.json does not say it
    with pytest.raises(InputError, match="there is no run of an experiment, only of gates, below runs yet"):
        find_run("latest")


def test_the_newest_page_is_opened_though_the_newest_run_has_none(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    for name in ("first-one", "second-one"):
        (runs / name / "report.html").touch()
    merton("runs", "--open")
    assert opened == [(runs / "second-one" / "report.html").resolve().as_uri()]


def test_the_recording_of_a_run_is_found(runs: Path) -> None:
    with pytest.raises(InputError, match="has no recording: it was run without --record"):
        recording_named(Path("latest"))
    (runs / "middle" / "recording.mcap").write_bytes(b"")
    assert recording_named(Path("latest")) == runs / "middle" / "recording.mcap"
    assert recording_named(Path("absent.mcap")) == Path("absent.mcap")
