"""Trials in processes of this machine: the same record as one after the other, and a run goes on after a kill."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import runs
from merton.experiment import workers
from merton.experiment.run import RunDirectory
from merton.experiment.workers import cells, complete
from merton.results.store import ResultStore

EXPERIMENT = """
name: small
seed: 5
agents:
  - {id: servo, vla: servo}
  - {id: oracle, vla: oracle}
  - {id: plunge, vla: plunge}
tasks: [reach]
distortions: [white_noise]
levels: [5]
"""


def test_one_process_for_each_core_that_may_be_used_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5})
    monkeypatch.setattr(workers, "worker_pool", lambda count: count)
    monkeypatch.setattr(workers, "stop_workers", lambda pool: None)
    with cells() as default, cells(2) as two:
        assert (default, two) == (3, 2)


def test_a_process_reads_a_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = runs.small_run(tmp_path, "once", EXPERIMENT), []
    monkeypatch.setattr(workers, "RunDirectory", lambda path: read.append(path) or RunDirectory(path))
    for trial in run.spec.trials()[:2]:
        assert workers._run_one(run.path, trial).id == trial.id
    assert read == [run.path]
    workers._ports().close()
    workers._ports.cache_clear()
    workers.opened.cache_clear()


def test_two_processes_leave_the_record_of_one_and_go_on_after_a_kill(tmp_path: Path) -> None:
    run = runs.small_run(tmp_path, "parallel", EXPERIMENT)
    trials = [trial.id for trial in run.spec.trials()]
    with ResultStore(run.database) as store, cells(2) as pool:
        for done, _ in complete(pool, run, store):
            assert set(store.ids(run.id)) == set(trials[:done])
            if done == 4:
                break
        left = len(trials) - 4
        assert list(complete(pool, run, store)) == [(number + 1, left) for number in range(left)]
        assert list(complete(pool, run, store)) == []
    alone = runs.undisturbed_run(tmp_path, EXPERIMENT)
    ours, theirs = (
        [replace(record, wall_s=0.0, experiment="") for record in runs.records(directory)] for directory in (run, alone)
    )
    assert ours == theirs
