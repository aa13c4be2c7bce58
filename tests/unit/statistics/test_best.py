"""Comparisons of the first of several with the others: the widening of an interval, and how often it errs."""

from __future__ import annotations

import numpy as np
import pytest

from merton.statistics.best import beside_the_first
from merton.statistics.intervals import Interval


def test_two_others_need_no_more_than_one_and_many_need_more() -> None:
    """Golden values: Student's quantiles of 10 degrees of freedom at .975 and at 1 - .05 / 10, 2.2281 and 3.1693."""
    interval = Interval(-0.2, 0.4)
    assert beside_the_first(interval, 0.1, 1, 11) == pytest.approx(interval)
    assert beside_the_first(interval, 0.1, 2, 11) == pytest.approx(interval)
    ratio = 3.1693 / 2.2281
    assert beside_the_first(interval, 0.1, 10, 11) == pytest.approx((0.1 - 0.3 * ratio, 0.1 + 0.3 * ratio), abs=1e-4)
    assert beside_the_first(interval, 0.1, 10, 1) == interval


def test_an_equal_one_is_seldom_left_out_of_ten() -> None:
    """Ten equal means of 15 normal deviates: without the widening the first one would be left out in .13 of studies."""
    rng, left_out = np.random.default_rng(0), 0
    for _ in range(1000):
        scores = rng.normal(size=(15, 10))
        first = int(scores.mean(axis=0).argmax())
        differences = scores[:, first] - scores[:, 0]
        center, half = differences.mean(), 2.1448 * differences.std(ddof=1) / np.sqrt(15)
        left_out += beside_the_first(Interval(center - half, center + half), center, 9, 15).low > 0.0
    assert left_out <= 50
