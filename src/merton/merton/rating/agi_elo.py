"""AGI-Elo: agents and test cases rated against each other, one match at a time.

Every scored trial is a match between an agent and a test case: the agent scores S in 0..1, the case scores 1 - S. Both
are Glicko players; a case that beats good agents is rated as hard. Source: AGI-Elo, section 3, and Glickman's Glicko.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from merton.errors import InputError
from merton.results.records import Outcome, TrialRecord
from merton.seeding import generator

START_MEAN = 1500.0
START_DEVIATION = 350.0
Q = math.log(10.0) / 400.0
"""Elo points to natural log-odds."""

Floats = NDArray[np.float64]
Match = tuple[str, str, float]
"""Agent id, case id, score of the agent in 0..1."""


@dataclass(frozen=True)
class Update:
    """Ratings after a sequence of matches: means and rating deviations (RD) in Elo points, one entry a player."""

    agent_mean: Floats
    agent_rd: Floats
    case_mean: Floats
    case_rd: Floats


@dataclass(frozen=True)
class Rating:
    """One player's rating, in Elo points.

    Attributes:
        mean: average over the shuffles; the number to show.
        deviation: rating deviation (RD), average over the shuffles.
        spread: standard deviation of the mean over the shuffles, what their order does; 0 for one shuffle.
        single_pass: the mean after the first shuffle alone, which is the paper's procedure.
        matches: how many matches the player took part in.
        flag: "only wins", "only losses", or empty: such a rating is a bound that more matches would push further.
    """

    mean: float
    deviation: float
    spread: float
    single_pass: float
    matches: int
    flag: str = ""


@dataclass(frozen=True)
class Ratings:
    """All players' ratings, ids sorted, with what a reader must know before trusting them."""

    agents: dict[str, Rating]
    cases: dict[str, Rating]
    warnings: tuple[str, ...]
    seed: int
    shuffles: int


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


@numba.njit(cache=True)
def _after_match(mean: float, rd: float, opponent_mean: float, opponent_rd: float, score: float) -> tuple[float, float]:
    impact = 1.0 / math.sqrt(1.0 + 3.0 * (Q * opponent_rd / math.pi) ** 2)
    expected = 1.0 / (1.0 + math.exp(-Q * impact * (mean - opponent_mean)))  # compiled exp overflows to inf: 0 here
    precision = 1.0 / rd**2 + (Q * impact) ** 2 * expected * (1.0 - expected)
    return mean + Q / precision * impact * (score - expected), 1.0 / math.sqrt(precision)


@numba.njit(cache=True)
def _play(
    agents: NDArray[np.int64],
    cases: NDArray[np.int64],
    scores: Floats,
    order: NDArray[np.int64],
    agent_mean: Floats,
    agent_rd: Floats,
    case_mean: Floats,
    case_rd: Floats,
) -> None:
    for match in order:
        a, c, score = agents[match], cases[match], scores[match]
        mean_a, rd_a, mean_c, rd_c = agent_mean[a], agent_rd[a], case_mean[c], case_rd[c]
        agent_mean[a], agent_rd[a] = _after_match(mean_a, rd_a, mean_c, rd_c, score)
        case_mean[c], case_rd[c] = _after_match(mean_c, rd_c, mean_a, rd_a, 1.0 - score)


def update(agents: ArrayLike, cases: ArrayLike, scores: ArrayLike, *, n_agents: int, n_cases: int) -> Update:
    """Play the matches in the order given, everybody starting at 1500 with a deviation of 350.

    One opponent an update, both sides from their ratings before the match, no floor and no inflation of the deviation:
    the sequential form of the paper's reference software (AGI-Elo, section 3.3).

    Args:
        agents: (n,) integers in 0 .. n_agents - 1.
        cases: (n,) integers in 0 .. n_cases - 1.
        scores: (n,) the agent's score in 0..1; the case scores 1 - score.
        n_agents: number of agents, > 0 if there are matches.
        n_cases: number of test cases, > 0 if there are matches.

    Raises:
        InputError: lengths differ, an index is out of range or no integer, a score is NaN or outside 0..1.
    """
    agent_index = _checked_index("agent", agents, n_agents)
    case_index = _checked_index("case", cases, n_cases)
    score = _checked_scores(scores)
    if not len(agent_index) == len(case_index) == len(score):
        raise InputError(
            f"agents, cases and scores must be equally many, got {len(agent_index)}, {len(case_index)}, {len(score)}"
        )
    return _played(agent_index, case_index, score, np.arange(len(score)), n_agents, n_cases)


def _played(
    agents: NDArray[np.int64],
    cases: NDArray[np.int64],
    scores: Floats,
    order: NDArray[np.int64],
    n_agents: int,
    n_cases: int,
) -> Update:
    agent_mean, case_mean = np.full(n_agents, START_MEAN), np.full(n_cases, START_MEAN)
    agent_rd, case_rd = np.full(n_agents, START_DEVIATION), np.full(n_cases, START_DEVIATION)
    _play(agents, cases, scores, order, agent_mean, agent_rd, case_mean, case_rd)
    return Update(agent_mean, agent_rd, case_mean, case_rd)


def rate(matches: Iterable[Match], seed: int = 0, shuffles: int = 20) -> Ratings:
    """Rate every agent and test case that played, averaged over seeded orders of the matches.

    The matches are sorted first, so the order they are stored in has no influence: it would otherwise cost hundreds of
    points. Averaging is ours: the paper's single pass leaves its one random order in the ratings (`Rating.spread`).

    Args:
        matches: (agent id, case id, score in 0..1); an agent may meet a case more than once.
        seed: of the shuffles.
        shuffles: how many orders to average over, >= 1; at least 20 for numbers to be shown.

    Raises:
        InputError: a score is NaN or outside 0..1, or `shuffles` < 1.
    """
    if shuffles < 1:
        raise InputError(f"shuffles must be at least 1, got {shuffles}")
    played = list(matches)
    agent_ids, agents = _indexed([match[0] for match in played])
    case_ids, cases = _indexed([match[1] for match in played])
    scores = _checked_scores([match[2] for match in played])
    canonical = np.lexsort((scores, cases, agents))
    agents, cases, scores = agents[canonical], cases[canonical], scores[canonical]

    passes = []
    for shuffle in range(shuffles):
        order = generator("agi_elo", seed, shuffle).permutation(len(scores))
        passes.append(_played(agents, cases, scores, order, len(agent_ids), len(case_ids)))
    rated_agents = _summary(
        agent_ids, agents, scores, [item.agent_mean for item in passes], [item.agent_rd for item in passes]
    )
    rated_cases = _summary(
        case_ids, cases, 1.0 - scores, [item.case_mean for item in passes], [item.case_rd for item in passes]
    )
    warnings = _warnings(rated_agents, rated_cases, agents, cases)
    return Ratings(rated_agents, rated_cases, warnings, seed, shuffles)


def matches(records: Iterable[TrialRecord]) -> list[Match]:
    """The matches in trial records: score = execution / 100. Infrastructure faults and unscored trials are left out."""
    return [
        (record.agent, record.case.id, record.execution / 100.0)
        for record in records
        if record.execution is not None and record.outcome is not Outcome.INFRASTRUCTURE
    ]


def _checked_index(kind: str, values: ArrayLike, count: int) -> NDArray[np.int64]:
    index = np.asarray(values)
    if count < 0:
        raise InputError(f"the number of {kind}s must not be negative, got {count}")
    if index.size == 0:
        return np.zeros(0, dtype=np.int64)
    if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
        raise InputError(
            f"the {kind} indices must be a one-dimensional array of integers, got {index.dtype} {index.shape}"
        )
    if index.min() < 0 or index.max() >= count:
        raise InputError(f"the {kind} indices must lie in 0 .. {count - 1}, got {index.min()} .. {index.max()}")
    return index.astype(np.int64)


def _checked_scores(values: ArrayLike) -> Floats:
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the scores of matches must be numbers in 0..1") from None
    if scores.ndim != 1:
        raise InputError(f"the scores of matches must be one-dimensional, got shape {scores.shape}")
    wrong = ~((scores >= 0.0) & (scores <= 1.0))  # NaN is neither
    if wrong.any():
        position = int(np.argmax(wrong))
        raise InputError(f"the score of match {position} must be in 0..1, got {scores[position]:g}")
    return scores


def _indexed(names: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    ids = sorted(set(names))
    position = {name: index for index, name in enumerate(ids)}
    return ids, np.fromiter((position[name] for name in names), dtype=np.int64, count=len(names))


def _summary(
    ids: list[str], index: NDArray[np.int64], scores: Floats, means: list[Floats], deviations: list[Floats]
) -> dict[str, Rating]:
    mean, deviation = np.mean(means, axis=0), np.mean(deviations, axis=0)
    spread = np.std(means, axis=0, ddof=1) if len(means) > 1 else np.zeros(len(ids))
    count = np.bincount(index, minlength=len(ids))
    lost = np.bincount(index, weights=scores != 1.0, minlength=len(ids)) > 0
    won = np.bincount(index, weights=scores != 0.0, minlength=len(ids)) > 0
    return {
        name: Rating(
            mean=float(mean[i]),
            deviation=float(deviation[i]),
            spread=float(spread[i]),
            single_pass=float(means[0][i]),
            matches=int(count[i]),
            flag="only wins" if not lost[i] else "only losses" if not won[i] else "",
        )
        for i, name in enumerate(ids)
    }


def _warnings(
    agents: dict[str, Rating],
    cases: dict[str, Rating],
    agent_index: NDArray[np.int64],
    case_index: NDArray[np.int64],
) -> tuple[str, ...]:
    if not agents:
        return ("No trial has an execution score, so nothing could be rated.",)
    found = []
    size = len(agents) + len(cases)
    edges = coo_array((np.ones(len(agent_index)), (agent_index, len(agents) + case_index)), shape=(size, size))
    groups = connected_components(edges, directed=False, return_labels=False)
    if groups > 1:
        found.append(
            f"The matches fall into {groups} groups that never met; ratings of different groups cannot be compared."
        )
    if len(agents) == 1:
        found.append("Only one agent was rated; its rating says nothing without a second one to compare it with.")
    for kind, players in (("agent", agents), ("test case", cases)):
        for flag in ("only wins", "only losses"):
            flagged = [name for name, rating in players.items() if rating.flag == flag]
            if flagged:
                verb = "won" if flag == "only wins" else "lost"
                shown = f"{', '.join(flagged[:3])}{', …' if len(flagged) > 3 else ''}"
                found.append(
                    f"{len(flagged)} of {len(players)} {kind}s {verb} every match ({shown}): "
                    "such ratings are bounds, not estimates."
                )
    return tuple(found)
