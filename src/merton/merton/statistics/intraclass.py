"""Intraclass correlations of raters' scores (Shrout and Fleiss 1979), for complete and incomplete designs."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import fisher_z, from_fisher_z, middle, student
from merton.statistics.rater_draws import (
    ROUNDING,
    Floats,
    RaterAgreement,
    drawn_sums,
    labels_of,
    of_draws,
)

MOST_RATERS = 60
"""With more raters the forms for two ways have no interval: each draw takes the third power of their number."""


@dataclass(frozen=True)
class Intraclass:
    """The share of the variance of scores that is the items' own, by what else varies; at most 1.

    Attributes:
        one_way: ICC(1): each item has raters of its own; differences of raters are noise like any other.
        two_way: ICC(2,1): absolute agreement of raters who stand for others like them. Its interval allows for these
            others, so with few raters it is wide.
        consistency: ICC(3,1): of these very raters, whose leniency does not count.
        mean: ICC(2,k): as `two_way`, of the mean of an item's ratings.
        k: ratings of an item, harmonic mean over the items.
    """

    one_way: RaterAgreement
    two_way: RaterAgreement
    consistency: RaterAgreement
    mean: RaterAgreement
    k: float


def intraclass(
    ratings: Sequence[Mapping[str, float]], clusters: Sequence[Hashable] | None = None, seed: int = 0
) -> Intraclass:
    """The intraclass correlations of scores.

    Variances are those of the analysis of variance; where ratings are missing, of the fitting of constants (Searle,
    Casella and McCulloch 1992, section 5.6, "Henderson's Method III"), which is the same for complete tables.

    Args:
        ratings: for each item rater to score; an item with fewer than two plays no part.
        clusters: the scene of each item; each item by itself if not given.
        seed: of the bootstrap.

    Raises:
        InputError: `clusters` has another length.
    """
    rated = np.array([len(item) >= 2 for item in ratings], bool)
    labels = labels_of(rated, clusters)
    items = [item for item in ratings if len(item) >= 2]
    raters = sorted({rater for item in items for rater in item})
    if not items:
        nothing = of_draws(np.full(1, np.nan), rated, labels)
        return Intraclass(nothing, nothing, nothing, nothing, 0.0)
    scores = np.array([[item.get(rater, np.nan) for rater in raters] for item in items], np.float64)
    scores -= np.nanmean(scores)
    scores /= max(float(np.nanstd(scores)), 1e-300)
    k = 1.0 / float(np.mean(1.0 / (~np.isnan(scores)).sum(axis=1)))
    one_way = of_draws(_one_way(scores, labels, seed), rated, labels, k)
    parts = _two_way(scores, labels, seed)
    consistency = of_draws(_ratio(parts.items, parts.items + parts.error), rated, labels, k)
    value = float(_ratio(parts.items, parts.items + parts.raters + parts.error)[0])
    two_way = replace(consistency, value=None, interval=None)
    if not math.isnan(value):
        two_way = replace(consistency, value=value, interval=_for_other_raters(parts, consistency, k, seed))
    return Intraclass(one_way, two_way, consistency, averaged(two_way, k), k)


def averaged(single: RaterAgreement, k: float) -> RaterAgreement:
    """The reliability of the mean of k ratings from that of one (Spearman 1910, Brown 1910).

    Undefined where so many ratings have none: 1 + (k - 1) value <= 0.
    """

    def stepped(value: float) -> float:
        return k * value / (1.0 + (k - 1.0) * value)

    def has_one(value: float) -> bool:
        return 1.0 + (k - 1.0) * value > ROUNDING

    if single.value is None or not has_one(single.value):
        return replace(single, value=None, interval=None)
    ends = single.interval
    if ends is not None:
        ends = Interval(stepped(ends.low), stepped(ends.high)) if has_one(ends[0]) else None
    return replace(single, value=stepped(single.value), interval=ends)


def _one_way(scores: Floats, labels: Sequence[str], seed: int) -> Floats:
    """(1 + draws,) ICC(1) of scores (items, raters), NaN where missing."""
    there = ~np.isnan(scores)
    values = np.where(there, scores, 0.0)
    n, total = there.sum(axis=1).astype(float), values.sum(axis=1)
    parts = np.column_stack([np.ones(len(n)), n, n**2, (values**2).sum(axis=1), total**2 / n, total])
    a, count, squares, t_0, t_a, y = drawn_sums(parts, labels, "intraclass", seed).T
    within = _ratio(t_0 - t_a, count - a)
    each = _ratio(count - squares / count, a - 1.0)
    between = _ratio(t_a - y**2 / count, a - 1.0)
    items = (between - within) / each
    return _ratio(items, items + within)


@dataclass(frozen=True)
class _Variances:
    """Of all items, then of each draw: (1 + draws,) each.

    Attributes:
        items, raters, error: components of variance; may be negative.
        squares: the sum of squares of raters, adjusted for items.
        rank: its degrees of freedom.
        trace: how often `squares` holds the variance of raters.
    """

    items: Floats
    raters: Floats
    error: Floats
    squares: Floats
    rank: Floats
    trace: Floats


def _two_way(scores: Floats, labels: Sequence[str], seed: int) -> _Variances:
    there = ~np.isnan(scores)
    b = scores.shape[1]
    values = np.where(there, scores, 0.0)
    n, total = there.sum(axis=1).astype(float), values.sum(axis=1)
    shares = there / n[:, None]
    products = (shares[:, :, None] * there[:, None, :]).reshape(len(n), b * b)
    adjusted = values - there * (total / n)[:, None]
    parts = np.column_stack([np.ones(len(n)), (values**2).sum(axis=1), total**2 / n, there, values, adjusted, products])
    sums = drawn_sums(parts, labels, "intraclass", seed)[: 1 if b > MOST_RATERS else None]
    a, t_0, t_a = sums[:, 0], sums[:, 1], sums[:, 2]
    counts, totals, q = (sums[:, 3 + place * b : 3 + (place + 1) * b] for place in range(3))
    matrix = -sums[:, 3 + 3 * b :].reshape(-1, b, b)
    matrix[:, np.arange(b), np.arange(b)] += counts
    size, vectors = np.linalg.eigh(0.5 * (matrix + matrix.transpose(0, 2, 1)))
    kept = size > 1e-9 * np.maximum(size[:, -1:], 1e-300)
    along = np.einsum("dij,di->dj", vectors, q)
    squares = np.divide(along**2, size, out=np.zeros_like(size), where=kept).sum(axis=1)
    rank, count, present = kept.sum(axis=1).astype(float), counts.sum(axis=1), (counts > 0).sum(axis=1)
    t_b = np.divide(totals**2, counts, out=np.zeros_like(totals), where=counts > 0).sum(axis=1)
    error = _ratio(t_0 - t_a - squares, count - a - rank)
    items = _ratio(t_a + squares - t_b - (a + rank - present) * error, count - present)
    raters = _ratio(squares - rank * error, count - a)
    return _Variances(items, raters, error, squares, rank, count - a)


def _for_other_raters(parts: _Variances, consistency: RaterAgreement, k: float, seed: int) -> Interval | None:
    """The interval of ICC(2,1), over scenes and raters.

    Ours: the draws of scenes, stretched as those of ICC(3,1) are, each with another value of the variance of raters,
    from the distribution that its sum of squares leaves open: chi-squared with as many degrees of freedom, as in the
    generalized intervals of Weerahandi (1993).
    """
    phi = _ratio(parts.items, parts.items + parts.error)
    total = parts.items + parts.error
    transformed = fisher_z(phi, k)
    known = np.isfinite(transformed) & (total > ROUNDING)
    rank = int(parts.rank[0])
    if consistency.interval is None or not known[0] or rank < 1:
        return None
    known[0] = False
    z, clusters = transformed[known], consistency.clusters
    if not len(z):
        return None
    stretch = math.sqrt(clusters / (clusters - 1)) * float(student(clusters - 1)) / float(student(math.inf))
    drawn = from_fisher_z(transformed[0] + stretch * (z - z.mean()), k)
    chi_squared = generator("raters drawn", seed).chisquare(rank, len(z))
    open_part = (float(parts.squares[0]) / total[known]) / chi_squared - (1.0 - drawn)
    values = drawn / (1.0 + np.maximum(open_part, 0.0) * rank / float(parts.trace[0]))
    return middle(values)


def _ratio(above: Floats, below: Floats) -> Floats:
    """NaN where the part below is not positive."""
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below > ROUNDING)
