"""Trials of a run in processes of this machine, each with a simulated cell of its own, without ROS.

Nothing depends on the number of processes or on which of them runs a trial: the record is the same, but for `wall_s`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

from merton.errors import InfrastructureError
from merton.experiment.local import LocalPorts
from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, attempt
from merton.processes import one_thread_each, stop_workers, usable_cores, worker_pool
from merton.results.records import TrialRecord
from merton.results.store import ResultStore

_Result = TypeVar("_Result")


@contextmanager
def cells(workers: int | None = None) -> Iterator[Executor]:
    """A pool of processes for trials; work that is unfinished at the end of the block is lost.

    Args:
        workers: processes, >= 1; None: one for each core that this process may use.
    """
    with one_thread_each():
        pool = worker_pool(workers or usable_cores())
        try:
            yield pool
        finally:
            stop_workers(pool)


def run_trials(
    pool: Executor, run: RunDirectory, trials: Sequence[Trial], record: Callable[[TrialRecord], object]
) -> Iterator[Trial]:
    """Run trials of a run as `runner.run_all` does; yields each once its result is durable, in the order of a run.

    Args:
        pool: of `cells`.
        run: saves pictures and details.
        trials: any of the run's. Those that others are measured against must be among them, or finished.
        record: makes a result durable; called in the order of the trials.

    Raises:
        InfrastructureError: a trial failed in every attempt, or a process died; the results before it are saved.
    """
    for _, group in groupby(sorted(trials, key=lambda trial: trial.phase), key=lambda trial: trial.phase):
        phase = list(group)
        for trial, result in zip(phase, results(pool, _run_one, [(run.path, trial) for trial in phase]), strict=True):
            record(result)
            yield trial


def complete(pool: Executor, run: RunDirectory, store: ResultStore) -> Iterator[tuple[int, int]]:
    """Run every trial of a run that its record lacks; yields (trials run, trials to run) after each.

    Args:
        pool: of `cells`.
        store: the run's record; the experiment and its agents are entered first.

    Raises:
        InputError: as `RunDirectory.register`.
        InfrastructureError: as `run_trials`.
    """
    run.register(store)
    trials = unfinished(run, store.ids(run.id))
    for done, _ in enumerate(run_trials(pool, run, trials, store.record), start=1):
        yield done, len(trials)
    run.amend(finished=True)


def unfinished(run: RunDirectory, done: Collection[str]) -> list[Trial]:
    """The trials of a run that are not in `done`, and the reference trials whose saved results are unreadable."""

    def is_finished(trial: Trial) -> bool:
        return trial.id in done and (not trial.case.is_reference or run.reference_run(trial.id) is not None)

    return [trial for trial in run.spec.trials() if not is_finished(trial)]


def results(pool: Executor, work: Callable[..., _Result], jobs: Iterable[tuple], ahead: int = 64) -> Iterator[_Result]:
    """The results of a function for tuples of arguments, in their order, as soon as those before are there.

    Args:
        jobs: perhaps without end.
        ahead: so many are under way or waiting for their turn, at most.

    Raises:
        InfrastructureError: a process died, perhaps for want of memory; or what the function raises.
    """
    waiting, futures = iter(jobs), deque[Future[_Result]]()
    try:
        while True:
            futures += (pool.submit(work, *job) for job in islice(waiting, ahead - len(futures)))
            if not futures:
                return
            yield futures.popleft().result()
    except BrokenProcessPool:
        raise InfrastructureError("a process that ran trials ended: was there too little memory?") from None
    finally:
        for future in futures:
            future.cancel()


@lru_cache(maxsize=1)
def opened(path: Path) -> tuple[RunDirectory, Runner]:
    """A run and its runner in this process: one cell for all its trials. For functions that a pool carries out."""
    run = RunDirectory(path)
    return run, Runner(run.spec, run.id, _ports(), run.reference_run)


@lru_cache(maxsize=1)
def _ports() -> LocalPorts:
    return LocalPorts()


def _run_one(path: Path, trial: Trial) -> TrialRecord:
    run, runner = opened(path)
    report = attempt(trial, lambda: runner.run(trial))
    run.save(report)
    return report.record
