"""Diagnostics of ratings: by hand on a few matches, and on simulated ones whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from merton.errors import InputError
from merton.rating import agi_elo, likelihood
from merton.rating.checking import Match, Matches, MatchTable
from merton.rating.diagnostics import Ratings, diagnose, held_out
from merton.rating.likelihood import Estimate


def simulated(n_agents: int, n_cases: int, seed: int) -> list[Match]:
    draw = np.random.default_rng(seed)
    skill, hardness = draw.normal(0, 250, n_agents), draw.normal(0, 250, n_cases)
    won = draw.random((n_agents, n_cases)) < 1 / (1 + 10 ** ((hardness - skill[:, None]) / 400))
    return [(f"agent {a}", f"case {c}", float(won[a, c])) for a in range(n_agents) for c in range(n_cases)]


def by_likelihood(matches: Matches) -> Ratings:
    fitted = likelihood.fit(matches)
    return fitted.agents, fitted.cases


def by_agi_elo(matches: Matches) -> Ratings:
    ratings = agi_elo.rate(matches, 0, 5)
    return ratings.agents, ratings.cases


def test_binned_errors_by_hand() -> None:
    """Two bins: agent a at +10 and +20 (mean gap 15), agent b at -190; 350 - 1500 = -1150 is the first inner edge."""
    agents = {"a": Estimate(1510, 1, 2), "b": Estimate(1310, 1, 1)}
    cases = {"x": Estimate(1500, 1, 2), "y": Estimate(1490, 1, 1)}
    found = diagnose(agents, cases, [("a", "x", 0.4), ("a", "y", 0.8), ("b", "x", 0.5)])
    one = abs(0.6 - 1 / (1 + 10 ** (-15 / 400)))
    other = abs(0.5 - 1 / (1 + 10 ** (190 / 400)))
    assert found.mae == pytest.approx((2 * one + other) / 3)
    assert found.mse == pytest.approx((2 * one**2 + other**2) / 3)
    assert found.matches == 3
    assert found.agent_correlation == pytest.approx(1.0)
    assert found.case_correlation == pytest.approx(-1.0)


def test_matches_beyond_the_bins_are_not_counted() -> None:
    found = diagnose({"a": Estimate(3000, 1, 1)}, {"x": Estimate(1500, 1, 1)}, [("a", "x", 1.0)])
    assert (found.matches, found.mae, found.agent_correlation) == (0, None, None)


@pytest.mark.parametrize("rate", [by_likelihood, by_agi_elo])
def test_ratings_of_simulated_matches_agree_with_them(rate) -> None:
    played = simulated(10, 400, 1)
    found = diagnose(*rate(played), played)
    assert found.agent_correlation == pytest.approx(1.0, abs=0.02)
    assert found.case_correlation == pytest.approx(-1.0, abs=0.02)
    assert found.mae < 0.08
    assert found.mse < found.mae


@pytest.mark.parametrize("rate", [by_likelihood, by_agi_elo])
def test_held_out_matches_are_predicted(rate) -> None:
    played = simulated(10, 400, 2)
    found = held_out(played, rate, 3)
    assert found == held_out(played[::-1], rate, 3)
    assert found.log_loss < 0.93 * found.constant_log_loss
    assert found.calibration_error < 0.06
    assert sum(part.matches for part in found.calibration) == found.matches
    assert [part.predicted for part in found.calibration] == sorted(part.predicted for part in found.calibration)
    assert 0.15 * len(played) < found.matches + found.skipped < 0.25 * len(played)


def test_equal_ratings_have_the_log_loss_of_a_coin() -> None:
    def even(table: MatchTable) -> Ratings:
        return tuple(dict.fromkeys(ids, Estimate(1500, 1, 1)) for ids in (table.agent_ids, table.case_ids))

    assert held_out(simulated(5, 100, 4), even, 0).log_loss == pytest.approx(math.log(2))


def test_too_few_matches_and_unrated_players_are_refused() -> None:
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        held_out(simulated(2, 5, 0), by_agi_elo, 0, share=1.0)
    with pytest.raises(InputError, match="more matches are needed"):
        held_out([("a", "x", 0.5)], by_agi_elo, 0, share=0.999)
    with pytest.raises(InputError, match="'b' played but has no rating"):
        diagnose({"a": Estimate(1500, 1, 1)}, {"x": Estimate(1500, 1, 1)}, [("b", "x", 0.5)])
