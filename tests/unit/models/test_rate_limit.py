"""Laws of a model's rate limit, on a clock that only waiting moves."""

from __future__ import annotations

import threading

import pytest

from merton.models.rate_limit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now_s, self.waits_s = 100.0, list[float]()

    def sleep(self, duration_s: float) -> None:
        self.waits_s.append(duration_s)
        self.now_s += duration_s


def limit(requests_per_minute: float, clock: Clock, sharers: int = 1) -> RateLimit:
    return RateLimit(requests_per_minute, sharers, lambda: clock.now_s, clock.sleep)


def test_requests_are_spaced_evenly_and_the_first_does_not_wait() -> None:
    clock = Clock()
    limited = limit(90.0, clock, sharers=3)  # three workers, ninety a minute: one in two seconds each
    for _ in range(3):
        limited.wait()
    clock.now_s += 1.5
    limited.wait()
    assert clock.waits_s == pytest.approx([2.0, 2.0, 0.5])


def test_requests_at_once_are_paid_for_by_the_next_ones() -> None:
    clock = Clock()
    limited = limit(60.0, clock)
    limited.wait(5)
    limited.wait()
    assert clock.waits_s == pytest.approx([5.0])


def test_idle_time_is_not_saved_up() -> None:
    clock = Clock()
    limited = limit(60.0, clock)
    limited.wait()
    clock.now_s += 30.0
    limited.wait()
    limited.wait()
    assert clock.waits_s == pytest.approx([1.0])


def test_no_limit_never_waits() -> None:
    clock = Clock()
    free = limit(0.0, clock, sharers=3)
    for _ in range(5):
        free.wait(9)
    assert (free.interval_s, clock.waits_s) == (0.0, [])


def test_threads_get_times_of_their_own() -> None:
    waits_s: list[float] = []
    shared = RateLimit(60.0, clock=lambda: 0.0, sleep=waits_s.append)
    threads = [threading.Thread(target=shared.wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits_s) == pytest.approx([1, 2, 3, 4, 5, 6, 7])
