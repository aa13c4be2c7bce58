"""Runs trials in order, saves their results, and continues a run that was killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import TypeVar

from merton.errors import InfrastructureError
from merton.experiment.forks import run_forked
from merton.experiment.plan import ExperimentSpec, Trial
from merton.experiment.ports import Ports
from merton.experiment.progress import Tracker
from merton.experiment.run import RunDirectory
from merton.experiment.trial import ReferenceRun, TrialReport, run_trial
from merton.experiment.undistorted import UndistortedRuns
from merton.results.records import STAIRCASE, TrialRecord

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
        undistorted: the reference runs so far.
    """

    spec: ExperimentSpec
    experiment_id: str
    ports: Ports
    stored: Callable[[str], ReferenceRun | None] = lambda trial_id: None
    on_report: Callable[[TrialReport], None] = lambda report: None

    def __post_init__(self) -> None:
        self.undistorted = UndistortedRuns(self.spec, self.stored)

    def run(self, trial: Trial, on_stage: Callable[[str, float], None] = lambda stage, progress: None) -> TrialReport:
        """Run one trial; raises as `run_trial`."""
        whose, reference = self.undistorted.measure_for(trial)
        corpus = self.undistorted.corpus(trial)
        spec = self.spec.for_trial(trial)
        report = run_trial(self.ports, spec, self.experiment_id, trial, reference, corpus, on_stage, whose)
        if report.reference is not None:
            self.undistorted.add(trial, report.reference)
        if trial.agent != self.spec.reference_agent:
            self.on_report(report)
        return report

    def reference_runs(self) -> list[Trial]:
        """The runs of the oracle that are added to the experiment (`ExperimentSpec.reference_runs`) in this world."""
        return self.spec.reference_runs() if self.ports.knows_scene else []

    def run_single(
        self, trial: Trial, on_stage: Callable[[str, float], None] = lambda stage, progress: None
    ) -> TrialReport:
        """Run a distorted trial after its reference trial, and before a trial that fails the oracle's reference run.

        The oracle's comes before every reference trial, and before a distorted one whose reference trial has failed.
        """
        reference = Trial(trial.agent, trial.case.reference)
        if not trial.case.is_reference:
            on_stage("reference run", 0.0)
            self.run(reference)
        own = self.undistorted.of(reference) if not trial.case.is_reference else None
        oracle = self.spec.reference_agent
        if oracle is not None and self.ports.knows_scene and (own is None or not own.success):
            on_stage("reference run of the oracle", 0.0)
            self.run(Trial(oracle, trial.case.reference))
        return self.run(trial, on_stage)

    def run_forked(self, trial: Trial, specs: Mapping[str, ExperimentSpec]) -> list[TrialReport]:
        """Run a distorted trial once for each experiment (`forks.run_forked`), which are named for the record.

        All are measured against the run of `UndistortedRuns.measure_for`.
        """
        whose, reference = self.undistorted.measure_for(trial)
        runs = run_forked(self.ports, list(specs.values()), trial)
        corpus = self.undistorted.corpus(trial)
        return [run.report(name, reference, corpus, whose) for name, run in zip(specs, runs, strict=True)]


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
    """Run every trial of a run that is not finished (`RunDirectory.finished`), after the reference runs that are added.

    The results of a trial are saved, in a thread, while the next trial runs: a kill loses those two trials at most.

    Args:
        run: saves pictures and details, and has those that are saved.
        done: trials whose results are durable, id to success.
        record: makes a result durable; called from that thread, in the order of the trials; not of added ones.
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
    added = runner.reference_runs()
    total, completed = spec.trial_count + len(added), len(finished)
    tracker.begin(run.id, spec.name, total, trials_left(spec, added, finished))

    def keep(trial: Trial, report: TrialReport) -> None:
        run.save(report)
        if trial not in added:
            record(report.record)

    with ThreadPoolExecutor(1, "results") as thread:
        kept: Future[None] | None = None
        for trial, next_trial in with_next(spec, added, successes, finished):
            if cancelled():
                break
            on_trial(trial, completed, total)
            tracker.trial(trial, next_trial)
            report = attempt(trial, partial(runner.run, trial, tracker.stage), on_fault)
            if kept is not None:
                kept.result()
            kept = thread.submit(keep, trial, report)
            successes[trial.id] = report.record.success
            completed += 1
        if kept is not None:
            kept.result()


def trials_left(spec: ExperimentSpec, added: Collection[Trial], finished: Collection[str]) -> dict[str, int]:
    """The number of trials that each agent has still to run, by its id; `added` are the oracle's reference runs."""
    done = Counter(trial_id.partition(".")[0] for trial_id in finished)
    each = spec.trial_count // len(spec.agents)
    planned = {agent.id: each for agent in spec.agents} | {trial.agent.id: len(added) for trial in added}
    return {agent: count - done[agent] for agent, count in planned.items()}


def with_next(
    spec: ExperimentSpec, added: Sequence[Trial], successes: Mapping[str, bool | None], finished: Collection[str]
) -> Iterator[tuple[Trial, str]]:
    """The trials of a run that are not finished, in order, each with the id of the next one.

    That is empty after the last trial, and where it may depend on the result of this one (`levels: staircase`).
    """
    groups: Iterable[Iterable[Trial]] = chain([added], spec.rounds(successes))
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
