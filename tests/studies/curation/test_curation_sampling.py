"""Sampling of questions: laws of equation 5 and of the strategies beside it."""

from __future__ import annotations

import numpy as np
import pytest
from installed import skip_file_without
from numpy.typing import NDArray

from merton.errors import InputError
from merton_studies.curation.sampling import STRATEGIES, UNSEEDED, _one_each, sample, select, shares

skip_file_without("sklearn", "no scikit-learn (the extra curation)")

Vectors = NDArray[np.float32]
PAPER = {  # Table 2: questions assigned to each dimension
    "PercepObj": 6218,
    "SceneAct": 1864,
    "SpatGeo": 10565,
    "QuantNum": 3185,
    "AffdFunc": 773,
    "PhysCaus": 366,
    "DecPlan": 1104,
    "DynScene": 425,
    "Other": 19,
}


def unit(rows: NDArray[np.float64]) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def planted() -> tuple[Vectors, NDArray[np.int64]]:
    """Twelve tight clusters of unequal sizes, 5 to 16, and the cluster of each row."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(12), np.arange(5, 17))
    centers = rng.normal(size=(12, 20))
    return unit(centers[cluster] + 0.02 * rng.normal(size=(len(cluster), 20))), cluster


@pytest.mark.parametrize("k", [1, 2, 30, 125, 126, 127, 500])
def test_exactly_so_many_are_kept_and_none_twice(planted: tuple[Vectors, NDArray[np.int64]], k: int) -> None:
    vectors, _ = planted
    kept = select(vectors, k, seed=1)
    assert len(kept.indices) == len(set(kept.indices.tolist())) == min(k, len(vectors))
    assert sorted(kept.cluster.tolist()) == list(range(min(k, len(vectors))))
    assert (kept.distance >= 0).all()
    assert (k < len(vectors)) == bool(kept.distance.any())


@pytest.mark.parametrize("k", [1, 3, 4, 5, 9, 30])
def test_exact_copies_are_kept_only_when_nothing_else_is_left(k: int) -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(4, 8)))[[0, 1, 1, 1, 2, 0, 3, 3, 3, 3]]
    kept = select(vectors, k)
    assert len(set(kept.indices.tolist())) == len(kept.indices) == min(k, 10)
    assert len(np.unique(vectors[kept.indices], axis=0)) == min(k, 4)


def test_vectors_that_are_all_alike_are_enough() -> None:
    kept = select(np.ones((6, 4)) / 2, 3)
    assert len(set(kept.indices.tolist())) == 3


def test_each_planted_cluster_is_met_once(planted: tuple[Vectors, NDArray[np.int64]]) -> None:
    vectors, cluster = planted
    met = [len(set(cluster[select(vectors, 12, seed).indices].tolist())) for seed in range(10)]
    assert met.count(12) >= 9  # k-means++ may put two centroids into one cluster


def test_one_question_nearest_to_two_centroids_goes_to_the_nearer() -> None:
    rows = np.array([[0.0, 0], [1, 0], [4, 0]], np.float32)
    centroids = np.array([[1.5, 0], [1.2, 0], [9, 0]], np.float32)
    nearest, distance = _one_each(rows, centroids)
    assert nearest.tolist() == [0, 1, 2]
    np.testing.assert_allclose(distance, [1.5, 0.2, 5.0], atol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_order_of_the_pool_changes_nothing(planted: tuple[Vectors, NDArray[np.int64]], strategy: str) -> None:
    vectors, cluster = planted
    assigned = np.where(cluster % 3 == 0, "A", np.where(cluster % 3 == 1, "B", "Other"))
    sources = np.where(cluster % 2 == 0, "x", "y")
    order = np.random.default_rng(5).permutation(len(vectors))
    here = sample(assigned.tolist(), vectors, 7, 3, strategy, sources.tolist())
    there = sample(assigned[order].tolist(), vectors[order], 7, 3, strategy, sources[order].tolist())
    assert {(kept.index, kept.dimension, kept.cluster, kept.distance) for kept in here} == {
        (int(order[kept.index]), kept.dimension, kept.cluster, kept.distance) for kept in there
    }
    assert len(here) == 14
    assert {kept.dimension for kept in here} == {"A", "B"}
    assert all(assigned[kept.index] == kept.dimension for kept in here)
    other = sample(assigned.tolist(), vectors, 7, 4, strategy, sources.tolist())
    assert (other == here) == (strategy in UNSEEDED)


def test_dimensions_are_sampled_apart(planted: tuple[Vectors, NDArray[np.int64]]) -> None:
    """The rows kept of one dimension do not depend on what else is in the pool."""
    vectors, cluster = planted
    assigned = ["A" if number < 6 else "B" for number in cluster]
    both = [kept.index for kept in sample(assigned, vectors, 5) if kept.dimension == "A"]
    alone = [kept.index for kept in sample(["A"] * assigned.count("A"), vectors[: assigned.count("A")], 5)]
    assert both == alone


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_what_may_be_kept_is_kept(planted: tuple[Vectors, NDArray[np.int64]], strategy: str) -> None:
    vectors, _ = planted
    among = set(range(0, len(vectors), 3))
    kept = sample(["A"] * len(vectors), vectors, 50, 0, strategy, ["s"] * len(vectors), among)
    assert {each.index for each in kept} == among


def test_proportional_keeps_the_shares_of_the_sources() -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(60, 5)))
    sources = ["big"] * 42 + ["small"] * 18
    kept = sample(["A"] * 30 + ["B"] * 30, vectors, 10, 0, "proportional", sources)
    assert [sources[each.index] for each in kept].count("big") == 14
    assert len(kept) == 20
    assert shares([1, 1, 1], 2) == [1, 1, 0]
    assert sum(shares(list(PAPER.values()), 3791)) == 3791


def test_facility_location_takes_the_medoid_first_and_covers_best(
    planted: tuple[Vectors, NDArray[np.int64]],
) -> None:
    vectors, cluster = planted
    between = np.sqrt(np.maximum(2 - 2 * vectors.astype(float) @ vectors.T.astype(float), 0))
    (first,) = sample(["A"] * len(vectors), vectors, 1, 0, "facility_location")
    assert first.index == between.sum(axis=1).argmin()
    twelve = [kept.index for kept in sample(["A"] * len(vectors), vectors, 12, 0, "facility_location")]
    assert len(set(cluster[twelve].tolist())) == 12


def test_the_counts_of_table_2_give_3791() -> None:
    """The paper prints 3,781: its own counts through its own rule give ten more."""
    rng = np.random.default_rng(0)
    assigned = [name for name, count in PAPER.items() for _ in range(count)]
    vectors = unit(rng.normal(size=(len(assigned), 2)))
    kept = sample(assigned, vectors, 500, 0, "dimension")
    assert len(assigned) == 24519
    assert len(kept) == 500 * 6 + 366 + 425 == 3791


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"vectors": np.ones(3)}, "a row for each question"),
        ({"vectors": [[1.0, np.nan]]}, "question 0"),
        ({"k": 0}, "at least one"),
        ({"seed": -1}, "a seed is a whole number"),
    ],
)
def test_bad_input_is_named(values: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        select(**({"vectors": np.eye(2)} | values))  # type: ignore[arg-type]


def test_bad_samples_are_named() -> None:
    with pytest.raises(InputError, match=r"unknown sampling strategy 'kmeans'.*diverse"):
        sample(["A"], np.eye(1), strategy="kmeans")
    with pytest.raises(InputError, match="2 questions are assigned, but 1"):
        sample(["A", "A"], np.eye(1))
    with pytest.raises(InputError, match="the source of each"):
        sample(["A"], np.eye(1), strategy="proportional")
