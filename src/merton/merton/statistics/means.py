"""Means, their 95 % intervals, and ranks: the same on every board, report and page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from merton.statistics.intervals import ENDS, Interval

Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard deviations."""

DIGITS = 6
"""Decimals of stored results; values that are equal to so many decimals share a rank."""

Floats = NDArray[np.float64]

NO_VARIANCE = 1e-18
"""A smaller variance is rounding."""


@dataclass(frozen=True)
class Scatter:
    """The variance of a mean of scores, estimated with so many degrees of freedom (infinite for a known bound)."""

    variance: float
    freedom: float

    @property
    def half_width(self) -> float:
        """Of the mean's 95 % interval by Student's t."""
        return float(student(self.freedom)) * math.sqrt(self.variance)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def wilson(successes: float, n: float, z: float = Z_95) -> Interval:
    """Wilson's score interval of a proportion, `z` standard errors wide; (0, 1) for n = 0 (Wilson 1927)."""
    if n == 0:
        return Interval(0.0, 1.0)
    share, shrink = successes / n, 1.0 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    # At the ends the interval touches the bound exactly; floating point would miss it by an ulp.
    return Interval(0.0 if successes == 0 else center - half, 1.0 if successes == n else center + half)


def student(freedom: ArrayLike, end: float = ENDS[1]) -> Floats:
    """Half-widths in estimated standard deviations of the interval whose upper end is that quantile, 95 % by default.

    For infinite degrees of freedom they are `Z_95`, or the normal distribution's quantile.
    """
    return np.asarray(stdtrit(freedom, end))


def fisher_z(value: ArrayLike, ratings: float = 2.0) -> Floats:
    """Fisher's transform, in which a coefficient scatters alike at every value.

    Of a correlation it is the inverse hyperbolic tangent (1921); of an agreement of k ratings of an item it is
    log((1 + (k - 1) value) / (1 - value)) / 2 (1925, section 39), which for two is the same.

    Args:
        value: of any shape. Infinite or NaN outside of -1 / (ratings - 1) < value < 1.
        ratings: of an item.
    """
    coefficient = np.asarray(value, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        if ratings == 2.0:
            return np.asarray(np.arctanh(coefficient))
        return np.asarray(0.5 * np.log((1.0 + (ratings - 1.0) * coefficient) / (1.0 - coefficient)))


def from_fisher_z(z: ArrayLike, ratings: float = 2.0) -> Floats:
    """The inverse of `fisher_z`."""
    if ratings == 2.0:
        return np.asarray(np.tanh(z))
    grown = np.expm1(2.0 * np.asarray(z, float))
    return np.asarray(grown / (grown + ratings))


def middle(draws: ArrayLike) -> Interval:
    """The two draws (n,), n >= 1, between which the middle 95 % of them lie; NaN is not allowed, infinities are."""
    low, high = np.quantile(np.asarray(draws, float), ENDS, method="nearest")
    return Interval(float(low), float(high))


def mean_interval(
    scores: ArrayLike,
    clusters: ArrayLike,
    columns: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    end: float = ENDS[1],
) -> Interval:
    """95 % interval of a mean of scores in 0..1, within 0..1, where scores of one cluster are alike.

    Wilson's, with the variance of `mean_scatter` in place of a coin's and Student's quantile for its degrees of freedom
    (ours), but never wider than for one coin a cluster: no scores scatter more. Of a single cluster nothing is known
    but the range: (0, 1). Clusters without any scatter may only mean that the odd one was not met, so as many as
    `wilson` allows for none in n may have any other mean.

    Args:
        scores: (n,) in 0..1, n >= 1.
        clusters: (n,) the unit that was sampled, such as the scene of each trial; comparable values of any type.
        columns: (n,) as for `mean_scatter`.
        weights: (n,) > 0, how much each score counts in the mean; 1 by default.
        end: the quantile of the upper end, above .5, in place of 95 %'s: nearer to 1 where many means are compared.
    """
    shares, totals = shares_of(scores, clusters, columns, weights)
    center = min(max(float(totals.sum() / totals.shape[1]), 0.0), 1.0)
    scatter, n = _scatter(shares, totals), 1.0 / float(np.sum(shares.mean(axis=1) ** 2))
    if len(shares) == 1:
        return Interval(0.0, 1.0)
    z = float(ndtri(end))
    if scatter.variance < NO_VARIANCE:
        unseen = wilson(0, n, z)[1]
        return Interval(center - unseen * center, center + unseen * (1.0 - center))
    return wilson(center * n, n, min(_coins(center, n, scatter, end), z))


def mean_scatter(scores: ArrayLike, clusters: ArrayLike, columns: ArrayLike | None = None) -> Scatter:
    """The `Scatter` of the mean of scores in 0..1, where scores of one cluster are alike.

    The cluster-robust variance CR2 with the degrees of freedom of Bell and McCaffrey (2002), for clusters whose scores
    are all but equal (Pustejovsky and Tipton 2018): with equally many scores each it is the variance of the clusters'
    means over their number, with clusters - 1 degrees of freedom; where few clusters have most of the scores there are
    fewer. Of a single cluster it is the most that scores in 0..1 can have.

    Args:
        scores: (n,) in 0..1, n >= 1.
        clusters: (n,) the unit that was sampled, such as the scene of each trial.
        columns: (n,) the column of each score, if the mean is that of the columns' means; a cluster may have scores in
            several of them. Where a column has one cluster alone, the differences of columns count as scatter
            (collapsed strata, Cochran 1977, section 5A.12): rather too much than none.
    """
    return _scatter(*shares_of(scores, clusters, columns))


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
    scatter = Scatter(total / len(parts) ** 2, total**2 / squares if squares else math.inf)
    return wilson(center * n, n, _coins(center, n, scatter)), scatter


def freedom_of_shares(shares: ArrayLike) -> float:
    """Degrees of freedom of the variance of an estimate to which clusters contribute these shares; see `mean_scatter`.

    Args:
        shares: (clusters,) or (clusters, columns), each column's sum 1; at least two clusters of a column not 0.
    """
    share = np.asarray(shares, float)
    share = share.reshape(len(share), -1)
    pull = share / np.sqrt(1.0 - share)  # of a cluster's own part, as CR2 stretches it
    own = pull.sum(axis=1)
    # The residuals are F times the clusters' effects, F = diag(own) - pull share^T; below the traces of F F^T squared.
    left = np.hstack((own[:, None] * share, pull))
    none, one = np.zeros((share.shape[1],) * 2), np.eye(share.shape[1])
    middle = np.block([[none, -one], [-one, share.T @ share]])
    first = middle @ (left.T @ left)
    second = middle @ (left.T @ (own[:, None] ** 2 * left))
    trace = float(np.sum(own**2) + np.trace(first))
    squares = float(np.sum(own**4) + 2.0 * np.trace(second) + np.trace(first @ first))
    return trace**2 / squares


def shares_of(
    scores: ArrayLike, clusters: ArrayLike, columns: ArrayLike | None = None, weights: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Each cluster's share of a column's weight, and its part of the column's mean, both (clusters, columns).

    Clusters and columns are in their sorted order; arguments as of `mean_interval`.
    """
    score = np.asarray(scores, float)
    weight = np.ones(len(score)) if weights is None else np.asarray(weights, float)
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    names, column = np.unique(np.zeros(len(score)) if columns is None else np.asarray(columns), return_inverse=True)
    order = np.lexsort((score, column, cluster))  # the last bit of a sum depends on the order
    shape = (int(cluster.max()) + 1, len(names))
    place = np.ravel_multi_index((cluster, column), shape)[order]
    counts = np.bincount(place, weights=weight[order], minlength=shape[0] * shape[1]).reshape(shape)
    totals = np.bincount(place, weights=(weight * score)[order], minlength=shape[0] * shape[1]).reshape(shape)
    met = counts.sum(axis=0)
    return counts / met, totals / met


def _scatter(shares: Floats, totals: Floats) -> Scatter:
    if len(shares) == 1:
        return Scatter(0.25, math.inf)
    if (shares == 1.0).any():
        shares, totals = (values.mean(axis=1, keepdims=True) for values in (shares, totals))
    residuals = (totals - shares * totals.sum(axis=0)) / np.sqrt(1.0 - shares)
    parts = np.sort(residuals.mean(axis=1))
    return Scatter(float(parts @ parts), freedom_of_shares(shares))


def _coins(center: float, n: float, scatter: Scatter, end: float = ENDS[1]) -> float:
    """The width that Wilson's interval for n coins needs for that scatter, in standard errors; a coin's without any."""
    if scatter.variance < NO_VARIANCE or not 0.0 < center < 1.0:
        return float(ndtri(end))
    return float(student(scatter.freedom, end)) * math.sqrt(scatter.variance * n / (center * (1.0 - center)))


def ranks(values: Iterable[float | None]) -> list[int | None]:
    """The rank of each value: 1 for the highest; values equal to `DIGITS` decimals share one; None for None."""
    rounded = [None if value is None else round(value, DIGITS) for value in values]
    rank: dict[float, int] = {}
    for place, value in enumerate(sorted((value for value in rounded if value is not None), reverse=True), start=1):
        rank.setdefault(value, place)
    return [None if value is None else rank[value] for value in rounded]
