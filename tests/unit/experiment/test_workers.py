"""Trials in processes of this machine: the same record as one after the other, and a run goes on after kills."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import runs
from merton.cognition.models.base import MODELS, ModelEntry
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.experiment import workers
from merton.experiment.run import RunDirectory
from merton.experiment.workers import Pace, complete
from merton.experiment.world_ports import WorldPorts
from merton.models.rate_limit import RateLimit
from merton.pool import open_pool
from merton.results.store import ResultStore
from thread_engine import ThreadEngine

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
    with open_pool(engine=ThreadEngine()) as default, open_pool(2, ThreadEngine()) as two:
        assert (default.count, two.count) == (3, 2)


@pytest.mark.usefixtures("renders")
def test_a_process_reads_a_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, read = runs.small_run(tmp_path, "once", EXPERIMENT), []
    monkeypatch.setattr(workers, "RunDirectory", lambda path: read.append(path) or RunDirectory(path))
    assert workers.opened(run.path) is workers.opened(run.path)
    assert read == [run.path]
    workers._ports("ur5", "").close()
    workers._ports.cache_clear()
    workers.opened.cache_clear()


def loaded(module: str) -> bool:
    return module in sys.modules


def rows(run: RunDirectory) -> list[list[tuple[object, ...]]]:
    """The tables of the record in the order of their rows, but for wall times and the run's name."""
    found = []
    with sqlite3.connect(run.database) as record:
        for table in ("agents", "cases", "trials"):
            columns = [row[1] for row in record.execute(f"pragma table_info({table})")]
            kept = ", ".join(f'"{name}"' for name in columns if name not in ("wall_s", "experiment"))
            found.append(list(record.execute(f"select {kept} from {table}")))
    return found


@pytest.mark.usefixtures("renders")
def test_two_processes_leave_the_record_of_one_although_one_is_killed(tmp_path: Path) -> None:
    """Kill -9 of a worker, and an end of the main process: every trial is recorded once, files and rows are the same.

    Nothing that a worker loads needs ROS.
    """
    run = runs.small_run(tmp_path, "parallel", EXPERIMENT)
    trials = [trial.id for trial in run.spec.trials()]
    said: list[str] = []
    with ResultStore(run.database) as store, open_pool(2, on_fault=said.append) as pool:
        for done, left in complete(pool, run, store):
            assert left == len(trials)
            assert set(store.ids(run.id)) >= set(trials[:done])
            if done == 1:
                os.kill(pool.hosts[0].pid, signal.SIGKILL)
            if done == 4:
                break
        left = len(trials) - len(store.ids(run.id))
        assert list(complete(pool, run, store)) == [(number + 1, left) for number in range(left)]
        assert list(complete(pool, run, store)) == []
        assert len(pool.hosts) == 3
        assert not pool.submit(loaded, "rclpy").result()
        assert pool.submit(loaded, "mujoco").result()
    assert len(said) <= 1, said
    alone = runs.undisturbed_run(tmp_path, EXPERIMENT)
    assert runs.details(run) == runs.details(alone)
    names = sorted(path.relative_to(run.path) for path in run.path.glob("trials/*/*.jpg"))
    assert names
    assert all((run.path / name).read_bytes() == (alone.path / name).read_bytes() for name in names)
    assert rows(run) == rows(alone)


def test_workers_share_the_rate_limit_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(RateLimit, "wait", lambda limit: waited.append(limit.interval_s))
    limited = MODELS["describe"].model_copy(update={"requests_per_minute": 90.0})
    pace = Pace()
    pace.workers = 3
    for entry in (limited, limited, POLICIES["oracle"]):
        pace(entry)
    assert waited == [2.0, 2.0, 0.0]


class Waited(Exception):
    """In place of waiting."""


def test_ports_wait_before_they_ask_a_model() -> None:
    def wait(entry: ModelEntry | PolicyEntry) -> None:
        raise Waited(entry.name)

    nothing: Any = None
    ports: WorldPorts[Any] = WorldPorts(nothing)
    ports.pace = wait
    with pytest.raises(Waited, match="describe"):
        ports.answer("describe", nothing, "?", "distorted")
    with pytest.raises(Waited, match="hold"):
        ports.act("hold", nothing, "distorted")
