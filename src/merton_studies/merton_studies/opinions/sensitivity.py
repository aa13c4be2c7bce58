"""Just noticeable differences in three readings, because the paper's allows two (Embodied-IQA 4, Fig. 7).

`by_image` and `by_cell` cut all images into thirds, image by image or cell by cell of type and level; `half_losses`
are the levels of the types at which half of what can be lost is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import logit

from merton.statistics.falling import Rise, greatest_rise
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.statistics.resampling import Resamples
from merton_studies.opinions.opinion_tables import LEVELS

JND = ("mild", "medium", "severe")
"""A third of the images each, from the highest scores to the lowest."""
_ALIKE = 1e-9
"""A share no more above half than this is half: the last bit of a mean does not decide."""
_LEAST_SHARE = 0.01
"""Of what can be lost, and of what is left, where a logistic curve leads from one level to the next."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Texts = NDArray[np.str_]


@dataclass(frozen=True)
class HalfLoss:
    """The level of a type of distortion at which half is lost of what lies between no change and chance.

    Attributes:
        level: fractional, 0..`highest`. Infinite where half is never lost up to `highest`; NaN where scores do not
            fall: they rise from below half to above, so that no single level has half.
        interval: 95 % of every level at which the mean is half; infinite where no loss of half at `highest` is not
            excluded. None of a single scene.
        rise: the surest rise of the mean score, 0..5, between two levels; None where none is above its error.
        highest: level of which there are scores.
    """

    distortion: str
    level: float
    interval: Interval | None
    rise: Rise | None = None
    highest: int = LEVELS


def by_image(score: Floats, distortion_id: Texts, level: Integers, reference_id: Texts) -> Texts:
    """The class of each image by its own score: thirds of the images that differ in size by one at most.

    Equal scores are ordered by type, level and reference. Arguments and result as of `by_cell`.
    """
    classes = np.full(len(score), "", "U6")
    known = np.flatnonzero(~np.isnan(score))
    if not len(known) or np.ptp(score[known]) < 1e-12:
        return classes
    keys = (reference_id[known], level[known], distortion_id[known], -score[known].round(9))
    classes[known[np.lexsort(keys)]] = np.array(JND)[3 * np.arange(len(known)) // len(known)]
    return classes


def by_cell(score: Floats, distortion_id: Texts, level: Integers) -> Texts:
    """The class of each image by its cell (type and level): cells in the order of their mean score, cut into thirds.

    Ours, because "Dis16 will cause serious distortion at level 1" speaks of cells: cells with equal means are ordered
    by level, then type, and cut where the largest and the smallest third differ least: by no more than a cell's images.

    Args:
        score: (n,) any range, higher is better; NaN where there is none.
        distortion_id, level: (n,).

    Returns:
        (n,) of `JND`; "" where there is no score, and everywhere if all scores are equal.
    """
    classes = np.full(len(score), "", "U6")
    known = np.flatnonzero(~np.isnan(score))
    if not len(known) or np.ptp(score[known]) < 1e-12:
        return classes
    cells, cell = _cells(distortion_id[known], level[known])
    order = np.lexsort((score[known], cell))  # the last bit of a mean depends on the order
    totals = np.asarray(np.bincount(cell[order], weights=score[known][order]), np.float64)
    classes[known] = np.array(JND)[_thirds_of_cells(np.bincount(cell), totals, cells)[cell]]
    return classes


def by_cell_again(score: Floats, distortion_id: Texts, level: Integers, drawn: Resamples) -> Texts:
    """(draws, n): the classes of `by_cell` in every draw of scenes; "" of a cell without an image in it.

    Args:
        score: (n,), without NaN.
        distortion_id, level: (n,).
        drawn: of the same images.
    """
    cells, cell = _cells(distortion_id, level)
    counts = drawn.totals(np.ones(len(score)), cell, cells.shape[1])
    totals = drawn.totals(score, cell, cells.shape[1])
    classes = np.full(counts.shape, "", "U6")
    for row, (count, total) in enumerate(zip(counts, totals, strict=True)):
        met = count > 0
        classes[row, met] = np.array(JND)[_thirds_of_cells(count[met].astype(np.int64), total[met], cells[:, met])]
    return np.asarray(classes[:, cell])


def half_losses(
    score: Floats, distortion: Texts, level: Integers, scene: Texts, chance: float, unchanged: float = 5.0
) -> list[HalfLoss]:
    """JND50 of every type, sorted by its name; none where chance is not below no change, for nothing can be lost.

    Ours, because this is what a just noticeable difference is in psychophysics: (score - chance) / (unchanged - chance)
    is 1 at level 0, where models that answer alike when asked twice differ in nothing. The level is the first at which
    its means by level, made monotone by isotonic regression and joined by straight lines, are .5 or less.

    The interval has all levels at which the means' own intervals (`mean_interval`), their ends joined too, do not
    exclude .5: from the first at which the lower ends are .5 or less to the last at which the upper ones are more. So
    it holds a level of half in 95 % at least, whether the means fall or not. No level between two was seen, so of
    straight lines and logistic curves between them the wider counts. Percentiles of resampled scenes held 84 to 99 %
    with 12 scenes, and hardly ever that of a curve that falls and rises again (tools/studies/half_loss_coverage.py).

    Args:
        score: (n,) 0..unchanged; NaN where there is none.
        distortion, level, scene: (n,); images at level 0 have no part in it.
        chance: score of the output for another scene.
        unchanged: score of an image that changes nothing.
    """
    if chance >= unchanged:
        return []
    known = ~np.isnan(score) & (level > 0)
    share = (score - chance) / (unchanged - chance)
    return [
        _half_loss(name, share[mine], level[mine], scene[mine], chance, unchanged)
        for name in np.unique(distortion[known]).tolist()
        for mine in [(distortion == name) & known]
    ]


def _half_loss(name: str, share: Floats, level: Integers, scene: Texts, chance: float, unchanged: float) -> HalfLoss:
    levels = np.unique(level)
    rows = [np.sort(share[level == one]) for one in levels]
    counts = np.array([len(row) for row in rows], float)
    falling = isotonic_regression([row.mean() for row in rows], weights=counts, increasing=False).x
    at = np.concatenate([[0], levels])
    found = _first_lost(at, np.minimum(np.concatenate([[1.0], falling]), 1.0) - 0.5)
    highest = int(levels[-1])
    if len(np.unique(scene)) == 1:
        return HalfLoss(name, found, None, None, highest)
    lowest, most = min(-chance / (unchanged - chance), float(share.min())), max(1.0, float(share.max()))
    scaled = (share - lowest) / (most - lowest)
    ends = [mean_interval(scaled[level == one], scene[level == one]) for one in levels]
    low, high = (np.array([1.0, *(lowest + (most - lowest) * end for end in side)]) for side in zip(*ends, strict=True))
    # The monotone means may leave the ends of a curve that rises, and an interval holds its level.
    interval = Interval(
        min(found, *(_first_lost(at, excess) for excess in _excesses(low))),
        max(found, *(_last_kept(at, excess) for excess in _excesses(high))),
    )
    rise = greatest_rise(scaled, level, scene, (0.5 - lowest) / (most - lowest))
    if rise is None:
        return HalfLoss(name, found, interval, None, highest)
    shares = Rise(rise.low, rise.high, *(lowest + (most - lowest) * mean for mean in rise[2:]))
    scores = Rise(rise.low, rise.high, *(chance + (unchanged - chance) * mean for mean in shares[2:]))
    return HalfLoss(name, math.nan if shares.crosses(0.5) else found, interval, scores, highest)


def _excesses(share: Floats) -> tuple[Floats, Floats]:
    """How far shares are above half: as they are, and on the scale on which a logistic curve is a line."""
    return share - 0.5, np.asarray(logit(np.clip(share, _LEAST_SHARE, 1.0 - _LEAST_SHARE)))


def _first_lost(level: Integers, excess: Floats) -> float:
    """The first place of a line through values at rising levels that is 0 or lower; infinite without one."""
    lost = np.flatnonzero(excess <= _ALIKE)
    return _crossing(level, excess, int(lost[0]) - 1) if len(lost) else math.inf


def _last_kept(level: Integers, excess: Floats) -> float:
    """The last place of a line through values at rising levels that is above 0; infinite if that is its end."""
    kept = int(np.flatnonzero(excess > _ALIKE)[-1])
    return _crossing(level, excess, kept) if kept + 1 < len(level) else math.inf


def _crossing(level: Integers, excess: Floats, before: int) -> float:
    """The place of 0 on the line from the value number `before`, which is above, to the next, which is not."""
    share = excess[before] / (excess[before] - excess[before + 1])
    return float(level[before] + min(share, 1.0) * (level[before + 1] - level[before]))


def _cells(distortion_id: Texts, level: Integers) -> tuple[Integers, Integers]:
    """(2, cells): type, as a number, and level of each cell; and (n,) the cell of each image."""
    pairs = np.stack([np.unique(distortion_id, return_inverse=True)[1], level])
    cells, cell = np.unique(pairs, axis=1, return_inverse=True)
    return cells, cell


def _thirds_of_cells(n: Integers, totals: Floats, cells: Integers) -> Integers:
    """0, 1 or 2 for each cell of n images whose scores have these sums."""
    ranked = np.lexsort((cells[0], cells[1], -np.round(totals / n, 9)))
    third = np.empty(len(n), np.int64)
    third[ranked] = _thirds(n[ranked])
    return third


def _thirds(n: Integers) -> Integers:
    """0, 1 or 2 for each of some cells of n images, in their order: thirds that differ least in size."""
    upto = np.concatenate([[0], np.cumsum(n)])
    first, second = upto[:, None], upto[None, :]
    sizes = np.stack(np.broadcast_arrays(first, second - first, upto[-1] - second))
    uneven = np.where(second >= first, np.ptp(sizes, axis=0), upto[-1] + 1)
    one, other = np.unravel_index(np.argmin(uneven), uneven.shape)
    place = np.arange(len(n))
    return (place >= one).astype(np.int64) + (place >= other)
