"""Krippendorff's alpha: agreement of any number of raters, on any scale, whichever ratings are missing."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from merton.statistics.rater_draws import ROUNDING, Floats, RaterAgreement, drawn_sums, labels_of, of_draws

Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    ratings: Sequence[Sequence[str | float | None]],
    scale: Scale,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> RaterAgreement:
    """Agreement beyond chance, 1 - observed / expected disagreement (Krippendorff 2011, sections C and D).

    The disagreement of two ratings is 1 if they differ (nominal), the square of their difference (interval), or that of
    their mean ranks among all ratings (ordinal). Observed: over pairs of ratings of one item, where an item with m
    ratings weighs m; expected: over all pairs of ratings. A rating that is its item's only one plays no part.

    Args:
        ratings: for each item those that its raters gave; None for a missing one. Numbers, but on a nominal scale.
        scale: what differences between ratings mean.
        clusters: the scene of each item; each item by itself if not given.
        seed: of the bootstrap.

    Raises:
        InputError: `clusters` has another length.
    """
    known = [[rating for rating in item if rating is not None] for item in ratings]
    rated = np.array([len(item) >= 2 for item in known], bool)
    paired = [item for item in known if len(item) >= 2]
    labels = labels_of(rated, clusters)
    if not paired:
        return of_draws(np.full(1, np.nan), rated, labels)
    names: list[str | float] = sorted({rating for item in paired for rating in item}, key=lambda name: (name,))
    place = {name: index for index, name in enumerate(names)}
    counts = np.zeros((len(paired), len(names)))
    for row, item in zip(counts, paired, strict=True):
        for rating in item:
            row[place[rating]] += 1.0
    if scale == "ordinal":
        values = _ordinal(counts, labels, seed)
    elif scale == "interval":
        values = _interval(counts, np.array(names, np.float64), labels, seed)
    else:
        values = _nominal(counts, labels, seed)
    return of_draws(values, rated, labels, float(counts.sum()) / len(paired))


def _nominal(counts: Floats, labels: Sequence[str], seed: int) -> Floats:
    """(1 + draws,) alpha of counts (items, categories)."""
    m = counts.sum(axis=1)
    differing = (m**2 - (counts**2).sum(axis=1)) / (m - 1.0)
    sums = drawn_sums(np.column_stack([differing, counts]), labels, "alpha", seed)
    n = sums[:, 1:].sum(axis=1)
    return _alpha(sums[:, 0], (n**2 - (sums[:, 1:] ** 2).sum(axis=1)), n)


def _interval(counts: Floats, scale: Floats, labels: Sequence[str], seed: int) -> Floats:
    centred = scale - float(counts.sum(axis=0) @ scale) / float(counts.sum())
    centred = centred / max(float(np.abs(centred).max()), 1e-300)
    m, first, second = counts.sum(axis=1), counts @ centred, counts @ centred**2
    observed = 2.0 * (m * second - first**2) / (m - 1.0)
    sums = drawn_sums(np.column_stack([observed, m, first, second]), labels, "alpha", seed)
    return _alpha(sums[:, 0], 2.0 * (sums[:, 1] * sums[:, 3] - sums[:, 2] ** 2), sums[:, 1])


def _ordinal(counts: Floats, labels: Sequence[str], seed: int) -> Floats:
    """As on an interval scale, of the mean ranks that the values have among the ratings of each draw."""
    m = counts.sum(axis=1)
    size = counts.shape[1]
    upper = np.triu_indices(size, 1)
    together = (counts[:, upper[0]] * counts[:, upper[1]]) / (m - 1.0)[:, None]
    there = together.any(axis=0)
    one, other = upper[0][there], upper[1][there]
    sums = drawn_sums(np.column_stack([counts, together[:, there]]), labels, "alpha", seed)
    totals = sums[:, :size]
    n = totals.sum(axis=1)
    rank = (np.cumsum(totals, axis=1) - 0.5 * totals) / np.maximum(n, 1.0)[:, None]
    observed = 2.0 * (sums[:, size:] * (rank[:, one] - rank[:, other]) ** 2).sum(axis=1)
    mean = (totals * rank).sum(axis=1) / np.maximum(n, 1.0)
    expected = 2.0 * n * (totals * (rank - mean[:, None]) ** 2).sum(axis=1)
    return _alpha(observed, expected, n)


def _alpha(observed: Floats, expected: Floats, n: Floats) -> Floats:
    """1 - (n - 1) observed / expected, both as sums over ordered pairs; NaN where no ratings differ."""
    known = expected > ROUNDING * np.maximum(n, 1.0) ** 2
    return 1.0 - np.divide((n - 1.0) * observed, expected, out=np.full(len(n), np.nan), where=known)
