"""The common parts of all coefficients of raters' agreement: result, draws of clusters, and interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.statistics.intervals import Interval, interval_text
from merton.statistics.means import fisher_z, from_fisher_z, student
from merton.statistics.resampling import resamples

Floats = NDArray[np.float64]

ROUNDING = 1e-12


@dataclass(frozen=True)
class RaterAgreement:
    """The agreement of raters, with its interval.

    Attributes:
        value: a coefficient such as a kappa, at most 1: full agreement, 0: as chance has it; or a share of equal
            ratings, 0..1. None where it is undefined: of no item with two ratings, and for a coefficient where all
            ratings are one value, so that chance alone agrees fully.
        interval: 95 %; None for a coefficient where nothing scatters, as with one cluster or if all agree.
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
        return f"{self.value:.2f} {interval_text(self.interval)}"


def labels_of(rated: NDArray[np.bool_], clusters: Sequence[Hashable] | None) -> list[str]:
    """The cluster of each rated item, or the item itself; raises InputError if `clusters` has another length."""
    if clusters is not None:
        same_length(clusters, rated)
    return [str(number) if clusters is None else repr(clusters[number]) for number in np.flatnonzero(rated).tolist()]


def drawn_sums(parts: Floats, labels: Sequence[str], *seed: object) -> Floats:
    """(1 + draws, m) sums of the parts (n, m) of items in clusters: first of all items, then of clusters drawn."""
    if not labels:
        return np.zeros((1, parts.shape[1]))
    drawn = resamples(labels, "raters", *seed)
    sums = np.zeros((drawn.weights.shape[1], parts.shape[1]))
    order = np.lexsort((*parts.T, drawn.scene))  # the last bit of a sum depends on the order
    np.add.at(sums, drawn.scene[order], parts[order])
    return np.vstack([np.ones((1, len(sums))), drawn.weights]) @ sums


def beyond_chance(observed: Floats, expected: Floats) -> Floats:
    """(observed - expected) / (1 - expected); NaN where chance alone agrees fully."""
    left = 1.0 - expected
    return np.divide(observed - expected, left, out=np.full(len(left), np.nan), where=left > ROUNDING)


def of_draws(values: Floats, rated: NDArray[np.bool_], labels: Sequence[str], ratings: float = 2.0) -> RaterAgreement:
    """From the coefficient of all items, `values[0]`, and those of the draws, after it; `ratings` as of `fisher_z`."""
    value, clusters = float(values[0]), len(set(labels))
    left_out = len(rated) - len(labels)
    if not labels or math.isnan(value):
        return RaterAgreement(None, None, len(labels), clusters, left_out)
    found = _interval(value, values[1:], clusters, ratings)
    return RaterAgreement(value, found, len(labels), clusters, left_out)


def _interval(value: float, draws: Floats, clusters: int, ratings: float) -> Interval | None:
    """In Fisher's transform, with the deviation of the draws and Student's quantile for clusters less one.

    Ours: it held 94 to 98 % of simulated kappas of .5 to .9 from 30 to 1,600 items, where percentiles of the draws held
    92 to 95 %.
    """
    known = draws[~np.isnan(draws)]
    above = 1.0 + (ratings - 1.0) * value
    if clusters < 2 or min(above, 1.0 - value) < ROUNDING or not len(known) or float(np.ptp(known)) < ROUNDING:
        return None
    deviation = float(known.std()) * math.sqrt(clusters / (clusters - 1))
    half = float(student(clusters - 1)) * deviation * ratings / (2.0 * above * (1.0 - value))
    low, high = from_fisher_z(fisher_z(np.array([value]), ratings) + np.array([-half, half]), ratings)
    return Interval(float(low), float(high))


def same_length(one: Sequence[object] | NDArray[np.bool_], other: Sequence[object] | NDArray[np.bool_]) -> None:
    """Raise InputError if two sequences about the same items differ in length."""
    if len(one) != len(other):
        raise InputError(f"ratings and clusters belong to the same items, but there are {len(one)} and {len(other)}")
