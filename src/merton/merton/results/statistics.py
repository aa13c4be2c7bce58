"""Means, their 95 % intervals, and ranks: the same on every board, report and page."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard deviations."""

DIGITS = 6
"""Decimals of stored results; values that are equal to so many decimals share a rank."""

Interval = tuple[float, float]
"""Lower and upper end of a 95 % interval."""


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
    score, group = np.asarray(scores, float), np.asarray(groups)
    _, index, counts = np.unique(group, return_inverse=True, return_counts=True)
    center, n = float(np.mean(np.sort(score))), len(counts)
    excess = np.sort(np.bincount(index, weights=score - center))
    scatter = float(excess @ excess) / len(score) ** 2  # of the mean
    if n == 1 or scatter < 1e-18:
        return wilson(center * n, n)
    to_coin = math.sqrt(scatter * n / (n - 1) / (center * (1.0 - center) / n))
    return wilson(center * n, n, min(float(stdtrit(n - 1, 0.975)) * to_coin, Z_95))


def ranks(values: Iterable[float | None]) -> list[int | None]:
    """The rank of each value: 1 for the highest; values equal to `DIGITS` decimals share one; None for None."""
    rounded = [None if value is None else round(value, DIGITS) for value in values]
    rank: dict[float, int] = {}
    for place, value in enumerate(sorted((value for value in rounded if value is not None), reverse=True), start=1):
        rank.setdefault(value, place)
    return [None if value is None else rank[value] for value in rounded]
