"""The interval of a mean of paired differences: its laws, and planted studies whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from merton.seeding import generator
from merton.statistics.means import wilson
from merton.statistics.paired import ALIKE, UNMET_GAIN, drop_interval, paired_interval

SCENES = np.repeat(np.arange(12), 8)


def drawn(number: int) -> np.ndarray:
    """(96,) differences of -1, 0 and 1, mostly losses."""
    return generator("paired", number).choice([-1.0, 0.0, 1.0], 96, p=(0.1, 0.6, 0.3))


def test_no_difference_is_as_sure_as_no_success_in_so_many_scenes() -> None:
    assert paired_interval(np.zeros(96), SCENES) == pytest.approx((-wilson(0, 12).high, wilson(0, 12).high))


def test_one_loss_makes_nothing_surer() -> None:
    """The map of differences to a coin about 1/2 gave [-1.3, 3.3] points after one loss, [-24, 24] after none."""
    one = np.zeros(96)
    one[0] = 1.0
    none, lost = paired_interval(np.zeros(96), SCENES), paired_interval(one, SCENES)
    assert lost.high == pytest.approx(none.high)
    assert lost.low < 0.0 < 1.0 / 96.0 < lost.high
    assert lost.high - lost.low > 0.9 * (none.high - none.low)


@pytest.mark.parametrize("number", range(3))
def test_laws(number: int) -> None:
    values, rng = drawn(number), generator("order", number)
    low, high = paired_interval(values, SCENES)
    assert -1.0 <= low < values.mean() < high <= 1.0
    assert paired_interval(-values, SCENES) == pytest.approx((-high, -low)), "gains are losses the other way"
    wide = paired_interval(2.0 * values, SCENES, span=2.0)
    assert wide.low >= 2.0 * low - 1e-9, "a scene that was not met changes by 1 at most, not by 2"
    assert wide.high <= 2.0 * high + 1e-9
    order = rng.permutation(96)
    assert paired_interval(values[order], SCENES[order]) == (low, high), "the order of trials is nothing"
    assert paired_interval(np.tile(values, 3), np.tile(SCENES, 3)) == pytest.approx((low, high)), "scenes count"
    weights = rng.integers(1, 4, 96)
    again = np.repeat(np.arange(96), weights)
    assert paired_interval(values, SCENES, weights) == pytest.approx(paired_interval(values[again], SCENES[again]))


def test_small_differences_are_judged_by_their_own_size() -> None:
    """The decision score lives in its last hundredths: an unmet scene is not thought to lose all of it."""
    values = 0.01 * drawn(0)
    low, high = paired_interval(values, SCENES)
    assert -0.02 < low < values.mean() < high < 0.02
    one = np.zeros(96)
    one[0] = 0.01
    assert paired_interval(one, SCENES).low == pytest.approx(-0.01 * wilson(0, 12).high, rel=0.05), "gains, too"
    assert paired_interval(np.full(96, ALIKE / 2), SCENES) == paired_interval(np.zeros(96), SCENES)


def test_one_scene_tells_nothing_of_another() -> None:
    assert paired_interval([1.0, 0.0], ["pick.0", "pick.0"]) == (-1.0, 1.0)
    assert paired_interval([2.0], ["pick.0"], span=2.0) == (-2.0, 2.0)


def test_losses_and_gains_of_the_same_scenes_scatter_more_than_apart() -> None:
    """Half of the scenes lose all and half gain all: every further scene moves the difference by two shares at once."""
    swapped = np.where(np.arange(96) < 48, 1.0, -1.0)
    assert np.ptp(paired_interval(swapped, SCENES)) == pytest.approx(2.0 * np.ptp(wilson(6, 12)))


def test_it_holds_at_a_low_floor() -> None:
    """.13 falls to .05, 12 scenes of 6 types: `mean_interval` of (1 + d) / 2 held 82 % of 400 studies."""
    held = 0
    for number in range(60):
        rng = generator("floor", number)
        hard = rng.standard_normal(12)[:, None]
        before = rng.random((12, 1)) < 1.0 / (1.0 + np.exp(2.2 + hard))
        after = rng.random((12, 6)) < 1.0 / (1.0 + np.exp(3.5 + hard))
        low, high = paired_interval((before.astype(float) - after).ravel(), np.repeat(np.arange(12), 6))
        held += low <= 0.083 <= high
    assert held >= 56


def test_a_drop_leaves_less_room_for_gains_that_were_not_met() -> None:
    """24 of 30 scenes lose one of ten trials: 24 losses and no gain are no chance."""
    scenes = np.repeat(np.arange(30), 10)
    lost = np.zeros(300)
    lost[np.arange(24) * 10] = 1.0
    assert drop_interval(lost, scenes).low > 0.0
    assert drop_interval(lost, scenes).high == paired_interval(lost, scenes).high
    assert drop_interval(np.zeros(96), SCENES).low == pytest.approx(-UNMET_GAIN * wilson(0, 12).high)
