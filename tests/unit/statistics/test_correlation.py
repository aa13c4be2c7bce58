"""Rank correlations with intervals clustered by scene: what they are, laws, and how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from merton.statistics.correlation import (
    alike_beside,
    average_with_interval,
    correlations_with_intervals,
    rank_correlations,
)

VIEWS = 12


def correlation_intervals(
    scores: NDArray[np.float64], scenes: ArrayLike, strata: ArrayLike | None = None
) -> NDArray[np.float64]:
    """The intervals, which come with the correlations."""
    correlations, intervals = correlations_with_intervals(scores, scenes, strata)
    np.testing.assert_array_equal(correlations, rank_correlations(scores, strata))
    return intervals


def study(rng: np.random.Generator, scenes: int, share: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores (2, n) of two models and the scenes: scene and image cost both alike by `share`, and many score 1."""
    loss = np.linspace(0.0, 0.6, VIEWS)[None, :, None] * (0.5, 0.8)
    by_scene, by_image = rng.normal(size=(scenes, 1, 3)), rng.normal(size=(scenes, VIEWS, 3))
    both = math.sqrt(share), math.sqrt(1.0 - share)
    shift = sum(
        scale * (both[0] * part[..., 2:] + both[1] * part[..., :2])
        for scale, part in ((0.3, by_scene), (0.15, by_image))
    )
    return np.clip(1.1 - loss + shift, 0.0, 1.0).reshape(-1, 2).T, np.repeat(np.arange(scenes), VIEWS)


def test_a_jackknife_over_scenes_written_out() -> None:
    scores, scene = study(np.random.default_rng(1), 5, 0.5)
    whole = math.atanh(stats.spearmanr(*scores).statistic)
    parts = [math.atanh(stats.spearmanr(*scores[:, scene != one]).statistic) for one in range(5)]
    half = stats.t.ppf(0.975, 4) * math.sqrt(4 / 5 * sum((part - np.mean(parts)) ** 2 for part in parts))
    expected = [math.tanh(whole - half), math.tanh(whole + half)]
    assert correlation_intervals(scores, scene)[0, 1].tolist() == pytest.approx(expected, abs=1e-12)
    assert rank_correlations(scores)[0, 1] == pytest.approx(math.tanh(whole), abs=1e-12)


def test_the_order_of_images_and_the_names_of_few_scenes_do_not_matter() -> None:
    scores, scene = study(np.random.default_rng(2), 7, 0.5)
    order = np.random.default_rng(3).permutation(len(scene))
    names = np.array(list("gfedcba"))[scene]
    found = correlation_intervals(scores, scene)
    np.testing.assert_allclose(correlation_intervals(scores[:, order], names[order]), found, atol=1e-12)


def test_gaps_are_left_out_pair_by_pair() -> None:
    scores, scene = study(np.random.default_rng(4), 6, 0.5)
    holed = np.vstack([scores, scores[0] + scores[1]])
    holed[2, ::3] = np.nan
    kept = ~np.isnan(holed[2])
    found = correlation_intervals(holed, scene)
    np.testing.assert_allclose(found[0, 1], correlation_intervals(scores, scene)[0, 1], atol=1e-12)
    np.testing.assert_allclose(found[0, 2], correlation_intervals(holed[:, kept], scene[kept])[0, 2], atol=1e-12)


def test_nothing_is_claimed_where_nothing_is_known() -> None:
    scores, scene = study(np.random.default_rng(5), 4, 0.5)
    assert np.isnan(correlation_intervals(scores, np.zeros(len(scene)))).all(), "a single scene"
    assert np.isnan(correlation_intervals(scores, scene)[0, 0]).all(), "a model with itself"
    still = np.vstack([scores[0], np.ones(len(scene))])
    assert np.isnan(correlation_intervals(still, scene)[0, 1]).all(), "scores that do not vary"


@pytest.mark.parametrize(("scenes", "share"), [(6, 0.0), (10, 0.5), (25, 0.9)])
def test_they_hold_the_truth_in_95_studies_of_100(scenes: int, share: float) -> None:
    """400 seeded studies: within three standard errors of 95 %; if images are taken as independent, below 80 %."""
    rng = np.random.default_rng(6)
    truth = rank_correlations(study(rng, 5000, share)[0])[0, 1]
    held = naive = 0
    for _ in range(400):
        scores, scene = study(rng, scenes, share)
        low, high = correlation_intervals(scores, scene)[0, 1]
        held += low <= truth <= high
        middle = math.atanh(rank_correlations(scores)[0, 1])
        naive += abs(math.atanh(truth) - middle) <= 1.96 / math.sqrt(len(scene) - 3)
    assert 0.917 <= held / 400 <= 0.983
    assert naive / 400 < 0.8


def test_strata_that_are_higher_in_both_rows_correlate_nothing() -> None:
    """The partial correlation: Pearson's of the ranks less the mean rank of each stratum."""
    rng = np.random.default_rng(6)
    strata = np.repeat(["low", "middle", "high"], 40)
    scores = rng.normal(size=(2, 120)) + 5.0 * np.repeat([0, 1, 2], 40)
    scores[:, ::7] += rng.normal(size=18)
    ranks = stats.rankdata(scores, axis=1)
    for name in set(strata):
        ranks[:, strata == name] -= ranks[:, strata == name].mean(axis=1, keepdims=True)
    expected = stats.pearsonr(*ranks).statistic
    assert rank_correlations(scores, strata)[0, 1] == pytest.approx(expected, abs=1e-12)
    assert rank_correlations(scores)[0, 1] > 0.85
    assert abs(expected) < 0.3
    low, high = correlation_intervals(scores, np.arange(120) % 10, strata)[0, 1]
    assert low < expected < high
    gap = scores.copy()
    gap[1, :40] = np.nan
    assert rank_correlations(gap, strata)[0, 1] == pytest.approx(rank_correlations(scores[:, 40:], strata[40:])[0, 1])


def test_the_average_over_pairs_has_an_interval_by_scene() -> None:
    """The jackknife of Efron and Tibshirani (1993), 11.5, written out: leave out a scene, average the pairs again."""
    rng = np.random.default_rng(5)
    scenes = np.repeat(np.arange(8), 4)
    scores = rng.normal(size=(3, 32)) + rng.normal(size=8)[scenes]
    average, interval = average_with_interval(scores, scenes)

    def over_pairs(kept: np.ndarray) -> float:
        pairs = ((0, 1), (0, 2), (1, 2))
        return float(np.mean([stats.spearmanr(scores[i, kept], scores[j, kept]).statistic for i, j in pairs]))

    parts = np.array([over_pairs(scenes != scene) for scene in range(8)])
    half = stats.t.ppf(0.975, 7) * np.sqrt(7 / 8 * ((parts - parts.mean()) ** 2).sum())
    assert average == pytest.approx(over_pairs(scenes >= 0), abs=1e-12)
    assert interval == pytest.approx((average - half, average + half), abs=1e-12)
    assert average_with_interval(scores, np.zeros(32))[1] is None


def test_rows_that_are_alike_stand_side_by_side() -> None:
    """Two groups that alternate are drawn apart."""
    group = np.array([0, 1, 0, 1, 0, 1])
    matrix = np.where(group[:, None] == group[None, :], 0.9, 0.1)
    order = alike_beside(matrix)
    assert sorted(order) == list(range(6))
    assert len(np.flatnonzero(np.diff(group[order]))) == 1
