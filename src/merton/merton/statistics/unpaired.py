"""The difference of two independent means, such as those of runs that have no test case in common."""

from __future__ import annotations

import math

from merton.statistics.intervals import Interval


def unpaired_interval(first: float, first_interval: Interval, second: float, second_interval: Interval) -> Interval:
    """95 % interval of `second` less `first`, two independent estimates (MOVER; Zou and Donner 2008).

    It lies within the difference of the two ranges. Estimates that rise and fall together, as of the same scenes, make
    it too wide.

    Args:
        first, second: the estimates, in one unit.
        first_interval, second_interval: 95 % of each, which hold it.
    """
    difference = second - first
    below = math.hypot(second - second_interval.low, first_interval.high - first)
    above = math.hypot(second_interval.high - second, first - first_interval.low)
    return Interval(difference - below, difference + above)
