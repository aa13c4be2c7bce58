"""The range of a place, from paired differences and from intervals, and boards whose ratings are withheld."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merton.leaderboard.rate.newcomers import place
from merton.leaderboard.site import write_site
from merton.leaderboard.snapshot import ranges
from merton.leaderboard.snapshot.compute import compute, rate_both
from merton.leaderboard.snapshot.contents import Snapshot, Standing
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.rows import standings
from merton.leaderboard.snapshot.store import from_json, to_json
from merton.leaderboard.snapshot.terminal import render_snapshot
from merton.rating.checking import MatchTable, table_of
from merton.rating.likelihood import fit
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.statistics.intervals import Interval

OUTCOMES = {1.0: Outcome.SUCCESS, 0.0: Outcome.FAILURE}


def standing(mean: float, interval: tuple[float, float] | None, flag: str = "") -> Standing:
    return Standing(1, mean, 1.0, interval and Interval(*interval), flag)


def ranked(ratings: Mapping[str, Standing]) -> dict[str, Standing]:
    means = sorted((rating.mean for rating in ratings.values()), reverse=True)
    return {name: replace(rating, rank=1 + means.index(rating.mean)) for name, rating in ratings.items()}


def strangers(names: Sequence[str]) -> MatchTable:
    """Matches of agents that met no case in common."""
    return table_of(names, [f"case of {name}" for name in names], [0.5] * len(names))


def played(won: Mapping[str, Sequence[float]]) -> MatchTable:
    """Matches of each agent on the cases 0, 1, ..., each in a scene of its own."""
    rows = [(agent, f"{case:02}", score) for agent, scores in won.items() for case, score in enumerate(scores)]
    agents, cases, scores = zip(*rows, strict=True)
    return table_of(agents, cases, scores, {case: case for case in cases})


def test_strangers_are_told_apart_by_the_intervals_of_their_ratings() -> None:
    """Worked by hand: a over b and c apart, d a bound without an upper end, e from one scene alone."""
    ratings = ranked(
        {
            "a": standing(1800, (1750, 1850)),
            "b": standing(1700, (1650, 1749)),
            "c": standing(1600, (1500, 1650)),
            "d": standing(1640, None, "only wins"),
            "e": standing(1000, None),
        }
    )
    expected = {"a": (1, 3), "b": (2, 5), "c": (2, 5), "d": (1, 5), "e": (1, 5)}
    assert ranges.rank_ranges(strangers("abcde"), ratings) == expected
    below = ranked({"a": standing(1500, (1490, 1510)), "b": standing(1400, None, "only losses")})
    assert ranges.rank_ranges(strangers("ab"), below) == {"a": (1, 1), "b": (2, 2)}


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=12), st.booleans())
def test_a_board_that_is_too_large_has_the_ranges_of_intervals(players: list[tuple[int, int]], is_large: bool) -> None:
    ends = {f"{place:02}": (mean - half, mean + half) for place, (mean, half) in enumerate(players)}
    ratings = ranked({name: standing((low + high) / 2, (low, high)) for name, (low, high) in ends.items()})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "MOST_COMPARED", -1 if is_large else ranges.MOST_COMPARED)
        found = ranges.rank_ranges(strangers(sorted(ends)), ratings)
    for name, (low, high) in ends.items():
        above = sum(other_low > high for other_low, _ in ends.values())
        not_below = sum(other_high >= low for _, other_high in ends.values())
        assert found[name] == (1 + above, not_below)


def test_agents_that_met_the_same_cases_are_told_apart_by_pairs() -> None:
    """b does all that a does, and 10 of 30 scenes more: one interval of a rating reaches into the other."""
    table = played({"a": [1.0] * 10 + [0.0] * 20, "b": [1.0] * 20 + [0.0] * 10, "c": [1.0] * 19 + [0.0] * 11})
    ratings = standings(fit(table).agents)
    intervals = [ratings[name].interval for name in "ab"]
    assert intervals[0] is not None
    assert intervals[1] is not None
    assert intervals[0].high > intervals[1].low
    assert ranges.rank_ranges(table, ratings) == {"a": (3, 3), "b": (1, 2), "c": (1, 2)}


def test_ties_bounds_and_one_scene_separate_nobody() -> None:
    same = played({"a": [1.0, 0.0] * 20, "b": [1.0, 0.0] * 20, "c": [0.0, 1.0] * 20})
    assert set(ranges.rank_ranges(same, rate_both(same).agents.agi_elo).values()) == {(1, 3)}
    one = table_of(["a"] * 40 + ["b"] * 40, [f"{case}" for case in range(40)] * 2, [1.0] * 40 + [0.0] * 40,
                   {f"{case}": "the scene" for case in range(40)})  # fmt: skip
    assert set(ranges.rank_ranges(one, rate_both(one).agents.likelihood).values()) == {(1, 2)}
    few = played({"a": [1.0], "b": [1.0, 0.0] * 20})  # an agent with one match, won: it may be anywhere
    assert set(ranges.rank_ranges(few, rate_both(few).agents.likelihood).values()) == {(1, 2)}
    all_won = played({"a": [1.0] * 30, "b": [1.0, 0.0] * 15})
    assert ranges.rank_ranges(all_won, rate_both(all_won).agents.likelihood) == {"a": (1, 1), "b": (2, 2)}


def test_a_newcomer_is_compared_with_each_agent_on_its_own_cases() -> None:
    draw = np.random.default_rng(3)
    hard = draw.random(60)
    won = {f"agent {skill}": [float(skill > 10 * one + draw.normal()) for one in hard] for skill in (2, 5, 8)}
    table = played(won)
    rated = rate_both(table)
    twin = [(f"{case:02}", score) for case, score in enumerate(won["agent 5"]) if case % 2]
    found = place("twin", twin, rated, table, {})
    assert (found.of, found.places) == (4, (2, 3))
    few = place("few", twin[:2], rated, table, {})
    assert few.places == (1, 4)


ORDINARY = (("a", 0.3), ("b", 0.6))


def agreeing(seed: int, names: Sequence[str] = ("new", "old"), views: int = 3) -> dict[str, list[float]]:
    """Each agent's results on 36 scenes, the views of a scene in turn: the scene decides, but for 2 % of the trials."""
    draw = np.random.default_rng(seed)
    is_easy = np.repeat(draw.random(36) < 0.86, views)
    results = is_easy != (draw.random((len(names), len(is_easy))) < 0.02)
    return dict(zip(names, results.astype(float).tolist(), strict=True))


def board_of(results: Mapping[str, Sequence[float]]) -> Snapshot:
    records = [
        TrialRecord("e", agent, TestCase("pick", index // 3, "jpeg", 1 + index % 3), OUTCOMES[won])
        for agent, own in results.items()
        for index, won in enumerate(own)
    ]
    return compute(Inputs(records), "versions", 3, checks=False)


def test_ratings_that_the_matches_leave_open_are_withheld_with_the_pair_in_their_place(tmp_path: Path) -> None:
    board = board_of(agreeing(3))
    assert all(row.is_withheld and row.likelihood is None and row.agi_elo for row in board.agents)
    assert [row.rank for row in board.agents] == [1, 2]
    assert [row.rank_range for row in board.agents] == [(1, 2), (1, 2)]
    why, pair = board.warnings[:2]
    assert why.startswith("The likelihood ratings are withheld, and AGI-Elo alone gives the ranks: ")
    assert pair.startswith(
        "new scores 1.9 points of 100 more than old on the 108 cases (36 scenes) that both met, 95 %"
    )
    assert render_snapshot(board).count("withheld") == 2, "in each row"
    assert "The likelihood ratings are withheld" in render_snapshot(board, everything=True)
    folder = write_site(board, tmp_path / "site").parent
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert "withheld: the matches leave it open" in index
    assert "new scores 1.9 points" in index
    assert "withheld" in next((folder / "agents").glob("new*.html")).read_text(encoding="utf-8")
    with (folder / "board.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["likelihood_rating"], line["likelihood_flag"]) for line in lines] == [("", "withheld")] * 2
    assert from_json(to_json(board)) == board


def test_of_many_agents_whose_ratings_are_withheld_the_first_is_compared() -> None:
    rated = rate_both(played(agreeing(2, [f"v{place}" for place in range(6)], 1)))
    assert rated.is_withheld
    pairs = [text for text in rated.refusal if " points of 100 more than " in text]
    assert len(pairs) == 5
    assert all(one.split(" scores")[0] == other.split(" scores")[0] for one, other in pairwise(pairs))


def test_a_board_that_is_too_large_to_be_compared_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "MOST_COMPARED", 10)
    withheld = board_of(agreeing(3))
    assert any(text.startswith("Places have no ranges: 2 agents on 108 cases") for text in withheld.warnings)
    assert [row.rank_range for row in withheld.agents] == [None, None], "AGI-Elo has no intervals instead"
    draw = np.random.default_rng(1)
    ordinary = board_of({name: (draw.random(108) < share).astype(float).tolist() for name, share in ORDINARY})
    assert any("come from the intervals of the ratings" in text for text in ordinary.warnings)
    assert all(row.rank_range is not None for row in ordinary.agents)
