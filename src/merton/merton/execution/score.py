"""The Execution score (Embodied-IQA, section 3.5)."""

from __future__ import annotations

from math import inf

import numpy as np

from merton.errors import InputError, UnknownNameError
from merton.results.records import Outcome
from merton.world.geometry import Matrix


def score(outcome: Outcome | str, distance_m: float | None = None) -> float | None:
    """The Execution score of a run, 0..100.

    Success is 100. A failure loses a point per centimetre between the final tool positions of this run and the
    reference, down to 0. An emergency stop is 0. Ours: an invalid action, which moved nothing, is 0 as well; an
    infrastructure fault says nothing about the model, and its score is None.

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


def position_distance_m(reference_pose: Matrix, pose: Matrix) -> float:
    """Euclidean distance between the origins of two poses (4, 4) in the same frame [m]; orientation does not count."""
    return float(np.linalg.norm(np.asarray(pose)[:3, 3] - np.asarray(reference_pose)[:3, 3]))
