"""The level of distortion at which an agent's success is 75 %, by type, with an interval clustered by scene."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.pages.words import number
from merton.results.csv_writer import csv_text
from merton.results.records import TrialRecord
from merton.statistics.intervals import ENDS, Interval

TARGET = 0.75
LOWEST, HIGHEST = 1, 5
"""A threshold beyond these levels is only said to be below or above them: nothing was seen there."""

Floats = NDArray[np.float64]

_MIDDLES = np.linspace(-2.0, 8.0, 101)
_SLOPES = np.geomspace(0.1, 2.5, 14)
_CEILINGS = np.array([0.4, 0.5, 0.6, 0.7, 0.76, 0.8, 0.85, 0.9, 0.94, 0.97, 0.985, 0.995])
_LEAST_CHANCE = 0.001
"""Of a success and of a failure at any level: a single odd trial must not decide."""


@dataclass(frozen=True)
class Threshold:
    """The level at which the success of an agent under a type of distortion is `TARGET`.

    Attributes:
        level: -inf where success is lower without distortion; inf where it is unknown how far above 5 it is.
        interval: 95 %; each end may be infinite too.
        undistorted: the agent's success in the same tasks, undistorted; None if it was not run.
        trials, scenes: distorted ones.
        seen: for the levels 1 .. 5 the mean success and the number of trials; None without any.
    """

    agent: str
    distortion: str
    level: float
    interval: Interval
    undistorted: float | None
    trials: int
    scenes: int
    seen: tuple[tuple[float, int] | None, ...]


def thresholds(records: Iterable[TrialRecord]) -> list[Threshold]:
    """The threshold of each agent and type of distortion of which there are trials, by name.

    Args:
        records: of one experiment; infrastructure faults have no part in it.
    """
    known = [record for record in records if record.success is not None]
    undistorted: dict[str, list[bool]] = {}
    chains: dict[tuple[str, str], list[TrialRecord]] = {}
    for record in known:
        if record.case.is_reference:
            undistorted.setdefault(record.agent, []).append(bool(record.success))
        else:
            chains.setdefault((record.agent, record.case.distortion), []).append(record)
    found = []
    for (agent, distortion), own in sorted(chains.items()):
        scenes = [record.case.scene for record in own]
        levels = np.array([record.case.level for record in own])
        success = np.array([bool(record.success) for record in own])
        references = undistorted.get(agent, [])
        level, low, high = estimate(levels, success, scenes, references)
        seen = [success[levels == step] for step in range(LOWEST, HIGHEST + 1)]
        found.append(
            Threshold(
                agent,
                distortion,
                level,
                Interval(low, high),
                sum(references) / len(references) if references else None,
                len(own),
                len(set(scenes)),
                tuple((float(part.mean()), len(part)) if len(part) else None for part in seen),
            )
        )
    return found


def estimate(
    levels: ArrayLike, success: ArrayLike, scenes: ArrayLike, undistorted: Sequence[bool] = ()
) -> tuple[float, float, float]:
    """The threshold of one chain: its median and the ends of its 95 % interval; beyond 1 .. 5 they are infinite.

    Success at level x is c / (1 + exp((x - m) / s)), with the success c without distortion. The posterior of m, s and c
    is summed on a grid, as psignifit does it (Schuett et al. 2016), with even weights for m, log s and the listed c.
    Ours: the undistorted trials tell of c, and where trials of one scene are alike the logarithm of the likelihood is
    divided by their design effect, that of the sum of residuals by scene against that of independent trials.

    Args:
        levels: (n,) 1 .. 5.
        success: (n,) whether each trial succeeded.
        scenes: (n,) the unit that was sampled; comparable values of any type.
        undistorted: successes of undistorted trials.
    """
    level, won = np.asarray(levels, int), np.asarray(success, bool)
    wins, losses = (np.bincount(level[which], minlength=HIGHEST + 1).astype(float) for which in (won, ~won))
    wins[0], losses[0] = sum(undistorted), len(undistorted) - sum(undistorted)
    chances, logarithms, at, order = _grid()
    likelihood = logarithms @ np.concatenate([wins, losses])
    weights = _weights(likelihood)
    effect = _design_effect(won - (weights @ chances)[level], (weights @ (chances * (1.0 - chances)))[level], scenes)
    cumulated = np.cumsum(_weights(likelihood / effect)[order])
    places = np.searchsorted(cumulated, np.array([0.5, *ENDS]) * cumulated[-1])
    middle, low, high = (_censored(float(value)) for value in at[order][places])
    return middle, low, high


def lowest(found: Iterable[Threshold]) -> list[Threshold]:
    """The lowest threshold, and then those that cannot be told apart from it: their intervals overlap."""
    first, *others = sorted(found, key=lambda item: (item.level, item.interval[1]))
    return [first, *(item for item in others if item.interval[0] <= first.interval[1])]


def words(level: float) -> str:
    """A threshold as text, such as "2.4", "below 1" or "above 5"."""
    if math.isinf(level):
        return f"above {HIGHEST}" if level > 0 else f"below {LOWEST}"
    return number(level, 1)


def as_csv(found: Iterable[Threshold]) -> str:
    """A table with a line for each threshold; infinite ends are "inf" and "-inf"."""
    rows = []
    for item in found:
        ends = (round(float(value), 2) for value in (item.level, *item.interval))
        undistorted = None if item.undistorted is None else round(item.undistorted, 4)
        rows.append((item.agent, item.distortion, *ends, undistorted, item.trials, item.scenes))
    return csv_text(
        ("agent", "distortion", "threshold", "low", "high", "undistorted_success", "trials", "scenes"), rows
    )


@cache
def _grid() -> tuple[Floats, Floats, Floats, NDArray[np.intp]]:
    """Every curve's success at level 0 .. 5, (curves, 6), the logarithms of success and failure, (curves, 12), its
    threshold, (curves,), and the thresholds' rising order.
    """
    m, s, c = (axis.ravel() for axis in np.meshgrid(_MIDDLES, _SLOPES, _CEILINGS, indexing="ij"))
    steps = np.arange(LOWEST, HIGHEST + 1)
    with np.errstate(over="ignore"):
        curves = c[:, None] / (1.0 + np.exp((steps - m[:, None]) / s[:, None]))
    chances = np.clip(np.column_stack([c, curves]), _LEAST_CHANCE, 1.0 - _LEAST_CHANCE)
    reached = c > TARGET
    at = np.full(len(c), -np.inf)
    at[reached] = m[reached] - s[reached] * np.log(TARGET / (c[reached] - TARGET))
    return chances, np.log(np.column_stack([chances, 1.0 - chances])), at, np.argsort(at, kind="stable")


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
