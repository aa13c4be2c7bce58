"""Agents compared in pairs, one against many at once: the rule of `paired_interval`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.rating.checking import MatchTable, table_of
from merton.rating.paired import Scores, difference
from merton.statistics.paired import paired_interval


def table(scores: NDArray[np.float64], scenes: NDArray[np.int64]) -> MatchTable:
    """The matches of (agents, cases) scores, NaN where there is none; case names are not in the order of scenes."""
    agents, cases = np.nonzero(~np.isnan(scores))
    names = [f"case {7 * case % 101:03}" for case in range(scores.shape[1])]
    return table_of(
        [f"agent {agent}" for agent in agents],
        [names[case] for case in cases],
        scores[agents, cases].tolist(),
        {name: f"scene {scene}" for name, scene in zip(names, scenes.tolist(), strict=True)},
    )


@pytest.mark.parametrize("seed", range(12))
def test_one_against_many_is_the_rule_of_every_pair(seed: int) -> None:
    """Scores of 0 and 1 and between, agents that agree, cases that some did not meet, one scene and many."""
    draw = np.random.default_rng(seed)
    agents, scenes, views = 5, 1 + seed, int(draw.integers(1, 5))
    scene = np.repeat(np.arange(scenes), views)
    scores = (draw.random((agents, len(scene))) < draw.random((agents, 1))).astype(float)
    if seed % 3 == 0:
        scores *= draw.random(scores.shape).round(1)
    if seed % 3 == 1:
        scores[1:] = scores[0]
        scores[1, :2] = 1.0 - scores[1, :2]
    if seed % 2:
        scores[draw.random(scores.shape) < 0.3] = np.nan
        scores[:, 0] = 1.0
    matches = table(scores, scene)
    all_scores = Scores.of(matches)
    for index, one in enumerate(matches.agent_ids):
        compared = all_scores.compared(all_scores.values[index])
        for place, other in enumerate(matches.agent_ids):
            if other == one:
                continue
            own = np.flatnonzero(~np.isnan(scores[[index, place]]).any(axis=0))
            gains = scores[index, own] - scores[place, own]
            found = difference(matches, one, other)
            assert found is not None
            assert found.interval == pytest.approx(paired_interval(gains, scene[own]), abs=1e-12)
            assert (found.cases, found.scenes) == (len(own), len(np.unique(scene[own])))
            assert found.mean == pytest.approx(gains.mean())
            assert compared.is_better[place] == (found.interval.low > 0.0)
            assert compared.is_worse[place] == (found.interval.high < 0.0)


def test_agents_share_cases_if_both_met_half_of_those_of_the_one_that_met_fewer() -> None:
    scores = np.array([[1, 1, 1, 1, np.nan, np.nan], [np.nan, np.nan, 0, 0, 0, 0], [np.nan, 0, np.nan, np.nan, 0, 0]])
    all_scores = Scores.of(table(scores, np.arange(6)))
    compared = all_scores.compared(all_scores.values[0])
    assert compared.is_shared.tolist() == [True, True, False]
    assert difference(table(scores[:, [0, 4]], np.arange(2)), "agent 0", "agent 1") is None


def test_a_case_counts_once_however_often_it_was_met() -> None:
    often = table_of(["a"] * 4 + ["b"] * 2, ["x", "x", "x", "y", "x", "y"], [1, 1, 0, 0, 0, 0])
    found = difference(often, "a", "b")
    assert found is not None
    assert (found.mean, found.cases, found.scenes) == (pytest.approx(1 / 3), 2, 0)


def test_a_newcomer_has_the_scores_of_the_cases_that_are_rated() -> None:
    all_scores = Scores.of(table(np.array([[1.0, 0.0], [0.0, 1.0]]), np.arange(2)))
    own = all_scores.row([("case 007", 0.25), ("not there", 1.0)])
    assert own[all_scores.case_ids.index("case 007")] == 0.25
    assert np.isnan(own).sum() == 1
