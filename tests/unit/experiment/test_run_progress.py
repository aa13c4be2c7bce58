"""How far an experiment is: counts, the trial under way and the next one, and the estimate of the time left."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, ExperimentSpec, Trial
from merton.experiment.progress import Progress, State, TimeLeft, Tracker
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all, trials_left, with_next
from runs import small_run


def test_the_time_left_is_that_of_each_agents_own_trials() -> None:
    left = TimeLeft({"slow": 3, "fast": 4})
    assert math.isnan(left.seconds), "nothing is known before the first trial has ended"
    left.ended("slow", 10.0)
    assert left.seconds == 6 * 10.0, "an agent without a trial takes the mean of all"
    left.ended("fast", 1.0)
    left.ended("fast", 3.0)
    assert left.seconds == 2 * 10.0 + 2 * 2.0
    for _ in range(5):
        left.ended("fast", 2.0)
    assert left.seconds == 2 * 10.0, "never less than nothing"


def test_a_run_shows_each_trial_its_stages_and_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, shown, now = small_run(tmp_path, "seen"), [], [100.0]
    tracker = Tracker(shown.append, lambda: now[0])

    def ran(self: Runner, trial: Trial, on_stage: Any) -> Any:
        for stage in ("perception", "cognition", "decision", "execution", "execution", "scores"):
            on_stage(stage, 0.5)
        now[0] += 2.0
        return SimpleNamespace(record=SimpleNamespace(id=trial.id, success=True))

    monkeypatch.setattr(Runner, "run", ran)
    monkeypatch.setattr(RunDirectory, "save", lambda self, report: None)
    monkeypatch.setattr(RunDirectory, "reference_run", lambda self, trial_id: "saved")
    trials = [trial.id for trial in run.spec.trials()]
    runner = Runner(run.spec, run.id, LocalPorts.__new__(LocalPorts))
    done = {trials[0]: True}
    run_all(runner, run, done, lambda record: None, on_trial=lambda *_: None, on_fault=pytest.fail, tracker=tracker)
    tracker.end(State.FINISHED)
    begun = [progress for progress in shown if progress.trial and not progress.stage]
    assert [progress.trial.id for progress in begun] == trials[1:], "a finished trial is not under way again"
    assert [progress.next_trial for progress in begun] == [*trials[2:], ""]
    assert [progress.completed for progress in begun] == list(range(1, len(trials)))
    first: list[Progress] = [progress for progress in shown if progress.trial == begun[0].trial]
    assert [(progress.stage, progress.step) for progress in first] == [
        ("", 0),
        ("perception", 0),
        ("cognition", 0),
        ("decision", 0),
        ("execution", 0),
        ("execution", 1),
        ("scores", 2),
    ]
    assert (shown[0].run, shown[0].experiment, shown[0].state, shown[0].total) == (
        "seen",
        run.spec.name,
        State.RUNNING,
        len(trials),
    )
    assert math.isnan(begun[0].remaining_s)
    assert [progress.remaining_s for progress in begun[1:]] == [2.0 * n for n in range(len(trials) - 2, 0, -1)]
    end = shown[-1]
    assert (end.state, end.completed, end.remaining_s) == (State.FINISHED, len(trials), 0.0)
    assert end.elapsed_s == 2.0 * (len(trials) - 1)


def test_a_cancelled_run_does_not_count_the_trial_that_did_not_end() -> None:
    shown: list[Progress] = []
    tracker = Tracker(shown.append, lambda: 0.0)
    spec = ExperimentSpec(name="x", agents=(AgentSpec(id="a", vla="hold"),), tasks=("reach",))
    tracker.begin("r", "x", 1, {"a": 1})
    tracker.trial(spec.trials()[0])
    tracker.end(State.FAILED, "the camera is gone")
    assert (shown[-1].completed, shown[-1].error) == (0, "the camera is gone")


def test_under_a_staircase_the_next_trial_is_known_within_its_round_alone() -> None:
    agents = (AgentSpec(id="hold", vla="hold"), AgentSpec(id="servo", vla="servo"))
    design = {"tasks": ("reach",), "distortions": ("jpeg",), "levels": "staircase", "scenes": 2}
    spec = ExperimentSpec(name="x", agents=agents, **design)
    assert trials_left(spec, (), {"hold.reach.0.reference.0"}) == {"hold": 3, "servo": 4}
    following = [next_trial for _, next_trial in with_next(spec, (), {}, ())]
    assert [bool(name) for name in following] == [True] * 3 + [False] + [True, False] * 2
