"""The Execution score (Embodied-IQA, section 3.5), and how far a run deviates from its reference run."""

from __future__ import annotations

import math
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InputError, UnknownNameError
from merton.results.records import Outcome
from merton.world.geometry import Array, Matrix, rotation_vector_of

_PAIRS_AT_ONCE = 20_000


def score(outcome: Outcome | str, distance_m: float | None = None) -> float | None:
    """The Execution score of a run, 0..100.

    Success is 100. A failure loses a point per centimetre between the final tool positions of this run and the
    reference, down to 0. An emergency stop is 0. Ours: an invalid action and an abstention, which moved nothing, are 0
    as well; an infrastructure fault says nothing about the model, and its score is None.

    Args:
        outcome: an `Outcome` or its value.
        distance_m: `position_distance_m` [m]; only a failure needs it.

    Raises:
        UnknownNameError: no such outcome.
        InputError: a failure without a finite distance of 0 or more.
    """
    try:
        outcome = Outcome(outcome)
    except ValueError:
        raise UnknownNameError("outcome", outcome, [known.value for known in Outcome]) from None
    if outcome is Outcome.INFRASTRUCTURE:
        return None
    if outcome is Outcome.SUCCESS:
        return 100.0
    if outcome is not Outcome.FAILURE:
        return 0.0
    if distance_m is None or not 0 <= distance_m < inf:
        raise InputError(f"the score of a failure needs the distance to the reference in metres, got {distance_m!r}")
    return max(0.0, 100.0 - 100.0 * distance_m)


def path_deviation_m(reference_path: ArrayLike, path: ArrayLike) -> float:
    """The largest distance of a point of either path from the other path [m] (Hausdorff distance).

    Ours: it depends neither on the speed nor on the sampling of the paths, which differ between cells, as a Fréchet
    distance of points does; and a run that stops half way deviates by the part that it left out.

    Args:
        reference_path, path: positions (n, 3), n >= 1, in the same frame [m]; between them the tool moves straight.
    """
    first, second = (_turning_points(points) for points in (reference_path, path))
    return max(_farthest_m(first, second), _farthest_m(second, first))


def _turning_points(path: ArrayLike) -> Array:
    """A path without repetitions of a point."""
    points = np.asarray(path, dtype=np.float64)
    return points[np.r_[True, (np.diff(points, axis=0) != 0).any(axis=1)]]


def _farthest_m(points: Array, line: Array) -> float:
    """The largest distance of the points (n, 3) from a line through points (m, 3) [m]."""
    # by coordinate: numpy's sum over the three takes eight times as long, and adds in the same order
    start, along = line.T, np.diff(line, axis=0, append=line[-1:]).T
    square = np.maximum(_dot(along, along), np.finfo(float).tiny)
    farthest = 0.0
    for few in np.array_split(points, len(points) * len(line) // _PAIRS_AT_ONCE + 1):
        offset = few.T[:, :, None] - start[:, None]
        share = _dot(offset, along[:, None])
        share /= square
        share.clip(0.0, 1.0, out=share)
        offset -= share * along[:, None]
        farthest = max(farthest, float(_dot(offset, offset).min(axis=1).max(initial=0.0)))
    return math.sqrt(farthest)


def _dot(first: Array, second: Array) -> Array:
    """The sum over the first axis, of three coordinates, of the product."""
    return first[0] * second[0] + first[1] * second[1] + first[2] * second[2]


def angle_rad(reference_pose: Matrix, pose: Matrix) -> float:
    """Angle of the rotation between the orientations of two poses (4, 4) in the same frame [rad], 0..pi."""
    between = np.asarray(reference_pose)[:3, :3].T @ np.asarray(pose)[:3, :3]
    return min(float(np.linalg.norm(rotation_vector_of(between))), math.pi)


def position_distance_m(reference_pose: Matrix, pose: Matrix) -> float:
    """Euclidean distance between the origins of two poses (4, 4) in the same frame [m]; orientation does not count."""
    return float(np.linalg.norm(np.asarray(pose)[:3, 3] - np.asarray(reference_pose)[:3, 3]))
