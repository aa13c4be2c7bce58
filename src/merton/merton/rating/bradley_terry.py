"""Ratings of contenders that were compared two at a time, such as by people: Bradley and Terry (1952).

Model: A is preferred to B with chance 1 / (1 + 10^((R_B - R_A) / 400)); a tie is half a preference for each. The
ratings of most likelihood, Elo points with mean 1500. Standard errors have the sandwich form CR2, clustered by scene,
and intervals Student's quantile, as in `merton.rating.likelihood`; they are never below the model's own.

The maximum exists only if no group of contenders was always preferred to all others (Ford 1957). Where one was, each
contender is taken to have tied half a comparison with one of rating 1500 (ours), there are no intervals, and a warning
says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from merton.errors import InputError
from merton.rating.checking import DECIDED, Floats, Integers, Q, checked_scores, columns, extremes
from merton.rating.glicko import START_MEAN
from merton.rating.likelihood import Estimate
from merton.statistics.means import Z_95, freedom_of_shares, student

Comparison = tuple[str, str, float, str]
"""Contender, other contender, score of the first in 0..1 (0.5: a tie), scene."""

STEPS, TOLERANCE = 100, 1e-10
"""Newton's; in log-odds."""
_ASSUMED = 0.5
"""Of a comparison with a contender of rating 1500 that is assumed as a tie where the maximum does not exist."""
_ALONE = 1e-9


@dataclass(frozen=True)
class PairFit:
    """Ratings from comparisons of two.

    Attributes:
        contenders: name to estimate, sorted by name; the mean of all is 1500.
        comparisons, scenes: how many there were.
        warnings: reasons to trust the ratings less, one sentence each.
    """

    contenders: dict[str, Estimate]
    comparisons: int
    scenes: int
    warnings: tuple[str, ...]


def fit_pairs(comparisons: Iterable[Comparison]) -> PairFit:
    """Rate contenders; no seed: the result has no randomness, and the order of the comparisons plays no part.

    Raises:
        InputError: a comparison has not four values or a score outside 0..1, is of a contender with itself, or there
            are none.
    """
    listed = sorted(tuple(row) for row in comparisons)
    fields = ("contender", "other contender", "score", "scene")
    firsts, seconds, given, scenes = (list(column) for column in columns("comparison", listed, fields))
    if not listed:
        raise InputError("a rating needs at least one comparison, got none")
    scores = checked_scores(given)
    names = sorted({*firsts, *seconds})
    place = {name: index for index, name in enumerate(names)}
    a, b = (np.array([place[name] for name in side]) for side in (firsts, seconds))
    if (a == b).any():
        raise InputError(f"contender {firsts[int(np.argmax(a == b))]!r} is compared with itself")
    units, scene = np.unique(scenes, return_inverse=True)
    flags = extremes(np.concatenate((a, b)), np.concatenate((scores, 1.0 - scores)), len(names))
    apart, met = _groups(a, b, scores, len(names))
    skill, information = _climb(a, b, scores, len(names), assumed=0.0 if apart == 1 else _ASSUMED)
    errors, widths = _errors(a, b, scores, skill, information, scene)
    counts = np.bincount(np.concatenate((a, b)), minlength=len(names))
    points = START_MEAN + (skill - skill.mean()) / Q
    return PairFit(
        {
            name: Estimate(
                float(points[i]),
                float(errors[i] / Q),
                int(counts[i]),
                flags[i],
                None if apart > 1 or np.isnan(widths[i]) else float(widths[i] / errors[i]),
            )
            for i, name in enumerate(names)
        },
        len(listed),
        len(units),
        _warnings(met, apart, len(units), len(listed)),
    )


def _groups(a: Integers, b: Integers, scores: Floats, count: int) -> tuple[int, int]:
    """The number of groups of which each was always preferred to, or never compared with, another; and of those that
    never met."""
    won, lost = scores > DECIDED, scores < 1.0 - DECIDED
    better, worse = np.concatenate((a[won], b[lost])), np.concatenate((b[won], a[lost]))
    beats = coo_array((np.ones(len(better)), (better, worse)), shape=(count, count))
    apart = connected_components(beats, directed=True, connection="strong", return_labels=False)
    return int(apart), int(connected_components(beats, directed=False, return_labels=False))


def _climb(a: Integers, b: Integers, scores: Floats, count: int, assumed: float) -> tuple[Floats, Floats]:
    """Newton's steps: the skills in log-odds, sum 0, and the information matrix there, whose null vector is filled."""
    skill = np.zeros(count)
    for _ in range(STEPS):
        p = 1.0 / (1.0 + np.exp(skill[b] - skill[a]))
        slope = np.asarray(np.bincount(a, scores - p, count) - np.bincount(b, scores - p, count), np.float64)
        weight = p * (1.0 - p)
        information = np.diag(np.asarray(np.bincount(a, weight, count) + np.bincount(b, weight, count), np.float64))
        np.subtract.at(information, (a, b), weight)
        np.subtract.at(information, (b, a), weight)
        own = 1.0 / (1.0 + np.exp(-skill))
        slope = slope + assumed * (0.5 - own)
        information = information + np.diag(assumed * own * (1.0 - own)) + 1.0 / count
        change = np.clip(np.linalg.solve(information, slope), -1.0, 1.0)
        skill = skill + change
        if float(np.abs(change).max()) < TOLERANCE:
            break
    return skill - skill.mean(), information


def _errors(
    a: Integers, b: Integers, scores: Floats, skill: Floats, information: Floats, scene: Integers
) -> tuple[Floats, Floats]:
    """Standard errors and half-widths of 95 % intervals, in log-odds; NaN for a contender seen in one scene alone."""
    count, scenes = len(skill), int(scene.max()) + 1
    p = 1.0 / (1.0 + np.exp(skill[b] - skill[a]))
    slopes, known = np.zeros((scenes, count)), np.zeros((scenes, count))
    for side, sign in ((a, 1.0), (b, -1.0)):
        np.add.at(slopes, (scene, side), sign * (scores - p))
        np.add.at(known, (scene, side), p * (1.0 - p))
    shares = known / known.sum(axis=0)
    left = 1.0 - shares
    inverse = np.linalg.inv(information) - 1.0 / count
    moved = (slopes / np.sqrt(np.where(left > _ALONE, left, 1.0))) @ inverse
    sandwich, own = np.sqrt((moved**2).sum(axis=0)), np.sqrt(np.maximum(np.diag(inverse), 0.0))
    widths = np.full(count, np.nan)
    for i in np.flatnonzero(shares.max(axis=0) < 1.0 - _ALONE):
        freedom = freedom_of_shares(shares[shares[:, i] > 0.0, i])
        widths[i] = max(float(student(freedom)) * sandwich[i], Z_95 * own[i])
    return np.maximum(sandwich, own), widths


def _warnings(met: int, apart: int, scenes: int, comparisons: int) -> tuple[str, ...]:
    found = []
    if met > 1:
        found.append(f"The contenders fall into {met} groups that were never compared; their ratings cannot be.")
    elif apart > 1:
        found.append(
            f"The contenders fall into {apart} groups of which one was always preferred to another: more comparisons "
            "are needed before ratings have intervals."
        )
    if scenes == 1 < comparisons:
        found.append("All comparisons are of one scene: nothing tells how another would turn out.")
    return tuple(found)
