"""Score functions: between a task's own metric and the score of a match in 0..1, both ways (AGI-Elo, eq. 4, 5)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from merton.errors import InputError, UnknownNameError

_CHECKED = 1001  # points at which a user's map is checked


@dataclass(frozen=True)
class Metric:
    """A task's own metric and its invertible map to match scores.

    Attributes:
        name: of the metric, for people.
        worst, best: its ends in its own unit; `worst` is the larger one where less is better.
        to_score: strictly monotone on [worst, best], into 0..1. Build one with `linear` or `monotone`.
    """

    name: str
    worst: float
    best: float
    to_score: Callable[[float], float]

    def score(self, value: float) -> float:
        """The match score in 0..1 of a value of the metric; InputError outside the metric's ends."""
        low, high = sorted((self.worst, self.best))
        if not low <= value <= high:  # NaN is not
            raise InputError(f"{self.name} must be in {low:g}..{high:g}, got {value!r}")
        return min(max(float(self.to_score(value)), 0.0), 1.0)

    def value(self, score: float) -> float:
        """The metric's value for a match score; one that the metric cannot reach becomes its nearer end.

        Raises:
            InputError: `score` is NaN or outside 0..1.
        """
        if not 0.0 <= score <= 1.0:
            raise InputError(f"a match score must be in 0..1, got {score!r}")
        if score <= self.to_score(self.worst):
            return self.worst
        if score >= self.to_score(self.best):
            return self.best
        return float(brentq(lambda value: self.to_score(value) - score, self.worst, self.best, xtol=1e-12, rtol=1e-14))


def linear(name: str, worst: float, best: float) -> Metric:
    """A metric whose worst value scores 0 and whose best scores 1; `worst` > `best` where less is better.

    With `worst` set to the value of guessing, guessing scores 0, which removes a guessing floor.

    Raises:
        InputError: an end is not finite, or they are equal.
    """
    _check_ends(name, worst, best)
    return Metric(name, float(worst), float(best), lambda value: (value - worst) / (best - worst))


def monotone(name: str, worst: float, best: float, to_score: Callable[[float], float]) -> Metric:
    """A metric with any monotone map, such as `lambda seconds: math.exp(-seconds / 10)` with worst 60 and best 0.

    Raises:
        InputError: an end is not finite, they are equal, or the map leaves 0..1 or does not rise everywhere from
            worst to best (checked at 1001 points).
    """
    _check_ends(name, worst, best)
    scores = np.array([float(to_score(float(value))) for value in np.linspace(worst, best, _CHECKED)])
    if not ((scores >= 0.0) & (scores <= 1.0)).all():
        raise InputError(f"the score function of {name} must stay in 0..1, got {scores.min():g}..{scores.max():g}")
    if not (np.diff(scores) > 0.0).all():
        raise InputError(f"the score function of {name} must rise everywhere from {worst:g} to {best:g}")
    return Metric(name, float(worst), float(best), to_score)


def _check_ends(name: str, worst: float, best: float) -> None:
    if not (math.isfinite(worst) and math.isfinite(best)) or worst == best:
        raise InputError(f"the ends of {name} must be two different finite numbers, got {worst!r} and {best!r}")


METRICS = {
    metric.name: metric
    for metric in (
        linear("execution", 0.0, 100.0),
        linear("cognition", 0.0, 5.0),
        linear("decision", 0.0, 5.0),
        linear("accuracy", 0.0, 1.0),
    )
}
"""The metrics of the papers by name: Embodied-IQA's three (cognition and decision as its sum over five tasks)."""


def named(name: str) -> Metric:
    """The metric of that name; UnknownNameError lists the others."""
    if name not in METRICS:
        raise UnknownNameError("metric", name, METRICS)
    return METRICS[name]
