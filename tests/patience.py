"""Waiting in tests, with limits that follow the machine: a busy one takes longer, and nothing is wrong with that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

LIMIT_S = 60.0
"""Default limit of a wait [s], on a machine that does nothing else."""
LONGEST_LOOK_S = 1.0
"""The most time that counts between two looks [s]: a process that was delayed itself has missed nothing."""


def busyness() -> float:
    """How many times longer than alone a process takes now: the processes that want to run per core, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def stretched(limit_s: float) -> float:
    """A limit of a quiet machine [s] on this one as busy as it is now; for calls that take a timeout."""
    return limit_s * busyness()


class Limit:
    """The limit of a wait that looks again and again: a busy machine's time counts by the share a process gets of it.

    Args:
        limit_s: on a machine that does nothing else [s].
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.left_s, self._last_s = limit_s, time.monotonic()

    def is_over(self) -> bool:
        now_s = time.monotonic()
        self.left_s -= min(now_s - self._last_s, LONGEST_LOOK_S) / busyness()
        self._last_s = now_s
        return self.left_s <= 0


def until(
    condition: Callable[[], Result],
    limit_s: float = LIMIT_S,
    *,
    meanwhile: Callable[[], object] = lambda: None,
    pause_s: float = 0.005,
) -> Result:
    """The first true value of `condition`; `meanwhile` is called before each pause. Fails after `limit_s`."""
    limit, pause = Limit(limit_s), threading.Event()
    while not (value := condition()):
        assert not limit.is_over(), f"nothing came of {condition} in {limit_s:g} s and more"
        meanwhile()
        pause.wait(pause_s)
    return value
