"""The numbers behind the likelihood fit: cases integrated out, skills maximised, and their errors.

Index arrays and natural log-odds here; names, Elo points and warnings are in `merton.rating.likelihood`, whose model
this is. With skill a_i of agents, difficulty b of cases:

    E[S] = 1 / (1 + exp(b - a_i))        b normal, mean 0, standard deviation `spread`

Each case's integral over b is a sum over 11 points around its own most likely difficulty, as wide as the likelihood is
there (adaptive Gauss-Hermite quadrature). The skills climb by Newton's method, the two spreads by expectation and
maximisation (EM); all results on the cases are means under their posterior, from one pass over all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from merton.rating.checking import Floats, Integers
from merton.rating.integration import QUADRATURE, Integration

STEPS = 500
TOLERANCE = 1e-5
"""Log-odds, and relative change of the two spreads, below which the fit has converged (0.002 Elo points)."""

LEAP, MOST_LEAP, FARTHEST_LEAP = 8, 100.0, 0.5
"""Every how many steps the spread is extrapolated, by how many of its last step at most, and by what part of itself
(in the logarithm): where the matches leave the spread open, a longer leap ran away to 1e209."""

ASSUMED_CASES, ASSUMED_SPREAD = 2, 1.0
"""The spread of cases is estimated as if so many more cases, that far from the mean in log-odds (174 Elo points), were
known (a scaled inverse chi-squared prior). Ours: two agents' answers to ten cases fit any spread however large, and
with it any rating; with 100 cases it hardly matters."""

_LEAST_DISPERSION = 1e-3

_STEP = 0.02
"""Of the logarithm of the spread, in derivatives by central differences."""


@dataclass(frozen=True)
class Errors:
    """Standard errors of a fit, in log-odds, the spread of the cases being estimated from the same matches.

    Attributes:
        skills: (agents,).
        cases: (cases,).
        log_spread: of the logarithm of the spread; at most 1.
        skills_with_spread: (agents,) correlations of the errors of the skills with that of the spread.
    """

    skills: Floats
    cases: Floats
    log_spread: float
    skills_with_spread: Floats


class Marginal:
    """The state of a fit.

    Args:
        agents: (matches,) index of the agent; the matches are sorted by case.
        scores: (matches,) 0..1.
        starts: (cases + 1,) where each case's matches begin.
        n_agents: how many there are.
        coin: whether all scores are 0 or 1, so that the dispersion is 1 and needs no estimate.

    Attributes:
        skill: (agents,) log-odds.
        spread: standard deviation of the cases' difficulties.
        dispersion: variance of the scores over that of a coin.
        case_mean, case_deviation: (cases,) of the posterior of each difficulty, the skills being as they are.
    """

    def __init__(self, agents: Integers, scores: Floats, starts: Integers, n_agents: int, coin: bool) -> None:
        self.agents, self.scores, self.starts, self.coin = agents, scores, starts, coin
        count = np.bincount(agents, minlength=n_agents)
        share = (np.bincount(agents, weights=scores, minlength=n_agents) + 0.5) / (count + 1.0)
        self.skill = np.log(share / (1.0 - share))
        self.spread, self.dispersion = 1.0, 1.0
        self._integration = Integration(agents, scores, starts, n_agents)
        self.mode = self._integration.mode
        self.case_mean, self.case_deviation = self._integration.case_mean, self._integration.case_deviation

    def climb(self) -> bool:
        """Newton steps in the skills, EM steps in the two spreads; True if they converge within `STEPS`.

        EM steps in the cases' spread shrink by a constant ratio, which is close to 1 where little is known of it; so
        every few steps the rest of that geometric series is taken at once (Aitken's extrapolation).
        """
        size = len(self.skill)
        lost = len(self.scores) / max(len(self.scores) - size, 1)  # degrees of freedom that the skills took
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
            spread = math.sqrt((squares + ASSUMED_CASES * ASSUMED_SPREAD**2) / (len(self.mode) + ASSUMED_CASES))
            dispersion = 1.0 if self.coin else max(lost * residual / variance, _LEAST_DISPERSION)
            before, pace = pace, math.log(spread / self.spread)
            moved = max(float(np.abs(change).max()), abs(pace), abs(math.log(dispersion / self.dispersion)))
            if step % LEAP == 0 and 0.0 < (ratio := pace / before if before else 0.0) < 1.0:
                leap = pace * min(ratio / (1.0 - ratio), MOST_LEAP)
                spread *= math.exp(max(-FARTHEST_LEAP, min(FARTHEST_LEAP, leap)))
            self.skill = self.skill + change
            self.spread, self.dispersion = spread, dispersion
            if moved < TOLERANCE:
                return True
        return False

    def errors(self) -> Errors:
        """Standard errors of the skills, of the difficulties and of their spread; the dispersion counts as known.

        Skills, at a known spread: the sandwich's, clustered by case, or the model's if those are larger: the sandwich
        uses the scatter of an agent's own scores, which is zero after one match, or where all its scores are as
        expected. The spread: the curvature of the likelihood along the best skills for each spread. Its error is handed
        on to the skills that move with it. Difficulties: the posterior's variance, and the errors of the skills and of
        the spread that its mean inherits (Kass and Steffey 1989): with few agents a case cannot be known better than
        they are.
        """
        size, n_cases = len(self.skill), len(self.mode)
        pull = (self._at_spread(_STEP)[0] - self._at_spread(-_STEP)[0]) / (2.0 * _STEP)
        information, scatter = np.zeros((size, size)), np.zeros((size, size))
        self._expect(information, True, scatter)
        inverse = np.linalg.pinv(information, hermitian=True)
        covariance = inverse @ scatter @ inverse * (n_cases / max(n_cases - 1, 1))
        variance = np.maximum(np.diag(covariance), np.maximum(np.diag(inverse), 0.0))
        np.fill_diagonal(covariance, variance)

        moves = inverse @ pull  # of the best skills with the logarithm of the spread
        _, rise, means = self._at_spread(_STEP, moves)
        _, fall, other_means = self._at_spread(-_STEP, moves)
        self._expect(np.zeros((0, 0)), False)
        log_spread = max((fall - rise) / (2.0 * _STEP), 1.0) ** -0.5
        with_spread = moves * log_spread
        case_moves = (means - other_means) / (2.0 * _STEP)

        case = np.repeat(np.arange(n_cases), np.diff(self.starts))
        p = 1.0 / (1.0 + np.exp(self.case_mean[case] - self.skill[self.agents]))
        slopes = self.case_deviation[case] ** 2 * p * (1.0 - p) / self.dispersion  # of a difficulty's mean in a skill
        handed_on = _quadratic(self.agents, slopes, self.starts, covariance) + (case_moves * log_spread) ** 2
        skills = np.sqrt(variance + with_spread**2)
        return Errors(skills, np.sqrt(self.case_deviation**2 + handed_on), log_spread, with_spread / skills)

    def _at_spread(self, step: float, moves: Floats | float = 0.0) -> tuple[Floats, float, Floats]:
        """The log-likelihood's slopes in skills and logarithm of the spread, and the cases' means, at another spread.

        Its logarithm is larger by `step` there, and the skills are by `moves` times that.
        """
        skill, spread = self.skill, self.spread
        self.skill, self.spread = skill + moves * step, spread * math.exp(step)
        slopes, _, (squares, _, _) = self._expect(np.zeros((0, 0)), False)
        cases = len(self.mode) + ASSUMED_CASES
        rise = (squares + ASSUMED_CASES * ASSUMED_SPREAD**2) / self.spread**2 - cases
        self.skill, self.spread = skill, spread
        return slopes, rise, self.case_mean.copy()

    def cases_known(self) -> float:
        """The number of cases that the spread of cases rests on: the assumed ones, and a share of each real one.

        The share is that by which the matches of a case make its variance less than the spread's (its reliability).
        The degrees of freedom of a case's interval. Ours: with two or three agents a case, the normal's quantile held
        87 to 90 % of simulated difficulties, Student's with these holds 93 to 97 %.
        """
        return ASSUMED_CASES + float(np.sum(np.clip(1.0 - (self.case_deviation / self.spread) ** 2, 0.0, 1.0)))

    def weak_on_hard(self) -> tuple[Floats, Floats]:
        """Expected and real scores of the weaker half of the agents on cases judged by the stronger half alone.

        The scores of weak agents are thus not in the difficulty of a case, so without a guessing floor the two agree.
        """
        weak = np.zeros(len(self.skill), dtype=bool)
        weak[np.argsort(self.skill, kind="stable")[: len(weak) // 2]] = True
        left_out = weak[self.agents]
        case = np.repeat(np.arange(len(self.mode)), np.diff(self.starts))
        strong = Marginal(
            self.agents[~left_out],
            self.scores[~left_out],
            np.concatenate(([0], np.cumsum(np.bincount(case[~left_out], minlength=len(self.mode))))),
            len(self.skill),
            self.coin,
        )
        strong.skill, strong.spread, strong.dispersion = self.skill, self.spread, self.dispersion
        strong._expect(np.zeros((0, 0)), False)
        expected = np.zeros(int(left_out.sum()))
        nodes, log_weights = QUADRATURE
        for node, weight in zip(nodes, np.exp(log_weights - 0.5 * nodes**2) / math.sqrt(2.0 * math.pi), strict=True):
            at = strong.case_mean + node * strong.case_deviation
            expected += weight / (1.0 + np.exp(at[case[left_out]] - self.skill[self.agents[left_out]]))
        return expected, self.scores[left_out]

    def _expect(
        self, information: Floats, renew: bool, scatter: Floats | None = None
    ) -> tuple[Floats, Floats, tuple[float, float, float]]:
        """One pass over the cases; with `renew` the information, and scatter, become the whole symmetric matrices."""
        sums = self._integration.run(
            self.skill, self.spread, self.dispersion, information if renew else None, scatter if renew else None
        )
        if renew:
            information += np.tril(information, -1).T + np.diag(sums.curvature)
            if scatter is not None:
                scatter += np.tril(scatter, -1).T
        return sums.slope, sums.curvature, (sums.squares, sums.residual, sums.variance)


@numba.njit(cache=True)
def _quadratic(agents: Integers, slopes: Floats, starts: Integers, covariance: Floats) -> Floats:
    """For each case the variance of the sum of its slopes times its agents' skills."""
    found = np.zeros(len(starts) - 1)
    for case in range(len(found)):
        for i in range(starts[case], starts[case + 1]):
            for j in range(starts[case], starts[case + 1]):
                found[case] += slopes[i] * slopes[j] * covariance[agents[i], agents[j]]
        found[case] = max(found[case], 0.0)
    return found
