"""The engines that run jobs: processes of this machine, or a Ray cluster (`ray_engine`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import Protocol

from merton import processes
from merton.errors import InputError
from merton_studies.annotate.prompting import ModelRunner
from merton_studies.annotate.work import Job, Reply


class Engine(Protocol):
    """A context that runs jobs."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...

    def run(self, jobs: Sequence[Job]) -> Iterator[list[Reply]]:
        """One reply to every request of every job, a job at a time, in the order of completion."""
        ...


class LocalEngine:
    """Processes of this machine, `count` >= 1, each with its own copy of the model.

    If one dies, the jobs under way stay unanswered, and new processes are started.
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise InputError(f"at least one worker is needed, got {count}")
        self._count = count
        self._pool: ProcessPoolExecutor | None = None
        self._one_thread = ExitStack()

    def __enter__(self) -> LocalEngine:
        self._one_thread.enter_context(processes.one_thread_each())
        return self

    def __exit__(self, *_: object) -> None:
        self._one_thread.close()
        self._end(self._pool)

    def run(self, jobs: Sequence[Job]) -> Iterator[list[Reply]]:
        """See `Engine`; jobs are started in their order."""
        waiting = iter(jobs)
        under_way: dict[Future[list[Reply]], tuple[Job, ProcessPoolExecutor]] = {}
        while True:
            while len(under_way) < 2 * self._count and (job := next(waiting, None)) is not None:
                future, pool = self._submit(job)
                under_way[future] = job, pool
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                job, pool = under_way.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    self._end(pool)
                    yield [Reply(key, None, error="the worker process died") for key in job.keys]

    def _submit(self, job: Job) -> tuple[Future[list[Reply]], ProcessPoolExecutor]:
        if self._pool is None:
            self._pool = processes.worker_pool(self._count)
        pool = self._pool
        try:
            return pool.submit(_run_job, job, self._count), pool
        except BrokenProcessPool as error:  # a worker died, and no future has reported it yet
            failed: Future[list[Reply]] = Future()
            failed.set_exception(error)
            return failed, pool

    def _end(self, pool: ProcessPoolExecutor | None) -> None:
        """End a pool; a broken one may have a successor already."""
        if pool is not None:
            pool.shutdown(cancel_futures=True)
            if pool is self._pool:
                self._pool = None


_runner: ModelRunner | None = None


def _run_job(job: Job, count: int) -> list[Reply]:
    """Runs in a worker process, which keeps its model from job to job."""
    global _runner  # noqa: PLW0603 - a worker process has one
    if _runner is None:
        _runner = ModelRunner(count)
    return _runner.run(job)
