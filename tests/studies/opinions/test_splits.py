"""Divisions of a dataset's images into training and test."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton_studies.opinions.splits import SPLITS, split


def images() -> dict[str, np.ndarray]:
    """50 scenes seen by three cameras, 30 types, one level each."""
    scene, camera, kind = np.meshgrid(range(50), ("side", "top", "wrist"), range(30), indexing="ij")
    scene_name = np.array([f"s_{number:02}" for number in scene.ravel()])
    return {
        "scene": scene_name,
        "reference_id": np.array([f"{name}_{view}" for name, view in zip(scene_name, camera.ravel(), strict=True)]),
        "distortion": np.array([f"type_{number}" for number in kind.ravel()]),
        "level": 1 + (scene.ravel() + kind.ravel()) % 5,
    }


@pytest.mark.parametrize("kind", SPLITS)
def test_a_split_keeps_its_units_whole_in_the_paper_s_share(kind: str) -> None:
    columns = images()
    n = len(columns["level"])
    for seed in range(10):
        train, test = split(kind, columns, seed)
        assert sorted([*train, *test]) == list(range(n))
        assert len(test) == n // 5
        if kind != "pair":
            for name in ("scene", "reference_id") if kind == "reference" else ("distortion",):
                assert not set(columns[name][train]) & set(columns[name][test])
    assert set(columns["scene"][test]) & set(columns["scene"][train]) or kind == "reference"


@pytest.mark.parametrize("kind", SPLITS)
def test_a_split_depends_on_its_seed_and_not_on_the_order_of_images(kind: str) -> None:
    columns = images()
    order = np.random.default_rng(0).permutation(len(columns["level"]))
    shuffled = {name: values[order] for name, values in columns.items()}
    test, moved, other = split(kind, columns, 4)[1], split(kind, shuffled, 4)[1], split(kind, columns, 5)[1]
    assert set(order[moved]) == set(test)
    assert set(other) != set(test)


def test_mistakes_about_splits_are_one_sentence() -> None:
    one = {name: np.array(["a", "a"]) for name in ("scene", "reference_id", "distortion", "level")}
    with pytest.raises(InputError, match=r"^the split over reference needs at least two different ones, got 1$"):
        split("reference", one, 0)
    with pytest.raises(UnknownNameError, match="split 'refrence'"):
        split("refrence", one, 0)
