"""Spearman's rank correlations of scores, of models or of stages, with intervals that are clustered by scene."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.stats import rankdata

from merton.statistics.means import Interval, student

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

    A jackknife that leaves out one scene after the other (Efron and Tibshirani 1993, section 11.5), in Fisher's
    transform, with Student's quantile for scenes less one degrees of freedom. Ours; coverage: docs/reference/scores.md.

    Args:
        scores: (models, images).
        scenes: (images,) the scene of each image; comparable values of any type. The order of images does not matter.
        strata: as of `rank_correlations`.

    Returns:
        The correlations, and (models, models, 2) lower and upper ends; these are NaN where a correlation is undefined,
        as a whole or without a scene, and where it is 1 or -1. Of a single scene all are NaN.
    """
    names, scene = np.unique(np.asarray(scenes), return_inverse=True)
    groups = min(len(names), GROUPS)
    intervals = np.full((len(scores), len(scores), 2), np.nan)
    stratum = np.zeros(len(scene)) if strata is None else np.asarray(strata)
    correlations = rank_correlations(scores, stratum)
    if groups < 2:
        return correlations, intervals
    whole = _fisher(correlations)
    kept = [scene % groups != group for group in range(groups)]
    parts = np.stack([_fisher(rank_correlations(scores[:, rest], stratum[rest])) for rest in kept])
    deviation = np.sqrt((groups - 1) / groups * ((parts - parts.mean(axis=0)) ** 2).sum(axis=0))
    half = float(student(groups - 1)) * deviation
    intervals[..., 0], intervals[..., 1] = np.tanh(whole - half), np.tanh(whole + half)
    return correlations, intervals


def average_with_interval(scores: NDArray[np.float64], scenes: ArrayLike) -> tuple[float, Interval | None]:
    """The mean of `rank_correlations` over the pairs of different rows, and its 95 % interval, clustered by scene.

    The interval is that of `correlations_with_intervals`, without Fisher's transform: a mean of correlations is no
    correlation. NaN where no pair is defined; no interval for a single scene, where a pair is undefined without one,
    or where all parts agree to a billionth, which tells nothing of other scenes.
    """
    names, scene = np.unique(np.asarray(scenes), return_inverse=True)
    groups = min(len(names), GROUPS)
    pairs = np.triu_indices(len(scores), 1)
    whole = rank_correlations(scores)[pairs]
    defined = ~np.isnan(whole)
    if not defined.any():
        return float("nan"), None
    average = float(whole[defined].mean())
    if groups < 2:
        return average, None
    kept = [scene % groups != group for group in range(groups)]
    parts = np.array([rank_correlations(scores[:, rest])[pairs][defined].mean() for rest in kept])
    if np.isnan(parts).any() or np.ptp(parts) < 1e-9:
        return average, None
    deviation = np.sqrt((groups - 1) / groups * ((parts - parts.mean()) ** 2).sum())
    half = float(student(groups - 1) * deviation)
    return average, (max(average - half, -1.0), min(average + half, 1.0))


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
    ranks = rankdata(scores, axis=1)
    sizes = np.maximum(np.bincount(stratum), 1)
    ranks -= np.stack([np.bincount(stratum, row) / sizes for row in ranks])[:, stratum]
    length = np.sqrt((ranks**2).sum(axis=1))
    scale = np.outer(length, length)
    found = np.divide(ranks @ ranks.T, scale, out=undefined, where=scale > 0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _fisher(correlations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fisher's transform; NaN for 1 and -1."""
    inside = np.where(np.abs(correlations) < 1.0 - 1e-12, correlations, np.nan)
    return np.asarray(np.arctanh(inside))
