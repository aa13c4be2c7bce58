"""An instruction as the numbers of its words, and a motion as straight segments: in and out of the learned policies.

Ours: a chunk of the oracle is a few runs of equal deltas, so a network that answers with the ends of straight segments
has to learn a dozen rows, not some hundred deltas.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

SLOTS = 16
"""Number of words of an instruction that are used."""
SEGMENTS = 12
"""Most segments of a motion."""
SEGMENT_SIZE = 9
"""Numbers of a segment: end position x, y, z [m]; rotation vector [rad]; gripper 0..1; log of the number of deltas; and
whether the motion goes on (a logit)."""


def tokens(instruction: str, words: tuple[str, ...]) -> NDArray[np.int64]:
    """The words of an instruction as numbers (SLOTS,): 0 for none, 1 for an unknown one, else 2 and up."""
    numbers = {word: index + 2 for index, word in enumerate(words)}
    known = [numbers.get(word.strip(".,"), 1) for word in instruction.lower().split()[:SLOTS]]
    return np.array(known + [0] * (SLOTS - len(known)), np.int64)


def from_deltas(deltas: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Segments (n, SEGMENT_SIZE) of a chunk (m, 7): runs of equal deltas; the inverse of `to_deltas`.

    `start` is the position (3,) of the tool centre point before the first delta [m].
    """
    rows: list[list[float]] = []
    position = np.array(start, np.float64)
    previous: NDArray[np.float64] | None = None
    for delta in deltas:
        position = position + delta[:3]
        if previous is not None and np.allclose(delta, previous, rtol=0, atol=1e-9):
            rows[-1][:3] = position
            rows[-1][7] += 1
        else:
            rows.append([*position, *delta[3:6], delta[6], 1, 1])
        previous = delta
    segments = np.array(rows).reshape(-1, SEGMENT_SIZE)
    segments[:, 3:6] *= segments[:, 7:8]
    segments[:, 7] = np.log(segments[:, 7])
    return segments


def to_deltas(segments: NDArray[np.floating], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equal deltas (m, 7) along every segment (n, SEGMENT_SIZE), up to the first whose last number is not positive."""
    position, parts = np.array(start, np.float64), [np.empty((0, 7))]
    for segment in np.asarray(segments, np.float64):
        if segment[8] <= 0:
            break
        count = max(1, round(math.exp(min(segment[7], 4.0))))
        turn = Rotation.from_rotvec(segment[3:6]).as_rotvec()
        gripper = min(1.0, max(0.0, segment[6]))
        parts.append(np.tile([*(segment[:3] - position) / count, *turn / count, gripper], (count, 1)))
        position = segment[:3]
    return np.vstack(parts)
