"""The time of exposure of a frame, on this machine's monotonic clock."""

from __future__ import annotations

from collections import deque

_OLDEST_NS = 1_000_000_000
"""A wall-clock stamp further from now than this is the time of another clock, or of a recording."""
_WINDOW_NS = 10_000_000_000
"""Time over which an offset between the clocks is valid. A camera's crystal drifts by 50 ppm: 0.5 ms in that time."""


class ExposureClock:
    """Turns the stamps of one camera into times of `time.monotonic_ns`, a clock that is never set.

    A stamp of the domains `global_time` and `system_time` is wall-clock time, so the frame's age is known. Any other (a
    camera's counter, a recording, a wall clock that was set) has an unknown offset, estimated as the least difference
    of arrival and stamp in the last 10 s. Ours: the shortest delay varies least; such a stamp is late by that delay.
    """

    def __init__(self) -> None:
        self._offsets: deque[tuple[int, int]] = deque()  # (arrival, arrival - stamp), offsets rising from left to right
        self._last_stamp_ns = self._last_ns = 0

    def monotonic_ns(self, stamp_ms: float, is_wall_clock: bool, arrival_ns: int, arrival_wall_ns: int) -> int:
        """The time of exposure [ns], never after the arrival, never before or at that of the frame before.

        Args:
            stamp_ms: stamp of the frame by the camera [ms].
            is_wall_clock: whether that is time since 1970.
            arrival_ns, arrival_wall_ns: `time.monotonic_ns()` and `time.time_ns()` when the frame came.
        """
        stamp_ns = round(stamp_ms * 1e6)
        age_ns = arrival_wall_ns - stamp_ns
        if not (is_wall_clock and 0 <= age_ns <= _OLDEST_NS):
            age_ns = arrival_ns - (stamp_ns + self._offset_ns(stamp_ns, arrival_ns))
        self._last_ns = max(arrival_ns - age_ns, self._last_ns + 1)
        return self._last_ns

    def _offset_ns(self, stamp_ns: int, arrival_ns: int) -> int:
        """The smallest of the recent offsets; all are forgotten when the camera's clock starts anew."""
        offset_ns = arrival_ns - stamp_ns
        if stamp_ns < self._last_stamp_ns or (self._offsets and offset_ns - self._offsets[0][1] > _OLDEST_NS):
            self._offsets.clear()
        self._last_stamp_ns = stamp_ns
        while self._offsets and self._offsets[-1][1] >= offset_ns:
            self._offsets.pop()
        self._offsets.append((arrival_ns, offset_ns))
        while self._offsets[0][0] < arrival_ns - _WINDOW_NS:
            self._offsets.popleft()
        return self._offsets[0][1]
