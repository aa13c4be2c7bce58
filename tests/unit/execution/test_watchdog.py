"""Silence is noticed in time, and a delay of the checking process is no silence."""

from __future__ import annotations

import pytest

from merton.errors import InputError
from merton.execution.robots.watchdog import Watchdog


def first_silence_s(dog: Watchdog, start_s: float, end_s: float, period_s: float = 0.01) -> float | None:
    """Check until a source is silent for too long; time of that check [s], or None."""
    for index in range(round((end_s - start_s) / period_s) + 1):
        if dog.silence(start_s + index * period_s) is not None:
            return start_s + index * period_s
    return None


def test_a_source_silent_for_longer_than_the_timeout_is_named() -> None:
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
        pytest.fail("the silence was not noticed")
    dog.feed("top")
    assert dog.silence(1.0) is None, "it is back"


def test_it_notices_within_a_look_of_the_timeout() -> None:
    assert first_silence_s(Watchdog(["a"], 0.2), 10.0, 11.0) == pytest.approx(10.21, abs=0.011)


def test_a_delayed_check_blames_no_source() -> None:
    dog = Watchdog(["a"], 0.2)
    dog.silence(0.0)
    assert dog.silence(100.0) is None, "the heartbeats of 100 s may be waiting in the mailbox"
    dog.feed("a")
    assert dog.silence(200.0) is None
    assert first_silence_s(dog, 200.01, 201.0) is not None, "nothing was waiting"


def test_a_start_gives_every_source_the_whole_timeout() -> None:
    dog = Watchdog(["a"], 0.2)
    assert first_silence_s(dog, 0.0, 1.0) is not None
    dog.start()
    assert first_silence_s(dog, 5.0, 5.19) is None
    assert first_silence_s(dog, 5.2, 6.0) is not None


def test_without_sources_there_is_no_silence() -> None:
    assert first_silence_s(Watchdog([], 0.2), 0.0, 2.0) is None


@pytest.mark.parametrize("timeout_s", [0.0, -1.0, float("nan")])
def test_a_timeout_is_positive(timeout_s: float) -> None:
    with pytest.raises(InputError, match="positive number of seconds"):
        Watchdog(["a"], timeout_s)
