"""Glickman's Glicko update, match by match: both sides from their ratings before the match, no floor, no inflation.

Two readings of AGI-Elo's section 3.3. One pair at a time is the sequential form of the paper's reference software. In
the joint one a test case is one match against all agents that met it, as eq. 8 and 9 sum over several opponents.
Ratings and deviations are Elo points, scores 0..1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError
from merton.rating.checking import Floats, Integers, Q, checked_index, checked_scores

START_MEAN = 1500.0
START_DEVIATION = 350.0

# Unsigned, because compiled code tests signed indices for being negative, to count these from the end.
_MATCH = np.dtype([("agent", np.uint32), ("case", np.uint32), ("score", np.float64)])


@dataclass(frozen=True)
class Update:
    """Ratings after a sequence of matches: means and rating deviations (RD) in Elo points, one entry a player."""

    agent_mean: Floats
    agent_rd: Floats
    case_mean: Floats
    case_rd: Floats


# error_model="numpy": division by 0 gives inf, without a test for it before each; no divisor here can be 0.
@numba.njit(cache=True, nogil=True, error_model="numpy")
def _against(mean: float, opponent_mean: float, opponent_rd: float, score: float) -> tuple[float, float]:
    """One opponent's term of the sums of eq. 8 and 9: g (S - E), and q² g² E (1 - E)."""
    impact = 1.0 / math.sqrt(1.0 + 3.0 * (Q * opponent_rd / math.pi) ** 2)
    expected = 1.0 / (1.0 + math.exp(-Q * impact * (mean - opponent_mean)))  # compiled exp overflows to inf: 0 here
    return impact * (score - expected), (Q * impact) ** 2 * expected * (1.0 - expected)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _after_match(mean: float, rd: float, opponent_mean: float, opponent_rd: float, score: float) -> tuple[float, float]:
    pull, precision = _against(mean, opponent_mean, opponent_rd, score)
    precision += 1.0 / rd**2
    return mean + Q / precision * pull, 1.0 / math.sqrt(precision)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _play(matches: NDArray[np.void], agents: Floats, cases: Floats) -> None:
    for match in matches:
        agent, case = agents[match.agent], cases[match.case]
        mean_a, rd_a, mean_c, rd_c = agent[0], agent[1], case[0], case[1]
        agent[0], agent[1] = _after_match(mean_a, rd_a, mean_c, rd_c, match.score)
        case[0], case[1] = _after_match(mean_c, rd_c, mean_a, rd_a, 1.0 - match.score)


# error_model as above. `first`: the place of the first match of each case, and last the number of matches.
@numba.njit(cache=True, nogil=True, error_model="numpy")
def _play_jointly(matches: NDArray[np.void], first: Integers, agents: Floats, cases: Floats) -> None:
    for number in range(len(first) - 1):
        case = cases[matches[first[number]].case]
        mean, rd = case[0], case[1]
        pull, precision = 0.0, 1.0 / rd**2
        for place in range(first[number], first[number + 1]):
            match = matches[place]
            more_pull, more_precision = _against(
                mean, agents[match.agent, 0], agents[match.agent, 1], 1.0 - match.score
            )
            pull, precision = pull + more_pull, precision + more_precision
        own_pull, own_precision = 0.0, 0.0
        for place in range(first[number], first[number + 1]):  # those of one agent stand together
            match = matches[place]
            agent = agents[match.agent]
            more_pull, more_precision = _against(agent[0], mean, rd, match.score)
            own_pull, own_precision = own_pull + more_pull, own_precision + more_precision
            if place + 1 == first[number + 1] or matches[place + 1].agent != match.agent:
                own_precision += 1.0 / agent[1] ** 2
                agent[0], agent[1] = agent[0] + Q / own_precision * own_pull, 1.0 / math.sqrt(own_precision)
                own_pull, own_precision = 0.0, 0.0
        case[0], case[1] = mean + Q / precision * pull, 1.0 / math.sqrt(precision)


def update(
    agents: ArrayLike, cases: ArrayLike, scores: ArrayLike, *, n_agents: int, n_cases: int, joint: bool = False
) -> Update:
    """Play the matches in the order given, all players starting at 1500 with a deviation of 350.

    Args:
        joint: as for `play_all`.
        agents: (n,) integers in 0 .. n_agents - 1.
        cases: (n,) integers in 0 .. n_cases - 1.
        scores: (n,) the agent's score in 0..1; the case scores 1 - score.

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
    return play_all(packed(agent_index, case_index, score), n_agents, n_cases, joint)


def packed(agents: Integers, cases: Integers, scores: Floats) -> NDArray[np.void]:
    """Matches as records of 16 bytes: a shuffled pass then waits for memory once a match, not three times."""
    matches = np.empty(len(scores), dtype=_MATCH)
    matches["agent"], matches["case"], matches["score"] = agents, cases, scores
    return matches


def play_all(matches: NDArray[np.void], n_agents: int, n_cases: int, joint: bool = False) -> Update:
    """Play `packed` matches in their order, all players starting at 1500 with a deviation of 350.

    Args:
        joint: a test case plays all agents that met it in one match, at the place of the first of them: its update sums
            over its opponents (AGI-Elo, eq. 8 and 9), and all sides have their ratings from before it.
    """
    agents, cases = np.empty((n_agents, 2)), np.empty((n_cases, 2))
    agents[:] = cases[:] = START_MEAN, START_DEVIATION
    if joint:
        _play_jointly(*_by_case(matches), agents, cases)
    else:
        _play(matches, agents, cases)
    return Update(agents[:, 0].copy(), agents[:, 1].copy(), cases[:, 0].copy(), cases[:, 1].copy())


def _by_case(matches: NDArray[np.void]) -> tuple[NDArray[np.void], Integers]:
    """The matches with those of a case side by side, in the order of their first ones, and where each case begins."""
    _, first, case, counts = np.unique(matches["case"], return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((matches["agent"], first[case]))
    begins = np.concatenate(([0], np.cumsum(counts[np.argsort(first)])))
    return matches[order], begins


@numba.njit(cache=True, error_model="numpy")
def place_one(opponents: Floats, scores: Floats, order: Integers) -> tuple[float, float]:
    """Rating and deviation of a new player after matches in the order given.

    Args:
        opponents: (n, 2) rating and deviation, which stay as they are.
        scores: (n,) of the new player.
        order: indices of matches.
    """
    mean, rd = START_MEAN, START_DEVIATION
    for match in order:
        mean, rd = _after_match(mean, rd, opponents[match, 0], opponents[match, 1], scores[match])
    return mean, rd
