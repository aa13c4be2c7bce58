"""A newcomer rated by maximum likelihood against test cases whose ratings stay as they are (AGI-Elo, section 2.2).

Ours, in place of the paper's update of one player: each difficulty is the normal distribution that the fit left of it,
and the newcomer's score on it is expected to be the mean of the logistic over that distribution. The rating is the
maximum of the likelihood of coins with these means; it is unique, because their logarithms are concave.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from merton.errors import InputError, UnknownNameError
from merton.rating.checking import NO_SCENES, Floats, MatchTable, Q, columns, extremes, table_of
from merton.rating.glicko import START_MEAN
from merton.rating.likelihood import EXTREME_LOSS, Estimate, Fit
from merton.statistics.means import freedom_of_shares, student

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

_FARTHEST = 40.0
"""Log-odds from the easiest and the hardest case, between which the maximum lies (6,949 Elo points)."""


@dataclass(frozen=True)
class _Expected:
    """Of each result at one skill: the expected score and what it lacks to 1, E[P (1 - P)], and the variance of P.

    E[P (1 - P)] is also the derivative of the expected score.
    """

    mean: Floats
    rest: Floats
    coin: Floats
    between: Floats

    @property
    def weight(self) -> Floats:
        """Of a surprise, the score less its expectation, in the gradient of the log-likelihood."""
        return self.coin / (self.mean * self.rest)


def newcomer_table(results: Iterable[tuple[str, float]], fitted: Fit, scene_of: Mapping[str, str]) -> MatchTable:
    """The results of one newcomer as matches.

    Raises:
        InputError: a result is not (case id, score in 0..1), a case stands twice, or there are no results.
        UnknownNameError: the fit has no such case.
    """
    cases, scores = map(list, columns("result", results, ("case id", "score")))
    table = table_of([""] * len(cases), cases, scores, scene_of)
    if not table.case_ids:
        raise InputError("placing an agent needs at least one result, got none")
    if len(table.case_ids) < len(cases):
        raise InputError(f"case {next(name for name in cases if cases.count(name) > 1)!r} has two scores; give one")
    if unknown := [case for case in table.case_ids if case not in fitted.cases]:
        raise UnknownNameError("test case", unknown[0], sorted(fitted.cases)[:10])
    return table


def place(results: Iterable[tuple[str, float]], fitted: Fit, scene_of: Mapping[str, str] = NO_SCENES) -> Estimate:
    """Rate one new agent against rated cases; no other rating changes, and there is no seed.

    The interval holds the scatter of its own scores, clustered by scene, and what is not known of each case. It is that
    of the rating among the agents and cases of this fit: the error of the scale's origin, which all of them share, is
    not in it. For a board, rate all matches again: those of the newcomer also change the ratings of the cases.

    Args:
        results: (case id, the agent's score in 0..1), at least one, each case at most once.
        scene_of: case id to scene, as for `checking.table_of`.

    Raises:
        InputError, UnknownNameError: as `newcomer_table`.
    """
    table = newcomer_table(results, fitted, scene_of)
    flag = extremes(table.agents, table.scores, 1)[0]
    n = len(table.scores)
    scores = table.scores
    if flag:
        scores = np.full(n, np.clip(scores.mean(), EXTREME_LOSS / n, 1.0 - EXTREME_LOSS / n))
    known = [fitted.cases[case] for case in table.case_ids]
    difficulty = Q * (np.array([case.mean for case in known])[table.cases] - START_MEAN)
    doubt = Q * np.array([case.deviation for case in known])[table.cases]

    def slope(skill: float) -> float:
        at = _expected(skill, difficulty, doubt)
        return float(np.sum(at.weight * (scores - at.mean)))

    skill = float(brentq(slope, difficulty.min() - _FARTHEST, difficulty.max() + _FARTHEST, xtol=1e-10))
    at = _expected(skill, difficulty, doubt)
    information = at.weight * at.coin
    own = float(np.sum(at.weight**2 * (fitted.dispersion * at.coin + at.between))) / float(information.sum()) ** 2
    deviation, width = _error(table, at.weight * (scores - at.mean), information, own)
    return Estimate(
        mean=START_MEAN + skill / Q,
        deviation=deviation / Q,
        matches=n,
        flag=flag,
        half_width=None if flag else width,
    )


def _expected(skill: float, difficulty: Floats, doubt: Floats) -> _Expected:
    ahead = skill - difficulty[:, None] - doubt[:, None] * _NODES
    chance, rest = expit(ahead), expit(-ahead)
    mean = chance @ _WEIGHTS
    return _Expected(mean, rest @ _WEIGHTS, (chance * rest) @ _WEIGHTS, ((chance - mean[:, None]) ** 2) @ _WEIGHTS)


def _error(table: MatchTable, gradient: Floats, information: Floats, own: float) -> tuple[float, float | None]:
    """Standard error in log-odds, and the half-width of the 95 % interval in such errors; None from one scene alone.

    Args:
        gradient, information: of each result.
        own: the variance that the model expects.
    """
    total = float(information.sum())
    _, scene = np.unique(table.clusters, return_inverse=True)
    share = np.bincount(scene, weights=information) / total
    if not table.has_scene.any():
        pulls = gradient / np.sqrt(1.0 - np.minimum(share[scene], 0.5))
        return math.sqrt(max(own, float(pulls @ pulls) / total**2)), float(student(math.inf))
    if len(share) == 1:
        return math.sqrt(own), None
    pulls = np.bincount(scene, weights=gradient) / np.sqrt(1.0 - share)
    deviation = math.sqrt(max(own, float(pulls @ pulls) / total**2))
    wide = float(student(freedom_of_shares(share))) * math.sqrt(float(pulls @ pulls)) / total
    return deviation, max(wide, float(student(math.inf)) * math.sqrt(own)) / deviation
