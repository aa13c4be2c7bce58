"""Agreement of raters that put items into categories: Cohen's kappa, Fleiss' kappa and the share of equal ratings.

All with 95 % intervals for items in clusters, such as scenes. Quadratic weights, for scores instead of categories, are
in `merton.leaderboard.published.agreement`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.results.statistics import Interval, mean_interval, student
from merton.study.resampling import resamples

Rating = str | None
"""A category, or None where a rater gave none."""
Floats = NDArray[np.float64]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class RaterAgreement:
    """How far raters agree.

    Attributes:
        value: a kappa, at most 1: full agreement, 0: as chance has it; or a share of equal ratings, 0..1. None where
            it is undefined: of no item with two ratings, and for a kappa where all ratings are one category, so that
            chance alone agrees fully.
        interval: 95 %; None for a kappa where nothing scatters, as with one cluster or if all agree.
        n: items with at least two ratings, which alone count.
        clusters: that these items are in.
        left_out: items with fewer ratings.
    """

    value: float | None
    interval: Interval | None
    n: int
    clusters: int
    left_out: int

    @property
    def shown(self) -> str:
        """The value with its interval, such as "0.78 [0.70, 0.85]"; "undefined" without a value."""
        if self.value is None:
            return "undefined"
        ends = "no interval" if self.interval is None else "[{:.2f}, {:.2f}]".format(*self.interval)
        return f"{self.value:.2f} {ends}"


def cohen_kappa(
    one: Sequence[Rating], other: Sequence[Rating], clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> RaterAgreement:
    """Agreement of two raters beyond chance: (p_o - p_e) / (1 - p_e) (Cohen 1960), without weights.

    p_o is the share of items with equal ratings, p_e the one expected of independent raters who use each category as
    often as these two.

    Args:
        one, other: the category of each item by either rater, in the same order.
        clusters: the scene of each item; each item by itself if not given.
        seed: of the bootstrap.

    Raises:
        InputError: the sequences differ in length.
    """
    _same_length(one, other)
    code, categories = _codes(list(zip(one, other, strict=True)))
    rated: NDArray[np.bool_] = np.all(code >= 0, axis=1)
    shares = np.eye(categories)[code[rated]]
    parts = np.column_stack([code[rated, 0] == code[rated, 1], shares[:, 0], shares[:, 1]])
    labels = _labels(rated, clusters)
    sums = _drawn_sums(parts, labels, "cohen", seed)
    n = sums[:, 1 : 1 + categories].sum(axis=1)
    expected = (sums[:, 1 : 1 + categories] * sums[:, 1 + categories :]).sum(axis=1) / np.maximum(n, 1.0) ** 2
    return _agreement(_kappa(sums[:, 0] / np.maximum(n, 1.0), expected), rated, labels)


def fleiss_kappa(
    ratings: Sequence[Sequence[Rating]], clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> RaterAgreement:
    """Agreement of any number of raters beyond chance (Fleiss 1971).

    p_o is the mean over items of the share of pairs of ratings that are equal, p_e the sum of the squared shares of the
    categories. Items may have different numbers of ratings; each item then weighs the same in both (Gwet 2014, section
    2.4). Which rater gave a rating plays no part.

    Args:
        ratings: for each item the categories that its raters gave; None for a missing one.
        clusters, seed: as of `cohen_kappa`.

    Raises:
        InputError: `clusters` has another length.
    """
    equal, shares, rated = _pairs(ratings)
    labels = _labels(rated, clusters)
    sums = _drawn_sums(np.column_stack([equal, shares]), labels, "fleiss", seed)
    n = np.maximum(sums[:, 1:].sum(axis=1), 1.0)
    return _agreement(_kappa(sums[:, 0] / n, ((sums[:, 1:] / n[:, None]) ** 2).sum(axis=1)), rated, labels)


def percent_agreement(
    ratings: Sequence[Sequence[Rating]], clusters: Sequence[Hashable] | None = None
) -> RaterAgreement:
    """The share of pairs of ratings of one item that are equal, 0..1, mean over the items.

    Of two raters it is the share of items that they rate alike. The interval is `mean_interval`'s.

    Args:
        ratings, clusters: as of `fleiss_kappa`.

    Raises:
        InputError: `clusters` has another length.
    """
    equal, _, rated = _pairs(ratings)
    labels, n = _labels(rated, clusters), len(equal)
    if not n:
        return RaterAgreement(None, None, 0, 0, len(rated))
    return RaterAgreement(float(equal.mean()), mean_interval(equal, labels), n, len(set(labels)), len(rated) - n)


def _pairs(ratings: Sequence[Sequence[Rating]]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Of items with two ratings: (n,) share of equal pairs, (n, categories) shares; and (items,) which they are."""
    names = {rating for item in ratings for rating in item if rating is not None}
    place = {name: index for index, name in enumerate(sorted(names))}
    counts = np.zeros((len(ratings), max(len(place), 1)))
    for row, item in zip(counts, ratings, strict=True):
        for rating in item:
            if rating is not None:
                row[place[rating]] += 1.0
    total = counts.sum(axis=1)
    rated = total >= 2
    counts, total = counts[rated], total[rated]
    equal = (counts * (counts - 1.0)).sum(axis=1) / (total * (total - 1.0))
    return equal, counts / total[:, None], rated


def _codes(ratings: Sequence[tuple[Rating, Rating]]) -> tuple[NDArray[np.int64], int]:
    """(n, 2) number of each category, -1 for a missing rating, and how many categories there are, at least 1."""
    names = sorted({rating for pair in ratings for rating in pair if rating is not None})
    place: dict[Rating, int] = {name: index for index, name in enumerate(names)}
    code = np.array([[place.get(rating, -1) for rating in pair] for pair in ratings], np.int64)
    return code.reshape(len(ratings), 2), max(len(names), 1)


def _labels(rated: NDArray[np.bool_], clusters: Sequence[Hashable] | None) -> list[str]:
    """The cluster of each rated item."""
    if clusters is not None:
        _same_length(clusters, rated)
    return [str(number) if clusters is None else repr(clusters[number]) for number in np.flatnonzero(rated).tolist()]


def _drawn_sums(parts: Floats, labels: Sequence[str], *seed: object) -> Floats:
    """(1 + draws, m) sums of the parts (n, m) of items in clusters: first of all items, then of clusters drawn."""
    if not labels:
        return np.zeros((1, parts.shape[1]))
    drawn = resamples(labels, "raters", *seed)
    sums = np.zeros((drawn.weights.shape[1], parts.shape[1]))
    order = np.lexsort((*parts.T, drawn.scene))  # the last bit of a sum depends on the order
    np.add.at(sums, drawn.scene[order], parts[order])
    return np.vstack([np.ones((1, len(sums))), drawn.weights]) @ sums


def _kappa(observed: Floats, expected: Floats) -> Floats:
    """NaN where chance alone agrees fully."""
    left = 1.0 - expected
    return np.divide(observed - expected, left, out=np.full(len(left), np.nan), where=left > _ROUNDING)


def _agreement(kappas: Floats, rated: NDArray[np.bool_], labels: Sequence[str]) -> RaterAgreement:
    """From the kappa of all items and those of the draws."""
    value, clusters = float(kappas[0]), len(set(labels))
    left_out = len(rated) - len(labels)
    if not labels or math.isnan(value):
        return RaterAgreement(None, None, len(labels), clusters, left_out)
    return RaterAgreement(value, _interval(value, kappas[1:], clusters), len(labels), clusters, left_out)


def _interval(kappa: float, draws: Floats, clusters: int) -> Interval | None:
    """In Fisher's transform, with the deviation of the draws and Student's quantile for clusters less one.

    Ours: it held 94 to 98 % of simulated kappas of .5 to .9 from 30 to 1,600 items, where percentiles of the draws held
    92 to 95 %.
    """
    known = draws[~np.isnan(draws)]
    if clusters < 2 or abs(kappa) > 1.0 - _ROUNDING or not len(known) or float(np.ptp(known)) < _ROUNDING:
        return None
    deviation = float(known.std()) * math.sqrt(clusters / (clusters - 1))
    half = float(student(clusters - 1)) * deviation / (1.0 - kappa**2)
    return math.tanh(math.atanh(kappa) - half), math.tanh(math.atanh(kappa) + half)


def _same_length(one: Sequence[object] | NDArray[np.bool_], other: Sequence[object] | NDArray[np.bool_]) -> None:
    if len(one) != len(other):
        raise InputError(f"ratings and clusters belong to the same items, but there are {len(one)} and {len(other)}")
