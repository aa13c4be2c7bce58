"""Processes that work for another one: one thread each, and no life after it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import cv2

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For every worker: several would be in each other's way, and how many there are may change the last bit of a sum."""


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that begin meanwhile do their linear algebra in one thread, unless the environment says otherwise.

    OpenBLAS reads the environment once, when numpy is imported: a process cannot be told later.
    """
    added = {name: value for name, value in ONE_THREAD.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def pool(workers: int) -> ProcessPoolExecutor:
    """A pool of `workers` processes that end when this one does, be it by kill -9, and leave Ctrl-C to it."""
    # spawned, not forked: a fork would copy OpenCV's threads in whatever state they are
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)


def stop(executor: ProcessPoolExecutor) -> None:
    """End a pool at once, whatever its processes are doing; what they had not finished is lost."""
    terminate(executor)
    executor.shutdown(wait=True, cancel_futures=True)


def terminate(executor: ProcessPoolExecutor) -> None:
    """End a pool's processes; a thread that waits for a result gets a BrokenProcessPool, and is to shut it down."""
    # the executor's own way waits for them; from Python 3.14 on it has terminate_workers
    for process in list((executor._processes or {}).values()):
        process.terminate()


def _begin() -> None:
    """The pool's own processes would wait for a dead parent for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cv2.setNumThreads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)
