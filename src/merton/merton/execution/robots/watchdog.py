"""The check that sources which must send while the arm moves do send."""

from __future__ import annotations

from collections.abc import Iterable

from merton.errors import InputError

CHECKS_PER_TIMEOUT = 4
"""A silence counts only after at least this many checks."""


class Watchdog:
    """Adds up the silence of each source.

    Messages must be read between two checks. If this process itself was delayed, the sources were not silent; so a late
    check counts at most a quarter of the timeout.

    Args:
        names: the sources.
        timeout_s: the longest silence [s] of wall time, > 0.

    Raises:
        InputError: the timeout is not positive.
    """

    def __init__(self, names: Iterable[str], timeout_s: float) -> None:
        if not timeout_s > 0:
            raise InputError(f"the timeout of a watchdog must be a positive number of seconds, got {timeout_s!r}")
        self.timeout_s = timeout_s
        self._silent_s = dict.fromkeys(names, 0.0)
        self._last_check_s: float | None = None

    def feed(self, name: str) -> None:
        """A source sent a message."""
        self._silent_s[name] = 0.0

    def start(self) -> None:
        """Give every source the whole timeout from the next check on."""
        self._silent_s = dict.fromkeys(self._silent_s, 0.0)
        self._last_check_s = None

    def silence(self, now_s: float) -> str | None:
        """A source that has been silent for longer than the timeout, or None; `now_s` is of a monotonic clock [s]."""
        if self._last_check_s is not None:
            passed_s = min(now_s - self._last_check_s, self.timeout_s / CHECKS_PER_TIMEOUT)
            self._silent_s = {name: silent_s + passed_s for name, silent_s in self._silent_s.items()}
        self._last_check_s = now_s
        return next((name for name, silent_s in self._silent_s.items() if silent_s > self.timeout_s), None)
