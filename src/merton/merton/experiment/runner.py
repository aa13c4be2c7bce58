"""Runs trials in order, keeps what they leave, and goes on where a killed run stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property

from merton.errors import InfrastructureError
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.ports import Ports
from merton.experiment.run import RunDirectory
from merton.experiment.trial import ReferenceRun, TrialReport, run_trial
from merton.results.records import TrialRecord

ATTEMPTS = 2
"""How often a trial is tried when the infrastructure fails, before the run ends with the error."""


@dataclass
class Runner:
    """Runs single trials and remembers the reference runs that later ones are measured against.

    Attributes:
        spec: the experiment.
        experiment_id: id under which results are recorded.
        ports: the world.
        stored: finds the reference run an earlier process left, by trial id.
        on_report: called with every trial's report.
    """

    spec: ExperimentSpec
    experiment_id: str
    ports: Ports
    stored: Callable[[str], ReferenceRun | None] = lambda trial_id: None
    on_report: Callable[[TrialReport], None] = lambda report: None
    _references: dict[str, ReferenceRun] = field(default_factory=dict)

    def run(self, trial: Trial, on_stage: Callable[[str, float], None] = lambda stage, progress: None) -> TrialReport:
        """Run one trial; raises InfrastructureError if the world does not answer."""
        measure = self._measure_for(trial)
        report = run_trial(self.ports, self.spec, self.experiment_id, trial, measure, self._corpus(trial), on_stage)
        if report.reference is not None:
            self._references[trial.id] = report.reference
        self.on_report(report)
        return report

    def run_single(
        self, trial: Trial, on_stage: Callable[[str, float], None] = lambda stage, progress: None
    ) -> TrialReport:
        """Run a trial on its own: its reference trial first, if it is distorted, so that it can be scored against it.

        Raises InfrastructureError if the world does not answer.
        """
        if not trial.case.is_reference:
            on_stage("reference run", 0.0)
            self.run(Trial(trial.agent, trial.case.reference))
        return self.run(trial, on_stage)

    def reference_of(self, trial: Trial) -> ReferenceRun | None:
        """The undistorted run of the same agent and scene, from memory or from an earlier process."""
        key = Trial(trial.agent, trial.case.reference).id
        if key not in self._references and (found := self.stored(key)) is not None:
            self._references[key] = found
        return self._references.get(key)

    def _measure_for(self, trial: Trial) -> ReferenceRun | None:
        """The run that did the task: the agent's own undistorted one, else the expert's; failing both, its own."""
        own = None if trial.case.is_reference else self.reference_of(trial)
        if own is not None and own.success:
            return own
        for agent in self.spec.agents:
            if agent.vla == "expert" and agent != trial.agent:
                expert = self.reference_of(Trial(agent, trial.case))
                if expert is not None and expert.success:
                    return expert
        return own

    def _corpus(self, trial: Trial) -> list[str]:
        """The reference answers of the trial's VLM to all scenes and tasks, one each, however many agents share it.

        All of them are there before anything distorted runs (`ExperimentSpec.trials`), so the corpus is the same for
        every distorted trial of a model; reference trials have none, so that their order does not matter.
        """
        if trial.case.is_reference:
            return []
        answers: dict[str, str] = {}
        for other in self._reference_trials[trial.agent.vlm]:
            if other.case.id not in answers and (reference := self.reference_of(other)) is not None:
                answers[other.case.id] = reference.answer
        return list(answers.values())

    @cached_property
    def _reference_trials(self) -> dict[str, list[Trial]]:
        """Of each VLM, in their order. Kept: a study has 100,000 trials, and each asks for its corpus."""
        trials: dict[str, list[Trial]] = {agent.vlm: [] for agent in self.spec.agents}
        for trial in self.spec.trials():
            if trial.case.is_reference:
                trials[trial.agent.vlm].append(trial)
        return trials


def run_all(
    runner: Runner,
    run: RunDirectory,
    done: Collection[str],
    record: Callable[[TrialRecord], object],
    *,
    on_trial: Callable[[Trial, int, int], None],
    on_fault: Callable[[str], None],
    cancelled: Callable[[], bool] = lambda: False,
) -> int:
    """Run every trial of a run whose id is not in `done`.

    Args:
        runner: runs the trials.
        run: keeps pictures and details.
        done: ids of trials whose results are durable already.
        record: makes a result durable; a trial counts only once this has returned.
        on_trial: called before each trial with the trial, how many are finished, and how many there are.
        on_fault: called with a sentence when a trial is tried again.
        cancelled: asked between trials.

    Returns:
        How many trials were run.

    Raises:
        InfrastructureError: a trial could not be run in `ATTEMPTS` tries; everything before it is kept.
    """
    count = 0
    trials = runner.spec.trials()
    for completed, trial in enumerate(trials):
        if cancelled():
            break
        on_trial(trial, completed, len(trials))
        if trial.id in done and (not trial.case.is_reference or runner.reference_of(trial) is not None):
            continue
        report = _attempt(runner, trial, on_fault)
        run.save(report)
        record(report.record)
        count += 1
    return count


def _attempt(runner: Runner, trial: Trial, on_fault: Callable[[str], None]) -> TrialReport:
    for attempt in range(1, ATTEMPTS):
        try:
            return runner.run(trial)
        except InfrastructureError as error:
            on_fault(f"{trial.id}: {error}; trying again ({attempt} of {ATTEMPTS - 1})")
    try:
        return runner.run(trial)
    except InfrastructureError as error:
        raise InfrastructureError(f"{trial.id}: {error}") from error
