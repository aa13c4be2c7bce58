"""The mean of paired differences, such as success lost under distortion, and its 95 % interval."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from merton.statistics.intervals import Interval
from merton.statistics.means import NO_VARIANCE, Floats, mean_interval, shares_of, wilson

ALIKE = 1e-3
"""Smaller differences count as none. Ours: objects at rest still differ by a millionth of the way, from which an
interval of no width would follow."""

UNMET_GAIN = 0.5
"""Of a drop: the share of its trials that a scene which was not met may gain. Ours, because distortion breaks a whole
scene sooner than it mends one; with 1 an agent that loses a tenth of its trials in 24 of 30 scenes was told from chance
in 4 % of studies, with .5 in 76 %."""


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
    sides = [_side(np.maximum(values, 0.0), clusters, weights) for values in (difference, -difference)]
    (share, lost, loss), (_, gained, gain) = sides
    if len(share) == 1:
        return Interval(-span, span)
    unmet = change * wilson(0.0, 1.0 / float(share @ share)).high
    correlation = _correlation(lost - share * loss.mean, gained - share * gain.mean)
    low, high = difference_ends(loss, gain, unmet, unmet * unmet_gain, correlation)
    return Interval(max(float(low), -1.0), min(float(high), 1.0)).scaled(span)


class Side(NamedTuple):
    """The mean of losses, or of gains, 0..1, and its 95 % interval; numbers, or arrays of one shape."""

    mean: Any
    low: Any
    high: Any


def difference_ends(
    loss: Side, gain: Side, unmet_loss: ArrayLike, unmet_gain: ArrayLike, correlation: ArrayLike
) -> tuple[Floats, Floats]:
    """The ends of `paired_interval`, of any shape, not yet within -1..1.

    Args:
        loss, gain: the two means, whose difference it is.
        unmet_loss, unmet_gain: the least upper end of each, for clusters that were not met; of a side without any
            change it is the upper end.
        correlation: of the two over clusters; counts where it is negative.
    """
    loss_high, gain_high = (
        np.where(side.mean > 0.0, np.maximum(side.high, least), least)
        for side, least in ((loss, np.asarray(unmet_loss)), (gain, np.asarray(unmet_gain)))
    )
    together = np.minimum(correlation, 0.0)
    below = _joined(loss.mean - loss.low, gain_high - gain.mean, together)
    above = _joined(loss_high - loss.mean, gain.mean - gain.low, together)
    return loss.mean - gain.mean - below, loss.mean - gain.mean + above


def _side(values: Floats, clusters: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats, Side]:
    """Each cluster's share of the weight and of the mean, both (clusters,), and the mean with its interval."""
    share, part = (columns[:, 0] for columns in shares_of(values, clusters, None, weights))
    return share, part, Side(float(part.sum()), *mean_interval(values, clusters, weights=weights))


def _correlation(one: Floats, other: Floats) -> float:
    """Of residuals; 0 where one side has none."""
    length = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / length if length > NO_VARIANCE else 0.0


def _joined(one: Any, other: Any, correlation: Any) -> Floats:
    """MOVER: the half-width of a difference of two estimates from their own half-widths."""
    return np.sqrt(np.maximum(one**2 + other**2 - 2.0 * correlation * one * other, 0.0))
