"""Kappas of raters: equal to other implementations, defined where nothing is known, and as wide as they must be."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import InputError
from merton.statistics.raters import cohen_kappa, fleiss_kappa, percent_agreement

DIAGNOSES = """00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006"""
"""Fleiss 1971, table 1: how many of six psychiatrists gave each of 30 patients each of five diagnoses."""


def pair(n: int, categories: int, agree: float, seed: int = 0) -> tuple[list[str], list[str]]:
    """Two raters that agree beyond chance in a share of items."""
    rng = np.random.default_rng(seed)
    one, other = rng.integers(0, categories, (2, n))
    other = np.where(rng.random(n) < agree, one, other)
    return [f"c{value}" for value in one], [f"c{value}" for value in other]


@pytest.mark.parametrize("categories", [2, 5, 25])
def test_cohens_kappa_is_that_of_scikit_learn(categories: int) -> None:
    from sklearn.metrics import cohen_kappa_score

    one, other = pair(300, categories, 0.6)
    assert cohen_kappa(one, other).value == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)


def test_fleiss_kappa_of_his_own_table() -> None:
    ratings = [[str(kind) for kind, times in enumerate(row) for _ in range(int(times))] for row in DIAGNOSES.split()]
    found = fleiss_kappa(ratings)
    assert found.value == pytest.approx(0.43024452006014074, abs=1e-12)  # statsmodels 0.15.0; printed there: .430
    assert percent_agreement(ratings).value == pytest.approx(0.5556, abs=5e-5)  # printed there
    assert found.interval is not None
    assert found.interval[0] < 0.43 < found.interval[1]


def test_items_with_fewer_than_two_ratings_are_left_out() -> None:
    one, other = pair(60, 3, 0.5)
    whole = cohen_kappa(one, other)
    some = cohen_kappa([*one, "c0", None, None], [*other, None, "c1", None])
    assert (some.value, some.n, some.left_out) == (whole.value, 60, 3)
    rows = [list(row) for row in zip(one, other, strict=True)]
    fleiss = fleiss_kappa([*rows, ["c0", None], [None, None]])
    assert (fleiss.value, fleiss.n, fleiss.left_out) == (fleiss_kappa(rows).value, 60, 2)
    assert percent_agreement([*rows, ["c0"]]).left_out == 1


def test_a_category_that_one_item_alone_has_counts_in_the_chance_of_rated_items_only() -> None:
    assert cohen_kappa(["a", "b", "a", "z"], ["a", "b", "b", None]).value == pytest.approx(0.4)  # by hand: 2/3, 4/9


@pytest.mark.parametrize("ratings", [[], [("a", None)], [("a", "a")] * 5])
def test_a_kappa_is_undefined_without_pairs_or_with_one_category(ratings: list[tuple[str, str | None]]) -> None:
    for found in (cohen_kappa([a for a, _ in ratings], [b for _, b in ratings]), fleiss_kappa(ratings)):
        assert (found.value, found.interval, found.shown) == (None, None, "undefined")
    share = percent_agreement(ratings)
    assert share.value == (1.0 if len(ratings) == 5 else None)


def test_full_agreement_has_a_kappa_and_no_interval() -> None:
    found = cohen_kappa(["a", "b"] * 10, ["a", "b"] * 10)
    assert (found.value, found.interval, found.shown) == (pytest.approx(1.0), None, "1.00 no interval")


def test_the_interval_is_clustered() -> None:
    """Each item four times over: the kappa of items is as sure as that of a quarter of them."""
    one, other = pair(80, 4, 0.6)
    scenes = [str(number) for number in range(80)]
    single, repeated = cohen_kappa(one, other, scenes), cohen_kappa(one * 4, other * 4, scenes * 4)
    assert single.interval is not None
    assert repeated.interval == pytest.approx(single.interval, abs=1e-12)
    careless = cohen_kappa(one * 4, other * 4).interval
    assert careless is not None
    assert careless[1] - careless[0] == pytest.approx((single.interval[1] - single.interval[0]) / 2, rel=0.1)
    assert cohen_kappa(one, other, ["one scene"] * 80).interval is None
    rows = list(zip(one, other, strict=True))
    assert fleiss_kappa(rows * 4, scenes * 4).interval == pytest.approx(fleiss_kappa(rows, scenes).interval)


def test_the_order_of_items_does_not_matter() -> None:
    one, other = pair(80, 4, 0.6)
    scenes = [number // 4 for number in range(80)]
    order = np.random.default_rng(1).permutation(80)
    shuffled = ([values[place] for place in order] for values in (one, other, scenes))
    assert cohen_kappa(*shuffled) == cohen_kappa(one, other, scenes)
    rows = [[a, b, a] if number % 3 else [a, b] for number, (a, b) in enumerate(zip(one, other, strict=True))]
    assert fleiss_kappa([rows[place] for place in order], [scenes[place] for place in order]) == fleiss_kappa(
        rows, scenes
    )


def test_intervals_hold_a_known_kappa_as_often_as_they_should() -> None:
    """A hundred samples of 100 items with kappa .7: in 95 % of them, and never outside of what chance allows."""
    held = 0
    for seed in range(100):
        ends = cohen_kappa(*pair(100, 2, 0.7, seed)).interval
        held += ends is not None and ends[0] <= 0.7 <= ends[1]
    assert held >= 89  # one in a hundred sets of samples of a true 95 % holds fewer


def test_ratings_of_different_items_are_refused() -> None:
    with pytest.raises(InputError, match="same items, but there are 2 and 3"):
        cohen_kappa(["a", "b"], ["a", "b", "c"])
    with pytest.raises(InputError, match="same items, but there are 1 and 2"):
        fleiss_kappa([["a", "b"], ["a", "a"]], ["scene"])
