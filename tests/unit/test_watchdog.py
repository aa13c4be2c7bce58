"""Silence is noticed in time, and only if somebody was there to listen."""

from __future__ import annotations

import pytest

from merton.errors import InputError
from merton.execution.robots.watchdog import Watchdog


def looks(dog: Watchdog, start_s: float, end_s: float, period_s: float = 0.01) -> float | None:
    """Look until somebody is silent for too long; when that was, or None."""
    for index in range(round((end_s - start_s) / period_s) + 1):
        if dog.silence(start_s + index * period_s) is not None:
            return start_s + index * period_s
    return None


def test_whoever_is_silent_for_longer_than_the_timeout_is_named() -> None:
    dog = Watchdog(["wrist", "top"], 0.2)
    for index in range(50):
        assert dog.silence(0.01 * index) is None, "both are heard"
        dog.feed("wrist")
        dog.feed("top")
    for index in range(50, 100):
        silent = dog.silence(0.01 * index)
        dog.feed("wrist")
        if silent:
            assert silent == "top"
            assert 0.2 <= 0.01 * (index - 49) <= 0.22, "since the look it was last heard at"
            break
    else:
        pytest.fail("nobody noticed")
    dog.feed("top")
    assert dog.silence(1.0) is None, "it is back"


def test_it_notices_within_a_look_of_the_timeout() -> None:
    assert looks(Watchdog(["a"], 0.2), 10.0, 11.0) == pytest.approx(10.21, abs=0.011)


def test_a_process_that_was_kept_from_looking_blames_nobody() -> None:
    dog = Watchdog(["a"], 0.2)
    dog.silence(0.0)
    assert dog.silence(100.0) is None, "the heartbeats of 100 s may be waiting in the mailbox"
    dog.feed("a")
    assert dog.silence(200.0) is None
    assert looks(dog, 200.01, 201.0) is not None, "nothing was waiting"


def test_a_start_gives_everybody_the_whole_timeout() -> None:
    dog = Watchdog(["a"], 0.2)
    assert looks(dog, 0.0, 1.0) is not None
    dog.start()
    assert looks(dog, 5.0, 5.19) is None
    assert looks(dog, 5.2, 6.0) is not None


def test_nobody_to_hear_is_nobody_silent() -> None:
    assert looks(Watchdog([], 0.2), 0.0, 2.0) is None


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_a_timeout_is_positive(timeout_s: float) -> None:
    with pytest.raises(InputError, match="positive number of seconds"):
        Watchdog(["a"], timeout_s)
