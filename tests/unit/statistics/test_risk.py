"""Risk and coverage of a gate, and the promise of its threshold (study/risk.py)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import binom

from merton.errors import InputError
from merton.statistics.risk import (
    Scored,
    admitted_risk,
    area_differences,
    areas,
    average_threshold,
    avoided,
    candidates,
    check_outcomes,
    curve,
    guaranteed_threshold,
)


def scored(scores: ArrayLike, failed: ArrayLike, scenes: ArrayLike | None = None) -> Scored:
    values = np.asarray(scores, float)
    return Scored(values, np.asarray(failed, bool), np.arange(len(values)) if scenes is None else np.asarray(scenes))


def drawn(rng: np.random.Generator, scenes: int, slope: float, rate: float, first: int = 0, each: int = 4) -> Scored:
    """Scenes in which either all trials or none would fail at a score of 1; at a score of s all do with 1 - s more.

    Of a trial with a score s, uniform in 0..1, the failure rate is rate + slope (1 - s), so that of a threshold t is
    rate + slope (1 - t) / 2.
    """
    scene = np.repeat(np.arange(first, first + scenes), each)
    luck = np.repeat(rng.random(scenes), each)
    scores = rng.random(scenes * each)
    return scored(scores, luck < rate + slope * (1.0 - scores), scene)


def test_a_curve_by_hand() -> None:
    # best first: success, failure, success, failure, so 0/1, 1/2, 1/3, 2/4
    made = curve(scored([0.1, 0.9, 0.5, 0.7], [1, 0, 0, 1]))
    assert made.risk == pytest.approx([0.0, 1 / 2, 1 / 3, 1 / 2], abs=1e-15)
    assert made.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert made.area == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4, abs=1e-15)


def test_equal_scores_count_in_any_order() -> None:
    assert curve(scored([1, 1, 1, 1], [1, 0, 0, 0])).risk == pytest.approx([0.25] * 4)
    mixed = scored([2, 1, 1, 0], [0, 1, 0, 1])
    assert curve(mixed).risk == pytest.approx([0.0, 0.25, 1 / 3, 0.5])
    assert curve(mixed.part(np.array([2, 3, 0, 1]))).risk == pytest.approx([0.0, 0.25, 1 / 3, 0.5])


def test_failures_avoided_by_hand() -> None:
    trials = scored([5, 4, 3, 2, 1], [0, 1, 0, 1, 1])
    assert [avoided(trials, share) for share in (1.0, 0.8, 0.6, 0.4, 0.0)] == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3, 1])
    assert avoided(scored(np.zeros(5), [0, 1, 0, 1, 1]), 0.8) == pytest.approx(0.2)  # a constant avoids what it refuses
    assert math.isnan(avoided(scored([1, 2], [0, 0]), 0.5))


def test_area_of_a_score_against_another() -> None:
    rng = np.random.default_rng(3)
    good = drawn(rng, 60, 0.5, 0.05)
    blind = scored(np.zeros(240), good.failed, good.scenes)
    first, second = areas([good, blind])
    assert second.value == pytest.approx(good.failed.mean())
    assert first.interval.low < first.value < first.interval.high < second.value
    (difference,) = area_differences([good], blind)
    assert difference.value == pytest.approx(first.value - second.value)
    assert difference.interval.high < 0.0
    assert math.isnan(areas([good.part(good.scenes == 0)])[0].interval.low)


def test_candidates_admit_what_they_say() -> None:
    trained = scored(np.arange(100), np.zeros(100))
    values = candidates(trained)
    assert [int((trained.scores >= value).sum()) for value in values] == list(range(5, 101, 5))
    assert values[-1] == -math.inf
    assert candidates(scored(np.zeros(10), np.zeros(10))).tolist() == [0.0, -math.inf]


@pytest.mark.parametrize(("slope", "rate"), [(0.0, 0.101), (0.4, 0.02)])
def test_the_promise_is_broken_as_rarely_as_it_says(slope: float, rate: float) -> None:
    """The trials of a scene fail together, so a test that took the trials for independent would break it."""
    studies, alpha, confidence = 100, 0.1, 0.95
    broken = 0
    for study in range(studies):
        rng = np.random.default_rng([17, study])
        trained, calibration = (drawn(rng, 40, slope, rate, first=first, each=20) for first in (0, 1000))
        found = guaranteed_threshold(trained, calibration, alpha, confidence)
        if found is not None:
            broken += rate + slope * (1.0 - max(found.value, 0.0)) / 2.0 > alpha
    assert broken <= binom.ppf(0.99, studies, 1.0 - confidence)


def test_the_promise_is_given_where_it_holds_and_the_average_one_goes_further() -> None:
    rng = np.random.default_rng(11)
    trained, calibration = drawn(rng, 900, 0.4, 0.0), drawn(rng, 900, 0.4, 0.0, first=1000)
    found, aimed = guaranteed_threshold(trained, calibration, 0.1), average_threshold(trained, calibration, 0.1)
    assert found is not None
    assert aimed is not None
    assert found.p is not None
    assert found.p <= 0.1
    assert aimed.p is None
    assert 0.2 <= found.coverage <= aimed.coverage <= 0.65  # the truth crosses .1 at a coverage of .5
    assert found.risk <= 0.1
    coverage, risk = admitted_risk(drawn(rng, 3000, 0.4, 0.0, first=5000), found)
    assert coverage == pytest.approx(1.0 - found.value, abs=0.02)
    assert risk == pytest.approx(0.2 * (1.0 - found.value), abs=0.02)


def test_nothing_is_promised_where_nothing_can_be() -> None:
    rng = np.random.default_rng(12)
    trained, calibration = drawn(rng, 40, 0.0, 0.5), drawn(rng, 40, 0.0, 0.5, first=1000)
    assert guaranteed_threshold(trained, calibration, 0.1) is None
    assert average_threshold(trained, calibration, 0.1) is None
    assert admitted_risk(calibration, None)[0] == 0.0


def test_the_order_of_trials_plays_no_part() -> None:
    rng = np.random.default_rng(13)
    trained, calibration = drawn(rng, 100, 0.4, 0.0), drawn(rng, 100, 0.4, 0.0, first=1000)
    turned = calibration.part(rng.permutation(400))
    assert guaranteed_threshold(trained, calibration, 0.1) == guaranteed_threshold(trained, turned, 0.1)


def test_mistakes_are_told_in_one_sentence() -> None:
    with pytest.raises(InputError, match="2 of 3 trials have a score that is not a finite number"):
        scored([math.nan, 1, math.inf], [0, 1, 0])
    with pytest.raises(InputError, match="every trial needs a score, an outcome and a scene"):
        scored([1, 2], [0])
    with pytest.raises(InputError, match="at least 20 trials in 5 scenes, got 3 in 3"):
        check_outcomes(scored([1, 2, 3], [0, 1, 0]))
    with pytest.raises(InputError, match="at least 20 trials in 5 scenes, got 30 in 1"):
        check_outcomes(scored(np.zeros(30), np.arange(30) % 2, np.zeros(30)))
    with pytest.raises(InputError, match="all 30 trials fail: a gate is fitted on successes and failures"):
        check_outcomes(scored(np.zeros(30), np.ones(30)))
    with pytest.raises(InputError, match="all 30 trials succeed"):
        check_outcomes(scored(np.zeros(30), np.zeros(30)))
    trials = scored(np.arange(30), np.arange(30) % 2)
    with pytest.raises(InputError, match="alpha is a share above 0 and below 1, got 10"):
        guaranteed_threshold(trials, trials, 10.0)
    with pytest.raises(InputError, match="scene 0 is both trained and calibrated on"):
        guaranteed_threshold(trials, trials, 0.1)
