"""Just noticeable differences in three readings, because the paper's allows two (Embodied-IQA 4, Fig. 7).

`by_image` and `by_cell` cut all images into thirds, image by image or cell by cell of type and level; `half_loss` is
the level of each type at which half of what can be lost is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from merton.statistics.intervals import Interval
from merton.statistics.resampling import Resamples, interval, resamples

JND = ("mild", "medium", "severe")
"""A third of the images each, from the highest scores to the lowest."""
LEVELS = 5
HALF_LOSS_DRAWS = 400

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Texts = NDArray[np.str_]

_MIDDLES = np.linspace(0.05, 9.0, 180)
_SLOPES = np.geomspace(0.1, 2.5, 20)


@dataclass(frozen=True)
class HalfLoss:
    """The level of a type of distortion at which half is lost of what lies between no change and chance.

    Attributes:
        level: fractional, 0..5; infinite where half is not lost up to level 5.
        interval: 95 %, by the bootstrap over scenes; its ends perhaps infinite.
    """

    distortion: str
    level: float
    interval: Interval | None


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
    """JND50 of every type, sorted by its name.

    Ours, because this is what a just noticeable difference is in psychophysics: (score - chance) / (unchanged - chance)
    is 1 at level 0, where models that answer alike when asked twice differ in nothing. Its means by level are made
    monotone by isotonic regression, and 1 / (1 + exp((level - m) / s)) is fitted to them by least squares, weighted by
    the number of images; m is the level.

    Args:
        score: (n,) 0..unchanged; NaN where there is none.
        distortion, level, scene: (n,).
        chance: score of the output for another scene.
        unchanged: score of an image that changes nothing.
    """
    found = []
    for name in np.unique(distortion[~np.isnan(score)]).tolist():
        mine = (distortion == name) & ~np.isnan(score)
        share = (score[mine] - chance) / (unchanged - chance)
        step = level[mine]
        counts = np.bincount(step, minlength=LEVELS + 1)[None, :].astype(float)
        totals = _sums(share, step)[None, :]
        drawn = resamples(scene[mine], "half_loss", name, draws=HALF_LOSS_DRAWS)
        weights = drawn.totals(np.ones(len(share)), step, LEVELS + 1)
        levels = _middles(totals, counts), _middles(drawn.totals(share, step, LEVELS + 1), weights)
        found.append(HalfLoss(name, float(levels[0][0]), interval(levels[1])))
    return found


def _sums(share: Floats, level: Integers) -> Floats:
    """Sums by level, the same in any order of the images."""
    order = np.lexsort((share, level))
    return np.asarray(np.bincount(level[order], share[order], LEVELS + 1), np.float64)


def _middles(totals: Floats, counts: Floats) -> Floats:
    """The fitted m of each row of sums of shares and numbers of images by level, (rows, 6); infinite above 5."""
    weights = counts.copy()
    weights[:, 0] = counts.sum(axis=1) / np.maximum((counts > 0).sum(axis=1), 1)  # no change is known at level 0
    means = np.divide(totals, counts, out=np.ones(totals.shape), where=counts > 0)
    means[:, 0] = 1.0
    fitted = np.stack(
        [
            isotonic_regression(row, weights=np.maximum(weight, 1e-9), increasing=False).x
            for row, weight in zip(means, weights, strict=True)
        ]
    )
    curves = _curves()
    errors = (weights @ (curves**2).T) - 2.0 * ((weights * fitted) @ curves.T)
    best = np.argmin(errors, axis=1)
    rows, slope = np.arange(len(best)), best % len(_SLOPES)
    place = np.clip(best // len(_SLOPES), 1, len(_MIDDLES) - 2)
    below, at, above = (errors[rows, (place + step) * len(_SLOPES) + slope] for step in (-1, 0, 1))
    bend = below - 2.0 * at + above  # the lowest point of a parabola lies between the steps of the grid
    shift = np.divide(below - above, 2.0 * bend, out=np.zeros(len(best)), where=bend > 1e-12)
    found = _MIDDLES[place] + np.clip(shift, -1.0, 1.0) * (_MIDDLES[1] - _MIDDLES[0])
    return np.where(found > LEVELS, math.inf, found)


@cache
def _curves() -> Floats:
    """The curve of every m and slope, m by m, at the levels 0..5: (curves, 6)."""
    m, s = (axis.ravel() for axis in np.meshgrid(_MIDDLES, _SLOPES, indexing="ij"))
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp((np.arange(LEVELS + 1) - m[:, None]) / s[:, None])))


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
