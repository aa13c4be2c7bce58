"""Means, intervals, ranks and safe text: by hand and against published tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from merton.results.text import count_of, formatted, one_line, printable
from merton.statistics.means import (
    fisher_z,
    freedom_of_shares,
    from_fisher_z,
    mean,
    mean_interval,
    mean_scatter,
    ranks,
    wilson,
)


def test_missing_values_are_no_part_of_a_mean() -> None:
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None


def test_wilson_interval() -> None:
    """Origin: Newcombe (1998), Table I: 81/263: .2553 to .3662; 15/148: .0624 to .1605; 0/20: 0 to .1611."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(20, 20)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("ratings", [2.0, 2.000001, 5.0])
def test_fishers_transform_and_its_inverse(ratings: float) -> None:
    """Of two ratings it is that of a correlation, next to which those of a little more than two lie."""
    value = np.linspace(-0.9 / (ratings - 1.0), 0.9, 19)
    np.testing.assert_allclose(from_fisher_z(fisher_z(value, ratings), ratings), value, atol=1e-12)
    if ratings < 3.0:
        np.testing.assert_allclose(fisher_z(value, ratings), np.arctanh(value), atol=1e-5)
    assert fisher_z(0.5, ratings) == pytest.approx(0.5 * math.log((1.0 + (ratings - 1.0) * 0.5) / 0.5))
    assert fisher_z(1.0, ratings) == math.inf
    assert np.isnan(fisher_z(-2.0, ratings))


def test_mean_interval() -> None:
    """By hand: scores .4 .5 .6, sd .1, a coin's .5, t(2) 4.3027: Wilson's with z .86053; cases count, not matches."""
    assert mean_interval([0.4, 0.5, 0.6], [0, 1, 2]) == pytest.approx(wilson(1.5, 3, 0.860531), abs=1e-6)
    assert mean_interval([0.4, 0.6, 0.4, 0.6], [0, 1, 0, 1]) == pytest.approx(mean_interval([0.4, 0.6], [0, 1]))
    coins = [1.0] * 15 + [0.0] * 133
    assert mean_interval(coins, range(148)) == pytest.approx(wilson(15, 148))  # right-or-wrong scores are coins
    assert mean_interval([0.0, 0.5, 1.0], [0, 1, 2]) == pytest.approx(wilson(1.5, 3))  # and no others are worse
    assert mean_interval([1.0] * 20, range(20)) == pytest.approx(wilson(20, 20))  # no spread is no certainty
    assert mean_interval([0.3], [7]) == (0.0, 1.0)
    assert mean_interval([1.0] * 33, ["pick.0"] * 33) == (0.0, 1.0), "one scene tells nothing of another"


def test_a_scene_counts_once_however_many_trials_it_has() -> None:
    """4 scenes of 33 trials, as in a quickstart: 3 that always succeed and 1 that never does are 4 coins, not 132."""
    wins, scenes = np.repeat([1.0, 1.0, 1.0, 0.0], 33), np.repeat(np.arange(4), 33)
    assert mean_interval(wins, scenes) == pytest.approx(wilson(3, 4))
    assert mean_interval(np.ones(132), scenes) == pytest.approx(wilson(4, 4))
    order = np.random.default_rng(0).permutation(132)
    assert mean_interval(wins[order], scenes[order]) == mean_interval(wins, scenes)


def brute_freedom(shares: np.ndarray) -> float:
    """Satterthwaite's degrees of freedom by the matrices themselves, (clusters, columns)."""
    pull = shares / np.sqrt(1.0 - shares)
    residuals = np.diag(pull.sum(axis=1)) - pull @ shares.T
    covariance = residuals @ residuals.T
    return float(np.trace(covariance) ** 2 / np.sum(covariance**2))


def test_degrees_of_freedom() -> None:
    """Clusters - 1 where all are alike; by brute force elsewhere; 1 where two clusters have nearly all the trials."""
    assert freedom_of_shares(np.full(7, 1 / 7)) == pytest.approx(6.0)
    assert freedom_of_shares(np.full((7, 3), 1 / 7)) == pytest.approx(6.0), "the columns share their scenes"
    apart = np.kron(np.eye(3), np.full((4, 1), 0.25))
    assert freedom_of_shares(apart) == pytest.approx(9.0), "three columns of four scenes each"
    draw = np.random.default_rng(1)
    for shape in ((5, 1), (6, 4)):
        counts = draw.integers(1, 40, shape).astype(float)
        shares = counts / counts.sum(axis=0)
        assert freedom_of_shares(shares) == pytest.approx(brute_freedom(shares))
    few = np.array([31.0, 31.0, *[1e-3] * 10])
    assert freedom_of_shares(few / few.sum()) == pytest.approx(1.0, abs=0.01)


def test_the_scatter_of_columns_that_share_scenes_adds_as_one() -> None:
    """Two columns with the same scores scatter as either; two of different scenes have half of its variance."""
    scores, scenes = np.array([0.2, 0.6, 0.7, 0.9]), np.arange(4)
    one = mean_scatter(scores, scenes)
    same = mean_scatter(np.tile(scores, 2), np.tile(scenes, 2), np.repeat([0, 1], 4))
    other = mean_scatter(np.tile(scores, 2), np.arange(8), np.repeat([0, 1], 4))
    assert one.variance == pytest.approx(np.var(scores, ddof=1) / 4)
    assert same.variance == pytest.approx(one.variance)
    assert same.freedom == pytest.approx(one.freedom) == pytest.approx(3.0)
    assert other.variance == pytest.approx(one.variance / 2)
    lone = mean_scatter([0.0, 1.0, 1.0], [0, 1, 2], ["a", "a", "b"])
    assert lone.variance > 0.0, "a column of one scene has no scatter of its own, and is not taken for certain"


@pytest.mark.parametrize("scenes", [4, 10, 30])
def test_intervals_of_clustered_success_hold(scenes: int) -> None:
    """300 runs of 30 trials a scene, scenes a logit apart: 93 to 97 % hold; taken as independent, fewer than 80 %."""
    draw = np.random.default_rng(scenes)
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    views = np.tile(np.linspace(2.0, -1.0, 6), 5)
    truth = float(expit(views + nodes[:, None]).mean(axis=1) @ weights / weights.sum())
    unit = np.repeat(np.arange(scenes), 30)
    held = []
    for _ in range(300):
        wins = draw.random((scenes, 30)) < expit(views + draw.normal(size=(scenes, 1)))
        found = [mean_interval(wins.ravel(), clusters) for clusters in (unit, np.arange(wins.size))]
        held.append([low <= truth <= high for low, high in found])
    clustered, independent = np.mean(held, axis=0)
    error = 3.0 * math.sqrt(0.05 * 0.95 / 300)
    assert 0.93 - error <= clustered <= 0.97 + error
    assert independent < 0.8


def test_equal_values_share_a_rank_and_missing_ones_have_none() -> None:
    assert ranks([0.5, None, 0.7, 0.5, 0.1]) == [2, None, 1, 2, 4]
    assert ranks([0.3, 0.1 + 0.2, 0.300001]) == [2, 2, 1], "two ways to the same mean share a place"
    assert ranks([]) == []


def test_text_is_cut_and_stays_on_one_line() -> None:
    assert printable("ok") == "ok"
    assert printable("x" * 81) == "x" * 79 + "…"
    assert printable("\x1b[31m\u202e") == "\ufffd[31m\ufffd"
    assert one_line(" a\n b\t") == "a b"
    assert (formatted(None), formatted(1.234)) == ("–", "1.23")
    assert (count_of(132, 4), count_of(1, 1), count_of(7, 0)) == ("132 in 4 scenes", "1 in 1 scene", "7")
