"""The rate limit of a model: no more requests than its `requests_per_minute` in the catalogue allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class RateLimit:
    """Spaces requests evenly; may be shared by threads.

    Args:
        requests_per_minute: of the model, >= 0; 0 for no limit.
        sharers: workers, each with a limit of its own, that together keep to it, >= 1.
        clock, sleep: as `time.monotonic` and `time.sleep`.

    Attributes:
        interval_s: between two requests; 0 for no limit.
    """

    def __init__(
        self,
        requests_per_minute: float,
        sharers: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.interval_s = sharers * 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._clock, self._sleep = clock, sleep
        self._not_before_s = 0.0
        self._lock = threading.Lock()

    def wait(self, requests: int = 1) -> None:
        """Wait until so many requests may be made at once; the next ones wait for the intervals of all of them."""
        if not self.interval_s:
            return
        with self._lock:
            now_s = self._clock()
            start_s = max(now_s, self._not_before_s)
            self._not_before_s = start_s + requests * self.interval_s
        if start_s > now_s:
            self._sleep(start_s - now_s)
