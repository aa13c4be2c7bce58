"""Processes that work for this one: one thread each, and they end when it ends."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from merton.errors import InfrastructureError, InputError, MertonError
from merton.files import locked_folder

_Result = TypeVar("_Result")

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of every worker: more threads would compete for cores, and their number may change a sum's last bit."""

ENDING = tuple(
    number
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
)
"""Signals that end a process: Ctrl-C, `kill`, and the end of its terminal unless `nohup` has it ignored."""


def usable_cores() -> int:
    """Cores that this process may use: the default number of workers everywhere. A container's share may be smaller."""
    return len(os.sched_getaffinity(0))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that start inside do their linear algebra in one thread, unless the environment says otherwise.

    OpenBLAS reads the environment once, when numpy is imported: it cannot be changed later.
    """
    added = {name: value for name, value in ONE_THREAD.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def one_torch_thread(torch: Any) -> Iterator[None]:
    """The module `torch` computes in one thread inside: with more, the last bits depend on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def worker_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of `workers` processes that end with this one, even after kill -9, and leave Ctrl-C to it."""
    # spawned, not forked: a fork would copy OpenCV's threads in the middle of their work
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_initialize)


def carried_out(
    work: Callable[..., _Result],
    jobs: Sequence[tuple[Any, ...]],
    workers: int | None = None,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, _Result]]:
    """Carry work out on every job, in processes of this machine; one worker, or one job, runs in this process.

    Yields the index of each job with its result, in the order of completion; jobs are begun in their order. If the
    iterator ends early, by an error or by Ctrl-C, the workers end at once and unfinished work is lost. A worker that
    dies ends it, too: work that must survive that, or runs on a cluster, is for a `merton.pool.Pool`.

    Args:
        work: a function of a module.
        jobs: its arguments.
        workers: processes, >= 1; None: one for each core that this process may use.
        on_wait: called at least every second while workers are busy: for progress within a job.

    Raises:
        InputError: fewer workers than one.
        InfrastructureError: a worker was killed; and what the work raises.
    """
    if workers is not None and workers < 1:
        raise InputError(f"at least one worker is needed, got {workers}")
    count = min(workers or usable_cores(), len(jobs))
    if count <= 1:
        for index, job in enumerate(jobs):
            yield index, work(*job)
        return
    waiting, under_way = iter(enumerate(jobs)), dict[Future[_Result], int]()
    pool = worker_pool(count)
    try:
        while True:
            with one_thread_each():  # a process starts when there is work for it
                for index, job in islice(waiting, 2 * count - len(under_way)):
                    under_way[pool.submit(work, *job)] = index
            if not under_way:
                return
            done, _ = wait(under_way, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=under_way.__getitem__):
                yield under_way.pop(future), future.result()
            on_wait()
    except BrokenProcessPool:
        raise InfrastructureError(
            "a process was killed, perhaps for lack of memory (fewer workers need less): run the same command again, "
            "which keeps all that is on the disk"
        ) from None
    finally:
        stop_workers(pool)


@contextmanager
def resumable_work(out: Path, command: str) -> Iterator[None]:
    """Around work on a folder that the same command can finish later; the folder is made, and locked meanwhile.

    Args:
        out: the folder.
        command: its name, for the message to a second process.

    Raises:
        InputError: another process is at work there, or it is a file.
        InfrastructureError: in place of the OSError of a folder that cannot be written, as on a full disk.
    """
    try:
        with locked_folder(out, command):
            yield
    except OSError as error:
        raise InfrastructureError(
            f"cannot write into {str(out)!r}: {error.strerror or error}; once it can be, the same command goes on from "
            "there"
        ) from error


def stop_workers(executor: ProcessPoolExecutor) -> None:
    """End a pool at once; unfinished work is lost."""
    terminate_workers(executor)
    executor.shutdown(wait=True, cancel_futures=True)


def terminate_workers(executor: ProcessPoolExecutor) -> None:
    """End a pool's processes; a thread that waits for a result gets a BrokenProcessPool and shuts the pool down."""
    # the executor's own shutdown waits for them; from Python 3.14 on it has terminate_workers
    for process in list((executor._processes or {}).values()):
        process.terminate()


def _initialize() -> None:
    """First call in a worker; without it, a worker would wait for a dead parent without end."""
    import cv2

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _has_room(link: Connection) -> bool:
    """Whether a short message can be written to a pipe without waiting for its reader."""
    poll = select.poll()
    poll.register(link.fileno(), select.POLLOUT)
    return bool(poll.poll(0))


def _shut(link: Connection) -> None:
    """End a pipe for both processes; a thread that waits to write to it gets a BrokenPipeError."""
    with suppress(OSError), socket.socket(fileno=os.dup(link.fileno())) as pipe:
        pipe.shutdown(socket.SHUT_RDWR)


class SupervisedDriver:
    """A process that drives a device, replaced by a new one whenever it fails, falls silent or dies.

    All callbacks come from one thread of this object.

    Args:
        name: of the process and of the thread.
        child_main, arguments: main function of the process; it gets the arguments, and its end of the pipe as the last.
        start_limit_s: how long a process may take to its first message [s].
        silence: the error of a process that is silent for too long, as a sentence.
        on_message: called with each message. Returns how long the next one may take [s], or the error that the process
            reported before its end.
        on_end: called after each process with the reason, None after `close`. Returns the pause before the next [s].
    """

    def __init__(
        self,
        name: str,
        child_main: Callable[..., None],
        arguments: tuple[Any, ...],
        start_limit_s: float,
        silence: str,
        on_message: Callable[[Any], float | MertonError],
        on_end: Callable[[MertonError | None], float],
    ) -> None:
        self.pid: int | None = None
        """The process that runs now, or ran last; None before the first."""
        self._child_main, self._arguments = child_main, arguments
        self._start_limit_s, self._silence = start_limit_s, silence
        self._on_message, self._on_end = on_message, on_end
        self._link: Connection | None = None
        self._link_lock = threading.Lock()
        self._closing = threading.Event()
        self._end_s = float("inf")
        self._thread = threading.Thread(target=self._supervise, name=name, daemon=True)

    def start(self) -> None:
        """Start the first process; a second call has no effect."""
        if not self._thread.is_alive():
            self._thread.start()

    def send(self, message: Any, *, wait: bool = True) -> None:
        """Send a message to the process.

        Args:
            wait: for a process that has long not read any, until it does or is replaced. False: refuse the message, so
                that those which are sent again and again leave room for others, and block no caller.

        Raises:
            InfrastructureError: no process runs, or there is no room for a message that does not wait.
        """
        with self._link_lock:
            try:
                if self._link is None:
                    raise OSError
                if not wait and not _has_room(self._link):
                    raise InfrastructureError("the driver process hangs")
                self._link.send(message)
            except OSError:
                raise InfrastructureError("the driver process ended") from None

    def close(self, limit_s: float = 0.0) -> None:
        """End the process for good, at once or after `limit_s` in which it may end by itself [s]."""
        self._end_s = time.monotonic() + limit_s
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _supervise(self) -> None:
        processes = multiprocessing.get_context("spawn")
        while not self._closing.is_set():
            link, child_link = processes.Pipe()
            process = processes.Process(
                target=self._child_main, args=(*self._arguments, child_link), name=self._thread.name, daemon=True
            )
            process.start()
            self.pid = process.pid
            child_link.close()
            self._link = link
            error = self._receive(link)
            _shut(link)  # before any lock: a thread that writes to a process that hangs holds them
            with self._link_lock:
                self._link = None
                link.close()
            pause_s = self._on_end(None if self._closing.is_set() else error)
            process.join(0.5)
            if process.is_alive():
                process.kill()
                process.join()
            self._closing.wait(pause_s)

    def _receive(self, link: Connection) -> MertonError:
        """Pass messages on until the process ends, falls silent or `close` is called; returns the reason."""
        limit_s = time.monotonic() + self._start_limit_s
        try:
            while time.monotonic() < self._end_s:
                if link.poll(0.1):
                    answer = self._on_message(link.recv())
                    if isinstance(answer, MertonError):
                        return answer
                    limit_s = time.monotonic() + answer
                elif time.monotonic() >= limit_s:
                    return InfrastructureError(self._silence)
            return InfrastructureError("closed")
        except (EOFError, OSError):
            return InfrastructureError("the driver process ended")
