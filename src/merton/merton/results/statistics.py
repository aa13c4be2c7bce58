"""Means, their 95 % intervals, and ranks: the same on every board, report and page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard deviations."""

DIGITS = 6
"""Decimals of stored results; values that are equal to so many decimals share a rank."""

Interval = tuple[float, float]
"""Lower and upper end of a 95 % interval."""


@dataclass(frozen=True)
class Scatter:
    """The variance of a mean of scores, estimated with so many degrees of freedom."""

    variance: float
    freedom: float


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def wilson(successes: float, n: int, z: float = Z_95) -> Interval:
    """Wilson's score interval of a proportion, `z` standard errors wide; (0, 1) for n = 0 (Wilson 1927)."""
    if n == 0:
        return 0.0, 1.0
    share, shrink = successes / n, 1.0 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    # At the ends the interval touches the bound exactly; floating point would miss it by an ulp.
    return (0.0 if successes == 0 else center - half), (1.0 if successes == n else center + half)


def mean_interval(scores: ArrayLike, groups: ArrayLike) -> Interval:
    """95 % interval of a mean of scores in 0..1, within 0..1.

    Wilson's, with the groups, such as test cases, in place of trials: scores of one group are alike, so a case that was
    met twice counts once. No scores scatter more than coins of the same mean, most scatter less: then the variance is
    that of the groups' means, with Student's quantile (ours). Without any scatter (one group, or equal scores) it is a
    coin's, and so too wide rather than of no width.

    Args:
        scores: (n,) in 0..1, n >= 1.
        groups: (n,) integers.
    """
    center, n, scatter = float(np.mean(np.sort(scores))), len(np.unique(groups)), mean_scatter(scores, groups)
    return wilson(center * n, n, min(_coins(center, n, scatter), Z_95))


def mean_scatter(scores: ArrayLike, groups: ArrayLike) -> Scatter:
    """The `Scatter` of the mean of scores in 0..1, by groups that are alike; arguments as for `mean_interval`."""
    score, group = np.asarray(scores, float), np.asarray(groups)
    _, index, counts = np.unique(group, return_inverse=True, return_counts=True)
    excess, n = np.sort(np.bincount(index, weights=score - np.mean(np.sort(score)))), len(counts)
    return Scatter(float(excess @ excess) / len(score) ** 2 * n / max(n - 1, 1), max(n - 1, 1))


def total_interval(center: float, parts: Sequence[Scatter], n: int) -> tuple[Interval, Scatter]:
    """95 % interval of a mean of independent means in 0..1, within 0..1, and its scatter.

    Wilson's, with the variance of the parts in place of a coin's, and Student's quantile for its degrees of freedom
    (Welch 1947, Satterthwaite 1946). The quadrature of the parts' own intervals (MOVER) held 91 % with few cases each.

    Args:
        center: the mean.
        parts: of each mean, at least one.
        n: number of scores in all of them.
    """
    total = math.fsum(part.variance for part in parts)
    squares = math.fsum(part.variance**2 / part.freedom for part in parts)
    scatter = Scatter(total / len(parts) ** 2, total**2 / squares if squares else 1.0)
    return wilson(center * n, n, _coins(center, n, scatter)), scatter


def _coins(center: float, n: int, scatter: Scatter) -> float:
    """The width that Wilson's interval for n coins needs for that scatter, in standard errors; a coin's without any."""
    if scatter.variance < 1e-18 or not 0.0 < center < 1.0:
        return Z_95
    return float(stdtrit(scatter.freedom, 0.975)) * math.sqrt(scatter.variance * n / (center * (1.0 - center)))


def ranks(values: Iterable[float | None]) -> list[int | None]:
    """The rank of each value: 1 for the highest; values equal to `DIGITS` decimals share one; None for None."""
    rounded = [None if value is None else round(value, DIGITS) for value in values]
    rank: dict[float, int] = {}
    for place, value in enumerate(sorted((value for value in rounded if value is not None), reverse=True), start=1):
        rank.setdefault(value, place)
    return [None if value is None else rank[value] for value in rounded]
