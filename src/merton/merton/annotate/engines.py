"""Who works: processes of this machine, or a Ray cluster (`ray_engine`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol

from merton import processes
from merton.annotate.prompting import Asker
from merton.annotate.work import Job, Reply
from merton.errors import InputError


class Engine(Protocol):
    """A context in which jobs are done."""

    def __enter__(self) -> Engine: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, jobs: Sequence[Job]) -> Iterator[list[Reply]]:
        """Replies to every request of every job, once each, a job at a time, in whatever order they are done."""
        ...


class LocalEngine:
    """Processes of this machine, each with its own copy of the model.

    A worker that dies takes what is under way with it, unanswered; others take its place.

    Args:
        count: how many, >= 1.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._one_thread.close()
        self._end(self._pool)

    def run(self, jobs: Sequence[Job]) -> Iterator[list[Reply]]:
        """See `Engine`; jobs are begun in their order."""
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
                    yield [Reply(key, None, error="the worker that was asking died") for key in job.keys]

    def _submit(self, job: Job) -> tuple[Future[list[Reply]], ProcessPoolExecutor]:
        if self._pool is None:
            self._pool = processes.worker_pool(self._count)
        pool = self._pool
        try:
            return pool.submit(_ask, job, self._count), pool
        except BrokenProcessPool as error:  # a worker died, and no result has told yet
            failed: Future[list[Reply]] = Future()
            failed.set_exception(error)
            return failed, pool

    def _end(self, pool: ProcessPoolExecutor | None) -> None:
        """End a pool; one that broke may have been replaced already."""
        if pool is not None:
            pool.shutdown(cancel_futures=True)
            if pool is self._pool:
                self._pool = None


_asker: Asker | None = None


def _ask(job: Job, count: int) -> list[Reply]:
    """In a worker, which keeps its model from job to job."""
    global _asker
    if _asker is None:
        _asker = Asker(count)
    return _asker.ask(job)
