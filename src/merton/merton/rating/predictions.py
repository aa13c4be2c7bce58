"""Predictions from ratings: an agent's score on a case, the cases beyond it, and its distance from mastering the task.

Predictions use the plain logistic without the Glicko impact factor (AGI-Elo, section 3.4). They work on ratings of
either method, `agi_elo.Rating` or `likelihood.Estimate`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from scipy.special import chdtri, ndtri

from merton.errors import InputError, UnknownNameError
from merton.rating.checking import Q, checked_rating
from merton.rating.glicko import START_MEAN
from merton.rating.likelihood import Fit
from merton.rating.metric import Metric
from merton.statistics.intervals import ENDS, Interval

MASTERY = (0.5, 0.9, 0.99)
"""The scores whose oracles AGI-Elo reports."""

LEAST_FREEDOM = 15.0
"""Of the spread of the cases, for an interval of the gap to a share of them. With less (`Fit.spread_freedom`), it held
up to 98 % of simulated gaps and was 900 to 3,000 points wide. As many scenes, and one more, are needed too."""

NOT_OF_THE_HARDEST = (
    "It depends on one extreme case, and the matches do not tell which case is the hardest: an interval around the one "
    "rated highest held the hardest in 2 to 97 % of simulated studies."
)
NOT_OF_ONE_SCENE = "The agent met one scene alone, and nothing tells how another one would turn out."
NOT_OF_A_BOUND = "The agent's rating is a bound and no estimate, so the gap is a bound too."


class Rated(Protocol):
    """A rating with its uncertainty, Elo points."""

    @property
    def mean(self) -> float:
        """The rating."""

    @property
    def deviation(self) -> float:
        """Its standard deviation."""


@dataclass(frozen=True)
class Gap:
    """The distance of an agent from scoring `p` on the cases that matter, Elo points.

    Attributes:
        p: score of mastery, 0..1.
        quantile: which case is meant: 1 for the hardest, 0.99 for one that 99 % of the cases are easier than.
        oracle: the rating that scores `p` on it.
        gap: oracle less the agent's rating; negative if the agent is better than that.
        interval: 95 % of `gap`; None where none holds.
        no_interval: why there is no interval, one sentence; empty if there is one.
    """

    p: float
    quantile: float
    oracle: float
    gap: float
    interval: Interval | None
    no_interval: str = ""


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


def gap_to_hardest(agent_rating: float, hardest_case_rating: float, p: float) -> Gap:
    """The paper's `gap` as a `Gap`, which has no interval; InputError as there."""
    oracle_rating, found = oracle(hardest_case_rating, p), gap(agent_rating, hardest_case_rating, p)
    return Gap(p, 1.0, oracle_rating, found, None, NOT_OF_THE_HARDEST)


def gap_to_share(fitted: Fit, agent: str, p: float, share: float) -> Gap:
    """The gap to a case that a share of all cases of this kind are easier than, with its 95 % interval (ours).

    The case is a quantile of the fitted normal distribution of difficulties. The ratings of the cases would not do:
    they are shrunk towards 1500, the more the fewer agents a case met, and their quantile came out 190 to 320 points
    small with 3 to 7 agents. The interval holds the errors of the agent's rating and of the spread of the cases, which
    has the limits of a variance with `Fit.spread_freedom` degrees of freedom; the two errors are correlated, and add
    as MOVER has it (Zou and Donner 2008). It rests on difficulties that are normally distributed.

    Args:
        fitted: ratings of all agents and cases.
        agent: one of its ids.
        p: score of mastery, strictly between 0 and 1.
        share: of the cases to master, strictly between 0 and 1.

    Raises:
        InputError: `p` or `share` is outside its range.
        UnknownNameError: the fit has no such agent.
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"the share of cases to master must lie strictly between 0 and 1, got {share!r}")
    if agent not in fitted.agents:
        raise UnknownNameError("agent", agent, sorted(fitted.agents)[:10])
    rating, reach = fitted.agents[agent], float(ndtri(share))
    target = START_MEAN + reach * fitted.case_spread
    oracle_rating, found = oracle(target, p), gap(rating.mean, target, p)
    if rating.half_width is None:
        return Gap(p, share, oracle_rating, found, None, NOT_OF_A_BOUND if rating.flag else NOT_OF_ONE_SCENE)
    freedom = fitted.spread_freedom
    if (known := min(freedom, fitted.scenes - 1)) < LEAST_FREEDOM:
        reason = (
            f"The matches tell how much the cases differ only as well as {known:.0f} cases of known difficulty; "
            f"with fewer than {LEAST_FREEDOM:.0f} no interval is sharp and holds in 93 to 97 % of simulated studies."
        )
        return Gap(p, share, oracle_rating, found, None, reason)
    least, most = (math.sqrt(freedom / float(chdtri(freedom, tail))) for tail in ENDS)
    ends = sorted((reach * fitted.case_spread * least, reach * fitted.case_spread * most))
    below, above = target - START_MEAN - ends[0], ends[1] - (target - START_MEAN)
    half, together = rating.half_width * rating.deviation, math.copysign(1.0, reach) * rating.with_spread
    return Gap(
        p,
        share,
        oracle_rating,
        found,
        Interval(found - _difference(below, half, together), found + _difference(above, half, together)),
    )


def _difference(one: float, other: float, correlation: float) -> float:
    """The distance to a limit of a difference, by the distances of its two terms (MOVER)."""
    return math.sqrt(max(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
