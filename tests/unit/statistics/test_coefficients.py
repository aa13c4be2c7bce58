"""Coefficients of agreement with opinions, and divisions into training and test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from merton.statistics import coefficients
from merton.statistics.coefficients import Logistic, fit_logistic, krcc, plcc, plcc_after_logistic, srcc

SCIPY: dict[Callable[..., float], Callable[..., float]] = {
    srcc: lambda x, y: stats.spearmanr(x, y).statistic,
    krcc: lambda x, y: stats.kendalltau(x, y, variant="b").statistic,
    plcc: lambda x, y: stats.pearsonr(x, y).statistic,
}


def sample(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Values and opinions with many ties."""
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 12, n) / 3.0
    return x, np.round(x + draw.normal(0.0, 2.0, n), 1)


@pytest.mark.parametrize("ours", SCIPY)
@pytest.mark.parametrize("seed", range(5))
def test_coefficients_equal_scipys_with_ties(ours: Callable[..., float], seed: int) -> None:
    x, y = sample(seed)
    assert len(np.unique(x)) < len(x)
    assert ours(x, y) == pytest.approx(SCIPY[ours](x, y), abs=1e-12)
    assert ours(-x, y) == pytest.approx(-ours(x, y), abs=1e-12)


@pytest.mark.parametrize("ours", SCIPY)
def test_a_pair_with_nan_is_left_out(ours: Callable[..., float]) -> None:
    x, y = sample(1)
    gaps_x, gaps_y = x.copy(), y.copy()
    gaps_x[3], gaps_y[7] = np.nan, np.nan
    rest = np.delete(np.arange(len(x)), (3, 7))
    assert ours(gaps_x, gaps_y) == ours(x[rest], y[rest])


@pytest.mark.parametrize("ours", [*SCIPY, plcc_after_logistic])
@pytest.mark.parametrize(("x", "y"), [([], []), ([1, 2], [2, 1]), ([4] * 9, range(9)), (range(9), [0.3] * 9)])
@pytest.mark.filterwarnings("error")
def test_what_does_not_vary_correlates_with_nothing(ours: Callable[..., float], x: list[int], y: list[int]) -> None:
    assert np.isnan(ours(x, y))


def test_an_infinite_value_is_ranked_and_has_the_last_place_on_a_line() -> None:
    x, y = [1.0, 2.0, 3.0, np.inf], [1.0, 2.0, 2.5, 4.0]
    assert srcc(x, y) == 1.0
    assert plcc(x, y) == plcc([1.0, 2.0, 3.0, 3.0], y)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize("planted", [(3.0, 4.0, 0.3, 0.2, 1.0), (-2.5, 9.0, 0.7, -0.1, 3.0), (4.0, 2.0, 0.5, 0.0, 2.0)])
def test_a_planted_logistic_is_recovered(planted: tuple[float, ...], scale: float) -> None:
    """Up to the sign that b1 and b2 share, at any scale of the metric."""
    b1, b2, b3, b4, b5 = planted
    truth = Logistic(b1, b2 / scale, b3 * scale, b4 / scale, b5)
    x = np.linspace(-0.5, 1.5, 400) * scale
    found = fit_logistic(x, truth(x))
    assert abs(found.b1) == pytest.approx(abs(b1), rel=1e-4)
    assert found.b1 * found.b2 * scale == pytest.approx(b1 * b2, rel=1e-4)
    assert found.b3 / scale == pytest.approx(b3, rel=1e-4)
    assert (found.b4 * scale, found.b5) == pytest.approx((b4, b5), abs=1e-4)
    assert plcc_after_logistic(x, truth(x)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_logistic_is_never_worse_than_a_line(seed: int) -> None:
    x, y = sample(seed, 40)
    assert plcc_after_logistic(x, y) >= abs(plcc(x, y)) - 1e-9
    assert plcc_after_logistic(-x, y) == pytest.approx(plcc_after_logistic(x, y), abs=1e-6)


def test_of_few_pairs_the_logistic_is_a_line() -> None:
    x, y = np.arange(coefficients.MINIMUM_FITTED - 1.0), np.array([0.0, 2.0, 1.0, 4.0, 3.0])
    assert fit_logistic(x, y).b1 == 0.0
    assert plcc_after_logistic(x, y) == pytest.approx(plcc(x, y))
