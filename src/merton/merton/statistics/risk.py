"""The worth of a gate and its guarantee: risk and coverage of refusing the trials with the lowest scores.

A gate admits a trial whose score is at or above a threshold. Its coverage is the share of the trials it admits, its
risk the share of failures among those (selective risk: El-Yaniv and Wiener 2010, Geifman and El-Yaniv 2017).

The guarantee of `guaranteed_threshold`: with a probability of at least `confidence` over the scenes it was calibrated
on, at most a share alpha of the trials that the gate admits in new scenes fail, in the long run, every scene weighing
the same. It needs scenes drawn independently from one population, nothing about the trials of a scene among each other.
The method is Learn then Test (Angelopoulos, Bates, Candes, Jordan and Lei 2021): thresholds are tested in a sequence
that was fixed on other scenes, until the first that is not proven. Ours is the loss that makes the test one of a mean:
a refused trial costs alpha, an admitted one 1 if it fails, so the selective risk is at most alpha exactly if the mean
loss of a scene is. That mean is tested by betting (Waudby-Smith and Ramdas 2024), which is exact in finite samples.

Conformal risk control (Angelopoulos et al. 2022) bounds the mean of a loss that falls with the threshold, such as
"admitted and failed"; the selective risk need not fall. `average_threshold` uses its correction all the same: it aims
at alpha on average, without a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.statistics.correlation import difference_left_out, without_each
from merton.statistics.intervals import Interval
from merton.statistics.sequential import log_capital, log_capitals

Floats = NDArray[np.float64]

LEAST_TRIALS, LEAST_SCENES = 20, 5
"""With less there is nothing to be calibrated. Ours."""
COVERAGES = np.linspace(0.05, 1.0, 20)
"""Of the scenes that a gate was trained on: the thresholds that are tested are those that admit so much of them."""
CONFIDENCE = 0.9


@dataclass(frozen=True)
class Scored:
    """Trials with the score by which a gate orders them; all of shape (n,).

    Attributes:
        scores: higher is better; finite.
        failed: whether the task was not done, or another event that the gate is to avoid.
        scenes: comparable values, the unit that is sampled.

    Raises:
        InputError: columns of different lengths, or a score that is not finite.
    """

    scores: Floats
    failed: NDArray[np.bool_]
    scenes: NDArray[np.str_]

    def __post_init__(self) -> None:
        if not len(self.scores) == len(self.failed) == len(self.scenes):
            raise InputError("every trial needs a score, an outcome and a scene")
        if wrong := int((~np.isfinite(self.scores)).sum()):
            raise InputError(f"{wrong} of {len(self.scores)} trials have a score that is not a finite number")

    @cached_property
    def place(self) -> NDArray[np.intp]:
        """(n,) the number of each trial's scene, from 0."""
        return np.unique(self.scenes, return_inverse=True)[1]

    def part(self, kept: NDArray[np.bool_]) -> Scored:
        """Some of the trials, (n,) of them or their places."""
        return Scored(self.scores[kept], self.failed[kept], self.scenes[kept])


@dataclass(frozen=True)
class Curve:
    """Risk against coverage, for 1 to n admitted trials, best scores first.

    Attributes:
        coverage: (n,) rising to 1.
        risk: (n,) 0..1. Of trials with equal scores any may come first: the risk is its expectation.
        area: the mean of `risk` (AURC of Geifman and El-Yaniv 2017): lower is better, the failure rate by chance.
    """

    coverage: Floats
    risk: Floats
    area: float


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval, clustered by scene; NaN ends where the scenes do not tell."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Threshold:
    """A calibrated threshold, and what was seen in the scenes it was calibrated on.

    Attributes:
        value: trials with a score at or above it are admitted; -inf admits all.
        coverage, risk: share of admitted trials, and of failures among them; every scene weighs the same.
        scenes: of the calibration.
        p: of the test that the risk is above alpha; None for a threshold without a guarantee.
    """

    value: float
    coverage: float
    risk: float
    scenes: int
    p: float | None = None


def check_outcomes(trials: Scored) -> None:
    """Raises InputError for too few trials or scenes, and for trials that all fail or all succeed."""
    scenes = len(np.unique(trials.scenes))
    if len(trials.scores) < LEAST_TRIALS or scenes < LEAST_SCENES:
        raise InputError(
            f"a gate needs at least {LEAST_TRIALS} trials in {LEAST_SCENES} scenes, "
            f"got {len(trials.scores)} in {scenes}"
        )
    if trials.failed.all() or not trials.failed.any():
        which = "fail" if trials.failed.all() else "succeed"
        raise InputError(f"all {len(trials.scores)} trials {which}: a gate is fitted on successes and failures")


def curve(trials: Scored) -> Curve:
    """The risk-coverage curve of at least one trial."""
    expected = _expected_failures(trials.scores, trials.failed)
    number = np.arange(1, len(expected) + 1)
    risk = expected / number
    return Curve(number / len(expected), risk, float(risk.mean()))


def avoided(trials: Scored, coverage: float) -> float:
    """The share of the failures that lie among the refused trials at a coverage, 0..1; NaN without a failure."""
    expected = _expected_failures(trials.scores, trials.failed)
    admitted = round(coverage * len(expected))
    within = expected[admitted - 1] if admitted else 0.0
    return float(1.0 - within / expected[-1]) if expected[-1] else math.nan


def areas(trials: Sequence[Scored]) -> list[Estimate]:
    """The area under the curve of several scores of the same trials."""
    return _estimates(trials, lambda one: curve(one).area)


def area_differences(trials: Sequence[Scored], base: Scored) -> list[Estimate]:
    """The area of each score less that of `base`, another score of the same trials."""
    return _estimates(trials, lambda one: curve(one).area, base)


def avoided_failures(trials: Sequence[Scored], coverage: float) -> list[Estimate]:
    """`avoided` of several scores of the same trials."""
    found = _estimates(trials, lambda one: avoided(one, coverage))
    return [Estimate(each.value, Interval(max(each.interval.low, 0.0), min(each.interval.high, 1.0))) for each in found]


def guaranteed_threshold(
    trained: Scored, calibration: Scored, alpha: float, confidence: float = CONFIDENCE
) -> Threshold | None:
    """The threshold of most coverage that is proven to let at most a share alpha of the admitted trials fail.

    Args:
        trained: the trials that the score was fitted on, or others of scenes that are not in `calibration`: they fix
            which thresholds are tested in which sequence.
        calibration: of scenes that nothing was chosen or fitted on.
        alpha: 0 < alpha < 1.
        confidence: 0 < confidence < 1; see the module.

    Returns:
        None if no threshold is proven: the gate admits nothing.

    Raises:
        InputError: alpha or confidence outside their range, or a scene in both.
    """
    _check_shares(alpha, confidence)
    if shared := set(trained.scenes.tolist()) & set(calibration.scenes.tolist()):
        raise InputError(f"scene {min(shared)} is both trained and calibrated on, which voids the guarantee")
    values = candidates(trained)
    first = int(np.argmin([_p(trained, value, alpha) for value in values]))
    found = None
    for value in values[first:]:
        p = _p(calibration, value, alpha)
        if p > 1.0 - confidence:
            break
        found = _seen(calibration, value, p)
    return found


@cache
def fewest_scenes(alpha: float, confidence: float = CONFIDENCE) -> int:
    """The number of scenes below which `guaranteed_threshold` proves nothing, even if no admitted trial fails."""
    _check_shares(alpha, confidence)
    enough = -math.log(1.0 - confidence)
    most = math.ceil(enough / -math.log1p(-alpha)) + 1
    while log_capital(np.ones(most), 1.0 - alpha) < enough:
        most *= 2
    return int(np.argmax(log_capitals(np.ones(most), 1.0 - alpha) >= enough)) + 1


def average_threshold(trained: Scored, calibration: Scored, alpha: float) -> Threshold | None:
    """The threshold of most coverage whose mean loss, with the correction of conformal risk control, is at most alpha.

    Arguments, result and errors as of `guaranteed_threshold`; see the module for what it lacks.
    """
    _check_shares(alpha, CONFIDENCE)
    scenes = len(np.unique(calibration.scenes))
    for value in candidates(trained)[::-1]:
        if (_losses(calibration, value, alpha).sum() + 1.0) / (scenes + 1) <= alpha:
            return _seen(calibration, value, None)
    return None


def candidates(trained: Scored) -> Floats:
    """The thresholds that admit `COVERAGES` of the trials, the strictest first; the last admits all."""
    best_first = np.sort(trained.scores)[::-1]
    places = np.ceil(COVERAGES[:-1] * len(best_first)).astype(int) - 1
    return np.append(np.unique(best_first[np.maximum(places, 0)])[::-1], -math.inf)


def admitted_risk(trials: Scored, threshold: Threshold | None) -> tuple[float, float]:
    """(coverage, risk) of a threshold on trials, every scene weighing the same; (0, NaN) if it admits none."""
    if threshold is None:
        return 0.0, math.nan
    seen = _seen(trials, threshold.value, None)
    return seen.coverage, seen.risk


def _check_shares(alpha: float, confidence: float) -> None:
    for name, value in (("alpha", alpha), ("the confidence", confidence)):
        if not 0.0 < value < 1.0:
            raise InputError(f"{name} is a share above 0 and below 1, got {value:g}")


def _losses(trials: Scored, value: float, alpha: float) -> Floats:
    """The mean loss of each scene, (scenes,) in 0..1: alpha for a refused trial, 1 or 0 for an admitted one."""
    loss = np.where(trials.scores >= value, trials.failed.astype(np.float64), alpha)
    return _scene_means(loss, trials.place)


def _p(trials: Scored, value: float, alpha: float) -> float:
    """Of the test that the risk of a threshold is above alpha."""
    return min(1.0, math.exp(-log_capital(1.0 - _losses(trials, value, alpha).round(12), 1.0 - alpha)))


def _seen(trials: Scored, value: float, p: float | None) -> Threshold:
    admitted = (trials.scores >= value).astype(np.float64)
    covered = _scene_means(admitted, trials.place)
    failing = _scene_means(admitted * trials.failed, trials.place)
    risk = float(failing.sum() / covered.sum()) if covered.any() else math.nan
    return Threshold(float(value), float(covered.mean()), risk, len(covered), p)


def _scene_means(values: Floats, place: NDArray[np.intp]) -> Floats:
    return np.asarray(np.bincount(place, weights=values) / np.bincount(place))


def _expected_failures(scores: Floats, failed: NDArray[np.bool_]) -> Floats:
    """The expected number of failures among the k best trials, k = 1..n, (n,)."""
    _, group, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    rates = np.bincount(group, weights=failed.astype(np.float64)) / counts
    return np.asarray(np.cumsum(np.repeat(rates, counts)))


def _estimates(
    trials: Sequence[Scored], value: Callable[[Scored], float], base: Scored | None = None
) -> list[Estimate]:
    """Of a function of trials for each score, by the jackknife of `difference_left_out`."""

    def values(kept: NDArray[np.bool_]) -> Floats:
        zero = value(base.part(kept)) if base is not None else 0.0
        return np.array([value(one.part(kept)) - zero for one in trials])

    parts = np.stack([values(kept) for kept in without_each(trials[0].place)])
    return [Estimate(float(column[0]), difference_left_out(column)) for column in parts.T]
