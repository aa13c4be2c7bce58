"""Ratings from comparisons of two: known solutions, the same law as a logistic regression, and what is not knowable."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import t

from merton.errors import InputError
from merton.rating.bradley_terry import Comparison, fit_pairs

SCENES = 12


def comparisons(strengths: list[float], seed: int = 0, scenes: int = SCENES) -> list[Comparison]:
    """Each two contenders once in every scene; strengths in log-odds."""
    rng = np.random.default_rng(seed)
    return [
        (f"c{i}", f"c{j}", float(rng.random() < 1.0 / (1.0 + math.exp(strengths[j] - strengths[i]))), f"s{scene}")
        for scene in range(scenes) for i in range(len(strengths)) for j in range(i)
    ]  # fmt: skip


def test_two_contenders_differ_by_the_log_odds_of_their_share() -> None:
    found = fit_pairs([("x", "y", score, f"s{n}") for n, score in enumerate([1.0, 1.0, 1.0, 0.0])]).contenders
    assert found["x"].mean - found["y"].mean == pytest.approx(400.0 * math.log10(3.0))
    assert found["x"].mean + found["y"].mean == pytest.approx(3000.0)
    # the model's own error of a log-odds of 3 in 4 is sqrt(1 / (4 * .75 * .25)), half of it for each of the two
    assert found["x"].deviation >= 0.5 * 400.0 / math.log(10.0) / math.sqrt(4 * 0.75 * 0.25) * 0.999


def test_it_is_the_maximum_of_the_likelihood() -> None:
    rows = [*comparisons([0.8, 0.1, -0.2, -0.7]), ("c0", "c3", 0.5, "s0"), ("c1", "c2", 0.5, "s1")]

    def loss(free: np.ndarray) -> float:
        skill = dict(zip(("c0", "c1", "c2", "c3"), [*free, -free.sum()], strict=True))
        odds = np.array([skill[a] - skill[b] for a, b, _, _ in rows])
        score = np.array([row[2] for row in rows])
        return float(np.sum(np.logaddexp(0.0, odds) - score * odds))

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    points = [1500.0 + 400.0 / math.log(10.0) * skill for skill in [*best, -best.sum()]]
    assert [one.mean for one in fit_pairs(rows).contenders.values()] == pytest.approx(points, abs=1e-3)


def test_order_and_sides_play_no_part() -> None:
    rows = comparisons([0.5, 0.0, -0.5])
    turned = [(b, a, 1.0 - score, scene) if place % 2 else (a, b, score, scene)
              for place, (a, b, score, scene) in enumerate(rows)]  # fmt: skip
    random.Random(0).shuffle(turned)
    one, other = fit_pairs(rows), fit_pairs(turned)
    for name, found in one.contenders.items():
        assert other.contenders[name].mean == pytest.approx(found.mean, abs=1e-6)
        assert other.contenders[name].interval == pytest.approx(found.interval, abs=1e-6)
    shuffled = random.Random(1).sample(rows, len(rows))
    assert fit_pairs(shuffled) == one


def test_the_same_answers_in_fewer_scenes_tell_less() -> None:
    rows = comparisons([0.6, 0.0, -0.6], scenes=24)
    few = [(a, b, score, f"s{int(scene[1:]) // 8}") for a, b, score, scene in rows]
    for name, found in fit_pairs(rows).contenders.items():
        (low, high), fewer = found.interval, fit_pairs(few).contenders[name].interval
        assert fewer[1] - fewer[0] > high - low
    alone = fit_pairs([(a, b, score, "s") for a, b, score, _ in rows])
    assert [one.interval for one in alone.contenders.values()] == [None] * 3
    assert "one scene" in alone.warnings[0]


def test_two_contenders_have_the_error_of_a_mean_over_scenes() -> None:
    """The share of a contender is a mean of scenes' shares, with n - 1 in the denominator; its log-odds by the delta
    method, of which each of two contenders, who are opposite, has a half."""
    shares = (1.0, 1.0, 0.0, 1.0, 0.25, 1.0)
    rows = [
        ("x", "y", float(place < 8 * share), f"s{scene}") for scene, share in enumerate(shares) for place in range(8)
    ]
    found = fit_pairs(rows).contenders["x"]
    mean = float(np.mean(shares))
    error = float(np.std(shares, ddof=1)) / math.sqrt(len(shares)) / (mean * (1.0 - mean))
    assert found.deviation == pytest.approx(0.5 * error * 400.0 / math.log(10.0))
    assert found.interval is not None
    assert found.interval[1] - found.mean == pytest.approx(float(t.ppf(0.975, 5)) * found.deviation)


def test_a_contender_that_was_always_preferred_has_no_interval() -> None:
    rows = [*comparisons([0.3, 0.0, -0.3]), *(("best", f"c{n}", 1.0, f"s{n}") for n in range(3))]
    found = fit_pairs(rows)
    assert found.contenders["best"].flag == "only wins"
    assert found.contenders["best"].mean == max(one.mean for one in found.contenders.values())
    assert all(one.interval is None for one in found.contenders.values())
    assert "always preferred" in found.warnings[0]
    apart = fit_pairs([("a", "b", 0.5, "s1"), ("c", "d", 0.5, "s2")])
    assert "2 groups that were never compared" in apart.warnings[0]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "at least one comparison"),
        ([("a", "a", 1.0, "s")], "'a' is compared with itself"),
        ([("a", "b", 1.5, "s")], "must be in 0..1, got 1.5"),
        ([("a", "b", 1.0)], r"must be \(contender, other contender, score, scene\)"),
    ],
)
def test_wrong_comparisons_are_refused(rows: list[Comparison], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        fit_pairs(rows)


def test_intervals_hold_the_truth() -> None:
    """40 studies; 500 of them are in tools/studies/pair_coverage.py."""
    strengths = [0.6, 0.2, -0.1, -0.7]
    truth = [1500.0 + 400.0 / math.log(10.0) * skill for skill in strengths]
    held = []
    for seed in range(40):
        found = fit_pairs(comparisons(strengths, seed)).contenders.values()
        held += [
            one.interval[0] <= mean <= one.interval[1] for one, mean in zip(found, truth, strict=True) if one.interval
        ]
    assert len(held) > 120
    assert 0.9 <= sum(held) / len(held) <= 1.0
