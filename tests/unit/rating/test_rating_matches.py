"""Matches as the ratings take them in: checked, numbered and sorted, and refused with one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton.errors import InputError
from merton.rating.agi_elo import place, rate
from merton.rating.checking import Match, as_table, table_of
from merton.rating.likelihood import fit

MATCHES = st.lists(st.tuples(st.sampled_from("bac"), st.sampled_from("zéß\0 "), st.sampled_from((0.0, 0.25, 1.0))))
START_WIDTH = 1.96 * 350


@given(MATCHES)
@settings(max_examples=50, deadline=None)
def test_a_table_is_the_sorted_matches(matches: list[Match]) -> None:
    table = as_table(matches)
    names = [
        (table.agent_ids[agent], table.case_ids[case], score)
        for agent, case, score in zip(table.agents, table.cases, table.scores, strict=True)
    ]
    assert names == sorted(matches)
    assert table.agent_ids == sorted({agent for agent, _, _ in matches})
    assert table.case_ids == sorted({case for _, case, _ in matches})
    by_column = table_of(*([match[place] for match in reversed(matches)] for place in range(3)))
    for column in ("agents", "cases", "scores"):
        assert getattr(by_column, column).tobytes() == getattr(table, column).tobytes()


def test_minus_zero_is_zero() -> None:
    """The two compare as equal, so their order would be that of storage."""
    assert as_table([("a", "c", -0.0), ("a", "c", 0.0)]).scores.tobytes() == bytes(16)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([("a", "c", 0.5), ("a", "c")], r"match 1 must be \(agent id, case id, score\), got \('a', 'c'\)$"),
        ([("a", "c", 0.5, 1.0)], "match 0 must be"),
        ([5], r"match 0 must be \(agent id, case id, score\), got 5$"),
        ([{"agent": "a", "case": "c", "score": 1.0}], "match 0 must be"),
        (5, "each match must be .* got a single value of type int"),
        ([(1, "c", 0.5), ("b", "c", 0.5)], "agent ids of matches must be text, got 1$"),
        ([(None, "c", 0.5)], "agent ids of matches must be text, got None$"),
        ([("a", ["c"], 0.5)], "case ids of matches must be text: unhashable type: 'list'"),
        ([("a", "c", "0.5")], "scores of matches must be numbers"),
        ([("a", "c", None)], "score of match 0 must be in 0..1, got nan"),
        ([("a", "c", 1j)], "scores of matches must be numbers"),
        ([("a", "c", [1, 2])], "scores of matches must be"),
        (["abc"], "scores of matches must be numbers"),
        ([("a", "c", float("nan"))], "score of match 0 must be in 0..1, got nan"),
    ],
)
def test_wrong_matches_are_refused_with_a_sentence(wrong: Any, message: str) -> None:
    for method in (rate, fit):
        with pytest.raises(InputError, match=message):
            method(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [([("c",)], r"result 0 must be \(case id, score\)"), ([(1, 0.5)], "case ids of matches must be text, got 1")],
)
def test_wrong_results_of_a_new_agent_are_refused_with_a_sentence(wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        place(wrong, rate([("a", "c", 1.0)]))


@pytest.mark.parametrize("nearly", [1e-300, 1e-12, 1e-5, 9e-4])
@pytest.mark.parametrize("others", [(0.0, 1.0), (0.2, 0.7)])
def test_scores_next_to_the_ends_are_bounds(nearly: float, others: tuple[float, float]) -> None:
    """Their log-odds have no finite error: 1e-300 gave a standard error of 15 million points."""
    matches = [(f"a{i}", f"c{j}", others[(i * j) % 7 % 2]) for i in range(1, 4) for j in range(20)]
    for name, score, flag in (("low", nearly, "only losses"), ("high", 1.0 - nearly, "only wins")):
        played = [*matches, *((name, f"c{j}", score) for j in range(20))]
        fitted = fit(played)
        assert fitted.agents[name].flag == rate(played).agents[name].flag == flag
        assert max(rated.deviation for rated in fitted.agents.values()) < START_WIDTH
        assert any(name in warning and "a bound" in warning for warning in fitted.warnings)


def test_one_score_next_to_an_end_is_no_bound() -> None:
    matches = [("a", f"c{j}", 1e-300 if j == 0 else 0.4) for j in range(10)] + [("b", f"c{j}", 0.6) for j in range(10)]
    assert [rated.flag for rated in (fit(matches).agents["a"], rate(matches).agents["a"])] == ["", ""]


def test_many_matches_are_numbered_as_by_a_dictionary() -> None:
    draw = np.random.default_rng(0)
    agents, cases = [f"a{i}" for i in draw.integers(0, 20, 5000)], [f"c{i}" for i in draw.integers(0, 900, 5000)]
    scores = draw.random(5000).round(1)
    table = table_of(agents, cases, scores)
    expected = sorted(zip(agents, cases, scores.tolist(), strict=True))
    assert [table.agent_ids[i] for i in table.agents] == [agent for agent, _, _ in expected]
    assert [table.case_ids[i] for i in table.cases] == [case for _, case, _ in expected]
    assert table.scores.tolist() == [score for _, _, score in expected]
