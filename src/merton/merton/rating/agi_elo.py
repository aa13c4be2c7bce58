"""AGI-Elo: agents and test cases rated against each other, one match at a time.

Every scored trial is a match between an agent and a test case: the agent scores S in 0..1, the case scores 1 - S. Both
are Glicko players; a case that beats good agents is rated as hard. Source: AGI-Elo, section 3, and Glickman's Glicko.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError, UnknownNameError
from merton.rating.checking import (
    Floats,
    Integers,
    Match,
    Matches,
    MatchTable,
    Q,
    as_table,
    checked_index,
    checked_scores,
    extremes,
    floor_warning,
    logistic,
    warnings,
)
from merton.results.records import Outcome, TrialRecord
from merton.results.statistics import Z_95
from merton.seeding import generator

START_MEAN = 1500.0
START_DEVIATION = 350.0

RESAMPLES = 40
"""Bootstrap replicates; their standard deviation is known to some 11 %."""

MOST_THREADS = 4
"""Orders of the matches that are gone through at the same time; each needs 24 bytes a match."""

T = TypeVar("T")

_MATCH = np.dtype([("agent", np.int32), ("case", np.int32), ("score", np.float64)])


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
        interval: 95 %. Agents: from a bootstrap over the test cases. Cases, which too few agents meet to resample
            them: mean ± 1.96 deviations.
        flag: "only wins", "only losses", or empty: such a rating is a bound that more matches would push further.
    """

    mean: float
    deviation: float
    spread: float
    single_pass: float
    matches: int
    interval: tuple[float, float]
    flag: str = ""


@dataclass(frozen=True)
class Ratings:
    """All players' ratings, ids sorted, with what a reader must know before trusting them."""

    agents: dict[str, Rating]
    cases: dict[str, Rating]
    warnings: tuple[str, ...]
    seed: int
    shuffles: int
    passes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Agents' means after each single order, which is what the paper's procedure gives with that order."""


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


@numba.njit(cache=True, nogil=True)
def _after_match(mean: float, rd: float, opponent_mean: float, opponent_rd: float, score: float) -> tuple[float, float]:
    impact = 1.0 / math.sqrt(1.0 + 3.0 * (Q * opponent_rd / math.pi) ** 2)
    expected = 1.0 / (1.0 + math.exp(-Q * impact * (mean - opponent_mean)))  # compiled exp overflows to inf: 0 here
    precision = 1.0 / rd**2 + (Q * impact) ** 2 * expected * (1.0 - expected)
    return mean + Q / precision * impact * (score - expected), 1.0 / math.sqrt(precision)


@numba.njit(cache=True, nogil=True)
def _play(matches: NDArray[np.void], agents: Floats, cases: Floats) -> None:
    for match in matches:
        agent, case = agents[match.agent], cases[match.case]
        mean_a, rd_a, mean_c, rd_c = agent[0], agent[1], case[0], case[1]
        agent[0], agent[1] = _after_match(mean_a, rd_a, mean_c, rd_c, match.score)
        case[0], case[1] = _after_match(mean_c, rd_c, mean_a, rd_a, 1.0 - match.score)


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
    agent_index = checked_index("agent", agents, n_agents)
    case_index = checked_index("case", cases, n_cases)
    score = checked_scores(scores)
    if not len(agent_index) == len(case_index) == len(score):
        raise InputError(
            f"agents, cases and scores must be equally many, got {len(agent_index)}, {len(case_index)}, {len(score)}"
        )
    return _after(_packed(agent_index, case_index, score), n_agents, n_cases)


def rate(matches: Matches, seed: int = 0, shuffles: int = 20) -> Ratings:
    """Rate every agent and test case that played, averaged over seeded orders of the matches.

    The matches are sorted first, so the order they are stored in has no influence: it would otherwise cost hundreds of
    points. Averaging is ours: the paper's single pass leaves its one random order in the ratings (`Rating.spread`).
    So is the interval: agents are rated anew on test cases drawn with replacement, in one order each, so that it
    holds what other cases and another order would do.

    Args:
        matches: (agent id, case id, score in 0..1); an agent may meet a case more than once.
        seed: of the shuffles and the draws.
        shuffles: how many orders to average over, >= 1; at least 20 for numbers to be shown.

    Raises:
        InputError: a score is NaN or outside 0..1, or `shuffles` < 1.
    """
    _check_shuffles(shuffles)
    table = as_table(matches)
    n_agents, n_cases = len(table.agent_ids), len(table.case_ids)
    packed = _packed(table.agents, table.cases, table.scores)
    passes = shuffled_passes(packed, n_agents, n_cases, seed, shuffles)
    agent_means = np.array([item.agent_mean for item in passes])
    case_means = np.array([item.case_mean for item in passes])
    agent_rd, case_rd = (np.mean([getattr(item, name) for item in passes], axis=0) for name in ("agent_rd", "case_rd"))
    agent_flags = extremes(table.agents, table.scores, n_agents)
    case_flags = extremes(table.cases, 1.0 - table.scores, n_cases)
    agent_matches = np.bincount(table.agents, minlength=n_agents)
    case_matches = np.bincount(table.cases, minlength=n_cases)
    agents = _summary(
        table.agent_ids, agent_means, agent_rd, agent_matches, _bootstrap(packed, table, seed), agent_flags
    )
    cases = _summary(table.case_ids, case_means, case_rd, case_matches, case_rd, case_flags)
    found = warnings(table, agent_flags, case_flags)
    if agents:
        gaps = agent_means.mean(axis=0)[table.agents] - case_means.mean(axis=0)[table.cases]
        # Without a floor the lowest end worse than predicted, because they made the ratings: 2 % are enough to tell.
        found += floor_warning(logistic(gaps), table.scores, 0.02)
    orders = {name: tuple(agent_means[:, i].tolist()) for i, name in enumerate(table.agent_ids)}
    return Ratings(agents, cases, found, seed, shuffles, orders)


def place(results: Iterable[tuple[str, float]], ratings: Ratings, seed: int = 0, shuffles: int = 20) -> Rating:
    """Rate one new agent against test cases whose ratings stay as they are; nobody else's rating changes.

    For a quick answer about a newcomer (AGI-Elo, section 2.2, "efficient placement"); `rate` everything again for a
    board, because the newcomer also tells something about the cases.

    Args:
        results: (case id, the agent's score in 0..1), at least one.
        ratings: of the cases.
        seed: of the shuffles and the draws.
        shuffles: how many orders to average over, >= 1.

    Raises:
        UnknownNameError: a case has no rating.
        InputError: a score is NaN or outside 0..1, there are no results, or `shuffles` < 1.
    """
    _check_shuffles(shuffles)
    table = as_table(("", case, score) for case, score in results)
    if not table.case_ids:
        raise InputError("placing an agent needs at least one result, got none")
    unknown = [case for case in table.case_ids if case not in ratings.cases]
    if unknown:
        raise UnknownNameError("test case", unknown[0], sorted(ratings.cases)[:10])
    cases = np.array([(ratings.cases[case].mean, ratings.cases[case].deviation) for case in table.case_ids])
    opponents = cases[table.cases]
    passes = []
    for shuffle in range(shuffles):
        passes.append(_placed(opponents, table.scores, generator("place", seed, shuffle).permutation(len(opponents))))
    drawn = [
        _placed(
            opponents,
            table.scores,
            generator("place bootstrap", seed, draw).integers(0, len(opponents), len(opponents)),
        )[0]
        for draw in range(RESAMPLES)
    ]
    means = np.array(passes)[:, :1]
    deviation = np.array([np.mean([rd for _, rd in passes])])
    flags = extremes(table.agents, table.scores, 1)
    count = np.array([len(opponents)])
    return _summary([""], means, deviation, count, np.array([np.std(drawn, ddof=1)]), flags)[""]


def matches(records: Iterable[TrialRecord]) -> list[Match]:
    """The matches in trial records: score = execution / 100. Infrastructure faults and unscored trials are left out."""
    return [
        (record.agent, record.case.id, record.execution / 100.0)
        for record in records
        if record.execution is not None and record.outcome is not Outcome.INFRASTRUCTURE
    ]


def _check_shuffles(shuffles: int) -> None:
    if shuffles < 1:
        raise InputError(f"shuffles must be at least 1, got {shuffles}")


def _packed(agents: Integers, cases: Integers, scores: Floats) -> NDArray[np.void]:
    # One match in 16 bytes: a shuffled pass then waits for memory once a match, not three times.
    packed = np.empty(len(scores), dtype=_MATCH)
    packed["agent"], packed["case"], packed["score"] = agents, cases, scores
    return packed


def _after(matches: NDArray[np.void], n_agents: int, n_cases: int) -> Update:
    agents, cases = np.empty((n_agents, 2)), np.empty((n_cases, 2))
    agents[:] = cases[:] = START_MEAN, START_DEVIATION
    _play(matches, agents, cases)
    return Update(agents[:, 0].copy(), agents[:, 1].copy(), cases[:, 0].copy(), cases[:, 1].copy())


def shuffled_passes(packed: NDArray[np.void], n_agents: int, n_cases: int, seed: int, shuffles: int) -> list[Update]:
    """What each of the seeded orders leads to, in their order, whatever thread came first; `packed` as of `_packed`."""

    def one(shuffle: int) -> Update:
        order = generator("agi_elo", seed, shuffle).permutation(len(packed))
        return _after(packed[order], n_agents, n_cases)

    return _in_threads(one, shuffles)


def _bootstrap(packed: NDArray[np.void], table: MatchTable, seed: int) -> Floats:
    """Standard deviation of each agent's mean over test cases drawn with replacement; a case drawn twice is two."""
    n_agents, n_cases = len(table.agent_ids), len(table.case_ids)
    if n_cases == 0:
        return np.zeros(0)
    by_case = np.argsort(table.cases, kind="stable")
    sizes = np.bincount(table.cases, minlength=n_cases)
    starts = np.cumsum(sizes) - sizes

    def one(draw: int) -> Floats:
        random = generator("agi_elo bootstrap", seed, draw)
        drawn = random.integers(0, n_cases, n_cases)
        lengths = sizes[drawn]
        copy = np.repeat(np.arange(n_cases), lengths)
        within = np.arange(len(copy)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        matches = packed[by_case[starts[drawn][copy] + within]]
        matches["case"] = copy
        present = np.bincount(matches["agent"], minlength=n_agents) > 0
        result = _after(matches[random.permutation(len(matches))], n_agents, n_cases)
        return np.where(present, result.agent_mean, np.nan)

    means = np.array(_in_threads(one, RESAMPLES))
    # An agent that met one case of many is missing from most draws: then it is not known better than at the start.
    known = np.sum(~np.isnan(means), axis=0) >= RESAMPLES // 2
    deviation = np.full(n_agents, START_DEVIATION)
    deviation[known] = np.nanstd(means[:, known], axis=0, ddof=1)
    return deviation


def _in_threads(work: Callable[[int], T], n: int) -> list[T]:
    """Results of work(0) to work(n - 1), in this order. Worth it: drawing, gathering and playing hold no lock."""
    with ThreadPoolExecutor(min(len(os.sched_getaffinity(0)), MOST_THREADS)) as threads:
        return list(threads.map(work, range(n)))


@numba.njit(cache=True)
def _placed(opponents: Floats, scores: Floats, order: Integers) -> tuple[float, float]:
    mean, rd = START_MEAN, START_DEVIATION
    for match in order:
        mean, rd = _after_match(mean, rd, opponents[match, 0], opponents[match, 1], scores[match])
    return mean, rd


def _summary(
    ids: list[str], means: Floats, deviation: Floats, matches: Integers, error: Floats, flags: list[str]
) -> dict[str, Rating]:
    """Ratings by id; `means` is (shuffles, players), `error` what the 95 % interval is made of."""
    mean = means.mean(axis=0)
    spread = np.std(means, axis=0, ddof=1) if len(means) > 1 else np.zeros(len(ids))
    return {
        name: Rating(
            mean=float(mean[i]),
            deviation=float(deviation[i]),
            spread=float(spread[i]),
            single_pass=float(means[0, i]),
            matches=int(matches[i]),
            interval=(float(mean[i] - Z_95 * error[i]), float(mean[i] + Z_95 * error[i])),
            flag=flags[i],
        )
        for i, name in enumerate(ids)
    }
