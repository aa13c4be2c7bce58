"""Whether means by level fall, as a threshold takes for granted, or rise somewhere by more than their error."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from merton.statistics.means import mean_interval

FALSE_ALARMS = 0.05
"""The most of the falling curves that are said to rise between any two of their levels."""


class Rise(NamedTuple):
    """Two levels, `low` < `high`, and the means there, of which the second is greater by more than error."""

    low: int
    high: int
    low_mean: float
    high_mean: float

    def crosses(self, target: float) -> bool:
        """Whether it leads from the target or below it to above: then no single level has the target."""
        return self.low_mean <= target < self.high_mean


def greatest_rise(
    values: ArrayLike, levels: ArrayLike, clusters: ArrayLike, target: float | None = None
) -> Rise | None:
    """The rise that is surest, if means by level do not fall steadily; None where all rises may be chance.

    The difference of each two levels' means has the interval of `mean_interval`, one-sided and at `FALSE_ALARMS`
    divided by the number of pairs (Bonferroni); a level's values and another's that come from one cluster go together.

    Args:
        values: (n,) in 0..1, such as success.
        levels: (n,) whole numbers, larger where more is expected to be lost.
        clusters: (n,) the unit that was sampled, such as the scene of each trial; comparable values of any type.
        target: rises that cross it come before others.
    """
    value, level, cluster = np.asarray(values, float), np.asarray(levels, int), np.asarray(clusters)
    means = {one: float(np.sort(value[level == one]).mean()) for one in np.unique(level).tolist()}
    pairs = list(combinations(means, 2))
    sure: list[tuple[bool, float, Rise]] = []
    for low, high in pairs:
        if means[high] <= means[low]:
            continue
        mine = (level == low) | (level == high)
        is_high = level[mine] == high
        # Half of 1 + the difference is the mean of two columns' means.
        halved = np.where(is_high, value[mine], 1.0 - value[mine])
        end = 1.0 - FALSE_ALARMS / len(pairs)
        least = 2.0 * mean_interval(halved, cluster[mine], columns=is_high, end=end).low - 1.0
        if least > 0.0:
            rise = Rise(low, high, means[low], means[high])
            sure.append((target is not None and rise.crosses(target), least, rise))
    return max(sure)[2] if sure else None
