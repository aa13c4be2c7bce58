"""AGI-Elo: agents and test cases rated against each other, one match at a time.

Every scored trial is a match between an agent and a test case: the agent scores S in 0..1, the case scores 1 - S. Both
are Glicko players; a case that beats good agents is rated as hard. Source: AGI-Elo, section 3, and Glickman's Glicko.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, UnknownNameError
from merton.processes import usable_cores
from merton.rating.checking import (
    Floats,
    Integers,
    Matches,
    as_table,
    columns,
    extremes,
    floor_warning,
    logistic,
    table_of,
    warnings,
)
from merton.rating.glicko import Update, packed, place_one, play_all
from merton.seeding import generator

MOST_THREADS = 4
"""Orders of the matches that are played at the same time; each needs 24 bytes a match."""

SEED, SHUFFLES = 0, 20
"""Of the seeded orders of the matches that a board averages over, and their number."""

NO_INTERVAL = (
    "AGI-Elo's ratings have no 95 % interval: their error is mostly in the method's scale, which no resampling shows."
)
"""The reason why a `Rating` has no interval, for readers of a board."""

T = TypeVar("T")


@dataclass(frozen=True)
class Rating:
    """One player's rating, in Elo points.

    It has no 95 % interval. Its error is mostly in AGI-Elo's scale, which is the same in every order and on every draw
    of the cases: simulated, a bootstrap over the cases held 76 to 96 % of the agents' true ratings, and 1.96 RD 80 to
    98 % of the cases', depending on how many there were and how far apart.

    Attributes:
        mean: average over the shuffles, and over the players of the same results; the number to show.
        deviation: rating deviation (RD), average over the same.
        spread: standard deviation of the mean over the shuffles, the effect of their order; 0 for one shuffle.
        single_pass: the mean after the first shuffle alone, which is the paper's procedure.
        matches: number of matches that the player took part in.
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
    """All players' ratings.

    Attributes:
        agents, cases: ratings by id, sorted.
        warnings: reasons to trust them less, one sentence each.
        seed, shuffles: as given to `rate`.
        passes: agents' means after each single order, which the paper's procedure gives with that order.
    """

    agents: dict[str, Rating]
    cases: dict[str, Rating]
    warnings: tuple[str, ...]
    seed: int
    shuffles: int
    passes: dict[str, tuple[float, ...]] = field(default_factory=dict)


def rate(matches: Matches, seed: int = SEED, shuffles: int = SHUFFLES, joint: bool = False) -> Ratings:
    """Rate every agent and test case that played, averaged over seeded orders of the matches.

    The matches are sorted first, so the order they are stored in plays no part: it would change ratings by hundreds of
    points. Averaging is ours: the paper's single pass leaves the effect of its one random order in the ratings
    (`Rating.spread`). Players of the same results are rated equal (ours): over all orders they are, and what sets them
    apart after 20 is the order alone.

    Args:
        matches: (agent id, case id, score in 0..1); an agent may meet a case more than once.
        seed: of the shuffles.
        shuffles: number of orders to average over, >= 1; at least 20 for numbers to be shown.
        joint: a test case plays all its agents in one match (`glicko.play_all`), the reading of eq. 8 that sums over
            several opponents. The default is that of the paper's software, one pair at a time.

    Raises:
        InputError: a match is not (agent id, case id, score in 0..1), or `shuffles` < 1.
    """
    _check_shuffles(shuffles)
    table = as_table(matches)
    n_agents, n_cases = len(table.agent_ids), len(table.case_ids)
    sequence = packed(table.agents, table.cases, table.scores)
    passes = shuffled_passes(sequence, n_agents, n_cases, seed, shuffles, joint)
    agent_means = np.array([item.agent_mean for item in passes])
    case_means = np.array([item.case_mean for item in passes])
    agent_rd, case_rd = (np.mean([getattr(item, name) for item in passes], axis=0) for name in ("agent_rd", "case_rd"))
    agent_flags = extremes(table.agents, table.scores, n_agents)
    case_flags = extremes(table.cases, 1.0 - table.scores, n_cases)
    agent_matches = np.bincount(table.agents, minlength=n_agents)
    case_matches = np.bincount(table.cases, minlength=n_cases)
    same_agents = _of_equal_results(table.agents, table.cases, table.scores, n_agents)
    same_cases = _of_equal_results(table.cases, table.agents, table.scores, n_cases)
    agents = _summary(table.agent_ids, agent_means, agent_rd, agent_matches, agent_flags, same_agents)
    cases = _summary(table.case_ids, case_means, case_rd, case_matches, case_flags, same_cases)
    found = warnings(table, agent_flags, case_flags)
    if agents:
        means = [np.array([rating.mean for rating in kind.values()]) for kind in (agents, cases)]
        gaps = means[0][table.agents] - means[1][table.cases]
        # Without a floor the lowest 2 % score less than predicted, because the ratings were made from them.
        found += floor_warning(logistic(gaps), table.scores, 0.02)
    orders = {name: tuple(agent_means[:, i].tolist()) for i, name in enumerate(table.agent_ids)}
    return Ratings(agents, cases, found, seed, shuffles, orders)


def place(results: Iterable[tuple[str, float]], ratings: Ratings, seed: int = 0, shuffles: int = 20) -> Rating:
    """Rate one new agent against test cases whose ratings stay as they are.

    This is AGI-Elo's "efficient placement" (section 2.2). For a board, `rate` all matches again: those of the new agent
    also change the ratings of the cases.

    Args:
        results: (case id, the agent's score in 0..1), at least one.
        ratings: of the cases.
        seed: of the shuffles.
        shuffles: number of orders to average over, >= 1.

    Raises:
        UnknownNameError: a case has no rating.
        InputError: a result is not (case id, score in 0..1), there are no results, or `shuffles` < 1.
    """
    _check_shuffles(shuffles)
    cases, scores = map(list, columns("result", results, ("case id", "score")))
    table = table_of([""] * len(cases), cases, scores)
    if not table.case_ids:
        raise InputError("placing an agent needs at least one result, got none")
    unknown = [case for case in table.case_ids if case not in ratings.cases]
    if unknown:
        raise UnknownNameError("test case", unknown[0], sorted(ratings.cases)[:10])
    known = np.array([(ratings.cases[case].mean, ratings.cases[case].deviation) for case in table.case_ids])
    opponents = known[table.cases]
    passes = [
        place_one(opponents, table.scores, generator("place", seed, shuffle).permutation(len(opponents)))
        for shuffle in range(shuffles)
    ]
    means = np.array(passes)[:, :1]
    deviation = np.array([np.mean([rd for _, rd in passes])])
    flags = extremes(table.agents, table.scores, 1)
    count = np.array([len(opponents)])
    return _summary([""], means, deviation, count, flags, [])[""]


def _check_shuffles(shuffles: int) -> None:
    if shuffles < 1:
        raise InputError(f"shuffles must be at least 1, got {shuffles}")


def shuffled_passes(
    sequence: NDArray[np.void], n_agents: int, n_cases: int, seed: int, shuffles: int, joint: bool = False
) -> list[Update]:
    """The ratings after each of the seeded orders of `packed` matches; `joint` as for `play_all`."""

    def one(shuffle: int) -> Update:
        order = generator("agi_elo", seed, shuffle).permutation(len(sequence))
        return play_all(sequence[order], n_agents, n_cases, joint)

    return _in_threads(one, shuffles)


def _in_threads(work: Callable[[int], T], n: int) -> list[T]:
    """Results of work(0) to work(n - 1), in this order; drawing, gathering and playing release the interpreter lock."""
    with ThreadPoolExecutor(min(usable_cores(), MOST_THREADS)) as threads:
        return list(threads.map(work, range(n)))


def _of_equal_results(players: Integers, opponents: Integers, scores: Floats, count: int) -> list[Integers]:
    """The groups of two and more players that have the same scores, to 12 digits, against the same opponents.

    Args:
        players, opponents, scores: (n,) of the matches of a table: those of a pair are in the order of their scores.
        count: of players.
    """
    scores = np.round(scores, 12) + 0.0  # .1 + .2 is .3, and -0 is 0
    order = np.lexsort((opponents, players))
    ends = np.cumsum(np.bincount(players, minlength=count))[:-1]
    found: dict[tuple[bytes, bytes], list[int]] = {}
    for player, own in enumerate(np.split(order, ends)):
        found.setdefault((opponents[own].tobytes(), scores[own].tobytes()), []).append(player)
    return [np.array(group) for group in found.values() if len(group) > 1]


def _summary(
    ids: list[str], means: Floats, deviation: Floats, matches: Integers, flags: list[str], same: list[Integers]
) -> dict[str, Rating]:
    """Ratings by id; `means` is (shuffles, players), `same` the groups of players of the same results."""
    single_pass = means[0]
    means, deviation = means.copy(), deviation.copy()
    for group in same:
        means[:, group] = means[:, group].mean(axis=1, keepdims=True)
        deviation[group] = deviation[group].mean()
    mean = means.mean(axis=0)
    spread = np.std(means, axis=0, ddof=1) if len(means) > 1 else np.zeros(len(ids))
    return {
        name: Rating(
            mean=float(mean[i]),
            deviation=float(deviation[i]),
            spread=float(spread[i]),
            single_pass=float(single_pass[i]),
            matches=int(matches[i]),
            flag=flags[i],
        )
        for i, name in enumerate(ids)
    }
