"""Predictions and gaps from ratings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merton.errors import InputError
from merton.rating.outlook import gap, predicted_score

RATINGS = st.floats(-3000, 6000)


def test_known_points_of_the_logistic() -> None:
    assert predicted_score(1500, 1500) == 0.5
    assert predicted_score(1900, 1500) == pytest.approx(10 / 11)
    assert predicted_score(1500, 1900) == pytest.approx(1 / 11)
    assert gap(1500, 1700, 0.5) == pytest.approx(200)
    assert gap(1500, 1700, 0.9) == pytest.approx(200 + 381.697, abs=1e-3)  # 400 log10 9
    assert gap(1500, 1700, 0.99) - gap(1500, 1700, 0.5) == pytest.approx(798.254, abs=1e-3)  # 400 log10 99


@given(RATINGS, RATINGS, st.floats(0.01, 0.99))
def test_closing_the_gap_gives_the_score_asked_for(agent: float, case: float, p: float) -> None:
    assert predicted_score(agent + gap(agent, case, p), case) == pytest.approx(p, abs=1e-9)


@given(RATINGS, RATINGS, st.floats(-1000, 1000))
def test_only_differences_count(agent: float, case: float, shift: float) -> None:
    assert predicted_score(agent + shift, case + shift) == pytest.approx(predicted_score(agent, case), abs=1e-9)
    assert predicted_score(agent, case) + predicted_score(case, agent) == pytest.approx(1.0)


def test_far_apart_players_do_not_overflow() -> None:
    assert predicted_score(-2e5, 2e5) == 0.0
    assert predicted_score(1e300, -1e300) == 1.0


@pytest.mark.parametrize("p", [0.0, 1.0, -0.5, 2.0, float("nan")])
def test_mastery_lies_strictly_between(p: float) -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        gap(1500, 1500, p)


def test_a_rating_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="case's rating must be finite"):
        predicted_score(1500, float("nan"))
    with pytest.raises(InputError, match="agent's rating must be finite"):
        gap(float("inf"), 1500, 0.5)
