"""Ratings by maximum likelihood: all matches at once, whatever their order; the method to show first.

Model: an agent of rating R scores S on a case of difficulty D with expectation 1 / (1 + 10^((D - R) / 400)), the
one-parameter logistic (Rasch) model. Agents are parameters. Cases are draws from a normal distribution and are
integrated out (marginal maximum likelihood, Bock and Aitkin 1981), case by case with adaptive Gauss-Hermite quadrature:
with 20 agents a case, estimating 50,000 difficulties beside 20 skills would bias the skills.

Ours, for scores between 0 and 1: the likelihood of a coin with S heads is a quasi-likelihood whose variance is
dispersion · P (1 - P). The dispersion is 1 if all scores are 0 or 1 and estimated otherwise, because partial credit
scatters less than a coin; and standard errors are of the sandwich form (White 1982), clustered by case, which hold
for either, but never below the model's own: an agent with one match has no scatter, yet is not known for sure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numba
import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from merton.errors import InputError
from merton.rating.agi_elo import START_MEAN, Rating, Ratings
from merton.rating.checking import (
    ONLY_WINS,
    Z_95,
    Floats,
    Integers,
    Match,
    Played,
    Q,
    extremes,
    floor_warning,
    played,
    warnings,
)

MAX_AGENTS = 4000
"""The information matrix has as many rows and columns: 128 MB."""

NODES = 11
STEPS = 500
TOLERANCE = 1e-5
"""Log-odds, and relative change of the two spreads, at which the fit has arrived (0.002 Elo points)."""

LEAP, MOST_LEAP = 8, 100.0
"""Every how many steps the spread is extrapolated, and by how many of its last step at most."""

EXTREME_LOSS = 0.5
"""What an agent of only wins is taken to have lost in all its matches together, so that its bound is finite (ours)."""

_LEAST_SPREAD, _MOST_SPREAD = 1e-2, 1e2  # of the cases, log-odds
_LEAST_DISPERSION = 1e-3


@dataclass(frozen=True)
class Estimate:
    """One player's rating by maximum likelihood, in Elo points.

    Attributes:
        mean: agents: the maximum-likelihood estimate. Cases: the posterior mean.
        deviation: agents: standard error, against the mean of the cases' distribution.
            Cases: posterior deviation.
        matches: how many matches the player took part in.
        flag: "only wins", "only losses", or empty: an agent's rating is then a bound, a case's leans on the prior.
    """

    mean: float
    deviation: float
    matches: int
    flag: str = ""

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval."""
        return self.mean - Z_95 * self.deviation, self.mean + Z_95 * self.deviation


@dataclass(frozen=True)
class Fit:
    """A fit: ids sorted; the cases' distribution has mean 1500.

    Attributes:
        agents, cases: estimates by id.
        case_spread: standard deviation of the difficulties of cases, Elo points.
        dispersion: variance of scores over that of a coin; 1 for scores of 0 and 1.
        warnings: what a reader must know.
    """

    agents: dict[str, Estimate]
    cases: dict[str, Estimate]
    case_spread: float
    dispersion: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class BothRatings:
    """One agent by both methods; ranks start at 1, equal ratings share one.

    `shift` is the likelihood's rating less AGI-Elo's after the methods' mean difference over all agents is taken off.
    """

    agent: str
    likelihood: Estimate
    likelihood_rank: int
    agi_elo: Rating
    agi_elo_rank: int
    shift: float


def fit(matches: Iterable[Match]) -> Fit:
    """Rate agents and cases by marginal maximum likelihood; no seed, the result has no randomness.

    Time and memory grow with matches times agents a case, and with the square of the agents.

    Args:
        matches: (agent id, case id, score in 0..1); an agent may meet a case more than once.

    Raises:
        InputError: a score is NaN or outside 0..1, or there are fewer than 2 agents (how cases differ is unknowable)
            or more than `MAX_AGENTS`.
    """
    game = played(matches)
    count = len(game.agent_ids)
    if not 2 <= count <= MAX_AGENTS:
        raise InputError(f"a likelihood fit needs 2 to {MAX_AGENTS} agents, got {count}")
    agent_flags = extremes(game.agents, game.scores, count)
    case_flags = extremes(game.cases, 1.0 - game.scores, len(game.case_ids))
    scores = _bounded_scores(game, agent_flags)

    by_case = np.lexsort((scores, game.agents, game.cases))
    starts = np.concatenate(([0], np.cumsum(np.bincount(game.cases, minlength=len(game.case_ids)))))
    state = _State(game.agents[by_case], scores[by_case], starts, count, coin=bool(np.isin(game.scores, (0, 1)).all()))
    arrived = state.climb()
    errors = state.standard_errors() / Q

    skill = START_MEAN + state.skill / Q
    found = list(warnings(game, agent_flags, case_flags))
    found += floor_warning(*state.weak_on_hard(), 0.1)
    if not arrived:
        found.append(f"The likelihood fit had not arrived after {STEPS} steps; its last digits are uncertain.")
    if not _LEAST_SPREAD < state.spread < _MOST_SPREAD:
        found.append("How much cases differ could not be estimated; their ratings tell little.")
    sizes = np.bincount(game.agents, minlength=count)
    return Fit(
        agents={
            name: Estimate(float(skill[i]), float(errors[i]), int(sizes[i]), agent_flags[i])
            for i, name in enumerate(game.agent_ids)
        },
        cases={
            name: Estimate(
                float(START_MEAN + state.case_mean[i] / Q),
                float(state.case_deviation[i] / Q),
                int(starts[i + 1] - starts[i]),
                case_flags[i],
            )
            for i, name in enumerate(game.case_ids)
        },
        case_spread=state.spread / Q,
        dispersion=state.dispersion,
        warnings=tuple(found),
    )


def side_by_side(ratings: Ratings, fitted: Fit) -> tuple[BothRatings, ...]:
    """Agents rated by both methods, best by likelihood first. Shifts show on what the methods disagree."""
    names = sorted(set(ratings.agents) & set(fitted.agents), key=lambda name: (-fitted.agents[name].mean, name))
    elo, likely = [ratings.agents[name].mean for name in names], [fitted.agents[name].mean for name in names]
    usual = (math.fsum(likely) - math.fsum(elo)) / max(len(names), 1)
    return tuple(
        BothRatings(
            agent=name,
            likelihood=fitted.agents[name],
            likelihood_rank=1 + sum(other > likely[i] for other in likely),
            agi_elo=ratings.agents[name],
            agi_elo_rank=1 + sum(other > elo[i] for other in elo),
            shift=likely[i] - elo[i] - usual,
        )
        for i, name in enumerate(names)
    )


def _bounded_scores(game: Played, flags: list[str]) -> Floats:
    """The scores, with those of agents that only won or only lost moved off the bound.

    They stay beyond what any other agent has: whoever lost nothing must not be rated below one that lost a little.
    """
    count = np.bincount(game.agents, minlength=len(flags))
    share = np.bincount(game.agents, weights=game.scores, minlength=len(flags)) / count
    moved, won = np.array([(bool(flag), flag == ONLY_WINS) for flag in flags]).T
    others = share[~moved]
    lost = np.minimum(EXTREME_LOSS / count, (1.0 - others).min(initial=1.0) / 2)
    gained = np.minimum(EXTREME_LOSS / count, others.min(initial=1.0) / 2)
    bounded = np.where(won, 1.0 - lost, gained)
    return np.where(moved[game.agents], bounded[game.agents], game.scores)


class _State:
    """The fit under way, in log-odds; cases have mean 0."""

    def __init__(self, agents: Integers, scores: Floats, starts: Integers, n_agents: int, coin: bool) -> None:
        n_cases = len(starts) - 1
        self.agents, self.scores, self.starts, self.coin = agents, scores, starts, coin
        count = np.bincount(agents, minlength=n_agents)
        share = (np.bincount(agents, weights=scores, minlength=n_agents) + 0.5) / (count + 1.0)
        self.skill = np.log(share / (1.0 - share))
        self.spread, self.dispersion = 1.0, 1.0
        self.mode, self.case_mean, self.case_deviation = np.zeros(n_cases), np.zeros(n_cases), np.zeros(n_cases)
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        self._quadrature = (nodes, np.log(weights) + 0.5 * nodes**2)

    def climb(self) -> bool:
        """Newton steps in the skills, EM steps in the two spreads; True if they end by themselves.

        EM steps in the cases' spread shrink by a constant ratio, which is close to 1 where little is known of it; so
        every few steps the rest of that geometric series is taken at once (Aitken's extrapolation).
        """
        size = len(self.skill)
        pace = 0.0
        information = np.zeros((size, size))
        factor = None
        for step in range(1, STEPS + 1):
            renew = step & (step - 1) == 0  # at 1, 2, 4, 8, ...: it changes ever less
            slope, curvature, moments = self._expect(information, renew)
            if renew:
                try:
                    factor = cho_factor(information)
                except LinAlgError:  # far from the maximum: the EM step always goes uphill
                    factor = None
            change = slope / curvature if factor is None else cho_solve(factor, slope)
            change = np.clip(change, -1.0, 1.0)
            squares, residual, variance = moments
            spread = min(max(math.sqrt(squares / len(self.mode)), _LEAST_SPREAD), _MOST_SPREAD)
            dispersion = 1.0 if self.coin else max(residual / variance, _LEAST_DISPERSION)
            before, pace = pace, math.log(spread / self.spread)
            moved = max(float(np.abs(change).max()), abs(pace), abs(math.log(dispersion / self.dispersion)))
            if step % LEAP == 0 and 0.0 < (ratio := pace / before if before else 0.0) < 1.0:
                spread *= math.exp(pace * min(ratio / (1.0 - ratio), MOST_LEAP))
                spread = min(max(spread, _LEAST_SPREAD), _MOST_SPREAD)
            self.skill = self.skill + change
            self.spread, self.dispersion = spread, dispersion
            if moved < TOLERANCE:
                return True
        return False

    def standard_errors(self) -> Floats:
        """Standard errors of the skills: the sandwich's, clustered by case, or the model's if those are larger.

        The sandwich takes the scatter of an agent's own scores for what it is: none after one match, or where all its
        scores are as expected. The spreads count as known.
        """
        size = len(self.skill)
        information, scatter = np.zeros((size, size)), np.zeros((size, size))
        self._expect(information, True, scatter)
        inverse = np.linalg.pinv(information, hermitian=True)
        return np.sqrt(np.maximum(np.diag(inverse @ scatter @ inverse), np.maximum(np.diag(inverse), 0.0)))

    def weak_on_hard(self) -> tuple[Floats, Floats]:
        """Expected and real scores of the weaker half of the agents on cases judged by the stronger half alone.

        What weak agents did on a case is thus not in its difficulty, so without a guessing floor the two agree.
        """
        weak = np.zeros(len(self.skill), dtype=bool)
        weak[np.argsort(self.skill, kind="stable")[: len(weak) // 2]] = True
        left_out = weak[self.agents]
        case = np.repeat(np.arange(len(self.mode)), np.diff(self.starts))
        strong = _State(
            self.agents[~left_out],
            self.scores[~left_out],
            np.concatenate(([0], np.cumsum(np.bincount(case[~left_out], minlength=len(self.mode))))),
            len(self.skill),
            self.coin,
        )
        strong.skill, strong.spread, strong.dispersion = self.skill, self.spread, self.dispersion
        strong._expect(np.zeros((0, 0)), False)
        expected = np.zeros(int(left_out.sum()))
        nodes, log_weights = self._quadrature
        for node, weight in zip(nodes, np.exp(log_weights - 0.5 * nodes**2) / math.sqrt(2.0 * math.pi), strict=True):
            at = strong.case_mean + node * strong.case_deviation
            expected += weight / (1.0 + np.exp(at[case[left_out]] - self.skill[self.agents[left_out]]))
        return expected, self.scores[left_out]

    def _expect(
        self, information: Floats, renew: bool, scatter: Floats | None = None
    ) -> tuple[Floats, Floats, tuple[float, float, float]]:
        slope, curvature = np.zeros(len(self.skill)), np.zeros(len(self.skill))
        if renew:
            information[:] = 0.0
        moments = _integrate(
            self.agents,
            self.scores,
            self.starts,
            self.skill,
            self.spread,
            self.dispersion,
            *self._quadrature,
            self.mode,
            self.case_mean,
            self.case_deviation,
            slope,
            curvature,
            information,
            renew,
            np.zeros((0, 0)) if scatter is None else scatter,
        )
        if renew:
            information += np.tril(information, -1).T + np.diag(curvature)
            if scatter is not None:
                scatter += np.tril(scatter, -1).T
        return slope, curvature, moments


@numba.njit(cache=True)
def _integrate(
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
    slope: Floats,
    curvature: Floats,
    information: Floats,
    renew: bool,
    scatter: Floats,
) -> tuple[float, float, float]:
    """One pass over the cases: integrate each out, add its share to the arrays (lower triangles of the matrices).

    `slope` is the gradient of the log-likelihood in the skills, `curvature` its information were the difficulties
    known, `information` the observed one, `scatter` the sum of squares of the cases' gradients.
    Returns the sums of E[difficulty²], of E[(score - P)²] and of E[P (1 - P)].
    """
    precision = 1.0 / spread**2
    most = np.max(starts[1:] - starts[:-1])
    chance = np.empty((len(nodes), most))  # expected score by node and match
    weight, gradient, centre, able = np.empty(len(nodes)), np.empty(most), np.empty(most), np.empty(most)
    squares = residual = variance = 0.0
    for case in range(len(starts) - 1):
        first, n = starts[case], starts[case + 1] - starts[case]
        points = earned = 0.0
        for i in range(n):
            able[i] = skill[agents[first + i]]
            points += scores[first + i]
            earned += scores[first + i] * able[i]
        b = mode[case]
        flat = precision
        for _ in range(50):  # Newton to the most likely difficulty, from where it was in the last pass
            rise, flat = -b * precision - points / dispersion, precision
            for i in range(n):
                p = 1.0 / (1.0 + math.exp(b - able[i]))
                rise += p / dispersion
                flat += p * (1.0 - p) / dispersion
            move = max(-2.0, min(2.0, rise / flat))
            b += move
            if abs(move) < 1e-4:  # the quadrature need not be centred better
                break
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
        squares += square

        for i in range(n):
            a, score = agents[first + i], scores[first + i]
            expected = known = apart = 0.0
            for k in range(len(nodes)):
                p = chance[k, i]
                expected += weight[k] * p
                known += weight[k] * p * (1.0 - p)
                apart += weight[k] * (score - p) ** 2
            residual += apart
            variance += known
            gradient[i] = (score - expected) / dispersion
            centre[i] = expected
            slope[a] += gradient[i]
            curvature[a] += known / dispersion
        if renew:
            for i in range(n):
                # in place: what is left are deviations, scaled so that products of rows are covariances
                for k in range(len(nodes)):
                    chance[k, i] = (chance[k, i] - centre[i]) * math.sqrt(weight[k]) / dispersion
            for i in range(n):
                for j in range(n):
                    a, other = agents[first + i], agents[first + j]
                    if other > a:
                        continue
                    together = 0.0
                    for k in range(len(nodes)):
                        together += chance[k, i] * chance[k, j]
                    information[a, other] -= together
                    if len(scatter) > 0:
                        scatter[a, other] += gradient[i] * gradient[j]
    return squares, residual, variance
