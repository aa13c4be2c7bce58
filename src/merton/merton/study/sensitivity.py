"""Just noticeable differences: which distortions at which levels are mild, medium and severe (Embodied-IQA, Fig. 7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

JND = ("mild", "medium", "severe")
"""A third of the images each, from the highest scores to the lowest."""


def by_cell(score: NDArray[np.float64], distortion_id: NDArray[np.str_], level: NDArray[np.int64]) -> NDArray[np.str_]:
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
    cells, cell = np.unique(
        np.stack([np.unique(distortion_id[known], return_inverse=True)[1], level[known]]), axis=1, return_inverse=True
    )
    order = np.lexsort((score[known], cell))  # the last bit of a mean depends on the order
    n = np.bincount(cell)
    mean = np.round(np.bincount(cell[order], weights=score[known][order]) / n, 9)
    ranked = np.lexsort((cells[0], cells[1], -mean))
    third = np.empty(len(n), np.int64)
    third[ranked] = _thirds(n[ranked])
    classes[known] = np.array(JND)[third[cell]]
    return classes


def _thirds(n: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1 or 2 for each of some cells of n images, in their order: thirds that differ least in size."""
    upto = np.concatenate([[0], np.cumsum(n)])
    first, second = upto[:, None], upto[None, :]
    sizes = np.stack(np.broadcast_arrays(first, second - first, upto[-1] - second))
    uneven = np.where(second >= first, np.ptp(sizes, axis=0), upto[-1] + 1)
    one, other = np.unravel_index(np.argmin(uneven), uneven.shape)
    place = np.arange(len(n))
    return (place >= one).astype(np.int64) + (place >= other)
