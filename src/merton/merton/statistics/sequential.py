"""Intervals that hold at every number of scenes at once, so that a comparison may be looked at and ended at any time.

A fixed interval of 95 %, looked at after every scene, excludes the truth far more often than in 5 % of studies. The
confidence sequence here contains it at all numbers of scenes together with 95 %, under any rule that ends the study
(Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, sections 4 and 5).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from merton.statistics.intervals import Interval

ERROR = 0.05
"""Probability that a truth is ever outside of its interval."""

_STAKES = (np.arange(32) + 0.5) / 32
"""Shares of its capital that a gambler bets; equally much of it is bet with each."""
_LEAST = 1e-9  # of a mean in 0..1 that is told from 0


class Conclusion(str, enum.Enum):
    """The place of the interval of a difference, candidate less baseline: above -delta, below it, or around it."""

    NOT_WORSE = "not worse"
    WORSE = "worse"
    UNRESOLVED = "not resolved"


def anytime_interval(differences: Sequence[float], error: float = ERROR) -> Interval:
    """The confidence sequence of a mean of differences after as many scenes as there are.

    Args:
        differences: of scenes that were drawn independently, in the order of drawing, -1..1.
        error: chance that the mean of the drawn population is ever outside; half of it at either end.
    """
    shares = (1.0 + np.asarray(differences, dtype=np.float64)) / 2.0
    share = Interval(_lower_bound(shares, error / 2.0), 1.0 - _lower_bound(1.0 - shares, error / 2.0))
    return share.scaled(2.0, -1.0)


class ConfidenceSequence:
    """A comparison, scene after scene. The verdict costs the same after every scene, the interval more with more.

    Args:
        delta: the loss that is looked for, 0..1.
        error: as in `anytime_interval`.
        differences: of the first scenes.
    """

    def __init__(self, delta: float, error: float = ERROR, differences: Iterable[float] = ()) -> None:
        self.differences: list[float] = []
        self._limit, self._error = (1.0 - delta) / 2.0, error
        self._log_returns = np.zeros((2, len(_STAKES)))  # of the stakes on means above the limit, and on means below
        for difference in differences:
            self.add(difference)

    def add(self, difference: float) -> None:
        """Add the difference of the next scene, -1..1."""
        share = np.array([(1.0 + difference) / 2.0])
        self._log_returns[0] += _log_returns(share, self._limit)[:, 0]
        self._log_returns[1] += _log_returns(1.0 - share, 1.0 - self._limit)[:, 0]
        self.differences.append(difference)

    @property
    def mean(self) -> float | None:
        """The mean difference; None without scenes."""
        return math.fsum(self.differences) / len(self.differences) if self.differences else None

    @property
    def interval(self) -> Interval:
        """The `anytime_interval` of the scenes so far."""
        return anytime_interval(self.differences, self._error)

    @property
    def verdict(self) -> Conclusion:
        """Whether the gambler of an end of the interval has refuted a loss of exactly delta."""
        return self.verdict_after(1)

    def verdict_after(self, times: int) -> Conclusion:
        """The verdict if all scenes so far had come so many times."""
        log_capitals = logsumexp(times * self._log_returns, axis=1) - math.log(len(_STAKES))
        above, below = log_capitals > math.log(2.0 / self._error)
        if above:
            return Conclusion.NOT_WORSE
        return Conclusion.WORSE if below else Conclusion.UNRESOLVED


def first_verdict(differences: Sequence[float], delta: float) -> tuple[int, Conclusion]:
    """The number of scenes at which the verdict of a `ConfidenceSequence` is first known, and the verdict.

    At once for all numbers of scenes: for studies of how often a comparison errs. (n, unresolved) if it is never known.
    """
    shares = (1.0 + np.asarray(differences, dtype=np.float64)) / 2.0
    limit = (1.0 - delta) / 2.0
    enough = math.log(2.0 / ERROR)
    better = log_capitals(shares, limit) > enough
    worse = log_capitals(1.0 - shares, 1.0 - limit) > enough
    if not (better | worse).any():
        return len(shares), Conclusion.UNRESOLVED
    first = int(np.argmax(better | worse))
    return first + 1, Conclusion.NOT_WORSE if better[first] else Conclusion.WORSE


def log_capitals(shares: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Logarithm of the capital of `_lower_bound` after every scene, (n,)."""
    returns = np.cumsum(_log_returns(shares, mean), axis=1)
    return np.asarray(logsumexp(returns, axis=0)) - math.log(len(_STAKES))


def log_capital(shares: NDArray[np.float64], mean: float) -> float:
    """Logarithm of the capital of a gambler who began with 1 and bet that shares in 0..1 have a mean above `mean`.

    Of independent scenes; in any order. If their mean is not above, the capital is at least 1 / p with a chance of at
    most p: it is a test of finite samples whose p-value is 1 / capital. The stakes are those of `anytime_interval`.
    """
    values, counts = np.unique(shares, return_counts=True)
    return float(logsumexp(_log_returns(values, mean) @ counts)) - math.log(len(_STAKES))


def _log_returns(shares: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Logarithms of what each scene makes of 1 that is bet with each stake, (stakes, n): see `_lower_bound`."""
    return np.log1p(_STAKES[:, None] * (shares[None, :] / mean - 1.0))


def _lower_bound(shares: NDArray[np.float64], error: float) -> float:
    """The least mean m that a gambler has not refuted by multiplying its capital by 1 / error.

    The gambler begins with 1 and bets on values above m. A stake f multiplies its capital by 1 - f + f x / m, which is
    1 on average if the mean is m; so the capital is a martingale, and by Ville's inequality reaches 1 / error with a
    chance of at most `error`. Its capital falls with m, so the means that are not refuted are all above one bound.
    Ours: constant stakes, spread evenly, which need no variance known beforehand and leave nothing to be tuned.
    """

    def log_excess(mean: float) -> float:
        return log_capital(shares, mean) + math.log(error)

    if not len(shares) or log_excess(_LEAST) <= 0.0:
        return 0.0
    return float(brentq(log_excess, _LEAST, 1.0, xtol=1e-7))
