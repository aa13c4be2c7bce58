"""Runs trials in order, saves their results, and continues a run that was killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain, zip_longest
from typing import TypeVar

from merton.errors import InfrastructureError
from merton.experiment.forks import ForkingPorts, run_forked
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.ports import Ports
from merton.experiment.progress import Tracker
from merton.experiment.run import RunDirectory
from merton.experiment.trial import ReferenceRun, TrialReport, run_trial
from merton.results.records import STAIRCASE, Reference, TrialRecord

_Result = TypeVar("_Result")

ATTEMPTS = 3
"""Attempts at a trial while the infrastructure fails; after the last one the run ends with the error."""


@dataclass
class Runner:
    """Runs trials and remembers their reference runs, which later trials are measured against.

    Attributes:
        experiment_id: id under which results are recorded.
        stored: returns the reference run that an earlier process saved, by trial id; None if there is none.
        on_report: called with each trial's report at once, while the cell is as the trial left it.
    """

    spec: ExperimentSpec
    experiment_id: str
    ports: Ports
    stored: Callable[[str], ReferenceRun | None] = lambda trial_id: None
    on_report: Callable[[TrialReport], None] = lambda report: None
    _references: dict[str, ReferenceRun] = field(default_factory=dict)
    _corpora: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def run(self, trial: Trial, on_stage: Callable[[str, float], None] = lambda stage, progress: None) -> TrialReport:
        """Run one trial; raises as `run_trial`."""
        whose, reference = self.reference_for(trial)
        report = run_trial(
            self.ports, self.spec, self.experiment_id, trial, reference, self.corpus(trial), on_stage, whose
        )
        if report.reference is not None:
            self._references[trial.id] = report.reference
            self._corpora.pop(trial.agent.vlm, None)
        self.on_report(report)
        return report

    def run_single(
        self, trial: Trial, on_stage: Callable[[str, float], None] = lambda stage, progress: None
    ) -> TrialReport:
        """Run a distorted trial after its reference trial, which it is scored against; a reference trial alone."""
        if not trial.case.is_reference:
            on_stage("reference run", 0.0)
            self.run(Trial(trial.agent, trial.case.reference))
        return self.run(trial, on_stage)

    def run_forked(self, trial: Trial, specs: Mapping[str, ExperimentSpec]) -> list[TrialReport]:
        """Run a distorted trial once for each experiment (`forks.run_forked`), which are named for the record.

        All are measured against the undistorted run of `reference_for`. The ports must be a `ForkingPorts`.
        """
        assert isinstance(self.ports, ForkingPorts)
        whose, reference = self.reference_for(trial)
        runs = run_forked(self.ports, list(specs.values()), trial)
        corpus = self.corpus(trial)
        return [run.report(name, reference, corpus, whose) for name, run in zip(specs, runs, strict=True)]

    def reference_of(self, trial: Trial) -> ReferenceRun | None:
        """The undistorted run of the same agent and scene, of this or an earlier process; None if there is none."""
        key = Trial(trial.agent, trial.case.reference).id
        if key not in self._references and (found := self.stored(key)) is not None:
            self._references[key] = found
        return self._references.get(key)

    def reference_for(self, trial: Trial) -> tuple[Reference, ReferenceRun | None]:
        """The agent's own undistorted run if it succeeded, else an oracle's that succeeded, else the agent's own."""
        own = None if trial.case.is_reference else self.reference_of(trial)
        if own is not None and own.success:
            return Reference.OWN, own
        for agent in self.spec.agents:
            if agent.vla == "oracle" and agent != trial.agent:
                oracle = self.reference_of(Trial(agent, trial.case))
                if oracle is not None and oracle.success:
                    return Reference.ORACLE, oracle
        return Reference.OWN, own

    def corpus(self, trial: Trial) -> tuple[str, ...]:
        """The reference answers of the trial's VLM, one for each task and scene, even if several agents share the VLM.

        All reference trials run before all distorted ones (`ExperimentSpec.trials`), so the corpus is the same for
        every distorted trial of a VLM, and built once. Reference trials have none, so that their order does not matter.
        """
        if trial.case.is_reference:
            return ()
        vlm = trial.agent.vlm
        if vlm not in self._corpora:
            answers: dict[str, str] = {}
            for other in self._reference_trials[vlm]:
                if other.case.id not in answers and (reference := self.reference_of(other)) is not None:
                    answers[other.case.id] = reference.answer
            self._corpora[vlm] = tuple(answers.values())
        return self._corpora[vlm]

    @cached_property
    def _reference_trials(self) -> dict[str, list[Trial]]:
        """VLM to its reference trials, in order."""
        trials: dict[str, list[Trial]] = {agent.vlm: [] for agent in self.spec.agents}
        for trial in self.spec.trials():
            if trial.case.is_reference:
                trials[trial.agent.vlm].append(trial)
        return trials


def run_all(
    runner: Runner,
    run: RunDirectory,
    done: Mapping[str, bool | None],
    record: Callable[[TrialRecord], object],
    *,
    on_trial: Callable[[Trial, int, int], None],
    on_fault: Callable[[str], None],
    cancelled: Callable[[], bool] = lambda: False,
    tracker: Tracker | None = None,
) -> None:
    """Run every trial of a run that is not finished (`RunDirectory.finished`).

    The results of a trial are saved, in a thread, while the next trial runs: a kill loses those two trials at most.

    Args:
        run: saves pictures and details, and has those that are saved.
        done: trials whose results are durable, id to success.
        record: makes a result durable; called from that thread, in the order of the trials.
        on_trial: called before each trial with the trial, the number of trials that are finished and the number of all.
        on_fault: called with a sentence before a trial is repeated.
        cancelled: called before each trial; true ends the run.
        tracker: follows the run from its beginning to its last trial; its end is the caller's to say.

    Raises:
        InfrastructureError: a trial failed in `ATTEMPTS` attempts, or its results could not be saved; those of all
            trials before it are.
    """
    spec, successes, finished = runner.spec, dict(done), run.finished(done)
    tracker = tracker or Tracker(lambda progress: None)
    total, completed = spec.trial_count, len(finished)
    tracker.begin(run.id, spec.name, total, trials_left(spec, finished))

    def keep(report: TrialReport) -> None:
        run.save(report)
        record(report.record)

    with ThreadPoolExecutor(1, "results") as thread:
        kept: Future[None] | None = None
        for trial, next_trial in with_next(spec, successes, finished):
            if cancelled():
                break
            on_trial(trial, completed, total)
            tracker.trial(trial, next_trial)
            report = attempt(trial, partial(runner.run, trial, tracker.stage), on_fault)
            if kept is not None:
                kept.result()
            kept = thread.submit(keep, report)
            successes[trial.id] = report.record.success
            completed += 1
        if kept is not None:
            kept.result()


def trials_left(spec: ExperimentSpec, finished: Collection[str]) -> dict[str, int]:
    """The number of trials that each agent has still to run, by its id."""
    done = Counter(trial_id.partition(".")[0] for trial_id in finished)
    each = spec.trial_count // len(spec.agents)
    return {agent.id: each - done[agent.id] for agent in spec.agents}


def with_next(
    spec: ExperimentSpec, successes: Mapping[str, bool | None], finished: Collection[str]
) -> Iterator[tuple[Trial, str]]:
    """The trials of a run that are not finished, in order, each with the id of the next one.

    That is empty after the last trial, and where it may depend on the result of this one (`levels: staircase`).
    """
    groups: Iterable[Iterable[Trial]] = spec.rounds(successes)
    if spec.levels != STAIRCASE:
        groups = [chain.from_iterable(groups)]
    for group in groups:
        trials = [trial for trial in group if trial.id not in finished]
        yield from zip_longest(trials, (trial.id for trial in trials[1:]), fillvalue="")


def attempt(trial: Trial, run: Callable[[], _Result], on_fault: Callable[[str], None] = lambda fault: None) -> _Result:
    """Run a trial until the infrastructure does not fail; raises InfrastructureError after `ATTEMPTS` attempts."""
    for number in range(1, ATTEMPTS):
        try:
            return run()
        except InfrastructureError as error:
            on_fault(f"{trial.id}: {error}; trying again ({number} of {ATTEMPTS - 1})")
    try:
        return run()
    except InfrastructureError as error:
        raise InfrastructureError(f"{trial.id}: {error}") from error
