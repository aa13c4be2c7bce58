"""Coefficients of agreement between an objective metric and opinions: SRCC, KRCC, PLCC, and PLCC after a logistic."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from scipy.special import expit

Floats = NDArray[np.float64]

MINIMUM_PAIRS = 3
"""With fewer pairs a coefficient is undefined."""
MINIMUM_FITTED = 6
"""With fewer pairs the five parameters of the logistic are not fitted, and the straight line takes their place."""

_SLOPES = np.array((0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0))
_SHIFTS = np.array((0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95))
_STARTS = 2
_TOLERANCE, _STEPS = 1e-6, 60


@dataclass(frozen=True)
class Logistic:
    """The five-parameter logistic b1 (1/2 - 1 / (1 + exp(b2 (x - b3)))) + b4 x + b5.

    It maps values of a metric to the scale of opinions before the linear correlation (VQEG, final report 2000; in this
    form Sheikh, Sabir and Bovik 2006, equation 11). With b1 = 0 it is a straight line.
    """

    b1: float
    b2: float
    b3: float
    b4: float
    b5: float

    def __call__(self, values: ArrayLike) -> Floats:
        """(n,) values of a metric on the scale of the opinions."""
        x = np.asarray(values, np.float64)
        return self.b1 * (expit(self.b2 * (x - self.b3)) - 0.5) + self.b4 * x + self.b5


def srcc(values: ArrayLike, opinions: ArrayLike) -> float:
    """Spearman's rank correlation, -1..1, with mean ranks of ties, as `scipy.stats.spearmanr`.

    Pairs with a NaN are left out; infinite values are ranked. NaN if one side is constant, or of fewer than
    `MINIMUM_PAIRS` pairs. So for all coefficients here.
    """
    from scipy import stats  # slow to load, and most importers correlate nothing

    x, y = _known(values, opinions)
    return float(stats.spearmanr(x, y).statistic) if _defined(x, y) else float("nan")


def krcc(values: ArrayLike, opinions: ArrayLike) -> float:
    """Kendall's rank correlation tau-b, -1..1, which accounts for ties, as `scipy.stats.kendalltau`."""
    from scipy import stats  # slow to load, and most importers correlate nothing

    x, y = _known(values, opinions)
    if not _defined(x, y):
        return float("nan")
    return float(stats.kendalltau(x, y, variant="b", method="asymptotic").statistic)


def plcc(values: ArrayLike, opinions: ArrayLike) -> float:
    """Pearson's linear correlation, -1..1, as `scipy.stats.pearsonr`.

    An infinite value, such as the PSNR of a copy that equals its reference, counts as the largest finite one of the
    sample (ours: it has no place on a line).
    """
    from scipy import stats  # slow to load, and most importers correlate nothing

    x, y = _known(_limited(values), opinions)
    if not _defined(x, y):
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        return float(stats.pearsonr(x, y).statistic)


def plcc_after_logistic(values: ArrayLike, opinions: ArrayLike) -> float:
    """`plcc` of the opinions with the values as `fit_logistic` maps them, 0..1.

    The map is fitted on the same pairs, so the coefficient has no sign: it says how well the best curve of this form
    follows the opinions, whether these rise or fall with the metric.
    """
    x, y = _known(_limited(values), opinions)
    return plcc(fit_logistic(x, y)(x), y) if _defined(x, y) else float("nan")


def fit_logistic(values: ArrayLike, opinions: ArrayLike) -> Logistic:
    """The `Logistic` with the least squared error.

    For given b2 and b3 the other three are a linear problem, so a grid over these two gives the starts, and none can
    be far off; the best of them are refined (Levenberg and Marquardt), and the best result is taken. Never worse than
    the straight line.

    Args:
        values: (n,) of a metric.
        opinions: (n,) of the same images. Pairs that are not finite are left out.
    """
    x, y = _known(values, opinions)
    finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[finite], y[finite]
    spread = float(x.std()) if len(x) else 0.0
    if len(x) < MINIMUM_FITTED or spread == 0.0:
        return _line(x, y)
    center = float(x.mean())
    u = (x - center) / spread  # the fit does not depend on the metric's scale
    found = min((_refined(start, u, y) for start in _starts(u, y)), key=lambda item: item[1])
    line = _line(u, y)
    best = found[0] if found[1] < float(((line(u) - y) ** 2).sum()) else line
    return Logistic(
        best.b1, best.b2 / spread, center + best.b3 * spread, best.b4 / spread, best.b5 - best.b4 * center / spread
    )


def _starts(u: Floats, y: Floats) -> Floats:
    """The best parameters of a grid, (starts, 5)."""
    b2, b3 = (values.ravel() for values in np.meshgrid(_SLOPES, np.quantile(u, _SHIFTS)))
    y_rest = y - y.mean() - u * (u @ y) / len(u)  # u has mean 0 and deviation 1: what a line leaves unexplained
    curves = expit(b2[:, None] * (u - b3[:, None])) - 0.5
    means, slopes = curves.mean(axis=1), curves @ u / len(u)
    rests = curves - means[:, None] - slopes[:, None] * u
    b1 = rests @ y_rest / np.maximum((rests**2).sum(axis=1), 1e-12)
    errors = ((y_rest - b1[:, None] * rests) ** 2).sum(axis=1)
    b4, b5 = u @ y / len(u) - b1 * slopes, y.mean() - b1 * means
    best = np.argsort(errors, kind="stable")[:_STARTS]
    return np.column_stack((b1, b2, b3, b4, b5))[best]


def _refined(start: Floats, u: Floats, y: Floats) -> tuple[Logistic, float]:
    """The logistic that the optimiser finds from a start, and its sum of squared errors."""

    def errors(b: Floats) -> Floats:
        return b[0] * (expit(b[1] * (u - b[2])) - 0.5) + b[3] * u + b[4] - y

    def slopes(b: Floats) -> Floats:
        share = expit(b[1] * (u - b[2]))
        steep = b[0] * share * (1.0 - share)
        return np.column_stack((share - 0.5, steep * (u - b[2]), -steep * b[1], u, np.ones_like(u)))

    with np.errstate(over="ignore", invalid="ignore"):
        result = optimize.least_squares(errors, start, slopes, method="lm", ftol=_TOLERANCE, max_nfev=_STEPS)
    return Logistic(*result.x.tolist()), float((result.fun**2).sum())


def _line(x: Floats, y: Floats) -> Logistic:
    """The straight line of least squares; a constant where the values do not vary."""
    if not len(x) or float(np.ptp(x)) == 0.0:
        return Logistic(0.0, 0.0, 0.0, 0.0, float(y.mean()) if len(y) else float("nan"))
    slope, offset = np.polyfit(x, y, 1).tolist()
    return Logistic(0.0, 0.0, 0.0, slope, offset)


def _known(values: ArrayLike, opinions: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(values, np.float64), np.asarray(opinions, np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    return x[known], y[known]


def _limited(values: ArrayLike) -> Floats:
    """The values, infinite ones in the place of the largest or smallest finite one."""
    x = np.asarray(values, np.float64)
    finite = x[np.isfinite(x)]
    return np.clip(x, finite.min(), finite.max()) if len(finite) else np.zeros_like(x)


def _defined(x: Floats, y: Floats) -> bool:
    return len(x) >= MINIMUM_PAIRS and bool((x != x[0]).any()) and bool((y != y[0]).any())
