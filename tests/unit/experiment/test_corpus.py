"""The corpus of CIDEr in an experiment: one for each VLM, the same for all its distorted trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from merton.cognition.text import corpus_version
from merton.experiment import runner as module
from merton.experiment.plan import AgentSpec, ExperimentSpec
from merton.experiment.runner import Runner
from merton.experiment.trial import ReferenceRun


@pytest.fixture
def spec() -> ExperimentSpec:
    return ExperimentSpec(
        name="corpus",
        seed=1,
        agents=(
            AgentSpec(id="oracle", vlm="describe", vla="oracle"),
            AgentSpec(id="servo", vlm="describe", vla="servo"),
        ),
        tasks=("reach", "pick"),
        distortions=("jpeg",),
        levels=(0, 1, 5),
        scenes=2,
    )


def test_the_corpus_is_frozen_and_each_vlms_own(spec: ExperimentSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    # the agent "third" has another VLM; only this test's plan knows it
    third = spec.agents[1].model_copy(update={"id": "third", "vlm": "another"})
    spec = spec.model_copy(update={"agents": (*spec.agents, third)})
    seen: dict[str, list[str]] = {}

    def fake_trial(
        ports: Any, spec: Any, experiment_id: str, trial: Any, measure: Any, corpus: Any, on_stage: Any, whose: Any
    ) -> Any:
        seen[trial.id] = list(corpus)
        answer = f"{trial.agent.vlm} sees {trial.case.id}"
        reference = ReferenceRun(answer, np.eye(4), (), True) if trial.case.is_reference else None
        return type("Report", (), {"reference": reference})()

    monkeypatch.setattr(module, "run_trial", fake_trial)
    runner = Runner(spec, "e", ports=None)  # type: ignore[arg-type]
    for trial in spec.trials():
        runner.run(trial)
    distorted = {trial.id: trial for trial in spec.trials() if not trial.case.is_reference}
    assert all(seen[trial.id] == [] for trial in spec.trials() if trial.case.is_reference)
    for vlm, agents in (("describe", 2), ("another", 1)):
        corpora = [seen[name] for name, trial in distorted.items() if trial.agent.vlm == vlm]
        assert len(corpora) == agents * 2 * 2 * 2
        assert len({corpus_version(corpus) for corpus in corpora}) == 1
        assert len(corpora[0]) == 4  # two tasks, two scenes; agents that share the model add nothing
        assert all(text.startswith(vlm) for text in corpora[0])


def test_a_corpus_is_built_once_and_again_after_a_new_reference_run(
    spec: ExperimentSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk over all reference trials in every trial would make a study quadratic in its scenes."""
    seen: list[tuple[str, ...]] = []
    reads: list[str] = []

    def fake_trial(*arguments: Any) -> Any:
        trial, corpus = arguments[3], arguments[5]
        seen.append(corpus)
        reference = ReferenceRun("new", np.eye(4), (), True) if trial.case.is_reference else None
        return type("Report", (), {"reference": reference})()

    def stored(trial_id: str) -> ReferenceRun | None:
        reads.append(trial_id)
        return ReferenceRun("old", np.eye(4), (), True)

    monkeypatch.setattr(module, "run_trial", fake_trial)
    runner = Runner(spec, "e", None, stored)  # type: ignore[arg-type]
    trials = spec.trials()
    first = next(trial for trial in trials if trial.case.is_reference)
    distorted = [trial for trial in trials if not trial.case.is_reference and trial.agent == first.agent]
    for trial in distorted:
        runner.run(trial)
    assert seen[0] == ("old",) * 4
    assert all(corpus is seen[0] for corpus in seen)
    assert len(reads) == len(set(reads))
    runner.run(first)
    runner.run(distorted[0])
    assert seen[-1] == ("new", "old", "old", "old")


def test_a_resumed_run_has_the_same_corpus(
    spec: ExperimentSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = {
        trial.id: ReferenceRun(f"sees {trial.case.id}", np.eye(4), (), True)
        for trial in spec.trials()
        if trial.case.is_reference
    }
    seen: list[list[str]] = []
    monkeypatch.setattr(
        module, "run_trial", lambda *args: seen.append(list(args[5])) or type("Report", (), {"reference": None})()
    )
    last = spec.trials()[-1]
    Runner(spec, "e", None, stored.get).run(last)  # type: ignore[arg-type]
    assert len(seen[0]) == 4
