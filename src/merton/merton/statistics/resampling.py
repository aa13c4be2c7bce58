"""The bootstrap over scenes: every statistic of a dataset's images, again for resampled scenes (Efron 1979)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import middle

DRAWS = 1000
"""Enough for a mean, a deviation and the ends of a 95 % interval. Ours."""
_LEAST_DEFINED = 0.95
"""Of the draws: a statistic that is undefined more often has no interval."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Resamples:
    """Scenes drawn with replacement, as many as there are.

    Attributes:
        scene: (n,) number of each image's scene.
        weights: (draws, scenes) how often each scene was drawn.
    """

    scene: NDArray[np.int64]
    weights: Floats

    def totals(self, values: Floats, group: NDArray[np.int64], groups: int) -> Floats:
        """(draws, groups): in every draw the sum of values (n,) of the images of each group (n,); NaN counts 0."""
        scenes = self.weights.shape[1]
        place = self.scene * groups + group
        order = np.lexsort((values, place))  # the last bit of a sum depends on the order
        order = order[~np.isnan(values[order])]
        return self.weights @ np.bincount(place[order], values[order], scenes * groups).reshape(scenes, groups)

    def means(self, values: Floats, group: NDArray[np.int64], groups: int) -> Floats:
        """(draws, groups): in every draw the mean of the values of each group; NaN where it has none."""
        count = self.totals(np.where(np.isnan(values), np.nan, 1.0), group, groups)
        total = self.totals(values, group, groups)
        return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def resamples(scenes: ArrayLike, *seed: object, draws: int = DRAWS) -> Resamples:
    """The same draws for the same scenes and seed; `scenes` (n,) are the names of the images' scenes."""
    names, scene = np.unique(np.asarray(scenes), return_inverse=True)
    chances = np.full(len(names), 1.0 / len(names))
    return Resamples(scene.astype(np.int64), generator(*seed).multinomial(len(names), chances, draws).astype(float))


def interval(values: Floats) -> Interval | None:
    """The 95 % percentile interval of a statistic's draws (n,), ends perhaps infinite.

    None where all draws are equal or the statistic is undefined (NaN) in more than a twentieth of them: there is
    nothing to resample, as with a single scene.
    """
    known = values[~np.isnan(values)]
    if len(known) < _LEAST_DEFINED * len(values) or not len(known) or bool((known == known[0]).all()):
        return None
    return middle(known)


def is_resolved(found: Interval | None, value: float = 0.0) -> bool:
    """Whether an interval lies on one side of a value."""
    return found is not None and not math.isnan(found[0]) and (found[0] > value or found[1] < value)
