"""Workers that carry functions out, and a pool that replaces one that dies and repeats its work.

A pool hands out one piece of work to each worker at a time, in the order in which it was given, whichever engine the
workers are of: processes of this machine (`LocalEngine`) or actors of a cluster (`merton.cluster.RayEngine`).
"""

from __future__ import annotations

import os
import pickle
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from merton import __version__
from merton.errors import InfrastructureError, InputError
from merton.processes import one_thread_each, stop_workers, usable_cores, worker_pool

_Result = TypeVar("_Result")

ATTEMPTS = 3
"""Workers that may die of a piece of work; after the last one it has failed."""


class Shared(Protocol):
    """A value that every worker has once, for any number of pieces of work; it can be pickled."""

    def get(self) -> Any:
        """The value, in a worker."""
        ...


class Worker(Protocol):
    """One worker.

    Attributes:
        lost: the errors that mean it has died, and not that its work has failed.
    """

    lost: tuple[type[BaseException], ...]

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Carry out a function of a module; may raise one of `lost` at once."""
        ...

    def end(self) -> None:
        """End it now; its work is lost."""
        ...


class Engine(Protocol):
    """The source of workers."""

    def hire(self) -> Worker:
        """A new worker, perhaps still starting."""
        ...

    def share(self, value: object) -> Shared:
        """Give a value to all workers, present and future, until `close`."""
        ...

    def close(self) -> None:
        """End it, after its workers."""
        ...


@dataclass(frozen=True)
class Host:
    """The place of a worker: its process and machine, and its Merton."""

    pid: int
    machine: str
    merton: str


def host() -> Host:
    """That of this process."""
    return Host(os.getpid(), socket.gethostname(), __version__)


@dataclass
class _Task:
    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Future[Any] = field(default_factory=Future)
    deaths: int = 0

    @property
    def name(self) -> str:
        """The id of the first argument that has one, such as a trial."""
        return next((item.id for item in self.arguments if hasattr(item, "id")), "a piece of work")


class Pool(Executor):
    """Workers of an engine, each replaced when it dies. Its unfinished work is repeated, before all that waits.

    It is for long work of unsure workers, such as trials or models. Where a worker that dies may end it all, as in a
    computation that is repeated by the same command, `merton.processes.carried_out` is simpler.

    All state belongs to one thread; calls, and ends of work, are events for it.

    Args:
        engine: closed by `shutdown`.
        count: workers, at least one, hired with the first piece of work. One that has not started yet gets no work, so
            it delays none.
        on_fault: called with a sentence when a worker has died, from a thread.
    """

    def __init__(self, engine: Engine, count: int, on_fault: Callable[[str], None] = lambda sentence: None) -> None:
        if count < 1:
            raise InputError(f"at least one worker is needed, got {count}")
        self.count = count
        self.hosts: list[Host] = []
        """Of every worker that has started, in that order."""
        self._engine, self._on_fault = engine, on_fault
        self._events: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._waiting: deque[_Task] = deque()
        self._under_way: dict[Worker, _Task] = {}
        self._idle: deque[Worker] = deque()
        self._hired = False
        self._error: Exception | None = None
        self._is_open = True
        self._lock = threading.Lock()  # no work comes in behind the event that ends the thread
        self._thread = threading.Thread(target=self._serve, name="pool", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[..., _Result], /, *arguments: Any) -> Future[_Result]:  # type: ignore[override]
        """Have a function of a module carried out; everything that goes in or out can be pickled.

        The future raises what the function raises, or InfrastructureError if workers died of it `ATTEMPTS` times.

        Raises:
            RuntimeError: after `shutdown`, as of every executor.
        """
        task = _Task(work, arguments)
        with self._lock:
            if not self._is_open:
                raise RuntimeError("a pool that was shut down takes no more work")
            self._events.put(partial(self._waiting.append, task))
        return task.future

    def share(self, value: object) -> Shared:
        """Give a value to all workers."""
        return self._engine.share(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all workers at once; unfinished work is lost, and its futures are cancelled or raise InfrastructureError.

        Args:
            wait, cancel_futures: those of every executor, without effect: a worker is ended in the middle of its work,
                so nothing is left to wait for.
        """
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._events.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                event()
                self._hand_out()
            except Exception as error:  # an engine may raise anything; everything that waits is told
                self._error = error
                self._hand_out()
        for task in (*self._waiting, *self._under_way.values()):
            if not task.future.cancel():
                task.future.set_exception(InfrastructureError("the workers were ended"))
        for worker in (*self._under_way, *self._idle):
            worker.end()
        self._engine.close()

    def _hire(self, deaths: int) -> None:
        """A new worker, which gets work once it has said where it is; so many died before at that."""
        hello = _Task(host, (), deaths=deaths)
        self._begin(self._engine.hire(), hello)

    def _hand_out(self) -> None:
        if self._waiting and not self._hired:
            self._hired = True
            for _ in range(self.count):
                self._events.put(partial(self._hire, 0))
        while self._waiting and (self._idle or self._error):
            task = self._waiting.popleft()
            if task.deaths == 0 and not task.future.set_running_or_notify_cancel():
                continue
            if self._error:
                task.future.set_exception(self._error)
            else:
                self._begin(self._idle.popleft(), task)

    def _begin(self, worker: Worker, task: _Task) -> None:
        self._under_way[worker] = task
        try:
            future = worker.submit(task.work, *task.arguments)
        except BaseException as error:  # of a worker that died while it was idle, one of `lost`
            future = Future()
            future.set_exception(error)
        future.add_done_callback(lambda done: self._events.put(partial(self._ended, worker, task, done)))

    def _ended(self, worker: Worker, task: _Task, done: Future[Any]) -> None:
        del self._under_way[worker]
        error = done.exception()
        if isinstance(error, worker.lost):
            self._replace(worker, task, str(error))
            return
        self._idle.append(worker)
        if task.work is host:
            self._started(done.result())
        elif isinstance(error, Exception):
            task.future.set_exception(error)
        else:
            task.future.set_result(done.result())

    def _started(self, place: Host) -> None:
        self.hosts.append(place)
        if place.merton != __version__:
            self._error = InputError(
                f"the workers on {place.machine} have Merton {place.merton} and this is {__version__}: "
                "results could differ; install the same one"
            )

    def _replace(self, worker: Worker, task: _Task, reason: str) -> None:
        worker.end()
        task.deaths += 1
        if task.work is host:
            if task.deaths == ATTEMPTS:
                cause = " ".join(reason.split())[-300:]
                raise InfrastructureError(f"{ATTEMPTS} workers in a row died as they started: {cause}")
            self._hire(task.deaths)
            return
        if task.deaths == ATTEMPTS:
            what = f"{task.name}: each of {ATTEMPTS} workers died of it; was there too little memory?"
            task.future.set_exception(InfrastructureError(what))
        else:
            self._waiting.appendleft(task)
            again = f"trying again with a new one ({task.deaths} of {ATTEMPTS - 1})"
            self._on_fault(f"{task.name}: its worker died; {again}")
        self._hire(0)


@contextmanager
def open_pool(
    workers: int | None = None,
    engine: Engine | None = None,
    on_fault: Callable[[str], None] = lambda sentence: None,
) -> Iterator[Pool]:
    """A pool of workers; work that is unfinished at the end of the block is lost.

    Args:
        workers: their number, >= 1; None: one for each core that this process may use.
        engine: of the workers; None: processes of this machine.
        on_fault: called with a sentence when a worker has died, from a thread; its work is repeated by a new one.
    """
    with one_thread_each():
        pool = Pool(engine or LocalEngine(), usable_cores() if workers is None else workers, on_fault)
        try:
            yield pool
        finally:
            pool.shutdown()


def results(pool: Executor, work: Callable[..., _Result], jobs: Iterable[tuple], ahead: int = 64) -> Iterator[_Result]:
    """The results of a function for tuples of arguments, in their order, as soon as those before are there.

    Args:
        jobs: perhaps without end.
        ahead: so many are under way or waiting for their turn, at most.

    Raises:
        InfrastructureError: workers died of a piece of work; or what the function raises.
    """
    return chain.from_iterable(batches(pool, work, jobs, ahead, 1))


def batches(
    pool: Executor, work: Callable[..., _Result], jobs: Iterable[tuple], ahead: int, most: int
) -> Iterator[list[_Result]]:
    """`results`, as many at once as are there, `most` at most: while one is written, more may have come."""
    waiting, futures = iter(jobs), deque[Future[_Result]]()
    try:
        while True:
            futures += (pool.submit(work, *job) for job in islice(waiting, ahead - len(futures)))
            if not futures:
                return
            found = [futures.popleft().result()]
            while futures and futures[0].done() and len(found) < most and not futures[0].exception():
                found.append(futures.popleft().result())
            yield found
    finally:
        for future in futures:
            future.cancel()


class LocalEngine:
    """Processes of this machine, which end with this one."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="merton_workers")
        self._values = 0

    def hire(self) -> Worker:
        """See `Engine`."""
        return _Process()

    def share(self, value: object) -> Shared:
        """See `Engine`."""
        self._values += 1
        file = Path(self._folder.name) / str(self._values)
        file.write_bytes(pickle.dumps(value))
        return _InFile(file)

    def close(self) -> None:
        """See `Engine`."""
        self._folder.cleanup()


class _Process:
    """A pool of one process: when it dies, no other one does."""

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self) -> None:
        self._executor = worker_pool(1)

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        return self._executor.submit(work, *arguments)

    def end(self) -> None:
        stop_workers(self._executor)


@dataclass(frozen=True)
class _InFile:
    file: Path

    def get(self) -> Any:
        return _unpickled(self.file)


@lru_cache(maxsize=1)
def _unpickled(file: Path) -> Any:
    return pickle.loads(file.read_bytes())
