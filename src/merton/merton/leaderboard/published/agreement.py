"""Agreement of annotators: Cohen's kappa with quadratic weights, for every pair and for all pairs together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.seeding import generator

RESAMPLES = 1000

LEAST_ITEMS = 100
"""For an interval of the kappa of all pairs: with fewer it held 89 to 94 % of simulated kappas."""


@dataclass(frozen=True)
class PairAgreement:
    """Two annotators and the `n` items that both scored; `kappa` is None if no score varies or n is 0."""

    first: str
    second: str
    kappa: float | None
    n: int


@dataclass(frozen=True)
class AnnotatorAgreement:
    """Agreement of all pairs of annotators with an item in common.

    Attributes:
        kappa: of all pairs together; 1 is full agreement, 0 that of chance; None where it is undefined.
        interval: 95 % interval of `kappa`, by bootstrap over the items; None with fewer than `LEAST_ITEMS`.
        n: items that at least two annotators scored.
        pairs: pair by pair, by name.
    """

    kappa: float | None
    interval: tuple[float, float] | None
    n: int
    pairs: tuple[PairAgreement, ...]

    @property
    def shown(self) -> str:
        """The kappa of all pairs with its interval, or the reason why it has none; empty without a kappa."""
        if self.kappa is None:
            return ""
        if self.interval is None:
            return f"{self.kappa:.2f} (no interval: fewer than {LEAST_ITEMS} videos)"
        low, high = self.interval
        return f"{self.kappa:.2f} [{low:.2f}, {high:.2f}]"


def agreement(scores: Mapping[tuple[str, Hashable], float]) -> AnnotatorAgreement:
    """Agreement of annotators, from a map of (annotator, item) to score.

    Of a pair: 1 - observed / expected; observed: the sum of squared differences over common items, expected: its mean
    over all ways to shuffle one of the two (Cohen 1968, weights (i - j)²). Of all pairs: 1 - sum of observed / sum of
    expected (De Vries and others 2008), which is robust against a pair that never varies. The interval is that of
    1,000 resamples of the items, with a fixed seed.
    """
    by_annotator: defaultdict[str, dict[Hashable, float]] = defaultdict(dict)
    for (annotator, item), score in scores.items():
        by_annotator[annotator][item] = score
    shared: dict[tuple[str, str], list[Hashable]] = {}
    for first, second in combinations(sorted(by_annotator), 2):
        both = by_annotator[first].keys() & by_annotator[second].keys()
        if both:
            shared[first, second] = sorted(both, key=repr)
    items = sorted({item for both in shared.values() for item in both}, key=repr)
    index = {item: position for position, item in enumerate(items)}
    pairs = [
        (
            np.array([index[item] for item in both]),
            np.array([by_annotator[first][item] for item in both], dtype=np.float64),
            np.array([by_annotator[second][item] for item in both], dtype=np.float64),
        )
        for (first, second), both in shared.items()
    ]
    if not pairs:
        return AnnotatorAgreement(None, None, 0, ())
    once = np.ones((1, len(items)))
    sums = [_sums(once, *pair) for pair in pairs]
    kappa = _kappa(sum(s[0] for s in sums), sum(s[1] for s in sums))[0]
    found = tuple(
        PairAgreement(first, second, _value(_kappa(*sums[position])[0]), len(pairs[position][0]))
        for position, (first, second) in enumerate(shared)
    )
    if np.isnan(kappa) or len(items) < LEAST_ITEMS:
        return AnnotatorAgreement(_value(kappa), None, len(items), found)
    draws = generator("agreement of annotators").multinomial(
        len(items), np.full(len(items), 1.0 / len(items)), size=RESAMPLES
    )
    resampled = [_sums(draws.astype(np.float64), *pair) for pair in pairs]
    values = _kappa(sum(s[0] for s in resampled), sum(s[1] for s in resampled))
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return AnnotatorAgreement(float(kappa), (float(low), float(high)), len(items), found)


def _sums(
    weights: NDArray[np.float64], where: NDArray[np.int64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> tuple[Any, Any]:
    """Observed and expected sums of squared differences of a pair, for each row of weights (rows, items)."""
    w = weights[:, where]
    n = w.sum(axis=1)
    observed = w @ (a - b) ** 2
    # the mean over all pairs of items of (a_i - b_j)^2, times n
    expected = w @ a**2 + w @ b**2 - 2.0 * (w @ a) * (w @ b) / np.maximum(n, 1.0)
    return observed, expected


def _kappa(observed: Any, expected: Any) -> NDArray[np.float64]:
    """1 - observed / expected; NaN where no score varies."""
    expected = np.asarray(expected, dtype=np.float64)
    defined = expected > 1e-9
    ratio = np.divide(observed, expected, out=np.full(expected.shape, np.nan), where=defined)
    return np.asarray(1.0 - ratio)


def _value(kappa: float) -> float | None:
    return None if np.isnan(kappa) else float(kappa)
