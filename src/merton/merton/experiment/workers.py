"""Trials of a run in processes of this machine, each with a simulated cell of its own, without ROS.

Nothing depends on the number of processes or on which of them runs a trial: the record is the same, but for `wall_s`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
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


def complete(pool: Executor, run: RunDirectory, store: ResultStore) -> Iterator[tuple[int, int]]:
    """Run every trial of a run that is not finished, as `runner.run_all` does, after the reference runs that are added.

    Yields (trials run, trials to run) once the result of each is durable, in the order of a run.

    Args:
        pool: of `cells`.
        store: the run's record; the experiment and its agents are entered first.

    Raises:
        InputError: as `RunDirectory.register`.
        InfrastructureError: a trial failed in every attempt, or a process died; the results before it are saved.
    """
    run.register(store)
    successes = store.successes(run.id)
    finished = run.finished(successes)
    added = run.spec.reference_runs()
    done, left = 0, run.spec.trial_count + len(added) - len(finished)
    for group in chain([added], run.spec.rounds(successes)):
        jobs = [(run.path, trial) for trial in group if trial.id not in finished]
        for record in results(pool, _run_one, jobs):
            if group is not added:
                store.record(record)
                successes[record.id] = record.success
            done += 1
            yield done, left
    run.finish()


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
