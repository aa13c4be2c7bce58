"""The range of an agent's place: the best and the worst that its scores allow, beside those of the others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from merton.leaderboard.snapshot.contents import Standing
from merton.rating.checking import Floats, MatchTable
from merton.rating.paired import Comparison, Scores
from merton.statistics.means import DIGITS

MOST_COMPARED = 10**8
"""Pairs of agents times cases that are compared: one to two seconds of a processor, for 1,000 agents on 200 cases."""

Ranges = dict[str, tuple[int, int]]


def is_compared(table: MatchTable) -> bool:
    """Whether the agents of the table are compared in pairs, or are too many for it."""
    agents = len(table.agent_ids)
    return agents * (agents - 1) // 2 * len(table.case_ids) <= MOST_COMPARED


def rank_ranges(table: MatchTable, ratings: Mapping[str, Standing]) -> Ranges:
    """The best and the worst place of each agent that its scores allow, by id.

    The best is 1 + the number of agents that are better, the worst the number of agents that are not worse, itself
    among them. Better is whose mean score on the cases that both met is higher, the 95 % interval of the paired
    difference lying wholly above 0: the difficulty of the cases cancels in it, which both ratings share. Of agents that
    share less than half of the cases of the one that met fewer, and of all on a board that is too large
    (`is_compared`), the intervals of the ratings are compared: better is whose interval lies wholly above. A bound is
    an interval without an end; a rating without an interval may be anywhere. The rule from above is the approximate
    rank of Chatbot Arena (Chiang et al. 2024, arXiv 2403.04132); the rule from below, and pairs in place of intervals,
    are ours. The place itself is always in the range.

    Args:
        ratings: of all agents of the table, by the method that gives the places.
    """
    ends = _rounded_ends(ratings[name] for name in table.agent_ids)
    count = len(table.agent_ids)
    if not is_compared(table):
        better, worse = _by_intervals(ends)
    else:
        scores = Scores.of(table)
        better, worse = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for one in range(count - 1):
            is_above, is_below = _told_apart(scores.compared(scores.values[one], one + 1), ends[one], ends[one + 1 :])
            better[one] += is_above.sum()
            worse[one] += is_below.sum()
            better[one + 1 :] += is_below
            worse[one + 1 :] += is_above
    return {
        name: _range(int(above), int(below), count, ratings[name].rank)
        for name, above, below in zip(table.agent_ids, better, worse, strict=True)
    }


def newcomer_range(
    results: list[tuple[str, float]], table: MatchTable, ratings: Mapping[str, Standing], name: str
) -> tuple[int, int]:
    """The same of a newcomer among the agents of a table, compared with each on the cases that it met.

    Args:
        results: (case id, score) of the newcomer.
        ratings: of all agents of the table and of the newcomer.
        name: of the newcomer.
    """
    ends = _rounded_ends(ratings[one] for one in (name, *table.agent_ids))
    scores = Scores.of(table)
    above, below = _told_apart(scores.compared(scores.row(results)), ends[0], ends[1:])
    return _range(int(above.sum()), int(below.sum()), len(ends), ratings[name].rank)


def _range(better: int, worse: int, count: int, place: int) -> tuple[int, int]:
    return min(1 + better, place), max(count - worse, place)


def _told_apart(compared: Comparison, own: Floats, others: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each other is better than the agent, and whether it is worse, (others,).

    Args:
        own: (2,) ends of the agent's interval.
        others: (others, 2).
    """
    above, below = others[:, 0] > own[1], others[:, 1] < own[0]
    return (
        np.where(compared.is_shared, compared.is_worse, above),
        np.where(compared.is_shared, compared.is_better, below),
    )


def _by_intervals(ends: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of agents whose interval lies wholly above each one's, and wholly below, (agents,)."""
    low, high = np.sort(ends[:, 0]), np.sort(ends[:, 1])
    above = len(ends) - np.searchsorted(low, ends[:, 1], side="right")
    return above, np.searchsorted(high, ends[:, 0], side="left")


def _rounded_ends(ratings: Iterable[Standing]) -> Floats:
    """(agents, 2), as rounded as the intervals that are shown, so that the rule can be checked by them."""
    return np.array([_ends(standing) for standing in ratings]).reshape(-1, 2).round(DIGITS)


def _ends(standing: Standing) -> tuple[float, float]:
    """The interval that the place of a rating comes from; infinite where it has no end, and by AGI-Elo."""
    if standing.flag and standing.spread is None:
        return (standing.mean, math.inf) if standing.flag == "only wins" else (-math.inf, standing.mean)
    return standing.interval or (-math.inf, math.inf)
