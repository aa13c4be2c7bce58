"""Agreement of raters: Cohen's kappa, also weighted and of all pairs, Fleiss' kappa, and the share of equal ratings.

All with 95 % intervals for items in clusters, such as scenes. Krippendorff's alpha is in `merton.statistics.alpha`, the
intraclass correlation in `merton.statistics.intraclass`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from merton.statistics.means import mean_interval
from merton.statistics.rater_draws import (
    Floats,
    RaterAgreement,
    beyond_chance,
    drawn_sums,
    labels_of,
    of_draws,
    same_length,
)

__all__ = [
    "PairKappa",
    "PooledKappa",
    "RaterAgreement",
    "Rating",
    "cohen_kappa",
    "fleiss_kappa",
    "percent_agreement",
    "pooled_kappa",
    "weighted_kappa",
]

Rating = str | None
"""A category, or None where a rater gave none."""

Item = TypeVar("Item", bound=Hashable)

_LEAST_EXPECTED = 1e-9


@dataclass(frozen=True)
class PairKappa:
    """The kappa of two raters on the items that both of them rated."""

    first: str
    second: str
    kappa: RaterAgreement


@dataclass(frozen=True)
class PooledKappa:
    """The kappa of all pairs of raters together, and of each pair by name."""

    kappa: RaterAgreement
    pairs: tuple[PairKappa, ...]


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
    same_length(one, other)
    code, categories = _codes(list(zip(one, other, strict=True)))
    rated: NDArray[np.bool_] = np.all(code >= 0, axis=1)
    shares = np.eye(categories)[code[rated]]
    parts = np.column_stack([code[rated, 0] == code[rated, 1], shares[:, 0], shares[:, 1]])
    labels = labels_of(rated, clusters)
    sums = drawn_sums(parts, labels, "cohen", seed)
    n = sums[:, 1 : 1 + categories].sum(axis=1)
    expected = (sums[:, 1 : 1 + categories] * sums[:, 1 + categories :]).sum(axis=1) / np.maximum(n, 1.0) ** 2
    return of_draws(beyond_chance(sums[:, 0] / np.maximum(n, 1.0), expected), rated, labels)


def weighted_kappa(
    one: Sequence[float | None],
    other: Sequence[float | None],
    weights: Literal["linear", "quadratic"] = "quadratic",
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> RaterAgreement:
    """Agreement of two raters on an ordered scale beyond chance, where a near miss counts less (Cohen 1968).

    1 - d_o / d_e: d is the distance of two scores, or its square; d_o its mean over the items, d_e the one expected of
    independent raters who use each score as often as these two.

    Args:
        one, other: the score of each item by either rater, in the same order; None for a missing one.
        weights: "linear": the distance; "quadratic": its square.
        clusters, seed: as of `cohen_kappa`.

    Raises:
        InputError: the sequences differ in length.
    """
    same_length(one, other)
    names = sorted({score for score in (*one, *other) if score is not None})
    code, _ = _codes(list(zip(one, other, strict=True)))
    scale = np.array(names or [0.0], np.float64)
    distance = np.abs(scale[:, None] - scale) / max(float(np.ptp(scale)), 1e-300)
    if weights == "quadratic":
        distance = distance**2
    rated: NDArray[np.bool_] = np.all(code >= 0, axis=1)
    shares = np.eye(len(scale))[code[rated]]
    parts = np.column_stack([distance[code[rated, 0], code[rated, 1]], shares[:, 0], shares[:, 1]])
    labels = labels_of(rated, clusters)
    sums = drawn_sums(parts, labels, "weighted", weights, seed)
    first, second = sums[:, 1 : 1 + len(scale)], sums[:, 1 + len(scale) :]
    n = np.maximum(first.sum(axis=1), 1.0)
    expected = ((first @ distance) * second).sum(axis=1) / n**2
    return of_draws(beyond_chance(1.0 - sums[:, 0] / n, 1.0 - expected), rated, labels)


def pooled_kappa(
    scores: Mapping[tuple[str, Item], float], clusters: Mapping[Item, Hashable] | None = None, seed: int = 0
) -> PooledKappa:
    """Agreement of all pairs of raters on an ordered scale beyond chance, with quadratic weights.

    Of a pair 1 - observed / expected, as `weighted_kappa`: the sum of squared differences over the items that both
    rated, and its mean over all ways to shuffle one of the two. Of all pairs 1 - sum of observed / sum of expected (De
    Vries and others 2008), which is robust against a pair that never varies.

    Args:
        scores: (rater, item) to score; raters may have rated different items.
        clusters: item to its scene; each item by itself if not given.
        seed: of the bootstrap.
    """
    by_rater: defaultdict[str, dict[Item, float]] = defaultdict(dict)
    for (rater, item), score in scores.items():
        by_rater[rater][item] = score
    items = sorted({item for _, item in scores}, key=repr)
    centre = float(np.mean(list(scores.values()))) if scores else 0.0
    pairs: dict[tuple[str, str], Floats] = {}
    for first, second in combinations(sorted(by_rater), 2):
        both = by_rater[first].keys() & by_rater[second].keys()
        if both:
            pairs[first, second] = np.array(
                [
                    (1.0, by_rater[first][item] - centre, by_rater[second][item] - centre)
                    if item in both
                    else (0.0, 0.0, 0.0)
                    for item in items
                ]
            )
    labels_of_items = None if clusters is None else [clusters[item] for item in items]
    counts = np.array([values[:, 0] for values in pairs.values()]).reshape(len(pairs), len(items))
    rated = counts.sum(axis=0) > 0.0
    labels = labels_of(rated, labels_of_items)
    sums = {pair: _squared_differences(values[rated], labels, seed) for pair, values in pairs.items()}
    total = sum(sums.values(), np.zeros((1, 2)))
    alone = []
    for (first, second), values in pairs.items():
        together = values[:, 0] > 0
        own = labels_of(together, labels_of_items)
        rated_all = np.array_equal(together, rated)  # then the draws are those of the total
        drawn = sums[first, second] if rated_all else _squared_differences(values[together], own, seed)
        kappa = _of_sums(drawn, together, own)
        alone.append(PairKappa(first, second, kappa))
    return PooledKappa(_of_sums(total, rated, labels), tuple(alone))


def _squared_differences(values: Floats, labels: Sequence[str], seed: int) -> Floats:
    """(1 + draws, 2) observed and expected sums of squared differences of a pair; values (n, 3): 1 where both rated an
    item, else 0, and the two scores."""
    both, a, b = values.T
    parts = np.column_stack([both, (a - b) ** 2, a**2 + b**2, a, b])
    n, observed, squares, one, other = drawn_sums(parts, labels, "weighted", "quadratic", seed).T
    return np.column_stack([observed, squares - 2.0 * one * other / np.maximum(n, 1.0)])


def _of_sums(sums: Floats, rated: NDArray[np.bool_], labels: Sequence[str]) -> RaterAgreement:
    """The kappa of `_squared_differences`; undefined where no score varies."""
    observed, expected = sums.T
    defined = expected > _LEAST_EXPECTED
    ratio = np.divide(observed, expected, out=np.full(len(sums), np.nan), where=defined)
    return of_draws(1.0 - ratio, rated, labels)


def fleiss_kappa(
    ratings: Sequence[Sequence[Rating]], clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> RaterAgreement:
    """Agreement of any number of raters beyond chance (Fleiss 1971).

    p_o is the mean over items of the share of pairs of ratings that are equal, p_e the sum of the squared shares of the
    categories. Items may have different numbers of ratings; each item then weighs the same in both (Gwet 2014, section
    2.4). The identity of a rater plays no part.

    Args:
        ratings: for each item the categories that its raters gave; None for a missing one.
        clusters, seed: as of `cohen_kappa`.

    Raises:
        InputError: `clusters` has another length.
    """
    equal, shares, rated = _pairs(ratings)
    labels = labels_of(rated, clusters)
    sums = drawn_sums(np.column_stack([equal, shares]), labels, "fleiss", seed)
    n = np.maximum(sums[:, 1:].sum(axis=1), 1.0)
    return of_draws(beyond_chance(sums[:, 0] / n, ((sums[:, 1:] / n[:, None]) ** 2).sum(axis=1)), rated, labels)


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
    labels, n = labels_of(rated, clusters), len(equal)
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


def _codes(ratings: Sequence[tuple[str | float | None, str | float | None]]) -> tuple[NDArray[np.int64], int]:
    """(n, 2) number of each category, -1 for a missing rating, and how many categories there are, at least 1."""
    names = sorted({rating for pair in ratings for rating in pair if rating is not None}, key=lambda name: (name,))
    place: dict[str | float | None, int] = {name: index for index, name in enumerate(names)}
    code = np.array([[place.get(rating, -1) for rating in pair] for pair in ratings], np.int64)
    return code.reshape(len(ratings), 2), max(len(names), 1)
