"""The likeness of actions in units of their spread: laws, and values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from merton.decision.spread import Spread, likeness
from merton.errors import InputError


def test_by_hand() -> None:
    spread = Spread(np.array([2.0, 10.0]))
    # |1 - 0| / 2 = .5 and |5 - 0| / 10 = .5
    assert likeness([0.0, 0.0], [1.0, 5.0], spread) == pytest.approx(0.5)
    # the second row is 1 (clipped) and 0
    assert likeness([[0, 0], [0, 0]], [[1, 5], [9, 0]], spread) == pytest.approx(1 - (0.5 + 0.5 + 1 + 0) / 4)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    actions = rng.normal(size=(50, 3))
    scale = np.array([1.0, 1000.0, 1e-3])
    plain = likeness(actions[0], actions[1], Spread.of([actions]))
    scaled = likeness(actions[0] * scale, actions[1] * scale, Spread.of([actions * scale]))
    assert plain == pytest.approx(scaled)


def test_a_column_that_never_changes_is_not_compared() -> None:
    spread = Spread.of([[[0.0, 7.0], [1.0, 7.0]]])
    assert likeness([0.0, 7.0], [0.0, 8.0], spread) == 1.0
    assert likeness([0.0, 7.0], [0.0, 8.0], Spread(np.zeros(2))) is None


def test_chunks_of_different_lengths_are_compared_over_the_shorter() -> None:
    spread = Spread(np.array([1.0]))
    assert likeness([[0.0], [0.0]], [[0.25]], spread) == pytest.approx(0.75)
    assert likeness(np.zeros((0, 1)), [[0.25]], spread) is None


@pytest.mark.parametrize("bad", [[[np.nan, 0.0]], [[[0.0, 0.0]]], [[0.0]]])
def test_other_actions_are_refused(bad: list) -> None:
    with pytest.raises(InputError):
        likeness(bad, [0.0, 0.0], Spread(np.ones(2)))


def test_a_spread_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        Spread.of([])
    with pytest.raises(InputError, match="rows of 1 and 2"):
        Spread.of([[0.0], [0.0, 1.0]])
