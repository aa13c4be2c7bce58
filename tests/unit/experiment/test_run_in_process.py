"""`merton run --in-process`: its options, a run from start to end, and how it ends early."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import runs
from merton import pool as pool_module
from merton.cli import runs as commands
from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton.experiment import workers
from merton.experiment.dry_run import outline
from merton.experiment.run import RunDirectory
from merton.experiment.workers import Made
from merton.pool import open_pool
from merton.results.records import Outcome, TrialRecord
from thread_engine import ThreadEngine

EXPERIMENT = """
name: quick
agents:
  - {id: servo, vla: servo}
  - {id: hold, vla: hold}
tasks: [reach]
distortions: [jpeg]
levels: [5]
scenes: 2
"""
TRIALS = 2 * 2 * 2


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment whose trials are made up, in threads: nothing is simulated."""

    @contextmanager
    def threads(count: int | None, engine: Any, on_fault: Any) -> Iterator[Any]:
        with open_pool(count, ThreadEngine(), on_fault) as pool:
            yield pool

    def made(shared: Any, trial: Any, *_: Any) -> Made:
        record = TrialRecord(shared.get().run, trial.agent.id, trial.case, Outcome.SUCCESS, 0.5, 1.0, 100.0)
        return Made(record, {"trial.json": json.dumps({}).encode()}, (f"{trial.id}: slow; trying again (1 of 2)",))

    monkeypatch.setattr(pool_module, "open_pool", threads)
    monkeypatch.setattr(workers, "run_trial_here", made)
    monkeypatch.setattr(commands, "_conclude", lambda run, *_, **__: print(f"board and report of {run.path.name}"))
    file = tmp_path / "quick.yaml"
    file.write_text(EXPERIMENT)
    return file


def run(file: Path, *words: str) -> tuple[int, str]:
    """Exit code and text of a run in its folder; a mistake is raised."""
    result = CliRunner().invoke(app, ["run", str(file), "--runs", str(file.parent / "runs"), *words])
    if isinstance(result.exception, Exception):
        raise result.exception
    return result.exit_code, result.output


def test_a_run_ends_with_board_and_report(experiment: Path) -> None:
    code, said = run(experiment, "--in-process", "--workers", "2", "--name", "one")
    folder = experiment.parent / "runs" / "one"
    assert code == 0
    assert "board and report of one" in said
    about = json.loads((folder / "run.json").read_text())
    assert (about["in_process"], about["finished"]) == (True, True)
    assert about["wall_s"] >= 0
    assert [record.id for record in runs.records(RunDirectory(folder))] == sorted(
        trial.id for trial in RunDirectory(folder).spec.trials()
    )
    assert "servo.reach.0.jpeg.5: slow; trying again (1 of 2)" in said


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143)])
def test_a_run_that_ends_early_says_how_to_go_on(
    experiment: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    written: list[str] = []
    save = RunDirectory.save_files

    def interrupted(self: RunDirectory, trial: str, files: Any) -> None:
        if len(written) == 5:
            raise error
        written.append(trial)
        save(self, trial, files)

    monkeypatch.setattr(workers, "_WRITERS", 1)
    monkeypatch.setattr(RunDirectory, "save_files", interrupted)
    _, said = run(experiment, "--in-process", "--name", "two", "--workers", "1")
    continuation = re.search(r"Go on with: .* (run .*)", said)
    assert continuation is not None
    words = continuation[1].split()
    assert words[-4:] == ["two", "--in-process", "--workers", "1"]
    monkeypatch.setattr(RunDirectory, "save_files", save)
    was_recorded = bool(runs.records(RunDirectory(experiment.parent / "runs" / "two")))
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    took_s = RunDirectory(experiment.parent / "runs" / "two").took_s
    assert (took_s is None) == was_recorded, "the time of a part is not that of the run"
    assert len(runs.records(RunDirectory(experiment.parent / "runs" / "two"))) == TRIALS


def test_a_run_is_gone_on_with_as_it_was_begun(experiment: Path) -> None:
    run(experiment, "--in-process", "--name", "three")
    with pytest.raises(InputError, match=r"three was begun with --in-process and goes on in the same way: add it"):
        run(experiment, "--resume", "--name", "three")
    RunDirectory(experiment.parent / "runs" / "three").amend(in_process=False)
    with pytest.raises(InputError, match=r"was begun without --in-process and goes on in the same way: leave it out"):
        run(experiment, "--in-process", "--resume", "--name", "three")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--in-process --record", "--in-process starts no nodes, and --record needs them: leave one of them out"),
        ("--in-process --graph lab --set robot_ip=192.0.2.1", "and --graph, --set need them"),
        ("--in-process --monitor", "--monitor needs them"),
        ("--workers 2", "--workers is for runs without a graph of nodes: add --in-process, or leave it out"),
        ("--engine ray", "--engine is for runs without a graph"),
    ],
)
def test_options_that_do_not_go_together(experiment: Path, words: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(experiment, *words.split())
    assert not (experiment.parent / "runs").exists()


def test_an_unknown_engine_lists_the_known_ones(experiment: Path) -> None:
    with pytest.raises(UnknownNameError, match="choose one of: local, ray"):
        run(experiment, "--in-process", "--engine", "slurm")


def test_without_ray_nothing_is_begun(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from merton.errors import MissingDependencyError

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"needs ray: .*merton\[cluster\]"):
        run(experiment, "--in-process", "--engine", "ray", "--name", "four")


def test_the_way_without_ros_is_said_before_a_run(experiment: Path) -> None:
    from merton.config import load
    from merton.experiment.plan import ExperimentSpec

    assert "by merton run --in-process: about " in outline(load(experiment, ExperimentSpec))[-1]
