"""The clocks of the benchmarks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any


def seconds(work: Callable[[], Any], repetitions: int = 9, clock: Callable[[], float] = time.perf_counter) -> float:
    """Median time of one call [s], after one call to warm up."""
    work()
    times = []
    for _ in range(repetitions):
        started = clock()
        work()
        times.append(clock() - started)
    return statistics.median(times)


def cpu_seconds(work: Callable[[], Any], repetitions: int = 9) -> float:
    """The same in processor time of this thread, which other work on the machine does not disturb."""
    return seconds(work, repetitions, time.thread_time)
