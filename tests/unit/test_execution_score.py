"""The Execution score's rules (Embodied-IQA, section 3.5)."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton.execution.score import position_distance_m, score
from merton.results.records import Outcome
from merton.world.geometry import from_rpy


@pytest.mark.parametrize(
    ("outcome", "distance_m", "expected"),
    [
        ("success", None, 100),
        ("success", 0.7, 100),
        ("failure", 0.0, 100),
        ("failure", 0.125, 87.5),
        ("failure", 1.0, 0),
        ("failure", 3.0, 0),
        ("emergency_stop", 0.01, 0),
        ("invalid_action", None, 0),
        ("infrastructure", 0.01, None),
    ],
)
def test_score(outcome: str, distance_m: float | None, expected: float | None) -> None:
    assert score(outcome, distance_m) == (None if expected is None else pytest.approx(expected))
    assert score(Outcome(outcome), distance_m) == score(outcome, distance_m)


@pytest.mark.parametrize("distance_m", [None, np.nan, np.inf, -0.1])
def test_a_failure_needs_a_distance(distance_m: float | None) -> None:
    with pytest.raises(InputError, match="distance"):
        score("failure", distance_m)


def test_unknown_outcomes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="emergency_stop, failure"):
        score("victory")


def test_distance_ignores_orientation() -> None:
    one, other = from_rpy((0.1, 0.2, 0.3), (0, 0, 0)), from_rpy((0.1, 0.5, 0.7), (1.0, 0.5, -2.0))
    assert position_distance_m(one, other) == pytest.approx(0.5)
    assert position_distance_m(other, one) == pytest.approx(0.5)
