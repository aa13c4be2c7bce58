"""Rank agreement of two benchmarks: the coefficients of scipy, intervals that hold what they should, and power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from merton.errors import InputError
from merton.statistics.ranking import COEFFICIENTS, agreements, differences, models_needed, score_draws

SCIPY = {
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
}


def normal(models: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of scores from a normal distribution."""
    one, other = np.random.default_rng(seed).standard_normal((2, models))
    return one, correlation * one + np.sqrt(1 - correlation**2) * other


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_each_coefficient_of_a_resample_is_that_of_scipy(name: str) -> None:
    """Models drawn several times are ties in both columns, as in the resample written out."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (2, 12)).astype(float)
    times = rng.multinomial(12, np.full(12, 1 / 12), 50).astype(float)
    found = COEFFICIENTS[name].of_rows(x[None], y[None], times)
    expected = [SCIPY[name](x.repeat(row.astype(int)), y.repeat(row.astype(int))) for row in times]
    assert found == pytest.approx(expected, abs=1e-12)
    assert COEFFICIENTS[name].of(x, y) == pytest.approx(SCIPY[name](x, y), abs=1e-12)
    rows = rng.standard_normal((7, 12))
    assert COEFFICIENTS[name].of_rows(rows, y[None], None) == pytest.approx([SCIPY[name](row, y) for row in rows])


@pytest.mark.parametrize("name", COEFFICIENTS)
def test_a_draw_without_differences_is_undefined(name: str) -> None:
    times = np.array([[3.0, 0, 0, 0], [2, 1, 0, 0], [1, 1, 1, 0]])
    found = COEFFICIENTS[name].of_rows(np.array([[1.0, 2, 4, 3]]), np.array([[0.1, 0.2, 0.3, 0.4]]), times)
    assert np.isnan(found).tolist() == [True, True, False]
    constant = COEFFICIENTS[name].of_rows(np.array([[0.1, 0.1, 0.1, 0.1]]), np.array([[1.0, 2, 3, 4]]), None)
    assert np.isnan(constant).all()


def test_agreement_leaves_out_models_that_one_side_lacks() -> None:
    one, other = normal(12, 0.8, 0)
    whole = agreements(one, other)
    assert agreements([*one, np.nan, 3.0], [*other, 2.0, np.nan]) == whole
    assert [found.models for found in whole] == [12, 12, 12]


def test_agreement_is_undefined_where_nothing_differs() -> None:
    for found in agreements([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]) + agreements([], []):
        assert (found.value, found.over_models) == (None, None)
    assert [found.value for found in differences([1.0] * 4, [4.0, 2, 3, 1], [1.0, 2, 3, 4])] == [None] * 3


def test_the_difference_is_paired() -> None:
    """Two benchmarks that are all but the same differ little, however few the models are."""
    people, one = normal(13, 0.8, 1)
    other = one + np.linspace(0, 1e-6, 13)
    for found in differences(one, other, people):
        assert found.value == pytest.approx(0.0, abs=1e-4)
        assert found.over_models is None or max(map(abs, found.over_models)) < 1e-3
    people, one = normal(40, 0.8, 1)
    better = differences(one, -one, people)
    assert all(found.is_resolved for found in better)
    assert better[2].value == pytest.approx(2 * SCIPY["pearson"](one, people))


def test_an_interval_over_models_holds_the_truth_as_often_as_it_should() -> None:
    rho = 6 / np.pi * np.arcsin(0.8 / 2)
    held = 0
    for seed in range(100):
        over = agreements(*normal(15, 0.8, seed), seed=seed)[0].over_models
        held += over is not None and over[0] <= rho <= over[1]
    assert held >= 89  # one in a hundred sets of samples of a true 95 % holds fewer


def test_the_first_draw_is_the_score() -> None:
    scores = np.array([[1.0, 0, 1, 1, np.nan], [0, 0, 1, 0, np.nan]])
    scenes = ["a", "a", "b", "c", "d"]
    draws = score_draws(scores, scenes)
    assert draws[0] == pytest.approx([0.75, 0.25])
    groups = ["left", "right", "right", "right", "left"]
    assert score_draws(scores, scenes, groups)[0] == pytest.approx([(1 + 2 / 3) / 2, (0 + 1 / 3) / 2])
    order = [4, 2, 0, 3, 1]
    shuffled = score_draws(scores[:, order], [scenes[place] for place in order])
    assert np.array_equal(shuffled, draws, equal_nan=True)


def test_draws_of_two_benchmarks_from_the_same_scenes_go_together() -> None:
    rng = np.random.default_rng(0)
    scores, scenes = rng.random((3, 60)), np.repeat(np.arange(20), 3)
    some = np.where(np.arange(60) % 3 == 0, scores, np.nan)
    whole, part = score_draws(scores, scenes), score_draws(some, scenes)
    assert np.corrcoef(whole[1:, 0], part[1:, 0])[0, 1] > 0.3
    other = score_draws(some, scenes, seed=1)
    assert abs(np.corrcoef(whole[1:, 0], other[1:, 0])[0, 1]) < 0.15


def test_intervals_over_questions_hold_the_truth_as_often_as_they_should() -> None:
    """Ten models that are 2 points apart, 300 questions in 100 scenes: noise alone puts half of the rhos lower."""
    skill = np.linspace(0.5, 0.68, 10)
    held, below = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        scores = (rng.random((10, 300)) < skill[:, None]).astype(float)
        draws = score_draws(scores, np.arange(300) // 3)
        over = agreements(draws[0], skill, (draws, np.tile(skill, (len(draws), 1))))[0].over_questions
        assert over is not None
        held += over[0] <= 1.0 <= over[1]
        below += agreements(draws[0], skill)[0].value < 0.99
    assert below > 40
    assert held >= 52  # one in a hundred sets of samples of a true 95 % holds fewer


def test_more_models_resolve_a_smaller_difference() -> None:
    few, many = models_needed(0.1, 0.85, 0.94), models_needed(0.02, 0.85, 0.94)
    assert few is not None
    assert many is not None
    assert few < 60 < many / 10
    assert models_needed(0.02, 0.85, 0.94, power=0.5) < many
    assert models_needed(0.9, 0.95, 0.99) is None  # no benchmark agrees with people, and a second like it does not
    assert models_needed(0.0, 0.85, 0.94) is None


def test_columns_of_other_models_are_refused() -> None:
    with pytest.raises(InputError, match="same models"):
        agreements([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="same questions"):
        score_draws([[1.0, 2.0]], ["a"])
    with pytest.raises(InputError, match="without a score of some models"):
        score_draws([[1.0, np.nan], [1.0, 2.0]], ["a", "b"])
