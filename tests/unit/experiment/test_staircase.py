"""`levels: staircase`: the rule, the order of a run, and the same record in every way of running it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import runs
from merton.config import loads
from merton.errors import InputError
from merton.experiment import workers
from merton.experiment.dry_run import outline
from merton.experiment.local import LocalPorts
from merton.experiment.paired import paired_experiment
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.experiment.staircase import Staircase
from merton.experiment.trial import ReferenceRun
from merton.experiment.workers import Made
from merton.pool import open_pool
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from thread_engine import ThreadEngine

EXPERIMENT = """
name: climb
seed: 3
agents:
  - {id: servo, vla: servo}
  - {id: plunge, vla: plunge}
tasks: [reach]
distortions: [white_noise]
levels: staircase
scenes: 4
max_steps: 3
"""


def planted(spec: ExperimentSpec, threshold: int) -> tuple[list[list[Trial]], dict[str, bool | None]]:
    """The rounds of an agent that succeeds below a level, and its results."""
    successes: dict[str, bool | None] = {}
    rounds = []
    for group in spec.rounds(successes):
        rounds.append(group)
        successes.update({trial.id: trial.case.level < threshold for trial in group})
    return rounds, successes


def test_a_third_up_after_a_success_and_a_level_down_after_a_failure() -> None:
    chain, levels = Staircase(), []
    for success in (True, True, True, None, False, False, False, False, True, True, *[True] * 20, False):
        levels.append(chain.level)
        chain.add(success)
    assert levels[:10] == [3, 3, 4, 4, 4, 3, 2, 1, 1, 1]
    assert levels[-1] == 5
    assert chain.level == 4


def test_the_rule_balances_near_three_successes_of_four() -> None:
    rng, chain, levels = np.random.default_rng(4), Staircase(), []
    for _ in range(8_000):
        levels.append(chain.level)
        chain.add(rng.random() < 1.0 / (1.0 + np.exp((chain.level - 3.0) / 0.7)))
    success = 1.0 / (1.0 + np.exp((np.array(levels) - 3.0) / 0.7))
    assert success.mean() == pytest.approx(0.75, abs=0.02)


def test_a_round_has_one_trial_of_each_chain_and_needs_the_rounds_before_alone() -> None:
    spec = loads(EXPERIMENT.replace("white_noise", "white_noise, jpeg"), ExperimentSpec, "experiment")
    rounds, successes = planted(spec, 4)
    assert len(successes) == sum(map(len, rounds)) == spec.trial_count == 2 * 4 + 2 * 2 * 4
    climbs = [group for group in rounds if not group[0].case.is_reference]
    assert all(len({(trial.agent.id, trial.case.distortion) for trial in group}) == len(group) == 4 for group in climbs)
    assert {trial.case.level for trial in climbs[0]} == {3}
    first, second = ([group[at].case.seed for group in climbs] for at in (0, 2))
    assert first == second, "agents meet the scenes of a type in one order"
    assert sorted(first) == [0, 1, 2, 3]
    assert spec.trials() == [trial for group in rounds if group[0].case.is_reference for trial in group]
    assert "4 staircases of 4 distorted trials" in outline(spec)


def test_the_order_of_tasks_in_the_file_has_no_effect() -> None:
    one, other = (
        planted(loads(EXPERIMENT.replace("reach", tasks), ExperimentSpec, "experiment"), 3)[1]
        for tasks in ("reach, pick", "pick, reach")
    )
    assert one == other


def test_scenes_that_are_drawn_independently_cannot_climb() -> None:
    with pytest.raises(InputError, match="levels: staircase makes a scene's level depend on earlier results"):
        paired_experiment(loads(EXPERIMENT, ExperimentSpec, "experiment"), "servo", "plunge", None)


def small_trial(experiment: str, trial: Trial) -> TrialRecord:
    """The result of an agent that succeeds below level 3, the second one below 2."""
    done = trial.case.level < (3 if trial.agent.vla == "servo" else 2)
    return TrialRecord(experiment, trial.agent.id, trial.case, Outcome.SUCCESS if done else Outcome.FAILURE)


def test_two_workers_and_a_kill_leave_the_record_of_one_trial_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, unreadable = ReferenceRun("", np.eye(4), (), True), set()
    monkeypatch.setattr(RunDirectory, "reference_run", lambda self, id: None if id in unreadable else saved)
    monkeypatch.setattr(
        workers, "run_trial_here", lambda shared, trial, *_: Made(small_trial(shared.get().run, trial), {}, ())
    )
    monkeypatch.setattr(RunDirectory, "save_files", lambda self, trial, files: None)
    run = runs.small_run(tmp_path, "climb", EXPERIMENT)
    with ResultStore(run.database) as store, open_pool(2, ThreadEngine()) as pool:
        for done, left in workers.complete(pool, run, store):
            assert left == 16
            if done == 11:
                break
        left = 16 - len(store.ids(run.id))
        assert list(workers.complete(pool, run, store)) == [(number + 1, left) for number in range(left)]
        assert list(workers.complete(pool, run, store)) == []
        unreadable.add("servo.reach.0.reference.0")
        assert list(workers.complete(pool, run, store)) == [(1, 1)], "run again"
        unreadable.clear()

    monkeypatch.setattr(
        Runner, "run", lambda self, trial, on_stage: SimpleNamespace(record=small_trial("climb", trial))
    )
    monkeypatch.setattr(RunDirectory, "save", lambda self, report: None)
    ours = {record.id: record.success for record in runs.records(run)}
    orders: list[list[str]] = [[]]
    numbers = []
    for kept in (0, 11):
        theirs = orders[0][:kept]
        run_all(
            Runner(run.spec, run.id, LocalPorts.__new__(LocalPorts), run.reference_run),
            run,
            {id: ours[id] for id in theirs},
            lambda record, ids=theirs: ids.append(record.id),
            on_trial=lambda trial, completed, total: numbers.append((completed, total)),
            on_fault=pytest.fail,
        )
        orders.append(theirs)
        orders[0] = orders[1]
    assert orders[1] == orders[2]
    assert sorted(orders[1]) == sorted(ours)
    assert numbers == [(4 + number, 20) for number in (*range(16), *range(11, 16))], "after four reference runs"
    assert {id.rpartition(".")[2] for id in ours if id.startswith("plunge")} == {"0", "1", "2", "3"}
