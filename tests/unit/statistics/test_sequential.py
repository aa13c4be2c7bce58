"""The confidence sequence: its formula computed another way, laws, and how often it errs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp

from merton.statistics.sequential import (
    ERROR,
    Conclusion,
    ConfidenceSequence,
    anytime_interval,
    first_verdict,
    log_capitals,
)


def capital(shares: list[float], mean: float) -> float:
    """Of a gambler that spreads its capital over 32 stakes, written out."""
    total = 0.0
    for number in range(32):
        stake = (number + 0.5) / 32
        total += math.prod(1.0 - stake + stake * share / mean for share in shares)
    return total / 32


@pytest.mark.parametrize("seed", range(4))
def test_its_ends_are_where_the_capital_is_one_by_the_error(seed: int) -> None:
    gains = np.random.default_rng(seed).choice([-1.0, -0.5, 0.0, 0.25, 1.0], 60).tolist()
    low, high = anytime_interval(gains)
    shares = [(1.0 + gain) / 2.0 for gain in gains]
    assert capital(shares, (1.0 + low) / 2.0) == pytest.approx(2.0 / ERROR, rel=1e-3)
    assert capital([1.0 - share for share in shares], (1.0 - high) / 2.0) == pytest.approx(2.0 / ERROR, rel=1e-3)


def test_scenes_without_a_difference_narrow_it_as_a_rule_of_three_would() -> None:
    """After n of them a loss of about 2 ln(2 / .05) / n is excluded (ours; a fixed interval's is 3 / n)."""
    low, high = anytime_interval([0.0] * 100)
    assert low == pytest.approx(-high, abs=1e-6)
    assert -0.06 < low < -3.0 / 100


def test_without_scenes_or_with_one_side_alone_an_end_is_open() -> None:
    assert anytime_interval([]) == (-1.0, 1.0)
    low, high = anytime_interval([-1.0] * 6)
    assert low == -1.0
    assert high < 0.2


def test_it_turns_with_the_agents_and_does_not_depend_on_the_order() -> None:
    gains = np.random.default_rng(1).uniform(-1.0, 1.0, 50).tolist()
    low, high = anytime_interval(gains)
    assert anytime_interval([-gain for gain in gains]) == pytest.approx((-high, -low), abs=1e-6)
    assert anytime_interval(sorted(gains)) == (low, high)


def test_a_smaller_error_makes_it_wider() -> None:
    gains = [0.0, 1.0, 0.0, -1.0] * 20
    wide, narrow = anytime_interval(gains, 0.005), anytime_interval(gains, 0.05)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def verdict_of(interval: tuple[float, float], delta: float) -> Conclusion:
    """Whether an interval lies above -delta, below it, or around it."""
    if interval[0] > -delta:
        return Conclusion.NOT_WORSE
    return Conclusion.WORSE if interval[1] < -delta else Conclusion.UNRESOLVED


@pytest.mark.parametrize("loss", [-0.3, 0.0, 0.05, 0.4])
def test_a_sequence_has_the_verdict_of_its_interval_after_every_scene(loss: float) -> None:
    rng = np.random.default_rng(11)
    gains = np.clip(rng.normal(-loss, 0.2, 300), -1.0, 1.0).tolist()
    sequence = ConfidenceSequence(0.05, 0.02)
    assert (sequence.mean, sequence.interval, sequence.verdict) == (None, (-1.0, 1.0), Conclusion.UNRESOLVED)
    for number, gain in enumerate(gains, 1):
        sequence.add(gain)
        assert sequence.verdict is verdict_of(anytime_interval(gains[:number], 0.02), 0.05)
    assert sequence.interval == anytime_interval(gains, 0.02)
    assert sequence.mean == pytest.approx(np.mean(gains), abs=1e-12)
    shares = (1.0 + np.array(gains)) / 2.0
    kept = logsumexp(sequence._log_returns, axis=1) - math.log(32)
    both = [log_capitals(shares, 0.475)[-1], log_capitals(1.0 - shares, 0.525)[-1]]
    assert kept.tolist() == pytest.approx(both, rel=1e-12)


def test_a_forecast_is_the_verdict_of_scenes_repeated() -> None:
    gains = [0.0] * 30 + [0.5, -0.5]
    sequence = ConfidenceSequence(0.05, differences=gains)
    found = [sequence.verdict_after(times) for times in range(1, 9)]
    assert found == [verdict_of(anytime_interval(gains * times), 0.05) for times in range(1, 9)]
    assert {Conclusion.UNRESOLVED, Conclusion.NOT_WORSE} == set(found)


@pytest.mark.parametrize("loss", [0.0, 0.15])
def test_the_truth_is_outside_at_any_time_in_at_most_five_studies_of_a_hundred(loss: float) -> None:
    """400 seeded studies, looked at after every scene: the truth is outside once there is a verdict on it."""
    rng = np.random.default_rng(7)
    studies = rng.choice([-1.0, 0.0, 1.0], (400, 300), p=[0.15 + loss / 2, 0.7, 0.15 - loss / 2]).tolist()
    assert sum(first_verdict(gains, loss)[1] is not Conclusion.UNRESOLVED for gains in studies) <= 20


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_the_first_verdict_is_the_one_found_by_looking_after_every_scene(loss: float) -> None:
    chances = [0.05 + loss, 0.9 - loss, 0.05]
    gains = np.random.default_rng(3).choice([-1.0, 0.0, 1.0], 80, p=chances).tolist()
    for delta in (0.0, 0.1):
        looks = [verdict_of(anytime_interval(gains[:scenes]), delta) for scenes in range(1, len(gains) + 1)]
        known = [(number, verdict) for number, verdict in enumerate(looks, 1) if verdict is not Conclusion.UNRESOLVED]
        assert first_verdict(gains, delta) == (known[0] if known else (len(gains), Conclusion.UNRESOLVED))
