"""The mean of paired differences, such as success lost under distortion, and its 95 % interval."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, wilson

ALIKE = 1e-3
"""Smaller differences count as none. Ours: objects at rest still differ by a millionth of the way, from which an
interval of no width would follow."""

UNMET_GAIN = 0.5
"""Of a drop: the share of its trials that a scene which was not met may gain. Ours, because distortion breaks a whole
scene sooner than it mends one; with 1 an agent that loses a tenth of its trials in 24 of 30 scenes was told from chance
in 4 % of studies, with .5 in 76 %."""

_NO_VARIANCE = 1e-18


def drop_interval(drops: ArrayLike, clusters: ArrayLike, weights: ArrayLike | None = None) -> Interval:
    """`paired_interval` of drops, undistorted value less distorted one, of which gains are seldom those of a scene."""
    return paired_interval(drops, clusters, weights, unmet_gain=UNMET_GAIN)


def paired_interval(
    differences: ArrayLike,
    clusters: ArrayLike,
    weights: ArrayLike | None = None,
    span: float = 1.0,
    unmet_gain: float = 1.0,
) -> Interval:
    """95 % interval of a mean of differences in -span..span, within -span..span, where those of one cluster are alike.

    The mean is that of all losses (differences above 0) less that of all gains, and each of the two has the interval
    of `mean_interval`, which holds near 0, where most differences are. The two are joined by MOVER (Zou and Donner
    2008), with their correlation over clusters where it is negative, for then the difference scatters more. Ours: in a
    cluster that was not met, all may change by as much as those that changed did in the mean, at most by 1, and by 1 if
    none changed; so no end leaves out what `wilson` allows for none in n clusters, and one loss never makes the
    interval narrower than none. Coverage, and the rules that it was chosen from: docs/reference/statistics.md.

    Args:
        differences: (n,) in -span..span, n >= 1.
        clusters: (n,) the unit that was sampled, such as the scene of each trial; comparable values of any type.
        weights: (n,) > 0, how much each difference counts in the mean; 1 by default.
        span: the largest difference of one trial: 1 of two values in 0..1, 2 of two such differences.
        unmet_gain: the share of its trials that a cluster which was not met may gain; all may be lost.
    """
    difference = np.array(differences, float)
    difference[np.abs(difference) < ALIKE] = 0.0
    changed = np.abs(difference[difference != 0.0])
    change = min(math.fsum(changed) / len(changed) if len(changed) else 1.0, 1.0) / span
    difference /= span
    weight = np.ones(len(difference)) if weights is None else np.asarray(weights, float)
    lost, gained = np.maximum(difference, 0.0), np.maximum(-difference, 0.0)
    sums = np.stack([_sums(values, clusters) for values in (weight, weight * lost, weight * gained)])
    share, lost_share, gained_share = sums / sums[0].sum()
    if len(share) == 1:
        return Interval(-span, span)
    unmet = change * wilson(0.0, 1.0 / float(share @ share)).high
    loss, gain = float(lost_share.sum()), float(gained_share.sum())
    loss_ends, gain_ends = (mean_interval(values, clusters, weights=weight) for values in (lost, gained))
    residuals = lost_share - share * loss, gained_share - share * gain
    correlation = min(_correlation(*residuals), 0.0)
    loss_high, gain_high = (
        max(ends.high, least) if mean > 0.0 else least
        for mean, ends, least in ((loss, loss_ends, unmet), (gain, gain_ends, unmet * unmet_gain))
    )
    below = _joined(loss - loss_ends.low, gain_high - gain, correlation)
    above = _joined(loss_high - loss, gain - gain_ends.low, correlation)
    center = loss - gain
    return Interval(max(center - below, -1.0), min(center + above, 1.0)).scaled(span)


def _sums(values: NDArray[np.float64], clusters: ArrayLike) -> NDArray[np.float64]:
    """(clusters,) the sum of each cluster's values, the same in any order of them."""
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    order = np.lexsort((values, cluster))
    return np.asarray(np.bincount(cluster[order], values[order]), np.float64)


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Of residuals; 0 where one side has none."""
    length = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / length if length > _NO_VARIANCE else 0.0


def _joined(one: float, other: float, correlation: float) -> float:
    """The half-width of a difference of two estimates from their own half-widths."""
    return math.sqrt(max(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
