"""AGI-Elo against published numbers, a slow transcription of the formulas, and the laws it must keep."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from merton.errors import InputError, UnknownNameError
from merton.leaderboard.snapshot.store import of_matrix
from merton.leaderboard.snapshot.terminal import disagreements
from merton.rating.agi_elo import place, rate
from merton.rating.checking import Match, Q
from merton.rating.glicko import update
from merton.rating.predictions import predicted_score
from merton.results.matrix import read_matrix
from merton.results.metrics import match_scores
from merton.results.records import Outcome, TestCase, TrialRecord

SCORES = st.floats(0.0, 1.0)
PLAYED = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), SCORES), max_size=40)


def simulated(n_agents: int, n_cases: int, seed: int) -> tuple[np.ndarray, list[Match]]:
    draw = np.random.default_rng(seed)
    skill, hardness = draw.normal(0, 250, n_agents), draw.normal(0, 250, n_cases)
    chance = 1 / (1 + 10 ** ((hardness - skill[:, None]) / 400))
    won = draw.random(chance.shape) < chance
    return skill, [(f"agent {a}", f"case {c}", float(won[a, c])) for a in range(n_agents) for c in range(n_cases)]


def rating_period(
    mean: float, deviation: float, opponent_means: ArrayLike, opponent_deviations: ArrayLike, scores: ArrayLike
) -> tuple[float, float]:
    """Glickman's update of one player against all opponents of a rating period at once; returns (mean, deviation).

    AGI-Elo applies it to one opponent at a time (`update`), which recovers known ratings far better.
    """
    opponent_rd, score = np.asarray(opponent_deviations, float), np.asarray(scores, float)
    impact = 1.0 / np.sqrt(1.0 + 3.0 * (Q * opponent_rd / math.pi) ** 2)
    expected = 0.5 * (1.0 + np.tanh(0.5 * Q * impact * (mean - np.asarray(opponent_means, float))))
    precision = 1.0 / deviation**2 + float(np.sum((Q * impact) ** 2 * expected * (1.0 - expected)))
    return mean + Q / precision * float(np.sum(impact * (score - expected))), precision**-0.5


def test_glickmans_example() -> None:
    """Origin: Glickman, "The Glicko system": 1500/200 beats 1400/30, loses to 1550/100 and 1700/300."""
    mean, deviation = rating_period(1500, 200, [1400, 1550, 1700], [30, 100, 300], [1, 0, 0])
    assert mean == pytest.approx(1464.11, abs=0.005)
    assert deviation == pytest.approx(151.40, abs=0.005)


def test_two_player_example() -> None:
    """Origin: the AGI-Elo reference software, one match of (1662, 290) against (1500, 350) that ends 0.3 : 0.7."""
    assert rating_period(1662, 290, [1500], [350], [0.3]) == pytest.approx((1573.3843, 255.9871), abs=5e-5)
    assert rating_period(1500, 350, [1662], [290], [0.7]) == pytest.approx((1627.1844, 286.7792), abs=5e-5)


def test_a_case_against_several_agents_in_one_match() -> None:
    """Origin: eq. 8 and 9 by hand: 1500/350 beats one 1500/350 and scores 0.3 against another, in one match or in two.

    The case is the player, so the agents score 0 and 0.7; each of them has one opponent and the two-player result.
    """
    played = update([0, 1], [0, 0], [0.0, 0.7], n_agents=2, n_cases=1, joint=True)
    assert played.case_mean[0] == pytest.approx(1574.16, abs=0.005)
    assert played.case_rd[0] == pytest.approx(253.35, abs=0.005)
    one = update([0], [0], [0.0], n_agents=1, n_cases=1)
    assert played.agent_mean[0] == one.agent_mean[0]
    pairs = update([0, 1], [0, 0], [0.0, 0.7], n_agents=2, n_cases=1)
    assert pairs.case_mean[0] == pytest.approx(1573.43, abs=0.005)
    assert pairs.case_rd[0] == pytest.approx(256.15, abs=0.005)


@given(PLAYED)
@settings(max_examples=50, deadline=None)
def test_joint_matches_are_the_formula_case_by_case(played: list[tuple[int, int, float]]) -> None:
    """Every case at the place of its first match, all its matches at once, from the ratings before it."""
    agents, cases = [[1500.0, 350.0] for _ in range(4)], [[1500.0, 350.0] for _ in range(5)]
    for case in dict.fromkeys(case for _, case, _ in played):
        met = [(agent, score) for agent, other, score in played if other == case]
        before = [list(agent) for agent in agents]
        after = rating_period(
            *cases[case], [before[a][0] for a, _ in met], [before[a][1] for a, _ in met], [1 - s for _, s in met]
        )
        for agent in {agent for agent, _ in met}:
            own = [score for other, score in met if other == agent]
            n = len(own)
            agents[agent] = list(rating_period(*before[agent], [cases[case][0]] * n, [cases[case][1]] * n, own))
        cases[case] = list(after)
    columns = [[item[place] for item in played] for place in range(3)]
    found = update(*columns, n_agents=4, n_cases=5, joint=True)
    assert found.agent_mean == pytest.approx([mean for mean, _ in agents], abs=1e-6)
    assert found.case_mean == pytest.approx([mean for mean, _ in cases], abs=1e-6)
    assert found.case_rd == pytest.approx([rd for _, rd in cases], abs=1e-6)


@given(PLAYED)
@settings(max_examples=50, deadline=None)
def test_update_is_the_formula_one_match_at_a_time(played: list[tuple[int, int, float]]) -> None:
    agents, cases = [(1500.0, 350.0)] * 4, [(1500.0, 350.0)] * 5
    for a, c, score in played:
        agent, case = agents[a], cases[c]
        agents[a] = rating_period(*agent, [case[0]], [case[1]], [score])
        cases[c] = rating_period(*case, [agent[0]], [agent[1]], [1 - score])
    a_index, c_index, scores = zip(*played, strict=False) if played else ((), (), ())
    result = update(a_index, c_index, scores, n_agents=4, n_cases=5)
    assert np.allclose(np.c_[result.agent_mean, result.agent_rd], agents, rtol=1e-10)
    assert np.allclose(np.c_[result.case_mean, result.case_rd], cases, rtol=1e-10)


@given(PLAYED, SCORES)
@settings(max_examples=50, deadline=None)
def test_a_deviation_never_grows(played: list[tuple[int, int, float]], score: float) -> None:
    before = update(*map(list, zip(*played, strict=False)), n_agents=4, n_cases=5) if played else None
    longer = [*played, (0, 0, score)]
    after = update(*map(list, zip(*longer, strict=False)), n_agents=4, n_cases=5)
    assert (after.agent_rd <= (before.agent_rd if before else 350.0)).all()
    assert (after.case_rd <= (before.case_rd if before else 350.0)).all()


def test_one_match_between_equals_is_zero_sum() -> None:
    result = update([0], [0], [0.8], n_agents=1, n_cases=1)
    assert result.agent_mean[0] + result.case_mean[0] == pytest.approx(3000.0)
    assert result.agent_mean[0] > 1500.0


def test_renaming_agents_renames_ratings() -> None:
    agents, cases, scores = [0, 1, 2, 0, 1], [0, 0, 1, 1, 1], [1.0, 0.2, 0.5, 0.9, 0.0]
    swap = np.array([2, 0, 1])
    plain = update(agents, cases, scores, n_agents=3, n_cases=2)
    renamed = update(swap[agents], cases, scores, n_agents=3, n_cases=2)
    assert np.array_equal(renamed.agent_mean[swap], plain.agent_mean)
    assert np.array_equal(renamed.case_mean, plain.case_mean)


@given(PLAYED, st.floats(-1000, 1000))
@settings(max_examples=30, deadline=None)
def test_where_the_scale_starts_does_not_matter(played: list[tuple[int, int, float]], shift: float) -> None:
    """Translation: opponents and oneself a few hundred points higher, the same gain."""
    for _, _, score in played[:5]:
        low, high = (rating_period(1500 + up, 300, [1600 + up], [200], [score]) for up in (0.0, shift))
        assert high[0] - low[0] == pytest.approx(shift, abs=1e-8)
        assert high[1] == pytest.approx(low[1], abs=1e-9)


@given(st.floats(-3000, 3000), st.floats(-3000, 3000))
def test_expectations_of_two_sides_are_zero_sum(one: float, other: float) -> None:
    assert predicted_score(one, other) + predicted_score(other, one) == pytest.approx(1.0, abs=1e-12)
    gain, loss = (rating_period(1500, 350, [1500], [350], [s])[0] - 1500 for s in (0.8, 0.2))
    assert gain == pytest.approx(-loss)


def test_a_hundred_thousand_wins_in_a_row_stay_finite() -> None:
    zeros = np.zeros(100_000, dtype=int)
    result = update(zeros, zeros, np.ones(100_000), n_agents=1, n_cases=1)
    assert np.isfinite([result.agent_mean[0], result.agent_rd[0], result.case_mean[0], result.case_rd[0]]).all()
    mean, deviation = rating_period(1e6, 50, [-1e6], [50], [0.0])
    assert math.isfinite(mean)
    assert deviation == pytest.approx(50)


@pytest.mark.parametrize(
    ("agents", "cases", "scores", "message"),
    [
        ([0], [0], [float("nan")], "score of match 0"),
        ([0, 0], [0, 0], [0.5, 1.0001], "score of match 1"),
        ([0], [0], [-0.1], "score of match 0"),
        ([0], [0], ["good"], "must be numbers"),
        ([0], [0], [[0.5]], "one-dimensional"),
        ([2], [0], [0.5], "agent indices must lie in 0 .. 1"),
        ([0], [-1], [0.5], "case indices must lie in 0 .. 1"),
        ([0.5], [0], [0.5], "array of integers"),
        ([0, 1], [0], [0.5], "equally many"),
    ],
)
def test_bad_matches_are_refused(agents: list, cases: list, scores: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        update(agents, cases, scores, n_agents=2, n_cases=2)


def test_storage_order_has_no_influence() -> None:
    """Fault 20: to the last bit."""
    _, played = simulated(4, 60, 1)
    shuffled = played[:]
    random.Random(3).shuffle(shuffled)
    assert rate(shuffled, 11) == rate(played, 11)
    assert rate(played, 12) != rate(played, 11)


def test_the_first_shuffle_is_the_single_pass() -> None:
    _, played = simulated(3, 30, 2)
    many, one = rate(played, 5, shuffles=20), rate(played, 5, shuffles=1)
    for agent, rating in many.agents.items():
        assert rating.single_pass == one.agents[agent].mean == one.agents[agent].single_pass
        assert rating.spread > 0.0
        assert one.agents[agent].spread == 0.0
        assert rating.matches == 30


def test_skill_is_recovered() -> None:
    skill, played = simulated(12, 2000, 4)
    ratings = rate(played, 0)
    found = np.array([ratings.agents[f"agent {a}"].mean for a in range(12)])
    error = (found - found.mean()) - (skill - skill.mean())
    assert (
        np.sqrt(np.mean(error**2)) < 25.0
    )  # Elo points; agents lie some 250 apart, starting at 1500 each would give 250
    assert not any("agents" in text or "groups" in text for text in ratings.warnings)


def test_ratings_that_cannot_be_trusted_have_a_warning() -> None:
    apart = rate([("a", "x", 0.5), ("a", "y", 0.6), ("b", "z", 0.5)], 0)
    assert "2 groups that never met" in apart.warnings[0]
    extreme = rate([("a", "x", 1.0), ("a", "y", 1.0), ("b", "x", 0.0), ("b", "y", 0.4)], 0)
    assert extreme.agents["a"].flag == "only wins"
    assert extreme.agents["b"].flag == ""
    assert extreme.cases["y"].flag == ""
    assert any(
        text.startswith("Full score on every case: a (1 of 2 agents); such a rating is a bound")
        for text in extreme.warnings
    )
    assert any("Only one agent" in text for text in rate([("a", "x", 0.5)], 0).warnings)
    assert rate([], 0).agents == {}
    assert "nothing could be rated" in rate([], 0).warnings[0]
    with pytest.raises(InputError, match="shuffles"):
        rate([], 0, shuffles=0)


def test_a_new_agent_is_placed_and_no_other_rating_changes() -> None:
    _, played = simulated(8, 1500, 9)
    ratings = rate([match for match in played if match[0] != "agent 3"], 0)
    before = repr(ratings)
    results = [(case, score) for agent, case, score in played if agent == "agent 3"]
    placed = place(results, ratings, 1)
    assert repr(ratings) == before
    assert placed == place(results[::-1], ratings, 1)
    together = rate(played, 0).agents["agent 3"]
    assert placed.mean == pytest.approx(together.mean, abs=40.0)
    assert placed.matches == 1500
    early = place(results[:100], ratings, 1)
    assert early.mean == pytest.approx(placed.mean, abs=150.0)
    assert early.deviation > placed.deviation
    assert place([("case 0", 1.0)], ratings).flag == "only wins"


def test_placing_needs_rated_cases_and_results() -> None:
    ratings = rate([("a", "x", 0.5), ("b", "x", 0.6)], 0)
    with pytest.raises(UnknownNameError, match="unknown test case 'y'"):
        place([("y", 0.5)], ratings)
    with pytest.raises(InputError, match="at least one result"):
        place([], ratings)
    with pytest.raises(InputError, match="score of match 0"):
        place([("x", 1.5)], ratings)
    with pytest.raises(InputError, match="shuffles"):
        place([("x", 0.5)], ratings, shuffles=0)


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_a_guessing_floor_has_a_warning(floor: float) -> None:
    """Four choices to guess from, or none."""
    draw = np.random.default_rng(0)
    skill, hardness = draw.normal(0, 250, 15), draw.normal(0, 250, 1500)
    chance = floor + (1 - floor) / (1 + 10 ** ((hardness - skill[:, None]) / 400))
    won = draw.random(chance.shape) < chance
    played = [(f"agent {a}", f"case {c}", float(won[a, c])) for a in range(15) for c in range(1500)]
    assert any("guessing floor" in text for text in rate(played, 0, 3).warnings) is bool(floor)


def test_a_hard_case_is_rated_above_an_easy_one() -> None:
    ratings = rate([(agent, case, score) for agent in "ab" for case, score in (("easy", 0.9), ("hard", 0.1))], 0)
    assert ratings.cases["hard"].mean > 1500 > ratings.cases["easy"].mean


def test_infrastructure_never_becomes_a_match() -> None:
    case = TestCase("pick", 0, "jpeg", 2)
    records = [
        TrialRecord("e", "a", case, Outcome.SUCCESS, execution=100.0),
        TrialRecord("e", "b", case, Outcome.FAILURE, execution=25.0),
        TrialRecord("e", "c", case, Outcome.INFRASTRUCTURE),
        TrialRecord("e", "d", case, Outcome.INFRASTRUCTURE, execution=0.0),
        TrialRecord("e", "f", case, Outcome.FAILURE),
    ]
    assert match_scores(records, "execution") == [("a", "pick.0.jpeg.2", 1.0), ("b", "pick.0.jpeg.2", 0.25)]
    assert [agent for agent, _, _ in match_scores(records, "success")] == ["a", "b", "f"]


def test_players_of_the_same_results_are_rated_equal() -> None:
    """What would set them apart is the order in which they happened to play: agents that win and lose the same cases,
    and cases that the same agents solve. `passes` and `single_pass` keep the paper's procedure, order and all."""
    results = {"easy": 1.0, "fair": 0.5, "hard": 0.0, "harder": 0.0}
    matches: list[Match] = [
        (agent, case, score) for agent in ("one", "two", "three") for case, score in results.items()
    ]
    matches += [
        ("other", case, score) for case, score in {"easy": 1.0, "fair": 1.0, "hard": 0.25, "harder": 0.25}.items()
    ]
    matches += [("one", "fair", 0.75), ("two", "fair", 0.75)]  # a second match; three has none
    ratings = rate(matches)
    one, two, three = (ratings.agents[name] for name in ("one", "two", "three"))
    assert (one.mean, one.deviation, one.spread) == (two.mean, two.deviation, two.spread)
    assert one.mean > three.mean
    assert ratings.cases["hard"].mean == ratings.cases["harder"].mean
    assert ratings.passes["one"] != ratings.passes["two"]
    assert np.mean([ratings.passes["one"], ratings.passes["two"]]) == pytest.approx(one.mean)
    assert one.single_pass == ratings.passes["one"][0]
    rows = {"x": (0.1 + 0.2, 0.0, 0.5), "y": (0.3, -0.0, 0.5), "z": (0.0, 1.0, 1.0)}
    summed = rate([(agent, case, score) for agent, row in rows.items() for case, score in zip("abc", row, strict=True)])
    assert summed.agents["x"].mean == summed.agents["y"].mean


def test_a_board_does_not_say_that_the_methods_place_twins_differently(tmp_path: Path) -> None:
    rows = [f"agent {n},{','.join(str(int(c < 6 + 6 * n)) for c in range(30))}" for n in range(4)]
    rows += [rows[n].replace("agent", "twin") for n in range(4)]
    (tmp_path / "m.csv").write_text("\n".join([f"model,{','.join(f'c{n}' for n in range(30))}", *rows]) + "\n")
    snapshot = of_matrix(read_matrix(tmp_path / "m.csv"))
    places = {row.id: row.agi_elo.rank for row in snapshot.agents if row.agi_elo}
    assert len(places) == 8
    assert all(places[f"twin {n}"] == places[f"agent {n}"] for n in range(4))
    assert not any("place" in line and "differently" in line for line in disagreements(snapshot))
