"""The compiled part of the likelihood fit: each case integrated out, with several threads and the same bytes for any.

Threads write what belongs to a case, a match or a row of a matrix, which is of one thread alone; sums over matches are
taken afterwards in the order of the matches. So a result is that of one thread, to the last bit. Terms: `marginal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from merton.processes import usable_cores
from merton.rating.checking import Floats, Integers

NODES = 11

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(NODES)
QUADRATURE = _NODES, np.log(_WEIGHTS) + 0.5 * _NODES**2
"""The nodes of the sum, in deviations from its centre, and the logarithms of their weights for a plain integral."""

BLOCK = 65_536
"""Matches worked on at a time: their arrays stay in the processor's cache, and memory does not grow with the study."""

LEAST_MATCHES = 20_000
"""With fewer in a study, threads cost more than they save."""


@dataclass(frozen=True)
class Sums:
    """Sums over all matches, by agent where an array; the last three over cases or matches.

    Attributes:
        slope: (agents,) gradient of the log-likelihood in the skills.
        curvature: (agents,) its information were the difficulties known.
        squares, residual, variance: of E[difficulty²], of E[(score - P)²] and of E[P (1 - P)].
    """

    slope: Floats
    curvature: Floats
    squares: float
    residual: float
    variance: float


class Integration:
    """Passes over the cases of a study.

    Args:
        agents, scores, starts, n_agents: as `marginal.Marginal` has them.

    Attributes:
        mode: (cases,) the most likely difficulties; a pass begins from those of the one before.
        case_mean, case_deviation: (cases,) mean and deviation of each difficulty's posterior, of the last pass.
    """

    def __init__(self, agents: Integers, scores: Floats, starts: Integers, n_agents: int) -> None:
        n_cases = len(starts) - 1
        self._agents, self._scores, self._starts, self._n_agents = agents, scores, starts, n_agents
        self.mode, self.case_mean, self.case_deviation = np.zeros(n_cases), np.zeros(n_cases), np.zeros(n_cases)
        self._blocks = _blocks(starts)
        self._threads = usable_cores() if len(scores) >= LEAST_MATCHES else 1
        self._pool = ThreadPoolExecutor(self._threads)  # starts no thread before it is asked to

    def run(
        self,
        skill: Floats,
        spread: float,
        dispersion: float,
        information: Floats | None = None,
        by_match: Floats | None = None,
    ) -> Sums:
        """One pass: integrate each case out.

        Args:
            skill: (agents,) log-odds.
            spread: standard deviation of the cases' difficulties.
            dispersion: variance of the scores over that of a coin.
            information: (agents, agents), becomes the observed information, lower triangle, without `Sums.curvature`.
            by_match: (2, matches), becomes each match's part of `Sums.slope` and `Sums.curvature`.
        """
        by_agent, totals = np.zeros((2, self._n_agents)), np.zeros(3)
        if information is not None:
            information[:] = 0.0
        for first, last in self._blocks:
            begin, end = self._starts[first], self._starts[last]
            agents, scores, starts = self._agents[begin:end], self._scores[begin:end], self._starts[first : last + 1]
            parts = np.empty((3, end - begin))  # of each match: gradient, E[P (1 - P)], E[(score - P)²]
            squares = np.empty(last - first)
            deviations = np.empty((0 if information is None else end - begin, NODES))
            rule = (skill, spread, dispersion, *QUADRATURE)
            posterior = (values[first:last] for values in (self.mode, self.case_mean, self.case_deviation))
            self._in_threads(_integrate, agents, scores, starts - begin, *rule, *posterior, squares, parts, deviations)
            _add_up(agents, parts, squares, dispersion, by_agent, totals)
            if information is not None:
                self._in_threads(_multiply, agents, starts - begin, deviations, information)
            if by_match is not None:
                by_match[:, begin:end] = parts[0], parts[1] / dispersion
        return Sums(*by_agent, *totals.tolist())

    def _in_threads(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """Each thread calls the kernel with its number, their number and the arguments, for its share of the work."""
        if self._threads == 1:
            kernel(0, 1, *arguments)
        else:
            list(self._pool.map(lambda thread: kernel(thread, self._threads, *arguments), range(self._threads)))


def _blocks(starts: Integers) -> list[tuple[int, int]]:
    """First case and last (excluded) of runs of cases with at most `BLOCK` matches, or of a single case with more."""
    found, first, n_cases = [], 0, len(starts) - 1
    while first < n_cases:
        last = max(int(np.searchsorted(starts, starts[first] + BLOCK, side="right")) - 1, first + 1)
        found.append((first, last))
        first = last
    return found


# error_model="numpy": no test before each division; the spread and the dispersion are never 0
@numba.njit(cache=True, nogil=True, error_model="numpy")
def _most_likely(b: float, able: Floats, points: float, precision: float, dispersion: float) -> tuple[float, float]:
    """The most likely difficulty of a case, from `b` by Newton's steps, and the curvature of its log-likelihood there.

    Args:
        able: (n,) skills of the agents it met, who scored `points` in all.
        precision: of the difficulties, 1 / spread².
    """
    flat = precision
    for _ in range(50):
        rise, flat = -b * precision - points / dispersion, precision
        for skill in able:
            p = 1.0 / (1.0 + math.exp(b - skill))
            rise += p / dispersion
            flat += p * (1.0 - p) / dispersion
        move = max(-2.0, min(2.0, rise / flat))
        b += move
        if abs(move) < 1e-4:  # the quadrature need not be centred better
            break
    return b, flat


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _integrate(
    thread: int,
    threads: int,
    agents: Integers,
    scores: Floats,
    starts: Integers,
    skill: Floats,
    spread: float,
    dispersion: float,
    nodes: Floats,
    log_weights: Floats,
    mode: Floats,
    case_mean: Floats,
    case_deviation: Floats,
    squares: Floats,
    parts: Floats,
    deviations: Floats,
) -> None:
    """Every `threads`-th case of a block: its posterior, `parts` of its matches, and their `deviations` if wanted.

    These are scaled so that the product of two rows is a covariance.
    """
    precision = 1.0 / spread**2
    most = np.max(starts[1:] - starts[:-1])
    chance = np.empty((len(nodes), most))  # expected score by node and match
    weight, able = np.empty(len(nodes)), np.empty(most)
    for case in range(thread, len(starts) - 1, threads):
        first, n = starts[case], starts[case + 1] - starts[case]
        points = earned = 0.0
        for i in range(n):
            able[i] = skill[agents[first + i]]
            points += scores[first + i]
            earned += scores[first + i] * able[i]
        b, flat = _most_likely(mode[case], able[:n], points, precision, dispersion)
        mode[case] = b
        width = 1.0 / math.sqrt(flat)

        highest = -np.inf
        for k in range(len(nodes)):
            at = b + width * nodes[k]
            # the sum of S log P + (1 - S) log(1 - P) is that of S (R - D) + log(1 - P); one logarithm of many factors
            log_failures, failures = 0.0, 1.0
            for i in range(n):
                failure = 1.0 / (1.0 + math.exp(min(able[i] - at, 500.0)))
                chance[k, i] = 1.0 - failure
                failures *= failure
                if failures < 1e-80:
                    log_failures += math.log(failures)
                    failures = 1.0
            log_failures += math.log(failures)
            weight[k] = log_weights[k] - 0.5 * at * at * precision + (earned - points * at + log_failures) / dispersion
            highest = max(highest, weight[k])
        total = 0.0
        for k in range(len(nodes)):
            weight[k] = math.exp(weight[k] - highest)
            total += weight[k]
        mean = square = 0.0
        for k in range(len(nodes)):
            weight[k] /= total
            at = b + width * nodes[k]
            mean += weight[k] * at
            square += weight[k] * at * at
        case_mean[case] = mean
        case_deviation[case] = math.sqrt(max(square - mean * mean, 0.0))
        squares[case] = square

        for i in range(n):
            score = scores[first + i]
            expected = known = apart = 0.0
            for k in range(len(nodes)):
                p = chance[k, i]
                expected += weight[k] * p
                known += weight[k] * p * (1.0 - p)
                apart += weight[k] * (score - p) ** 2
            parts[0, first + i], parts[1, first + i], parts[2, first + i] = (
                (score - expected) / dispersion,
                known,
                apart,
            )
            if len(deviations) > 0:
                for k in range(len(nodes)):
                    deviations[first + i, k] = (chance[k, i] - expected) * math.sqrt(weight[k]) / dispersion


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_up(
    agents: Integers, parts: Floats, squares: Floats, dispersion: float, by_agent: Floats, totals: Floats
) -> None:
    """Add a block to `Sums`, in the order of its matches: slopes and curvatures, and the three totals."""
    for square in squares:
        totals[0] += square
    for match in range(len(agents)):
        by_agent[0, agents[match]] += parts[0, match]
        by_agent[1, agents[match]] += parts[1, match] / dispersion
        totals[1] += parts[2, match]
        totals[2] += parts[1, match]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _multiply(
    thread: int,
    threads: int,
    agents: Integers,
    starts: Integers,
    deviations: Floats,
    information: Floats,
) -> None:
    """Add a block to every `threads`-th row of the lower triangle of the matrix."""
    for case in range(len(starts) - 1):
        for i in range(starts[case], starts[case + 1]):
            a = agents[i]
            if a % threads != thread:
                continue
            for j in range(starts[case], starts[case + 1]):
                other = agents[j]
                if other > a:
                    continue
                together = 0.0
                for k in range(deviations.shape[1]):
                    together += deviations[i, k] * deviations[j, k]
                information[a, other] -= together
