"""The level of distortion at which an agent's success is 75 %, by type, with an interval clustered by scene."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.pages.words import number, percent
from merton.results.csv_writer import csv_text
from merton.results.records import STAIRCASE, TrialRecord
from merton.statistics.falling import Rise, greatest_rise
from merton.statistics.intervals import ENDS, Interval

TARGET = 0.75
LOWEST, HIGHEST = 1, 5
"""A threshold beyond these levels is only said to be below or above them: nothing was seen there."""

Floats = NDArray[np.float64]

_MIDDLES = np.linspace(-2.0, 8.0, 81)
_SLOPES = np.geomspace(0.1, 2.5, 10)
_CEILINGS = np.array([0.4, 0.5, 0.6, 0.7, 0.76, 0.8, 0.85, 0.9, 0.94, 0.97, 0.985, 0.995])
_FLOORS = np.arange(10) / 10.0
_LEAST_CHANCE = 0.001
"""Of a success and of a failure at any level: a single odd trial must not decide."""


@dataclass(frozen=True)
class Threshold:
    """The level at which the success of an agent under a type of distortion is `TARGET`.

    Attributes:
        level: -inf where success is lower without distortion; inf where it is never so low, or unknown how far above 5;
            NaN where success does not fall: it rises from `TARGET` or below to above, so no single level has it.
        interval: 95 %, of a curve that falls; each end may be infinite too.
        undistorted: the agent's success in the same tasks, undistorted; None if it was not run.
        trials, scenes: distorted ones.
        seen: for the levels 1 .. 5 the mean success and the number of trials; None without any.
        rise: the surest rise of success between two levels, 0 for undistorted, which contradicts a falling curve; None
            where none is above its error.
    """

    agent: str
    distortion: str
    level: float
    interval: Interval
    undistorted: float | None
    trials: int
    scenes: int
    seen: tuple[tuple[float, int] | None, ...]
    rise: Rise | None = None

    @property
    def fails_undistorted(self) -> bool:
        """Whether success is below `TARGET` without distortion already: then distortion does not bring it there."""
        return self.level == -math.inf and self.undistorted is not None and self.undistorted < TARGET

    @property
    def words(self) -> str:
        """The level as text, or why there is none."""
        return f"none, undistorted below {percent(TARGET)}\u00a0%" if self.fails_undistorted else words(self.level)


def is_staircase(facts: Mapping[str, Any]) -> bool:
    """Whether the levels of a run were found by staircase, by its run.json."""
    design = facts.get("design")
    return isinstance(design, Mapping) and design.get("levels") == STAIRCASE


def thresholds(records: Iterable[TrialRecord]) -> list[Threshold]:
    """The threshold of each agent and type of distortion of which there are trials, by name.

    Args:
        records: of one experiment; infrastructure faults have no part in it.
    """
    known = [record for record in records if record.success is not None]
    undistorted: dict[str, list[TrialRecord]] = {}
    chains: dict[tuple[str, str], list[TrialRecord]] = {}
    for record in known:
        if record.case.is_reference:
            undistorted.setdefault(record.agent, []).append(record)
        else:
            chains.setdefault((record.agent, record.case.distortion), []).append(record)
    return [_threshold(*name, own, undistorted.get(name[0], [])) for name, own in sorted(chains.items())]


def _threshold(agent: str, distortion: str, own: Sequence[TrialRecord], references: Sequence[TrialRecord]) -> Threshold:
    scenes = [record.case.scene for record in own]
    levels = np.array([record.case.level for record in own])
    success = np.array([bool(record.success) for record in own])
    won = [bool(record.success) for record in references]
    level, *ends = estimate(levels, success, scenes, won)
    seen = [success[levels == step] for step in range(LOWEST, HIGHEST + 1)]
    rise = greatest_rise(
        np.concatenate([success, won]),
        np.concatenate([levels, np.zeros(len(won), int)]),
        [*scenes, *(record.case.scene for record in references)],
        TARGET,
    )
    return Threshold(
        agent,
        distortion,
        math.nan if rise and rise.crosses(TARGET) else level,
        Interval(*ends),
        sum(won) / len(won) if won else None,
        len(own),
        len(set(scenes)),
        tuple((float(part.mean()), len(part)) if len(part) else None for part in seen),
        rise,
    )


def estimate(
    levels: ArrayLike, success: ArrayLike, scenes: ArrayLike, undistorted: Sequence[bool] = ()
) -> tuple[float, float, float]:
    """The threshold of one chain: its median and the ends of its 95 % interval; beyond 1 .. 5 they are infinite.

    Success at level x is f + (c - f) / (1 + exp((x - m) / s)), with the success c without distortion and the floor
    f < c that no distortion goes below, such as that of a guess. The posterior of m, s, c and f is summed on a grid, as
    psignifit does it (Schuett et al. 2016), with even weights for m, log s and the listed c, and weights of 1 - f for
    the floor, ours: it is rather low, and trials about 75 % tell little of it. Where f is above 75 % the threshold is
    infinite. Ours, too: the undistorted trials tell of c, and where trials of one scene are alike the logarithm of the
    likelihood is divided by their design effect, that of the sum of residuals by scene against that of independent
    trials.

    Args:
        levels: (n,) 1 .. 5.
        success: (n,) whether each trial succeeded.
        scenes: (n,) the unit that was sampled; comparable values of any type.
        undistorted: successes of undistorted trials.
    """
    level, won = np.asarray(levels, int), np.asarray(success, bool)
    wins, losses = (np.bincount(level[which], minlength=HIGHEST + 1).astype(float) for which in (won, ~won))
    wins[0], losses[0] = sum(undistorted), len(undistorted) - sum(undistorted)
    chances, variances, logarithms, prior, at = _grid()
    likelihood = logarithms @ np.concatenate([wins, losses])
    weights = _weights(likelihood + prior)
    effect = _design_effect(won - (weights @ chances)[level], (weights @ variances)[level], scenes)
    cumulated = np.cumsum(_weights(likelihood / effect + prior))
    places = np.searchsorted(cumulated, np.array([0.5, *ENDS]) * cumulated[-1])
    middle, low, high = (_censored(float(value)) for value in at[places])
    return middle, low, high


def lowest(found: Iterable[Threshold]) -> list[Threshold]:
    """The lowest threshold, and then those that cannot be told apart from it: their intervals overlap.

    Curves that do not fall, of level NaN, or begin below `TARGET` have no part in it; empty if all are such.
    """
    falling = sorted(
        (item for item in found if not (math.isnan(item.level) or item.fails_undistorted)),
        key=lambda item: (item.level, item.interval[1]),
    )
    return [item for item in falling if item.interval[0] <= falling[0].interval[1]]


def words(level: float) -> str:
    """A threshold as text, such as "2.4", "below 1", "above 5" or, of NaN, "not falling"."""
    if math.isnan(level):
        return "not falling"
    if math.isinf(level):
        return f"above {HIGHEST}" if level > 0 else f"below {LOWEST}"
    return number(level, 1)


def rise_words(rise: Rise) -> str:
    """A clause, such as "success rises from 50 % at level 2 to 91 % at level 5"."""
    first = "undistorted" if rise.low == 0 else f"at level {rise.low}"
    means = percent(rise.low_mean), percent(rise.high_mean)
    return f"success rises from {means[0]}\u00a0% {first} to {means[1]}\u00a0% at level {rise.high}"


def as_csv(found: Iterable[Threshold]) -> str:
    """A table with a line for each threshold; infinite ends are "inf" and "-inf", no single level is "nan".

    `rises` names the levels of `Threshold.rise`, such as "2 to 5".
    """
    rows = []
    for item in found:
        ends = (round(float(value), 2) for value in (item.level, *item.interval))
        undistorted = None if item.undistorted is None else round(item.undistorted, 4)
        rises = f"{item.rise.low} to {item.rise.high}" if item.rise else None
        rows.append((item.agent, item.distortion, *ends, undistorted, item.trials, item.scenes, rises))
    return csv_text(
        ("agent", "distortion", "threshold", "low", "high", "undistorted_success", "trials", "scenes", "rises"), rows
    )


@cache
def _grid() -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Of every curve, by rising threshold: success at level 0 .. 5, (curves, 6), and its variance, the logarithms of
    success and failure, (curves, 12), and of the curve's weight, and the threshold, (curves,).
    """
    m, s, c, f = (axis.ravel() for axis in np.meshgrid(_MIDDLES, _SLOPES, _CEILINGS, _FLOORS, indexing="ij"))
    m, s, c, f = (axis[f < c] for axis in (m, s, c, f))
    steps = np.arange(LOWEST, HIGHEST + 1)
    with np.errstate(over="ignore"):
        curves = f[:, None] + (c - f)[:, None] / (1.0 + np.exp((steps - m[:, None]) / s[:, None]))
    at = np.where(c > TARGET, np.inf, -np.inf)
    crossed = (c > TARGET) & (f < TARGET)
    at[crossed] = m[crossed] + s[crossed] * np.log((c[crossed] - TARGET) / (TARGET - f[crossed]))
    rising = np.argsort(at, kind="stable")
    chances = np.clip(np.column_stack([c, curves])[rising], _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    logarithms = np.log(np.column_stack([chances, 1.0 - chances]))
    return chances, chances * (1.0 - chances), logarithms, np.log1p(-f[rising]), at[rising]


def _weights(likelihood: Floats) -> Floats:
    weights = np.exp(likelihood - likelihood.max())
    return np.asarray(weights / weights.sum())


def _design_effect(residuals: Floats, variances: Floats, scenes: ArrayLike) -> float:
    """The ratio of the variance of the residuals' sums by scene to that of independent trials; at least 1."""
    _, scene = np.unique(np.asarray(scenes), return_inverse=True)
    sums = np.bincount(scene, weights=residuals)
    return max(1.0, float(sums @ sums) / float(variances.sum()))


def _censored(level: float) -> float:
    if level < LOWEST:
        return -math.inf
    return math.inf if level > HIGHEST else level
