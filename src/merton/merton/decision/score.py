"""The Decision score: how alike two action chunks are (Embodied-IQA, section 3.4).

The paper compares the points reached, the directions of the rotations and the gripper states, brings each to 0..1 and
averages; how it normalises and what it does without a direction it does not say. Ours is written at each function.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from merton.decision.action import ActionChunk
from merton.errors import InputError

NO_ROTATION_RAD = 1e-3
"""A rotation below this (0.06 degrees) has no direction worth comparing."""


@dataclass(frozen=True)
class DecisionScore:
    """Similarity of two chunks, each 0..1; `total` is the mean of the other three."""

    total: float
    position: float
    rotation: float
    state: float


def score(reference: ActionChunk, candidate: ActionChunk, position_range_m: float = 0.5) -> DecisionScore:
    """Compare a chunk decided on a distorted image with the one decided on the reference image.

    - position: 1 - min(1, distance of the points reached / `position_range_m`).
    - rotation: (1 + cosine of the angle between the total rotation vectors) / 2; 1 if neither chunk rotates, 0.5 (the
      value of perpendicular vectors) if exactly one does.
    - state: 1 - absolute difference of the gripper at the end of the chunks.

    An empty chunk is no motion. It has no gripper state: two of them agree (1), one beside a real chunk does not (0).

    Args:
        reference, candidate: chunks in the same frame.
        position_range_m: distance at which the positions have nothing in common any more [m]. Ours: 0.5 m, about the
            size of the table the objects stand on.

    Raises:
        InputError: different frames, or a range that is not positive.
    """
    if reference.frame != candidate.frame:
        raise InputError(f"cannot compare a chunk in {reference.frame!r} with one in {candidate.frame!r}")
    if not 0 < position_range_m < inf:
        raise InputError(f"the position range must be a positive length, got {position_range_m!r} m")
    point, turn = _motion(reference)
    other_point, other_turn = _motion(candidate)
    position = 1.0 - min(1.0, float(np.linalg.norm(point - other_point)) / position_range_m)
    rotation = _rotation_similarity(turn, other_turn)
    state = _state_similarity(reference, candidate)
    return DecisionScore((position + rotation + state) / 3, position, rotation, state)


def _motion(chunk: ActionChunk) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where a chunk takes the tool from the origin: displacement (3,) [m] and rotation vector (3,) [rad]."""
    point, turn = np.zeros(3), Rotation.identity()
    for delta in chunk.deltas:
        step = Rotation.from_rotvec(delta[3:6])
        point = point + (turn.apply(delta[:3]) if chunk.frame == "tcp" else delta[:3])
        turn = turn * step if chunk.frame == "tcp" else step * turn
    return point, turn.as_rotvec()


def _rotation_similarity(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    still = sum(length < NO_ROTATION_RAD for length in lengths)
    if still:
        return 1.0 if still == 2 else 0.5
    cosine = float(one @ other) / (lengths[0] * lengths[1])
    return (1.0 + min(1.0, max(-1.0, cosine))) / 2


def _state_similarity(reference: ActionChunk, candidate: ActionChunk) -> float:
    if len(reference.deltas) and len(candidate.deltas):
        return 1.0 - abs(float(reference.deltas[-1, 6] - candidate.deltas[-1, 6]))
    return 1.0 if len(reference.deltas) == len(candidate.deltas) else 0.0
