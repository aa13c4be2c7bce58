"""Ratings from growing shares of the matches: at the whole they are a board's, and their errors fall on the way."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from test_diagnostics import by_likelihood, simulated

from merton.errors import InputError
from merton.rating import agi_elo
from merton.rating.checking import as_table
from merton.rating.convergence import MEASURES, Convergence, convergence, spread
from merton.rating.diagnostics import diagnose
from merton.rating.glicko import update
from merton.seeding import generator

PLAYED = simulated(8, 150, 1)


@pytest.fixture(scope="module")
def found() -> dict[str, Convergence]:
    return {item.method: item for item in convergence(PLAYED, (0.05, 0.3, 1.0), seed=4, shuffles=6)}


def test_at_the_whole_it_is_the_diagnosis_of_a_board(found: dict[str, Convergence]) -> None:
    ratings = agi_elo.rate(PLAYED, 0, 20)
    for method, agents, cases in (
        ("likelihood", *by_likelihood(PLAYED)),
        ("agi_elo", ratings.agents, ratings.cases),
    ):
        whole = diagnose(agents, cases, PLAYED)
        for name in MEASURES:
            at = found[method].measures[name][-1]
            assert (at.mean, at.low, at.high) == pytest.approx((getattr(whole, name),) * 3, abs=1e-15)
        for agent, rated in agents.items():
            assert found[method].agents_by_share[agent][-1].mean == pytest.approx(rated.mean, abs=1e-9)


def test_a_single_pass_is_the_papers_in_the_order_of_the_shuffle() -> None:
    table = as_table(PLAYED)
    first = generator("convergence", 5, 0).permutation(len(PLAYED))[:360]
    after = update(table.agents[first], table.cases[first], table.scores[first], n_agents=8, n_cases=150)
    found = {item.method: item for item in convergence(PLAYED, (0.3,), seed=5, shuffles=1)}["single_pass"]
    assert found.matches == (360,)
    assert [at.mean for (at,) in found.agents_by_share.values()] == after.agent_mean.tolist()


def test_errors_fall_and_ranks_settle(found: dict[str, Convergence]) -> None:
    for item in found.values():
        assert item.matches == (60, 360, 1200)
        for before, after in pairwise(item.measures["mae"]):
            assert after.mean - before.mean <= 2 * math.hypot(before.error, after.error), item.method
        agents = item.measures["agent_correlation"]
        assert agents[0].mean < agents[-1].mean
        assert item.measures["mae"][0].deviation > 0.0


def test_the_same_matches_and_seed_give_the_same_and_another_seed_does_not(found: dict[str, Convergence]) -> None:
    again = convergence(PLAYED[::-1], (0.05, 0.3, 1.0), seed=4, shuffles=6)
    assert {item.method: item for item in again} == found
    assert convergence(PLAYED, (0.05,), seed=1, shuffles=2) != convergence(PLAYED, (0.05,), seed=0, shuffles=2)


def test_players_without_a_match_yet_are_in_no_measure() -> None:
    """After one match of four a single agent has a rating, and no rank varies."""
    four = [(agent, case, float(agent == "a")) for agent in "ab" for case in "xy"]
    found = convergence(four, (0.25, 1.0), shuffles=3)
    one, whole = ({item.method: item.measures["agent_correlation"][place] for item in found} for place in (0, 1))
    assert one == {"likelihood": None, "agi_elo": None, "single_pass": None}
    assert {method: at.mean for method, at in whole.items()} == pytest.approx(dict.fromkeys(whole, 1.0))
    assert [item.method for item in convergence([("a", "x", 1.0)], (1.0,), shuffles=1)] == ["agi_elo", "single_pass"]


def test_a_spread_is_of_the_values_that_are_defined() -> None:
    found = spread([1.0, None, 3.0])
    assert (found.mean, found.low, found.high, found.shuffles) == (2.0, 1.0, 3.0, 2)
    assert found.error == pytest.approx(1.0)
    assert spread([None]) is None


@pytest.mark.parametrize("shares", [(), (0.0, 1.0), (0.5, 0.5), (0.5, 0.2), (0.5, 1.1), (float("nan"),)])
def test_shares_that_do_not_rise_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="the shares of the matches must rise, above 0 and at most 1"):
        convergence(PLAYED, shares)


def test_nothing_to_follow_is_refused() -> None:
    with pytest.raises(InputError, match="no matches to follow"):
        convergence([])
    with pytest.raises(InputError, match="shuffles must be at least 1"):
        convergence(PLAYED, shuffles=0)
