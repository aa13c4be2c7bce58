"""Simulated time that passes only on demand, and waits for what comes with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rclpy.task import Future

from merton.errors import InfrastructureError


class Lockstep:
    """Lets a simulator run up to instants at which its cameras take a frame. For the thread of one executor.

    Args:
        run_to: asks the simulator to run up to an instant yet to come [ns], and to stand still then.
        period_ns: between two frames [ns].
        patience_s: wall time after which a wait is given up [s].

    Attributes:
        started: whether time is held; before `begin` the simulator runs freely.
        stamp_ns: the simulated instant that was seen last [ns].
        at_rest: whether all the time that was asked for has passed.
    """

    def __init__(self, run_to: Callable[[int], Any], period_ns: int, patience_s: float) -> None:
        self.run_to, self.period_ns, self.patience_s = run_to, period_ns, patience_s
        self.started = self.at_rest = False
        self.stamp_ns = 0
        self._end_ns = 0
        self._waiting: list[tuple[Callable[[], bool], Future]] = []

    def run_for(self, duration_s: float) -> None:
        """Let time pass for at least `duration_s`, up to the next frame."""
        end_ns = (self.stamp_ns + round(duration_s * 1e9)) // self.period_ns * self.period_ns + self.period_ns
        if self.started and end_ns > self._end_ns:  # else it will run that long anyway
            self._end_ns, self.at_rest = end_ns, False
            self.run_to(end_ns)

    def see(self, stamp_ns: int) -> bool:
        """It is `stamp_ns` now; returns whether that ends the time that was asked for. Raises nothing, wakes waits."""
        self.stamp_ns = stamp_ns
        ended = self.started and not self.at_rest and stamp_ns == self._end_ns
        if ended:
            self.at_rest = True
        elif self.started and stamp_ns > self._end_ns:  # it was running freely: ask for an end that is yet to come
            self.run_for(0.5)
        self.wake()
        return ended

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition; raises InfrastructureError that names `what` was waited for after `patience_s`."""
        limit_s = time.monotonic() + self.patience_s
        future: Future = Future()
        self._waiting.append((lambda: condition() or time.monotonic() > limit_s, future))
        self.wake()
        await future
        if not condition():
            raise InfrastructureError(f"waited {self.patience_s:g} s for {what}")

    def wake(self) -> None:
        """End every wait that is over."""
        for condition, future in self._waiting:
            if condition():
                future.set_result(None)
        self._waiting = [entry for entry in self._waiting if not entry[1].done()]
