"""Spearman's rank correlations of values of trials or images, with the interval for values that are alike in a scene.

There is one rule for them, wherever they are printed: a jackknife that leaves out one scene after the other, in
Fisher's transform, with Student's quantile. Its coverage and that of the rules it was chosen from is in
docs/reference/statistics.md. Two other designs have rules of their own: means of fixed units over scenes (`clustered`),
and few models of which others might have been compared (`ranking`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from merton.statistics.intervals import Interval
from merton.statistics.means import Z_95, fisher_z, from_fisher_z, student

MINIMUM_SHARED = 3
"""Images two models must have in common for a correlation of their scores."""
GROUPS = 20
"""With more scenes than this, groups of them are left out in turn: the time stays, and the intervals hardly change."""


def rank_correlations(scores: NDArray[np.float64], strata: ArrayLike | None = None) -> NDArray[np.float64]:
    """Spearman's correlation of every two rows of scores.

    Args:
        scores: (models, images); NaN where a model has none.
        strata: (images,) comparable values. Each rank then counts from the mean rank of its stratum, so that strata
            which are higher in both rows correlate nothing: the partial correlation given the stratum.

    Returns:
        (models, models) in -1..1 over the images that both have; NaN where one does not vary over them, or they are
        fewer than `MINIMUM_SHARED`.
    """
    scores = scores.round(9)  # a billionth is rounding, and must not decide a rank
    known = ~np.isnan(scores)
    stratum = np.zeros(scores.shape[1], np.intp)
    if strata is not None:
        stratum = np.unique(np.asarray(strata), return_inverse=True)[1]
    if known.all():
        return _correlated(scores, stratum)
    found = np.full((len(scores), len(scores)), np.nan)
    for one in range(len(scores)):
        for other in range(one, len(scores)):
            both = known[one] & known[other]
            found[one, other] = found[other, one] = _correlated(scores[np.ix_([one, other], both)], stratum[both])[0, 1]
    return found


def correlations_with_intervals(
    scores: NDArray[np.float64], scenes: ArrayLike, strata: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`rank_correlations` and their 95 % intervals, clustered by scene.

    The intervals are those of `correlation_left_out`.

    Args:
        scores: (models, images).
        scenes: (images,) the scene of each image; comparable values of any type. The order of images does not matter.
        strata: as of `rank_correlations`.

    Returns:
        The correlations, and (models, models, 2) lower and upper ends; these are NaN where a correlation is undefined,
        as a whole or without a scene, and where it is 1 or -1. Of a single scene all are NaN.
    """
    stratum = np.zeros(scores.shape[1]) if strata is None else np.asarray(strata)
    parts = np.stack([rank_correlations(scores[:, kept], stratum[kept]) for kept in without_each(scenes)])
    z = _transformed(parts)
    half = _half_width(z)
    return parts[0], from_fisher_z(np.stack([z[0] - half, z[0] + half], axis=-1))


def without_each(scenes: ArrayLike) -> list[NDArray[np.bool_]]:
    """(n,) which images, whose scenes are given (n,), count: all, then all but one group of scenes after another.

    A group is one scene, or of more than `GROUPS` scenes each that many places apart. A single scene has no
    part without it.
    """
    names, scene = np.unique(np.asarray(scenes), return_inverse=True)
    groups = min(len(names), GROUPS)
    parts = [scene % groups != group for group in range(groups)] if groups > 1 else []
    return [np.ones(len(scene), bool), *parts]


def correlation_left_out(parts: NDArray[np.float64]) -> Interval:
    """95 % interval of a correlation of values of trials or images, clustered by scene.

    A jackknife that leaves out one scene after the other (Efron and Tibshirani 1993, section 11.5), in Fisher's
    transform, with Student's quantile for parts less one degrees of freedom. Ours: with 10 to 50 scenes it held 91.5
    to 97 % of simulated correlations of 0, .5 and .9, in the mean 94.8; percentiles of drawn scenes 88 to 96 %
    (docs/reference/statistics.md).

    Args:
        parts: (1 + parts,) the correlation of all scenes, then without each group of `without_each`.

    Returns:
        NaN where a correlation is undefined, as a whole or without a scene, and where it is 1 or -1; of a single scene.
    """
    z = _transformed(parts)
    return _around(z[0], float(_half_width(z)))


def difference_left_out(parts: NDArray[np.float64]) -> Interval:
    """95 % interval of any statistic of scenes, as `correlation_left_out` without a transform."""
    half = float(_half_width(parts))
    return Interval(float(parts[0]) - half, float(parts[0]) + half)


def fisher_interval(correlation: float, n: int) -> Interval:
    """95 % interval of a correlation, within -1..1, over n > 3 independent units, by Fisher's transform (1921)."""
    return _around(fisher_z(correlation), Z_95 / math.sqrt(n - 3))


def average_with_interval(scores: NDArray[np.float64], scenes: ArrayLike) -> tuple[float, Interval | None]:
    """The mean of `rank_correlations` over the pairs of different rows, and its 95 % interval, clustered by scene.

    The interval is that of `difference_left_out`: a mean of correlations is no correlation. NaN where no pair is
    defined; no interval for a single scene, where a pair is undefined without one, or where all parts agree to a
    billionth, which tells nothing of other scenes.
    """
    pairs = np.triu_indices(len(scores), 1)
    found = np.stack([rank_correlations(scores[:, kept])[pairs] for kept in without_each(scenes)])
    defined = ~np.isnan(found[0])
    if not defined.any():
        return float("nan"), None
    parts = found[:, defined].mean(axis=1)
    if len(parts) < 2 or np.isnan(parts).any() or np.ptp(parts[1:]) < 1e-9:
        return float(parts[0]), None
    low, high = difference_left_out(parts)
    return float(parts[0]), Interval(max(low, -1.0), min(high, 1.0))


def alike_beside(matrix: NDArray[np.float64]) -> list[int]:
    """An order of the rows of a correlation matrix in which rows that are alike stand side by side.

    The leaves of average linkage by 1 - correlation, in the order that makes neighbours most alike (Bar-Joseph et al.
    2001); undefined correlations count as 0.
    """
    if len(matrix) < 3:
        return list(range(len(matrix)))
    distance = np.clip(1.0 - np.nan_to_num(matrix), 0.0, None)
    near = distance[np.triu_indices(len(matrix), 1)]
    return [int(row) for row in leaves_list(linkage(near, "average", optimal_ordering=True))]


def _correlated(scores: NDArray[np.float64], stratum: NDArray[np.intp]) -> NDArray[np.float64]:
    """`rank_correlations` of (models, images) without gaps; `stratum` (images,) counts from 0."""
    undefined = np.full((len(scores), len(scores)), np.nan)
    if scores.shape[1] < MINIMUM_SHARED:
        return undefined
    from scipy.stats import rankdata  # slow to load, and most importers correlate nothing

    ranks = rankdata(scores, axis=1)
    sizes = np.maximum(np.bincount(stratum), 1)
    ranks -= np.stack([np.bincount(stratum, row) / sizes for row in ranks])[:, stratum]
    length = np.sqrt((ranks**2).sum(axis=1))
    scale = np.outer(length, length)
    found = np.divide(ranks @ ranks.T, scale, out=undefined, where=scale > 0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _half_width(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the statistic in `parts[0]` from those without each group, after it; NaN of a single scene."""
    groups = len(parts) - 1
    if groups < 2:
        return np.full(parts.shape[1:], np.nan)
    rest = parts[1:]
    deviation = np.sqrt((groups - 1) / groups * ((rest - rest.mean(axis=0)) ** 2).sum(axis=0))
    return np.asarray(float(student(groups - 1)) * deviation)


def _transformed(correlations: NDArray[np.float64]) -> NDArray[np.float64]:
    """`fisher_z`; NaN for 1 and -1."""
    return fisher_z(np.where(np.abs(correlations) < 1.0 - 1e-12, correlations, np.nan))


def _around(z: NDArray[np.float64], half: float) -> Interval:
    """The interval of a correlation whose transform is `z`, with a half-width of that."""
    return Interval(float(from_fisher_z(z - half)), float(from_fisher_z(z + half)))
