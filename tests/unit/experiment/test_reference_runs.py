"""Reference runs of the oracle in an experiment without one: failures are measured against them, they are not rated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import runs
from merton.cli.main import app
from merton.experiment.dry_run import outline
from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, ExperimentSpec
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.experiment.workers import complete
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.inputs import Inputs
from merton.pool import open_pool
from merton.results.records import Outcome, Reference, TestCase, TrialRecord
from merton.results.store import ResultStore

EXPERIMENT = """
name: alone
seed: 3
agents:
  - {id: hold, vla: hold}
  - {id: servo, vla: servo}
tasks: [reach, twist]
distortions: [gaussian_blur]
levels: [0, 5]
max_steps: 4
"""
ADDED = ["oracle.reach.0.reference.0", "oracle.twist.0.reference.0"]


class SecretScene(LocalPorts):
    """A cell that cannot tell where things are, as a real one."""

    knows_scene = False


def timeless(run: RunDirectory) -> list[TrialRecord]:
    return [replace(record, wall_s=0.0, experiment="") for record in runs.records(run)]


def files(run: RunDirectory, folder: str) -> list[str]:
    return sorted(path.name for path in (run.path / folder).glob("*"))


def run_here(run: RunDirectory, ports: LocalPorts) -> list[str]:
    """Run the experiment in this process; returns the trials that were run."""
    begun: list[str] = []
    with ResultStore(run.database) as store, ports:
        done = store.successes(run.id)
        runner = Runner(run.spec, run.id, ports, run.reference_run)
        run_all(
            runner,
            run,
            done,
            store.record,
            on_trial=lambda trial, completed, total: begun.append(f"{trial.id} {completed} of {total}"),
            on_fault=pytest.fail,
        )
    return begun


@pytest.mark.usefixtures("renders")
def test_doing_nothing_is_measured_against_the_oracle_which_is_in_no_record(tmp_path: Path) -> None:
    run = runs.small_run(tmp_path, "here", EXPERIMENT)
    begun = run_here(run, LocalPorts())
    assert [line.split()[0] for line in begun] == [*ADDED, *(trial.id for trial in run.spec.trials())]
    assert (begun[0].partition(" ")[2], begun[-1].partition(" ")[2]) == ("0 of 10", "9 of 10")
    records = timeless(run)
    assert {record.id for record in records} == {trial.id for trial in run.spec.trials()}, "none of the oracle"
    assert files(run, "trials") == sorted(record.id for record in records)
    assert files(run, "references") == ADDED
    for record in records:
        if record.agent == "hold":
            assert (record.outcome, record.reference) == (Outcome.FAILURE, Reference.ORACLE)
            assert record.reference_success is True
            assert record.execution is not None
            assert record.execution < 95.0
    assert run_here(run, LocalPorts()) == [], "nothing is run again"

    workers = runs.small_run(tmp_path, "workers", EXPERIMENT)
    with ResultStore(workers.database) as store, open_pool(2) as pool:
        for done, left in complete(pool, workers, store):
            assert left == 10
            if done == 5:
                break
        left = 10 - len(workers.finished(store.successes(workers.id)))
        assert list(complete(pool, workers, store)) == [(number + 1, left) for number in range(left)]
    assert timeless(workers) == records, "the same in processes, and after a kill"
    assert files(workers, "references") == ADDED
    said = json.loads((workers.path / "run.json").read_text())
    assert (said["finished"], said["reference_runs_added"]) == (True, f"{len(ADDED)} of the oracle, not rated")


@pytest.mark.usefixtures("renders")
def test_where_the_oracle_cannot_run_a_failed_reference_is_none(tmp_path: Path) -> None:
    run = runs.small_run(tmp_path, "lab", EXPERIMENT)
    begun = run_here(run, SecretScene())
    assert begun[0] == "hold.reach.0.reference.0 0 of 8"
    distorted = {record.id: record for record in timeless(run) if not record.case.is_reference}
    hold, servo = distorted["hold.reach.0.gaussian_blur.5"], distorted["servo.reach.0.gaussian_blur.5"]
    assert (hold.outcome, hold.reference, hold.execution) == (Outcome.FAILURE, Reference.NONE, None)
    assert (servo.reference, servo.reference_success) == (Reference.OWN, True)
    warnings = snapshots.of_trials(runs.records(run)).warnings
    assert any("3 of 4 distorted trials have no execution score (hold 2, servo 1)" in line for line in warnings)
    refused = distorted["servo.twist.0.gaussian_blur.5"]
    assert (refused.outcome, refused.reference, refused.execution) == (Outcome.INVALID_ACTION, Reference.NONE, None)


def test_the_number_of_added_runs_is_said_before_a_run() -> None:
    design = {"tasks": ("reach", "pick"), "scenes": 3, "reference_scenes": 1, "distortions": ("jpeg",)}
    spec = ExperimentSpec(name="x", agents=(AgentSpec(id="mine", vla="servo"),), **design)
    assert len(spec.reference_runs()) == 8
    assert any("The oracle runs 8 times more as yardstick" in line for line in outline(spec))
    with_oracle = ExperimentSpec(name="x", agents=(*spec.agents, AgentSpec(id="best", vla="oracle")), **design)
    assert with_oracle.reference_runs() == []
    assert not any("yardstick" in line for line in outline(with_oracle))


def test_no_other_agent_has_the_oracles_id() -> None:
    with pytest.raises(ValueError, match="the id 'oracle' is for an agent with vla: oracle"):
        ExperimentSpec(name="x", agents=(AgentSpec(id="oracle", vla="hold"),), tasks=("reach",))


def test_an_agent_that_did_nothing_is_not_first_without_a_mark() -> None:
    """As in a record of before, in which a failure was measured against the agent's own failed run."""
    case, clean = TestCase("reach", 0, "jpeg", 5), TestCase("reach", 0, "reference", 0)
    still = {"agent": "hold", "outcome": Outcome.FAILURE, "reference": Reference.OWN, "reference_success": False}
    trials = [
        TrialRecord("e", case=case, execution=100.0, **still),
        TrialRecord("e", "servo", case, Outcome.FAILURE, execution=30.0, reference=Reference.OWN),
        TrialRecord("e", "servo", clean, Outcome.SUCCESS, execution=100.0, reference=Reference.OWN),
    ]
    board = compute(Inputs(trials, metric="execution"), "x", 5, checks=False)
    assert board.agents[0].id == "hold"
    marks = [line for line in board.warnings if "hold" in line]
    assert "hold did no task and stands above servo, which did: this board is by execution." in marks
    assert any(
        "1 of 2 distorted trials are measured against an undistorted run that failed (hold 1)" in m for m in marks
    )
    by_success = compute(Inputs(trials), "x", 5, checks=False)
    assert by_success.agents[0].id == "servo"
    assert not any("stands above" in line for line in by_success.warnings)


def test_an_unfinished_run_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    run = runs.small_run(tmp_path, "part", EXPERIMENT)
    plan = [trial.id for trial in run.spec.trials()]
    assert (run.planned(plan[:3]), run.planned(["candidate.reach.7.reference.0"])) == (8, None)
    with ResultStore(run.database) as store:
        for trial in run.spec.trials()[:3]:
            store.record(TrialRecord(run.id, trial.agent.id, trial.case, Outcome.SUCCESS, execution=100.0))
    said = CliRunner().invoke(app, ["report", str(run.path)], catch_exceptions=False).output
    assert said.startswith("3 of 8 trials so far: the run is unfinished, so places may still change.")
    last = said.splitlines()
    assert last[-2] == f"3 of 8 trials so far. Report: {run.path / 'report.html'}"
    assert last[-1].startswith("Go on with: ")
    assert last[-1].endswith(f"experiment.yaml --resume --runs {run.path.parent} --name part")
    with ResultStore(run.database) as store:
        for trial in run.spec.trials()[3:]:
            store.record(TrialRecord(run.id, trial.agent.id, trial.case, Outcome.SUCCESS, execution=100.0))
    said = CliRunner().invoke(app, ["report", str(run.path)], catch_exceptions=False).output
    assert "so far" not in said
    assert said.splitlines()[-2] == f"8 trials. Report: {run.path / 'report.html'}"
