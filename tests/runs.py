"""Runs of a small experiment for tests: in one process, and in a graph of nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from merton.experiment.local import LocalPorts
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.results.records import TrialRecord
from merton.results.store import ResultStore

EXPERIMENT = """
name: small
seed: 5
agents:
  - {id: oracle, vla: oracle}
  - {id: servo, vla: servo}
  - {id: plunge, vla: plunge}
tasks: [reach, pick]
distortions: [white_noise, jpeg]
levels: [0, 5]
sensor: d455
"""
TRIALS = 3 * 2 * 3


def small_run(folder: Path, name: str, experiment: str = EXPERIMENT) -> RunDirectory:
    """The directory of a run of the experiment that has not begun."""
    file = folder / "small.yaml"
    file.write_text(experiment)
    return RunDirectory.create(folder / "runs", file, name)


def records(run: RunDirectory) -> list[TrialRecord]:
    """The results of a run so far."""
    return run.records() if run.database.exists() else []


def details(run: RunDirectory) -> dict[str, dict[str, Any]]:
    """Trial to the content of its trial.json without the wall time."""
    files = {record.id: run.path / "trials" / record.id / "trial.json" for record in records(run)}
    return {trial: {**json.loads(file.read_text()), "wall_s": 0} for trial, file in files.items()}


def undisturbed_run(folder: Path, experiment: str = EXPERIMENT) -> RunDirectory:
    """A run in one process, without ROS."""
    run = small_run(folder, "local", experiment)
    runner = Runner(run.spec, run.id, LocalPorts(), run.reference_run)
    with ResultStore(run.database) as store:
        run.register(store)
        run_all(runner, run, {}, store.record, on_trial=lambda *_: None, on_fault=pytest.fail)
    return run
