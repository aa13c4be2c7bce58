"""Weighted kappa, Krippendorff's alpha and intraclass correlations: values that were published, and what must hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from merton.errors import InputError
from merton.statistics.alpha import Scale, krippendorff_alpha
from merton.statistics.intraclass import averaged, intraclass
from merton.statistics.raters import fleiss_kappa, pooled_kappa, weighted_kappa

OBSERVERS = ("12332141 2...", "123322412 5.3", ".3332342251.", "12332441251.")
"""Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: four observers, twelve units, 1 to 5."""

JUDGES = ((9, 2, 5, 8), (6, 1, 3, 2), (8, 4, 6, 8), (7, 1, 2, 6), (10, 5, 6, 9), (6, 2, 4, 7))
"""Shrout and Fleiss 1979, table 2: six targets by four judges."""


def units() -> list[list[float | None]]:
    rows = [row.replace(" ", "") for row in OBSERVERS]
    return [[None if mark == "." else float(mark) for mark in unit] for unit in zip(*rows, strict=True)]


def judged(rows: np.ndarray) -> list[dict[str, float]]:
    return [{f"r{place}": float(v) for place, v in enumerate(row) if not math.isnan(v)} for row in rows]


def scores(n: int, raters: int, seed: int, bias: float = 0.4, noise: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (
        rng.normal(0, 1, n)[:, None] + rng.normal(0, bias, raters) + rng.normal(0, noise, (n, raters))
    )  # fmt: skip


@pytest.mark.parametrize(("scale", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_krippendorffs_own_table(scale: Scale, printed: float) -> None:
    rows = [[str(v) if v is not None and scale == "nominal" else v for v in unit] for unit in units()]
    found = krippendorff_alpha(rows, scale)
    assert found.value == pytest.approx(printed, abs=5e-4)
    assert (found.n, found.left_out) == (11, 1)  # the last unit has a single value, which counts nowhere


def test_alpha_of_two_observers_without_missing_ratings() -> None:
    """Krippendorff 2011, section B: nominal, a to e; .692 there. On a binary scale, section A: .095."""
    assert krippendorff_alpha(list(zip("aabbdcccedda", "babbbcccedd" + "d", strict=True)), "nominal").value == (
        pytest.approx(0.692, abs=5e-4)
    )
    assert krippendorff_alpha(list(zip("0100000010", "1110010000", strict=True)), "nominal").value == (
        pytest.approx(0.095, abs=5e-4)
    )


def test_intraclass_correlations_of_shrout_and_fleiss() -> None:
    """Table 4 there: .17, .29, .71; .62 of the mean of four."""
    found = intraclass(judged(np.array(JUDGES, float)))
    values = [found.one_way.value, found.two_way.value, found.consistency.value, found.mean.value]
    assert values == pytest.approx([0.17, 0.29, 0.71, 0.62], abs=5e-3)
    assert found.k == pytest.approx(4.0)
    assert averaged(found.one_way, 4).value == pytest.approx(0.44, abs=5e-3)
    assert averaged(found.consistency, 4).value == pytest.approx(0.91, abs=5e-3)
    mean, single = found.mean.interval, found.two_way.interval
    assert mean is not None
    assert single is not None
    assert mean == pytest.approx([4 * end / (1 + 3 * end) for end in single])


@pytest.mark.parametrize("weights", ["linear", "quadratic"])
def test_weighted_kappa_is_that_of_scikit_learn(weights: str) -> None:
    from sklearn.metrics import cohen_kappa_score

    one, other = (np.clip(np.round(3 + column), 1, 5) for column in scores(200, 2, 1).T)
    found = weighted_kappa(one.tolist(), other.tolist(), weights)  # type: ignore[arg-type]
    assert found.value == pytest.approx(cohen_kappa_score(one, other, weights=weights), abs=1e-12)
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]  # type: ignore[operator]


def test_the_kappa_of_two_raters_is_that_of_all_pairs_of_them() -> None:
    one, other = (np.round(column, 1).tolist() for column in scores(60, 2, 2).T)
    marks = {(who, place): v for who, row in (("x", one), ("y", other)) for place, v in enumerate(row)}
    alone, pooled = weighted_kappa(one, other), pooled_kappa(marks)
    assert pooled.kappa.value == pytest.approx(alone.value, abs=1e-12)
    assert pooled.pairs[0].kappa == pooled.kappa
    assert alone.interval is not None
    assert pooled.kappa.interval is not None
    assert pooled_kappa(marks, dict.fromkeys(range(60), "one scene")).kappa.interval is None
    scene = {place: place // 6 for place in range(60)}
    clustered = weighted_kappa(one, other, clusters=list(scene.values()))
    assert pooled_kappa(marks, scene).kappa.interval == pytest.approx(clustered.interval, abs=1e-9)
    some = weighted_kappa([*one, 3.0, None], [*other, None, None])
    assert (some.value, some.n, some.left_out) == (pytest.approx(weighted_kappa(one, other).value), 60, 2)


def test_nominal_alpha_is_fleiss_kappa_but_for_the_size_of_the_sample() -> None:
    rows = [[str(int(v)) for v in row] for row in np.clip(scores(50, 4, 3), -1, 1)]
    alpha, kappa = krippendorff_alpha(rows, "nominal").value, fleiss_kappa(rows).value
    assert alpha is not None
    assert kappa is not None
    assert 1 - alpha == pytest.approx((1 - kappa) * (1 - 1 / 200), abs=1e-12)  # Krippendorff 2011: small samples


def test_ratings_that_are_missing_move_no_intraclass_correlation_of_additive_scores() -> None:
    """Scores that are the sum of an item's and a rater's part have no error, whichever are missing."""
    rng = np.random.default_rng(4)
    table = rng.normal(0, 1, 30)[:, None] + np.array([0.0, 1.0, -1.0, 2.0])
    table[rng.random(table.shape) < 0.3] = np.nan
    found = intraclass(judged(table))
    assert found.consistency.value == pytest.approx(1.0)
    assert found.two_way.value is not None
    assert found.two_way.value < 0.7
    assert found.two_way.left_out == sum(np.isfinite(row).sum() < 2 for row in table)


def test_missing_ratings_leave_the_intraclass_correlation_unbiased() -> None:
    values = []
    for seed in range(30):
        table = scores(60, 5, seed, bias=0.0)
        table[np.random.default_rng(seed).random(table.shape) < 0.4] = np.nan
        found = intraclass(judged(table))
        values.append([found.one_way.value, found.two_way.value, found.consistency.value])
    assert np.mean(values, axis=0) == pytest.approx(np.full(3, 1 / (1 + 0.8**2)), abs=0.03)


def test_intervals_are_clustered_and_ignore_the_order() -> None:
    table = np.clip(np.round(3 + scores(40, 3, 6)), 1, 5)
    scenes = [f"s{number}" for number in range(40)]
    order = np.random.default_rng(1).permutation(120) % 40
    order = np.argsort(order, kind="stable")
    rows, labels = [row.tolist() for row in table] * 3, scenes * 3
    shuffled, moved = [rows[place] for place in order], [labels[place] for place in order]
    for scale in ("ordinal", "interval"):
        once = krippendorff_alpha(table.tolist(), scale, scenes).interval  # type: ignore[arg-type]
        thrice = krippendorff_alpha(rows, scale, labels)  # type: ignore[arg-type]
        assert once is not None
        assert thrice.interval is not None
        width = (once[1] - once[0]) / (thrice.interval[1] - thrice.interval[0])
        assert width == pytest.approx(1.0, rel=0.02)  # three copies of a scene tell no more than one
        assert krippendorff_alpha(shuffled, scale, moved) == thrice  # type: ignore[arg-type]
    known = [judged(np.array(part)) for part in (rows, shuffled)]
    assert intraclass(known[0], labels) == intraclass(known[1], moved)


def test_what_is_undefined_has_no_value() -> None:
    for rows in ([], [[3.0], [2.0]], [[3.0, 3.0]] * 4):
        for scale in ("nominal", "ordinal", "interval"):
            found = krippendorff_alpha(rows, scale)  # type: ignore[arg-type]
            assert (found.value, found.interval) == (None, None)
        items = [{f"r{place}": v for place, v in enumerate(row)} for row in rows]
        every = intraclass(items)
        assert [every.one_way.value, every.two_way.value, every.consistency.value] == [None, None, None]
    assert weighted_kappa([3.0] * 4, [3.0] * 4).value is None
    with pytest.raises(InputError, match="same items"):
        krippendorff_alpha([[1.0, 2.0]], "interval", ["a", "b"])
