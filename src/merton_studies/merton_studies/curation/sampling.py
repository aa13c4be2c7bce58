"""Different questions kept of each dimension, copies left out (A2Eval, section 3.1, equations 5 and 6).

The paper gives K = 500 and "the example closest to each of the K cluster centroids". It is silent on the start of
k-means, on its seed, and on one example that is closest to two centroids. Ours:

1. Questions are ordered by the hashes of their vectors, so that the order of a pool changes nothing.
2. KMeans(n_clusters=K, n_init=1, random_state=seed) of scikit-learn, which starts with k-means++ and moves the centroid
   of an empty cluster to the farthest question. One thread: the sums of several depend on which ends first.
3. Of all pairs of a centroid and a question the nearest is taken first, then the nearest of which neither is taken, and
   so on. So each centroid gets a question of its own, and exactly K are kept.
4. With fewer than K different vectors, each is its own centroid, and copies fill the rest.
"""

from __future__ import annotations

import hashlib
import heapq
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError, UnknownNameError, require
from merton.seeding import generator
from merton_studies.curation.taxonomy import OTHER

PER_DIMENSION = 500
"""K of the paper, for every dimension."""

STRATEGIES: Mapping[str, str] = {
    "diverse": "k-means in each dimension, the nearest to each centroid (equation 5)",
    "facility_location": "in each dimension, greedily the question that shortens distances to the nearest kept most",
    "dimension": "uniform in each dimension",
    "proportional": "uniform in each source, as many of each as its share of the pool",
    "random": "uniform over the pool",
}
"""Name of a way to sample to what it does. The paper's Table 4 compares diverse, dimension and proportional.

facility_location is the stronger one: greedy k-median (Cornuejols, Fisher and Nemhauser 1977; within 1 - 1/e of the
best), as it lowers the very distance that coverage is measured by. k-center greedy bounds the largest distance instead,
for which it keeps outliers.
"""
UNSEEDED = ("facility_location",)
"""Ways that keep the same questions for every seed."""

Vectors = NDArray[np.float32]
Integers = NDArray[np.intp]
_CANDIDATES = 64
"""Questions whose gain facility location computes at once."""


@dataclass(frozen=True)
class Selection:
    """Questions that are kept, of n, in the order of the clusters.

    Attributes:
        indices: (min(k, n),) rows of the vectors, each once.
        cluster: (min(k, n),) number of the cluster, from 0.
        distance: (min(k, n),) to the centroid, 0..2.
    """

    indices: Integers
    cluster: Integers
    distance: NDArray[np.float64]


@dataclass(frozen=True)
class Kept:
    """A question that is kept.

    Attributes:
        index: row of the vectors.
        dimension: assigned.
        cluster: number in its dimension, from 0; None where the strategy has no clusters.
        distance: to the centroid, 0..2; None where the strategy has no clusters.
    """

    index: int
    dimension: str
    cluster: int | None
    distance: float | None


def select(vectors: ArrayLike, k: int = PER_DIMENSION, seed: int = 0) -> Selection:
    """Equation 5 for one dimension. Where n <= k all are kept, each its own cluster, at the distance 0.

    Args:
        vectors: (n, d) rows of norm 1.
        k: how many to keep, at least 1.
        seed: of k-means, 0 .. 2**32 - 1.

    Raises:
        InputError: no table of finite numbers, or k or seed out of range.
        MissingDependencyError: scikit-learn is not installed.
    """
    rows = _checked(vectors, k, seed)
    order = by_content(rows)
    if len(rows) <= k:
        return Selection(order, np.arange(len(rows)), np.zeros(len(rows)))
    ordered = rows[order]
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    if fresh.sum() <= k:  # every vector is a centroid, copies fill the rest
        cluster = np.cumsum(fresh) - 1
        kept = np.argsort(~fresh, kind="stable")[:k]
        kept = np.sort(kept)
        return Selection(order[kept], cluster[kept], np.zeros(k))
    with one_thread():
        nearest, distance = _one_each(ordered, _centroids(ordered, k, seed))
    return Selection(order[nearest], np.arange(k), distance)


def sample(
    assigned: Sequence[str],
    vectors: ArrayLike,
    k: int = PER_DIMENSION,
    seed: int = 0,
    strategy: str = "diverse",
    sources: Sequence[str] = (),
    among: Collection[int] | None = None,
) -> list[Kept]:
    """Keep at most k questions of each dimension; "Other" is left out (equation 6), with any strategy.

    Args:
        assigned: (n,) dimension of each question.
        vectors: (n, d) rows of norm 1, in the same order.
        k: most that are kept of a dimension. "proportional" and "random", which know no dimensions, keep as many in all
            as the others do.
        seed: 0 .. 2**32 - 1.
        strategy: one of `STRATEGIES`.
        sources: (n,) benchmark of each question; "proportional" needs it.
        among: rows that may be kept, such as those of `redundancy.without_restatements`; None: all.

    Returns:
        By the names of the dimensions, then by cluster, or by row where there are none.

    Raises:
        InputError: inputs of different lengths, no such strategy, or as for `select`.
        MissingDependencyError: scikit-learn is not installed.
    """
    if strategy not in STRATEGIES:
        raise UnknownNameError("sampling strategy", strategy, STRATEGIES)
    rows = _checked(vectors, k, seed)
    if len(rows) != len(assigned):
        raise InputError(f"{len(assigned)} questions are assigned, but {len(rows)} have a vector")
    may = np.ones(len(rows), bool)
    if among is not None:
        may[:] = False
        may[list(among)] = True
    names = sorted(set(assigned) - {OTHER})
    members = {name: np.flatnonzero((np.asarray(assigned) == name) & may) for name in names}
    if strategy in ("proportional", "random"):
        chosen = _of_the_whole(members, rows, k, seed, sources if strategy == "proportional" else None)
        return [Kept(int(index), name, None, None) for name in members for index in members[name] if index in chosen]
    kept = []
    for name, indices in members.items():
        if strategy == "diverse":
            found = select(rows[indices], k, seed)
            kept += [
                Kept(int(indices[index]), name, int(cluster), float(distance))
                for index, cluster, distance in zip(found.indices, found.cluster, found.distance, strict=True)
            ]
        else:
            few = _uniform(rows[indices], k, seed, name) if strategy == "dimension" else _median(rows[indices], k)
            kept += [Kept(int(indices[index]), name, None, None) for index in np.sort(few)]
    return kept


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra in one thread, so that its sums have one order.

    Raises:
        MissingDependencyError: scikit-learn, with which threadpoolctl comes, is not installed.
    """
    control = require("threadpoolctl", "curation", "sampling")
    with control.threadpool_limits(1):
        yield


def _checked(vectors: ArrayLike, k: int, seed: int) -> Vectors:
    rows = np.ascontiguousarray(vectors, np.float32) + 0.0  # no negative zero: its bytes differ
    if rows.ndim != 2:
        raise InputError(f"vectors are a table with a row for each question, got the shape {rows.shape}")
    wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(wrong):
        raise InputError(f"the vector of question {wrong[0]} has a value that is not finite")
    if k < 1:
        raise InputError(f"at least one question of a dimension is kept, got {k}")
    if not 0 <= seed < 2**32:
        raise InputError(f"a seed is a whole number from 0 to {2**32 - 1}, got {seed}")
    return rows


def by_content(rows: Vectors) -> Integers:
    """The rows in the order of their hashes; copies stay in theirs."""
    hashes = [hashlib.sha256(row.tobytes()).digest() for row in rows]
    return np.array(sorted(range(len(rows)), key=hashes.__getitem__), np.intp)


def _centroids(rows: Vectors, k: int, seed: int) -> Vectors:
    cluster = require("sklearn.cluster", "curation", "sampling")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # vectors that are nearly equal may leave a cluster empty to the end
        fitted = cluster.KMeans(n_clusters=k, n_init=1, random_state=seed).fit(rows)
    return np.asarray(fitted.cluster_centers_, np.float32)


def _one_each(rows: Vectors, centroids: Vectors) -> tuple[Integers, NDArray[np.float64]]:
    """For each centroid a row of its own and their distance, the nearest pairs first."""
    distances = pair_distances(centroids, rows)
    firsts = distances.argmin(axis=1)
    heap = [(float(distances[k, first]), int(first), k) for k, first in enumerate(firsts)]
    heapq.heapify(heap)
    nearest = np.full(len(centroids), -1, np.intp)
    free = np.ones(len(rows), bool)
    while heap:
        _, index, k = heapq.heappop(heap)
        if free[index]:
            nearest[k], free[index] = index, False
        else:
            another = int(np.where(free, distances[k], np.inf).argmin())
            heapq.heappush(heap, (float(distances[k, another]), another, k))
    return nearest, distances[np.arange(len(centroids)), nearest].astype(np.float64)


def pair_distances(ours: NDArray[np.floating], others: NDArray[np.floating]) -> NDArray[np.float64]:
    """(a, b) Euclidean distances between the rows of two tables."""
    one, other = np.asarray(ours, np.float64), np.asarray(others, np.float64)
    squares = one @ other.T
    squares *= -2.0
    squares += np.einsum("ij,ij->i", one, one)[:, None]
    squares += np.einsum("ij,ij->i", other, other)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares))


def _uniform(rows: Vectors, k: int, *seed: object) -> Integers:
    """At most k rows, each as likely as any other."""
    order = by_content(rows)
    return np.asarray(order[generator("sampling", *seed).permutation(len(rows))[:k]])


def _of_the_whole(
    members: Mapping[str, Integers], rows: Vectors, k: int, seed: int, sources: Sequence[str] | None
) -> set[int]:
    """Rows drawn without regard to dimensions, as many as min(k, n) of each dimension are together."""
    total = sum(min(k, len(indices)) for indices in members.values())
    pool = np.sort(np.concatenate([*members.values(), np.zeros(0, np.intp)]))
    if sources is None:
        return set(pool[_uniform(rows[pool], total, seed, "random")].tolist())
    if len(sources) != len(rows):
        raise InputError(f"proportional sampling needs the source of each of {len(rows)} questions, got {len(sources)}")
    of = np.asarray(sources)[pool]
    names, counts = np.unique(of, return_counts=True)
    chosen: set[int] = set()
    for name, few in zip(names, shares(counts, total), strict=True):
        own = pool[of == name]
        chosen |= set(own[_uniform(rows[own], few, seed, "proportional", name)].tolist())
    return chosen


def shares(counts: Sequence[int] | Integers, total: int) -> list[int]:
    """Whole numbers with this total, in proportion to some counts: the largest remainders are rounded up (Hamilton)."""
    exact = np.asarray(counts, float) * total / max(int(np.sum(counts)), 1)
    whole = np.floor(exact).astype(int)
    whole[np.argsort(whole - exact, kind="stable")[: total - int(whole.sum())]] += 1
    return [int(value) for value in whole]


def _median(rows: Vectors, k: int) -> Integers:
    """Greedy k-median, lazily: a gain never grows, so an old one is a bound (Minoux 1978)."""
    order = by_content(rows)
    if len(rows) <= k:
        return order
    ordered = rows[order].astype(np.float64)
    with one_thread():
        nearest = np.full(len(rows), 2.0)  # the farthest that two rows of norm 1 can be
        bound = np.full(len(rows), np.inf)
        picked: list[int] = []
        while len(picked) < k:
            fresh = np.zeros(len(rows), bool)
            while not fresh[best := int(bound.argmax())]:
                some = np.argsort(-bound, kind="stable")
                some = some[~fresh[some]][:_CANDIDATES]
                gains = np.maximum(nearest - pair_distances(ordered[some], ordered), 0.0)
                bound[some], fresh[some] = gains.sum(axis=1), True
            picked.append(best)
            nearest = np.minimum(nearest, pair_distances(ordered[[best]], ordered)[0])
            bound[best] = -1.0
    return order[np.array(picked)]
