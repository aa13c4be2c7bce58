"""Rises of means by level: found where planted, rarely where there are none, and the same in any order."""

from __future__ import annotations

import numpy as np
import pytest

from merton.statistics.falling import Rise, greatest_rise


def test_a_planted_rise_is_found_with_its_levels() -> None:
    rng = np.random.default_rng(1)
    level = np.tile(np.arange(1, 6), 20)
    value = np.array([0.8, 0.3, 0.8, 0.7, 0.6])[level - 1] + rng.normal(0.0, 0.1, 100)
    scene = np.repeat(np.arange(20), 5)
    found = greatest_rise(value, level, scene)
    assert found is not None
    assert (found.low, found.high) == (2, 3)
    assert found.low_mean == pytest.approx(0.3, abs=0.06)
    order = rng.permutation(100)
    assert greatest_rise(value[order], level[order], scene[order]) == found


def test_few_trials_without_scatter_are_no_rise() -> None:
    """0 of 2 and 2 of 2 have a chance of 1 in 16 where both are .5, which of three pairs is no surprise."""
    assert greatest_rise([1, 0, 0, 1, 1], [1, 2, 2, 4, 4], range(5)) is None
    assert greatest_rise([0, 1], [2, 4], range(2)) is None
    assert greatest_rise([0] * 9 + [1] * 9, [2] * 9 + [4] * 9, range(18)) == Rise(2, 4, 0.0, 1.0)
    assert greatest_rise([0] * 9 + [1] * 9, [2] * 9 + [4] * 9, [0] * 9 + [1] * 9) is None, "two scenes"
    assert greatest_rise([0.5], [1], ["s"]) is None


@pytest.mark.parametrize("kind", ["flat", "success"])
def test_level_curves_are_rarely_said_to_rise(kind: str) -> None:
    """Of 60 studies without any difference of levels at most 5 % + 2 standard errors."""
    rng, said = np.random.default_rng(2), 0
    level, scene = np.tile(np.arange(1, 6), 12), np.repeat(np.arange(12), 5)
    for _ in range(60):
        value = 0.6 + rng.normal(0.0, 0.08, 12)[scene] + rng.normal(0.0, 0.1, 60)
        if kind == "success":
            value = (rng.random(60) < 0.75).astype(float)
        said += greatest_rise(value, level, scene) is not None
    assert said <= 6


def test_only_a_rise_over_the_target_leaves_no_single_level() -> None:
    assert Rise(2, 4, 0.5, 0.8).crosses(0.5), "half is lost at 2 and not at 4"
    assert not Rise(2, 4, 0.1, 0.5).crosses(0.5)
    assert not Rise(2, 4, 0.6, 0.8).crosses(0.5)


def test_of_two_sure_rises_the_one_over_the_target_is_given() -> None:
    """0 of 100 at level 1, 70 of 100 at level 2, 4 of 4 at level 5: the first rise is surer, the second crosses .75."""
    values = [0.0] * 100 + [1.0] * 70 + [0.0] * 30 + [1.0] * 4
    levels = [1] * 100 + [2] * 100 + [5] * 4
    surest = greatest_rise(values, levels, range(204))
    over = greatest_rise(values, levels, range(204), 0.75)
    assert surest is not None
    assert over is not None
    assert (surest.low, surest.high) == (1, 2)
    assert over.high == 5
    assert over.crosses(0.75)
