"""Predictions from ratings: an agent's score on a case, the cases beyond it, and its distance from mastering the task.

Predictions use the plain logistic without the Glicko impact factor (AGI-Elo, section 3.4). They work on ratings of
either method, `agi_elo.Rating` or `likelihood.Estimate`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import nctdtrit, ndtri

from merton.errors import InputError
from merton.rating.checking import Q, checked_rating
from merton.rating.metric import Metric
from merton.results.statistics import Z_95

MASTERY = (0.5, 0.9, 0.99)
"""The scores whose oracles AGI-Elo reports."""


class Rated(Protocol):
    """A rating with its uncertainty, Elo points."""

    @property
    def mean(self) -> float:
        """The rating."""

    @property
    def deviation(self) -> float:
        """Its standard deviation."""

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""


@dataclass(frozen=True)
class Gap:
    """The distance of an agent from scoring `p` on the cases that matter, Elo points.

    Attributes:
        p: score of mastery, 0..1.
        quantile: which case is meant: 1 for the hardest, 0.99 for one that 99 % of the cases are easier than.
        oracle: the rating that scores `p` on it.
        gap: oracle less the agent's rating; negative if the agent is better than that.
        interval: 95 % of `gap`.
    """

    p: float
    quantile: float
    oracle: float
    gap: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class Target:
    """The case to master, Elo points: the rating at a quantile of the cases, and its 95 % interval below and above."""

    quantile: float
    mean: float
    below: float
    above: float


def predicted_score(agent_rating: float, case_rating: float) -> float:
    """The score in 0..1 to expect of an agent on a case: 1 / (1 + 10^((case - agent) / 400)).

    Raises:
        InputError: a rating is not finite, or beyond a million.
    """
    difference = checked_rating("agent's", agent_rating) - checked_rating("case's", case_rating)
    return 0.5 * (1.0 + math.tanh(0.5 * Q * difference))


def predicted_value(agent_rating: float, case_rating: float, metric: Metric) -> float:
    """The same in the task's own metric (AGI-Elo, eq. 10); InputError as for `predicted_score`."""
    return metric.value(predicted_score(agent_rating, case_rating))


def long_tail(agent_rating: float, cases: Mapping[str, Rated], threshold: float, metric: Metric) -> tuple[str, ...]:
    """The cases on which the agent is expected to stay worse than `threshold` (AGI-Elo, eq. 11), hardest first.

    Args:
        agent_rating: Elo points.
        threshold: in the unit of `metric`.

    Raises:
        InputError: the threshold lies outside the metric, or a rating is not usable.
    """
    least = metric.score(threshold)
    beyond = [name for name, case in cases.items() if predicted_score(agent_rating, case.mean) < least]
    return tuple(sorted(beyond, key=lambda name: (-cases[name].mean, name)))


def oracle(hardest_case_rating: float, p: float) -> float:
    """The rating that scores `p` on the hardest case: R_hardest + 400 log10(p / (1 - p)) (AGI-Elo, eq. 12).

    Raises:
        InputError: `p` is not strictly between 0 and 1, or the rating is not finite or beyond a million.
    """
    if not 0.0 < p < 1.0:
        raise InputError(f"the score of mastery must lie strictly between 0 and 1, got {p!r}")
    return checked_rating("hardest case's", hardest_case_rating) + 400.0 * math.log10(p / (1.0 - p))


def gap(agent_rating: float, hardest_case_rating: float, p: float) -> float:
    """Elo points the agent lacks to score `p` on the hardest case; negative if it already does better (eq. 13).

    Raises:
        InputError: `p` is not strictly between 0 and 1, or a rating is not finite or beyond a million.
    """
    return oracle(hardest_case_rating, p) - checked_rating("agent's", agent_rating)


def gap_with_interval(agent: Rated, cases: Collection[Rated], p: float, quantile: float = 1.0) -> Gap:
    """The gap to mastery with its 95 % interval.

    With quantile 1 it is the paper's: it depends on one extreme case, and the interval covers the errors of that case
    and of the agent, but not that another case might be the hardest. A quantile below 1 is ours: it asks for mastery of
    that share of the task; its interval covers the sampling of the cases (the order statistics that cover the quantile
    in 95 % of samples) and the agent's deviation. With too few cases for that (fewer than some 380 for 0.99) the upper
    end is that of a normal distribution's quantile (ours: difficulties are normal in the likelihood fit).

    Args:
        cases: ratings of all cases, at least one.
        p: score of mastery, strictly between 0 and 1.
        quantile: share of the cases to master, above 0 and at most 1.

    Raises:
        InputError: there are no cases, or an argument is outside its range.
    """
    return gap_to(agent, target(cases, quantile), p)


def target(cases: Collection[Rated], quantile: float = 1.0) -> Target:
    """The case that `gap_with_interval` is about; found once, it serves for any number of agents.

    Raises:
        InputError: there are no cases, or the quantile is not above 0 and at most 1.
    """
    if not cases:
        raise InputError("a gap to mastery needs at least one rated case, got none")
    if not 0.0 < quantile <= 1.0:
        raise InputError(f"the quantile of cases must lie above 0 and at most at 1, got {quantile!r}")
    ordered = sorted(cases, key=lambda case: (case.mean, case.deviation))
    means = [checked_rating("case's", case.mean) for case in ordered]
    n = len(means)
    if quantile == 1.0 or n == 1:
        low, high = ordered[-1].interval
        return Target(quantile, means[-1], means[-1] - low, high - means[-1])
    mean = float(np.quantile(means, quantile))
    reach = Z_95 * math.sqrt(n * quantile * (1.0 - quantile))
    low = means[max(math.floor(n * quantile - reach) - 1, 0)]
    above = math.ceil(n * quantile + reach)
    high = means[above] if above < n else max(means[-1], _normal_limit(means, ordered, quantile))
    return Target(quantile, mean, max(mean - low, 0.0), max(high - mean, 0.0))


def _normal_limit(means: Sequence[float], cases: Sequence[Rated], quantile: float) -> float:
    """Upper 97.5 % limit of a normal distribution's quantile by a sample of it (noncentral t; Owen 1968).

    The variance of the difficulties is that of their ratings and of the errors of these.
    """
    n = len(means)
    spread = math.sqrt(float(np.var(means, ddof=1)) + float(np.mean([case.deviation**2 for case in cases])))
    reach = float(nctdtrit(n - 1, math.sqrt(n) * float(ndtri(quantile)), 0.975))
    return float(np.mean(means)) + spread * reach / math.sqrt(n)


def gap_to(agent: Rated, target: Target, p: float) -> Gap:
    """The gap of `gap_with_interval` to a case that was found before; InputError as there."""
    half = Z_95 * agent.deviation
    found = gap(agent.mean, target.mean, p)
    return Gap(
        p,
        target.quantile,
        oracle(target.mean, p),
        found,
        (found - math.hypot(target.below, half), found + math.hypot(target.above, half)),
    )
