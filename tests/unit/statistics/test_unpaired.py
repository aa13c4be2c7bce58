"""The interval of a difference of two independent means: laws, and a value by hand."""

from __future__ import annotations

import math

import pytest

from merton.statistics.intervals import Interval
from merton.statistics.means import wilson
from merton.statistics.unpaired import unpaired_interval


def test_a_value_by_hand() -> None:
    found = unpaired_interval(0.4, Interval(0.3, 0.6), 0.7, Interval(0.6, 0.75))
    assert found == pytest.approx((0.3 - math.hypot(0.1, 0.2), 0.3 + math.hypot(0.05, 0.1)))


def test_newcombes_example() -> None:
    """Newcombe (1998), table II, method 10: 56 of 70 against 48 of 80."""
    one, other = (wilson(won, n) for won, n in ((48, 80), (56, 70)))
    assert unpaired_interval(48 / 80, one, 56 / 70, other) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize("first", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("second", [0.0, 0.8, 1.0])
def test_swapped_it_is_negated_and_it_stays_in_range(first: float, second: float) -> None:
    one, other = wilson(10 * first, 10), wilson(10 * second, 10)
    low, high = unpaired_interval(first, one, second, other)
    assert unpaired_interval(second, other, first, one) == pytest.approx((-high, -low))
    assert -1.0 <= low <= second - first <= high <= 1.0
