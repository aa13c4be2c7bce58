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
from itertools import pairwise

import numba
import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array, csr_array

from merton.rating.checking import Floats, Integers
from merton.rating.integration import QUADRATURE, Integration
from merton.statistics.means import freedom_of_shares, student

STEPS = 500
TOLERANCE = 1e-5
"""Log-odds, and relative change of the two spreads, below which the fit has converged (0.002 Elo points)."""

LEAP, MOST_LEAP, FARTHEST_LEAP = 8, 100.0, 0.5
"""Every how many steps the spread is extrapolated, by how many of its last step at most, and by what part of itself
(in the logarithm): where the matches leave the spread open, a longer leap ran away to 1e209."""

MOST_SPREAD = 30.0
"""Log-odds (5,212 Elo points): where the matches fit a larger spread of the cases better still, as those of agents that
agree may, the fit ends there. Ours: without an end it ran on until its sums were no numbers."""

ASSUMED_CASES, ASSUMED_SPREAD = 2, 1.0
"""The spread of cases is estimated as if so many more cases, that far from the mean in log-odds (174 Elo points), were
known (a scaled inverse chi-squared prior). Ours: two agents' answers to ten cases fit any spread however large, and
with it any rating; with 100 cases it hardly matters."""

_LEAST_DISPERSION = 1e-3

_ALONE = 1e-9
"""Of an agent's matches at least this share is in other scenes, or it met one scene alone."""

_STEP = 0.02
"""Of the logarithm of the spread, in derivatives by central differences."""


@dataclass(frozen=True)
class Errors:
    """Standard errors of a fit, in log-odds, the spread of the cases being estimated from the same matches.

    Attributes:
        skills: (agents,).
        skill_widths: (agents,) half-widths of their 95 % intervals; NaN where there is none.
        cases: (cases,).
        case_widths: (cases,) half-widths of their 95 % intervals.
        log_spread: of the logarithm of the spread; at most 1.
        skills_with_spread: (agents,) correlations of the errors of the skills with that of the spread.
    """

    skills: Floats
    skill_widths: Floats
    cases: Floats
    case_widths: Floats
    log_spread: float
    skills_with_spread: Floats


class Marginal:
    """The state of a fit.

    Args:
        agents: (matches,) index of the agent; the matches are sorted by case, those of a case by agent.
        scores: (matches,) 0..1.
        starts: (cases + 1,) where each case's matches begin.
        n_agents: number of agents.
        coin: whether all scores are 0 or 1, so that the dispersion is 1 and needs no estimate.
        scenes: (cases,) index of each case's scene; the errors are clustered by it.

    Attributes:
        skill: (agents,) log-odds.
        spread: standard deviation of the cases' difficulties.
        dispersion: variance of the scores over that of a coin.
        case_mean, case_deviation: (cases,) of the posterior of each difficulty, the skills being as they are.
    """

    def __init__(
        self, agents: Integers, scores: Floats, starts: Integers, n_agents: int, coin: bool, scenes: Integers
    ) -> None:
        self.agents, self.scores, self.starts, self.coin, self.scenes = agents, scores, starts, coin, scenes
        count = np.bincount(agents, minlength=n_agents)
        share = (np.bincount(agents, weights=scores, minlength=n_agents) + 0.5) / (count + 1.0)
        self.skill = np.log(share / (1.0 - share))
        self.spread, self.dispersion = 1.0, 1.0
        self._integration = Integration(agents, scores, starts, n_agents)
        self.mode = self._integration.mode
        self.case_mean, self.case_deviation = self._integration.case_mean, self._integration.case_deviation

    def climb(self) -> bool:
        """Newton steps in the skills, EM steps in the two spreads; True if they end within `STEPS`.

        They end where they converge, and where the spread passes `MOST_SPREAD`, at which it then stays.

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
            self.spread, self.dispersion = min(spread, MOST_SPREAD), dispersion
            if moved < TOLERANCE or spread > MOST_SPREAD:
                return True
        return False

    def errors(self) -> Errors:
        """Standard errors of the skills, of the difficulties and of their spread; the dispersion counts as known.

        Skills, at a known spread: the sandwich's, clustered by scene (`_by_scene`), or the model's if those are larger:
        the sandwich uses the scatter of an agent's own scores, which is zero after one match, or where all its scores
        are as expected. The spread: the curvature of the likelihood along the best skills for each spread, or the
        scatter of the scenes' slopes in it if that is larger. Its error is handed on to the skills that move with it.
        Difficulties: the posterior's variance, and the errors of the skills and of the spread that its mean inherits
        (Kass and Steffey 1989): with few agents a case cannot be known better than they are.

        Student's quantile is for agents that met several cases of a scene. Where each case is a scene of its own, the
        model's error holds besides, and the larger of the two with Student's held up to 99 % of simulated skills.
        """
        size, n_cases = len(self.skill), len(self.mode)
        pull = (self._at_spread(_STEP)[0] - self._at_spread(-_STEP)[0]) / (2.0 * _STEP)
        information, by_match = np.zeros((size, size)), np.empty((2, len(self.scores)))
        self._expect(information, True, by_match)
        rises = (self.case_deviation**2 + self.case_mean**2) / self.spread**2 - 1.0
        inverse = np.linalg.pinv(information, hermitian=True)
        slopes, shares = self._by_scene(by_match)
        covariance = inverse @ (slopes.T @ slopes).toarray() @ inverse
        sandwich, own = np.diag(covariance).copy(), np.maximum(np.diag(inverse), 0.0)
        np.fill_diagonal(covariance, np.maximum(sandwich, own))

        moves = inverse @ pull  # of the best skills with the logarithm of the spread
        _, rise, means = self._at_spread(_STEP, moves)
        _, fall, other_means = self._at_spread(-_STEP, moves)
        self._expect(np.zeros((0, 0)), False)
        curvature = max((fall - rise) / (2.0 * _STEP), 1.0)
        by_scene = slopes @ moves + np.bincount(self.scenes, weights=rises)
        log_spread = min(max(curvature**-0.5, float(np.linalg.norm(by_scene)) / curvature), 1.0)
        with_spread = moves * log_spread
        case_moves = (means - other_means) / (2.0 * _STEP)

        case = np.repeat(np.arange(n_cases), np.diff(self.starts))
        p = 1.0 / (1.0 + np.exp(self.case_mean[case] - self.skill[self.agents]))
        slope = self.case_deviation[case] ** 2 * p * (1.0 - p) / self.dispersion  # of a difficulty's mean in a skill
        handed_on = _quadratic(self.agents, slope, self.starts, covariance) + (case_moves * log_spread) ** 2
        skills = np.sqrt(np.diag(covariance) + with_spread**2)
        met_scenes, met_cases = np.diff(shares.indptr), self._cases_met()
        freedom = np.where(met_scenes == met_cases, math.inf, self._freedoms(shares))
        widths = np.fmax(
            student(freedom) * np.sqrt(sandwich + with_spread**2), student(math.inf) * np.sqrt(own + with_spread**2)
        )
        cases = np.sqrt(self.case_deviation**2 + handed_on)
        known, of_skills = self.cases_known(), float(np.nanmin(freedom, initial=math.inf))
        case_freedom = cases**4 / (self.case_deviation**4 / known + handed_on**2 / of_skills)
        return Errors(
            skills,
            np.where((met_scenes == 1) & (met_cases > 1), np.nan, widths),
            cases,
            np.full(n_cases, np.nan) if self.scenes.max() == 0 < n_cases - 1 else student(case_freedom) * cases,
            log_spread,
            with_spread / skills,
        )

    def _by_scene(self, by_match: Floats) -> tuple[csr_array, csc_array]:
        """(scenes, agents): the scene's gradient in each skill, and its share of what is known of the skill.

        The gradients are stretched for that share, as CR2 does (Bell and McCaffrey 2002): a rating follows the scenes
        it was made from, most of all those with most of its matches.
        """
        place = np.repeat(self.scenes, np.diff(self.starts)), self.agents
        shape = int(self.scenes.max()) + 1, len(self.skill)
        slopes, weights = (csr_array((part, place), shape=shape) for part in by_match)  # sums each scene's matches
        known = np.bincount(self.agents, weights=by_match[1], minlength=len(self.skill))
        weights.data /= known[weights.indices]
        left = 1.0 - weights.data
        slopes.data /= np.sqrt(np.where(left > _ALONE, left, 1.0))
        return slopes, csc_array(weights)

    def _freedoms(self, shares: csc_array) -> Floats:
        """(agents,) degrees of freedom of the sandwich; NaN for an agent of one scene, which shows no scatter."""
        ends = shares.indptr
        columns = (shares.data[first:last] for first, last in pairwise(ends))
        return np.array([freedom_of_shares(own) if own.max() < 1.0 - _ALONE else np.nan for own in columns])

    def _cases_met(self) -> Integers:
        """(agents,) how many different cases each agent met."""
        case = np.repeat(np.arange(len(self.mode)), np.diff(self.starts))
        is_first = np.append(True, (np.diff(case) != 0) | (np.diff(self.agents) != 0))  # sorted by case, then agent
        return np.bincount(self.agents[is_first], minlength=len(self.skill))

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

        The share is that by which the matches of a case make its variance less than the spread's (its reliability); in
        all, not more than one for each scene.
        The degrees of freedom of a case's interval. Ours: with two or three agents a case, the normal's quantile held
        87 to 90 % of simulated difficulties, Student's with these holds 93 to 97 %.
        """
        shares = np.clip(1.0 - (self.case_deviation / self.spread) ** 2, 0.0, 1.0)
        return ASSUMED_CASES + min(float(np.sum(shares)), float(len(np.unique(self.scenes))))

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
            self.scenes,
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
        self, information: Floats, renew: bool, by_match: Floats | None = None
    ) -> tuple[Floats, Floats, tuple[float, float, float]]:
        """One pass over the cases; with `renew` the information becomes the whole symmetric matrix."""
        sums = self._integration.run(self.skill, self.spread, self.dispersion, information if renew else None, by_match)
        if renew:
            information += np.tril(information, -1).T + np.diag(sums.curvature)
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
