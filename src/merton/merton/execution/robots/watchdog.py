"""Notices that somebody who must be heard while the arm moves has gone silent."""

from __future__ import annotations

from collections.abc import Iterable

from merton.errors import InputError

LOOKS_PER_TIMEOUT = 4
"""A silence is believed after at least this many looks."""


class Watchdog:
    """Adds up, for each source, how long it has been silent.

    Whoever looks must read its mailbox between two looks. A look that comes late counts for a quarter of the timeout
    only: a process that was kept from running heard nothing either, and that is nobody's silence.

    Args:
        names: who must be heard.
        timeout_s: the longest silence [s] of wall time, > 0.

    Raises:
        InputError: the timeout is not positive.
    """

    def __init__(self, names: Iterable[str], timeout_s: float) -> None:
        if not timeout_s > 0:
            raise InputError(f"the timeout of a watchdog must be a positive number of seconds, got {timeout_s!r}")
        self.timeout_s = timeout_s
        self._silent_s = dict.fromkeys(names, 0.0)
        self._last_look_s: float | None = None

    def heard(self, name: str) -> None:
        """A sign of life."""
        self._silent_s[name] = 0.0

    def start(self) -> None:
        """Everybody has the whole timeout from the next look on."""
        self._silent_s = dict.fromkeys(self._silent_s, 0.0)
        self._last_look_s = None

    def look(self, now_s: float) -> str | None:
        """Who has been silent for longer than the timeout, or None; `now_s` is on a monotonic clock [s]."""
        if self._last_look_s is not None:
            passed_s = min(now_s - self._last_look_s, self.timeout_s / LOOKS_PER_TIMEOUT)
            self._silent_s = {name: silent_s + passed_s for name, silent_s in self._silent_s.items()}
        self._last_look_s = now_s
        return next((name for name, silent_s in self._silent_s.items() if silent_s > self.timeout_s), None)
