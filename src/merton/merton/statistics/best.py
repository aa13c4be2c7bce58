"""Comparisons of the best, or the worst, of several with all the others."""

from __future__ import annotations

import math

from merton.statistics.intervals import ENDS, Interval
from merton.statistics.means import student


def beside_the_first(interval: Interval, center: float, others: int, clusters: int, span: float = math.inf) -> Interval:
    """A 95 % interval of the first less another, widened so that no other is left out of the equals by their number.

    Of several equal ones chance makes one the first, and some of the others look smaller. Comparisons with the best
    (Hsu 1984) need one side alone: with `others` of them each may err in .05 / others (Bonferroni), which a 95 %
    interval does for up to two. It is stretched about its center by the ratio of Student's quantiles.

    Args:
        interval: 95 %, of one comparison.
        center: the difference that it is of.
        others: how many are compared with the first, at least 1.
        clusters: the units that were sampled; with a single one the interval stays.
        span: the largest difference that there can be, at which the interval ends.
    """
    if clusters < 2:
        return interval
    freedom, chance = clusters - 1, min(1.0 - ENDS[1], 0.05 / others)
    ratio = float(student(freedom, 1.0 - chance) / student(freedom))
    low, high = center - ratio * (center - interval.low), center + ratio * (interval.high - center)
    return Interval(max(low, -span), min(high, span))
