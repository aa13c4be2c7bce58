"""Simulated time that passes only on demand, in short slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Lockstep:
    """Lets a simulator run up to instants at which its cameras take a frame. For the thread of one executor.

    It runs slice by slice, each once one source has reported the end of the one before: a program that gets the time
    by messages, a controller in the simulator as well as this one, is never further behind than about a slice, on a
    busy machine too.

    Messages about one instant arrive one by one, on several topics: an instant is complete, and time stands, once each
    source that is expected to has reported it.

    Args:
        run_to: runs the simulator up to an instant ahead [ns], and stops it there.
        period_ns: between two frames [ns].
        slice_ns: the longest time that passes without a report of `pace` [ns].
        pace: the source that reports the end of every slice.

    Attributes:
        engaged: whether time is under control; the simulator runs freely until this is set.
        stamp_ns: the newest simulated instant [ns].
        stands: whether all requested time has passed.
        held: whether no time may begin to pass; time that is requested meanwhile passes after `release`.
    """

    def __init__(self, run_to: Callable[[int], Any], period_ns: int, slice_ns: int, pace: str) -> None:
        self.run_to, self.period_ns, self.slice_ns, self.pace = run_to, period_ns, slice_ns, pace
        self.engaged = self.stands = self.held = False
        self.stamp_ns = 0
        self._reported_ns: dict[str, int] = {}
        self._end_ns = 0
        self._slice_end_ns = 0

    def run_for(self, duration_s: float) -> None:
        """Let time pass for at least `duration_s`, up to the next frame."""
        end_ns = (self.stamp_ns + round(duration_s * 1e9)) // self.period_ns * self.period_ns + self.period_ns
        if not self.engaged or end_ns <= self._end_ns:
            return  # it will run that long anyway
        self._end_ns = end_ns
        if self.stands:
            self.stands = False
            if not self.held:
                self._run_slice()
        elif self.stamp_ns > self._slice_end_ns:  # it runs freely: the first stop must lie ahead when it gets there
            self._slice_end_ns = end_ns
            self.run_to(end_ns)

    def release(self) -> None:
        """Let the time pass that was asked for while it was held."""
        self.held = False
        if self.engaged and not self.stands:
            self._run_slice()

    def expect(self, sources: Iterable[str]) -> None:
        """From now on, let these report every instant at which a frame is taken; others no longer count."""
        self._reported_ns = {source: self._reported_ns.get(source, 0) for source in sources}

    def update(self, source: str, stamp_ns: int) -> bool:
        """Take a source's report of a simulated instant [ns]; returns whether the requested time ends with it."""
        if source in self._reported_ns:
            self._reported_ns[source] = stamp_ns
        self.stamp_ns = max(self.stamp_ns, stamp_ns)
        if not self.engaged or self.stands:
            return False
        if self.stamp_ns > self._slice_end_ns:
            self.run_for(0.5)
        elif not self.held and source == self.pace and stamp_ns == self._slice_end_ns < self._end_ns:
            self._run_slice()
        self.stands = set(self._reported_ns.values()) == {self._end_ns}
        return self.stands

    def _run_slice(self) -> None:
        self._slice_end_ns = min(self._slice_end_ns + self.slice_ns, self._end_ns)
        self.run_to(self._slice_end_ns)
