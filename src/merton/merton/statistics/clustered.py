"""Rank correlations of means over trials, with intervals that resample scenes, and tests that permute units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import fisher_z, from_fisher_z, student
from merton.statistics.resampling import DRAWS, resamples

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

PERMUTATIONS = 10_000

LEAST_RELIABILITY = 0.1
"""Less is taken for this: nothing is known then either way."""

_CHUNK = 200_000
"""Values that are ranked or moved at once, so that the memory stays small."""
_UNDEFINED = Interval(math.nan, math.nan)


@dataclass(frozen=True)
class Measured:
    """Values of trials or images, each in a unit (such as a type of distortion) and in the scene that it shows.

    Attributes:
        unit: (n,) number of the unit, from 0; -1 for one that is not compared.
        scene: (n,) names.
        value: (n,); NaN where there is none.
    """

    unit: Integers
    scene: NDArray[np.str_]
    value: Floats

    @property
    def scenes(self) -> int:
        """Number of different scenes."""
        return len(np.unique(self.scene))

    def draws(self, seed: int, units: int) -> Floats:
        """(1 + DRAWS, units) mean of each unit: first of all scenes, then of scenes drawn with replacement.

        Two measurements with the same scenes get the same draws, so that their means go together.
        """
        names, scene = np.unique(self.scene, return_inverse=True)
        used = (self.unit >= 0) & ~np.isnan(self.value)
        place = scene[used] * units + self.unit[used]
        sums, counts = (
            np.bincount(place, weights, minlength=len(names) * units).reshape(len(names), units)
            for weights in (self.value[used], None)
        )
        times = scene_draws(seed, names)
        met = times @ counts
        return np.divide(times @ sums, met, out=np.full(met.shape, np.nan), where=met > 0)


def scene_draws(seed: int, names: NDArray[np.str_]) -> Floats:
    """(1 + DRAWS, scenes) how often each scene is drawn: once each, then at random, as many as there are."""
    drawn = resamples(names, "scenes", seed, *names.tolist(), draws=DRAWS)
    return np.vstack([np.ones(len(names)), drawn.weights])


def row_correlations(x: Floats, y: Floats, times: Floats | None = None) -> Floats:
    """Spearman's correlation of each row of `x` with that of `y`, -1..1, with mean ranks of ties.

    Args:
        x, y: (rows, n), or (1, n) the same values in every row; pairs with a NaN are left out.
        times: (rows, n) how often each pair counts, whole numbers >= 0; once each by default.

    Returns:
        (rows,); NaN where one side is constant or fewer than three pairs count.
    """
    counts = np.ones((max(len(x), len(y)), x.shape[1])) if times is None else times
    found, step = [], max(1, _CHUNK // max(x.shape[1], 1))
    for first in range(0, len(counts), step):
        rows = slice(first, first + step)
        one, other = (side if len(side) == 1 else side[rows] for side in (x, y))
        known = ~(np.isnan(one) | np.isnan(other))
        count = known * counts[rows]
        one, other = (_centred_ranks(np.nan_to_num(side), count) for side in (one, other))
        found.append(centred_correlations(one, other, count, 1e-9))
    return np.concatenate(found)


def centred_correlations(one: Floats, other: Floats, count: Floats, least: float | Floats) -> Floats:
    """The correlation -1..1 of each row of two sides without their means.

    Args:
        one, other: (rows, n).
        count: (rows, n) weight of each pair, >= 0.
        least: product of the sides' lengths up to which a side counts as constant.

    Returns:
        (rows,); NaN where one side is constant or fewer than three pairs count.
    """
    length = np.sqrt((count * one**2).sum(axis=1) * (count * other**2).sum(axis=1))
    product = (count * one * other).sum(axis=1)
    enough = (length > least) & ((count > 0).sum(axis=1) > 2)
    return np.clip(np.divide(product, length, out=np.full(len(product), np.nan), where=enough), -1.0, 1.0)


def pair_correlations(
    columns: Mapping[str, Floats], pairs: Sequence[tuple[str, str]], times: Floats, scene: Integers
) -> dict[tuple[str, str], Floats]:
    """`row_correlations` of several pairs of the same columns, in a memory that does not grow with rows times n.

    A column is sorted once, and ranked once a draw for all pairs that lack the same values.

    Args:
        columns: name to (n,) values.
        pairs: of names.
        times: (rows, scenes) how often each scene counts.
        scene: (n,) number of the scene.

    Returns:
        Pair to (rows,).
    """
    known = {pair: ~(np.isnan(columns[pair[0]]) | np.isnan(columns[pair[1]])) for pair in pairs}
    masks = {mask.tobytes(): mask for mask in known.values()}
    filled = {name: np.nan_to_num(column)[None, :] for name, column in columns.items()}
    orders = {name: np.argsort(column.round(9), axis=1, kind="stable") for name, column in filled.items()}
    found: dict[tuple[str, str], list[Floats]] = {pair: [] for pair in pairs}
    step = max(1, _CHUNK // max(len(scene), 1))
    for first in range(0, len(times), step):
        every = times[first : first + step][:, scene]
        for key, mask in masks.items():
            count = mask * every
            alike = [pair for pair in pairs if known[pair].tobytes() == key]
            names = dict.fromkeys(name for pair in alike for name in pair)
            ranks = {name: _centred_ranks(filled[name], count, orders[name]) for name in names}
            squares = {name: (count * ranks[name] ** 2).sum(axis=1) for name in names}
            enough = (count > 0).sum(axis=1) > 2
            for pair in alike:
                length = np.sqrt(squares[pair[0]] * squares[pair[1]])
                product = (count * ranks[pair[0]] * ranks[pair[1]]).sum(axis=1)
                valid = (length > 1e-9) & enough
                found[pair].append(np.divide(product, length, out=np.full(len(product), np.nan), where=valid))
    return {pair: np.clip(np.concatenate(parts), -1.0, 1.0) for pair, parts in found.items()}


def _centred_ranks(values: Floats, times: Floats, order: Integers | None = None) -> Floats:
    """(rows, n) mean ranks less their mean, where each value of a row, or of the one row, stands `times` times.

    `order` is that of the rounded values, if it is known.
    """
    values = values.round(9)  # a billionth is rounding, and must not decide a rank
    order = np.broadcast_to(np.argsort(values, axis=1, kind="stable") if order is None else order, times.shape)
    count = np.take_along_axis(times, order, axis=1)
    edge = np.diff(np.take_along_axis(values, order[: len(values)], axis=1), axis=1) != 0
    border = np.ones((len(values), 1), bool)
    up_to = np.cumsum(count, axis=1)
    before = np.maximum.accumulate(np.where(np.hstack([border, edge]), up_to - count, 0.0), axis=1)
    last = np.where(np.hstack([edge, border]), up_to, np.inf)
    after = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(times.shape)
    np.put_along_axis(ranks, order, (before + after + 1.0) / 2.0, axis=1)
    total = np.maximum(up_to[:, -1:], 1.0)
    return np.asarray(ranks - (times * ranks).sum(axis=1, keepdims=True) / total)


def partial(one: Floats, other_x: Floats, other_y: Floats) -> Floats:
    """The partial correlation of two rankings given a third.

    Args:
        one: their correlation.
        other_x, other_y: those of either with the third; where it does not vary (NaN) nothing is taken out.
    """
    x, y = np.nan_to_num(other_x), np.nan_to_num(other_y)
    rest = np.sqrt(np.maximum((1.0 - x**2) * (1.0 - y**2), 0.0))
    return np.clip(np.divide(one - x * y, rest, out=np.full(np.shape(one), np.nan), where=rest > 1e-9), -1.0, 1.0)


def steadied(means: Floats, scenes: int) -> tuple[Floats, float]:
    """Draws of means that scatter as means of these scenes do, and the reliability of the means.

    Means of resampled scenes scatter twice: as those of the scenes that were met, and by the draw. So each draw's
    deviation is added to means that are drawn together towards their centre until they vary as the true ones would.

    Args:
        means: (1 + DRAWS, units) of `Measured.draws`.
        scenes: how many were resampled.

    Returns:
        The same shape, the first row as it is; and the share of the first row's variance that is not due to the choice
        of scenes, 0..1 (the reliability of classical test theory).
    """
    first, rest = means[:1], means[1:] - means[:1]
    whole = float(np.nanvar(first, ddof=1)) if np.isfinite(first).sum() > 1 else 0.0
    noise = float(np.nanmean(rest**2)) * scenes / max(scenes - 1, 1)
    reliability = max(0.0, 1.0 - noise / whole) if whole > 0.0 else 0.0
    centre = np.nanmean(first) if np.isfinite(first).any() else np.nan
    return np.vstack([first, centre + np.sqrt(reliability) * (first - centre) + rest]), reliability


def correlation_interval(draws: Floats, scenes: int, units: int, reliability: float | None = None) -> Interval:
    """95 % interval of a correlation, in Fisher's transform.

    The half-width is the draws' deviation times Student's quantile for scenes less one degrees of freedom, since scenes
    are few. Scattering means weaken a correlation. So that of means reaches over two intervals: about the correlation
    as it is, and about it without the bias that the draws show (Efron and Tibshirani 1993, section 10.3), which is
    wider by the reliability (Spearman's correction for attenuation, 1904). A draw of 1 counts as half way to the next
    rank correlation that so many units can have. Ours; its coverage is in docs/reference/scores.md, and that of other
    rules for this design in docs/reference/statistics.md. Values of single trials have `correlation_left_out`.

    Args:
        draws: (1 + DRAWS,) the correlation of all scenes, then of each draw.
        scenes: how many; one gives NaN.
        units: how many were correlated.
        reliability: geometric mean of the two sides', of `steadied`; None for values that are taken as they are.
    """
    if np.isnan(draws[0]) or abs(draws[0]) > 1.0 - 1e-9:
        return _UNDEFINED
    most = 1.0 - 3.0 / (units**3 - units)  # one exchange of neighbours costs twice as much
    low, high = difference_interval(fisher_z(np.clip(draws, -most, most)), scenes, reliability)
    return Interval(float(from_fisher_z(low)), float(from_fisher_z(high)))


def difference_interval(draws: Floats, scenes: int, reliability: float | None = None) -> Interval:
    """95 % interval of any quantity, as `correlation_interval` without a transform."""
    known = draws[1:][~np.isnan(draws[1:])]
    if scenes < 2 or len(known) < DRAWS / 2 or np.isnan(draws[0]):
        return _UNDEFINED
    value = float(draws[0])
    half = float(student(scenes - 1)) * float(known.std()) * math.sqrt(scenes / (scenes - 1))
    if reliability is None:
        return Interval(value - half, value + half)
    freed, wider = 2.0 * value - float(known.mean()), half / max(reliability, LEAST_RELIABILITY)
    return Interval(min(value - half, freed - wider), max(value + half, freed + wider))


def permutation_p(x: Floats, y: Floats, seed: int, block: Integers | None = None) -> float:
    """Two-sided p of Spearman's correlation: the share of permutations with one that is at least as large.

    Args:
        x, y: (units,), or (units, repeats) whose repeats stay together, such as the trials of all agents on an image.
            Pairs with a NaN are left out.
        block: (units,) units are exchanged within their block alone; all are one block by default.

    Returns:
        (1 + hits) / (1 + PERMUTATIONS); NaN where the correlation is undefined.
    """
    one, other = (values.reshape(len(values), -1) for values in (x, y))
    known = ~(np.isnan(one) | np.isnan(other))
    count = known.astype(np.float64).reshape(1, -1)
    ranks = [
        _centred_ranks(np.where(known, side, 0.0).reshape(1, -1), count).reshape(side.shape) * known
        for side in (one, other)
    ]
    if min(float((side**2).sum()) for side in ranks) < 1e-9 or known.sum() < 3:
        return float("nan")
    rng = generator("permutations", seed)
    blocks = np.zeros(len(x), np.intp) if block is None else block
    sort = np.argsort(blocks, kind="stable")
    observed, hits = abs(float((ranks[0] * ranks[1]).sum())), 0
    step = max(1, _CHUNK // known.size)
    for first in range(0, PERMUTATIONS, step):
        keys = rng.random((min(step, PERMUTATIONS - first), len(x))) + blocks[sort]
        shuffled = sort[np.argsort(keys, axis=1)]
        moved = np.einsum("ur,pur->p", ranks[0][sort], ranks[1][shuffled])
        hits += int((np.abs(moved) >= observed - 1e-9).sum())
    return (1 + hits) / (1 + PERMUTATIONS)
