"""The Decision score: how alike two action chunks are (Embodied-IQA, section 3.4).

The paper compares the points reached, the directions of the rotations and the gripper states, normalises each to
0..1 and averages. Its normalisation and its score of a chunk without rotation are not published; ours are stated at
each function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from merton.decision.spread import Spread, likeness
from merton.errors import InputError
from merton.world.action import DIMENSIONS, ActionChunk

NO_ROTATION_RAD = 1e-3
"""A rotation below this (0.06 degrees) counts as none: its direction is noise."""

POSITION_RANGE_M = 0.5
"""Distance from which on positions score 0 [m]. Ours: about the size of the area of the objects."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class DecisionScore:
    """Similarity of two chunks, each 0..1; `total` is the mean of the other three.

    Of a world with an action space of its own there is a total alone (`merton.decision.spread.likeness`).
    """

    total: float
    position: float | None = None
    rotation: float | None = None
    state: float | None = None


@dataclass(frozen=True)
class DecisionScores:
    """`DecisionScore` of n pairs of chunks, each field of shape (n,)."""

    total: Values
    position: Values
    rotation: Values
    state: Values


@dataclass(frozen=True)
class Comparison:
    """The differences of n pairs of chunks before normalisation; each field of shape (n,).

    Attributes:
        distance_m: between the points reached from a common start.
        cosine: of the angle between the total rotation vectors, -1..1. Ours: 1 if neither chunk rotates, 0 (as for
            perpendicular vectors) if exactly one does.
        state_difference: of the gripper at the end of the chunks, 0..1. Ours: an empty chunk has no gripper state; two
            of them do not differ (0), one and a chunk with deltas do (1).
    """

    distance_m: Values
    cosine: Values
    state_difference: Values


@dataclass(frozen=True)
class Normalisation:
    """The (lowest, highest) value of each dimension: values between them are mapped linearly to 0..1, others clipped.

    Raises:
        InputError: a range that is not finite, or whose highest value is below the lowest.
    """

    distance_m: tuple[float, float] = (0.0, POSITION_RANGE_M)
    cosine: tuple[float, float] = (-1.0, 1.0)
    state_difference: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name, (low, high) in vars(self).items():
            if not (-inf < low <= high < inf):
                raise InputError(f"the {name} range must be (low, high) with finite ends, got ({low!r}, {high!r})")

    @classmethod
    def of_study(cls, comparison: Comparison) -> Normalisation:
        """The paper's likely normalisation: the least and the greatest value of the whole study.

        Such scores depend on the models and distortions of the study, and are comparable within it only.

        Raises:
            InputError: there is no pair.
        """
        if not len(comparison.distance_m):
            raise InputError("a study without a pair of actions has no range to normalise by")
        ends = {name: (float(values.min()), float(values.max())) for name, values in vars(comparison).items()}
        return cls(**ends)


def score(reference: ActionChunk, candidate: ActionChunk, position_range_m: float = POSITION_RANGE_M) -> DecisionScore:
    """Compare a chunk decided on a distorted image with the one decided on the reference image.

    - position: 1 - min(1, distance of the points reached / `position_range_m`).
    - rotation: (1 + cosine of the angle between the total rotation vectors) / 2; 1 if neither chunk rotates, 0.5 (the
      value of perpendicular vectors) if exactly one does.
    - state: 1 - absolute difference of the gripper at the end of the chunks.

    An empty chunk is no motion and has no gripper state: two of them agree (1), one and a chunk with deltas do not (0).

    Args:
        reference, candidate: chunks in the same frame.
        position_range_m: distance from which on positions score 0.

    Raises:
        InputError: different frames, or a range that is not positive.
    """
    if not 0 < position_range_m < inf:
        raise InputError(f"the position range must be a positive length, got {position_range_m!r} m")
    normalisation = Normalisation(distance_m=(0.0, position_range_m))
    scores = score_batch([reference], [candidate], normalisation)
    found = {name: float(values[0]) for name, values in vars(scores).items()}
    return DecisionScore(**found) if reference.spread is None else DecisionScore(found["total"])


def score_batch(
    references: Sequence[ActionChunk],
    candidates: Sequence[ActionChunk],
    normalisation: Normalisation = Normalisation(),
) -> DecisionScores:
    """`score` of each reference and the candidate at the same index, with any normalisation.

    The parts of a pair of a world with an action space are NaN.

    Raises:
        InputError: lists of different lengths, or a pair in different frames or of different action spaces.
    """
    own = [number for number, chunk in enumerate(references) if chunk.spread is not None]
    if not own:
        return normalised(compare(references, candidates), normalisation)
    _check_pairs(references, candidates)
    found = DecisionScores(*(np.full(len(references), np.nan) for _ in range(4)))
    for number in own:
        found.total[number] = _in_its_space(references[number], candidates[number])
    if rest := [number for number in range(len(references)) if number not in own]:
        one, other = ([chunks[number] for number in rest] for chunks in (references, candidates))
        for name, values in vars(normalised(compare(one, other), normalisation)).items():
            getattr(found, name)[rest] = values
    return found


def _in_its_space(reference: ActionChunk, candidate: ActionChunk) -> float:
    """Likeness of two chunks of one action space; an empty chunk is no motion, as of Merton's own deltas."""
    assert reference.spread is not None
    if not (len(reference.deltas) and len(candidate.deltas)):
        return float(len(reference.deltas) == len(candidate.deltas))
    alike = likeness(reference.deltas, candidate.deltas, Spread(np.array(reference.spread)))
    assert alike is not None, "a column of every action space varies"
    return alike


def _check_pairs(references: Sequence[ActionChunk], candidates: Sequence[ActionChunk]) -> None:
    if len(references) != len(candidates):
        raise InputError(
            f"every reference chunk needs one candidate, got {len(references)} references and "
            f"{len(candidates)} candidates"
        )
    for one, other in zip(references, candidates, strict=True):
        if one.frame != other.frame:
            raise InputError(f"cannot compare a chunk in {one.frame!r} with one in {other.frame!r}")
        if one.spread != other.spread:
            raise InputError("cannot compare chunks of two action spaces")


def compare(references: Sequence[ActionChunk], candidates: Sequence[ActionChunk]) -> Comparison:
    """The raw differences of each reference and the candidate at the same index.

    The result of a pair does not depend, to the last bit, on the other pairs.

    Raises:
        InputError: lists of different lengths, or a pair in different frames.
    """
    _check_pairs(references, candidates)
    points, turns = end_motions([*references, *candidates])
    count = len(references)
    cosine = _cosines(turns[:count], turns[count:])
    state = np.array([_state_difference(one, other) for one, other in zip(references, candidates, strict=True)])
    gap = points[:count] - points[count:]
    return Comparison(np.sqrt(_dot(gap, gap)), cosine, state.reshape(count))


def normalised(comparison: Comparison, normalisation: Normalisation = Normalisation()) -> DecisionScores:
    """Scores of 0..1, 1 for equal chunks. Ours: a dimension whose range is a single value scores 1 everywhere."""
    position = 1.0 - _share(comparison.distance_m, normalisation.distance_m, 0.0)
    rotation = _share(comparison.cosine, normalisation.cosine, 1.0)
    state = 1.0 - _share(comparison.state_difference, normalisation.state_difference, 0.0)
    return DecisionScores((position + rotation + state) / 3, position, rotation, state)


def end_motions(chunks: Sequence[ActionChunk]) -> tuple[Values, Values]:
    """Each chunk as one motion of the tool: displacements (n, 3) [m] and rotation vectors (n, 3) [rad].

    From the pose that the chunk begins at, in the chunk's frame.
    """
    from scipy.spatial.transform import Rotation  # slow to load, and most importers never score

    lengths = np.array([len(chunk.deltas) for chunk in chunks], dtype=np.int64)
    deltas = np.zeros((len(chunks), int(lengths.max(initial=0)), DIMENSIONS))
    for row, chunk in zip(deltas, chunks, strict=True):
        row[: len(chunk.deltas)] = chunk.deltas
    in_tool = np.array([chunk.frame == "tcp" for chunk in chunks], dtype=bool)
    points, turns = np.zeros((len(chunks), 3)), np.tile([0.0, 0.0, 0.0, 1.0], (len(chunks), 1))
    for step in range(deltas.shape[1]):
        for frame_is_tool in (False, True):
            rows = np.flatnonzero((lengths > step) & (in_tool == frame_is_tool))
            if not len(rows):
                continue
            turn, move = Rotation.from_quat(turns[rows]), deltas[rows, step, :3]
            by = Rotation.from_rotvec(deltas[rows, step, 3:6])
            points[rows] += _rotated(turns[rows], move) if frame_is_tool else move
            turns[rows] = (turn * by if frame_is_tool else by * turn).as_quat()
    return points, Rotation.from_quat(turns).as_rotvec() if len(chunks) else np.zeros((0, 3))


def _rotated(quaternions: Values, vectors: Values) -> Values:
    """Vectors turned by quaternions (x, y, z, w). `Rotation.apply` rounds otherwise for one vector than for many."""
    twice = 2.0 * np.cross(quaternions[:, :3], vectors)
    return vectors + quaternions[:, 3:] * twice + np.cross(quaternions[:, :3], twice)


def _cosines(ones: Values, others: Values) -> Values:
    lengths, other_lengths = (np.sqrt(_dot(vectors, vectors)) for vectors in (ones, others))
    still, other_still = lengths < NO_ROTATION_RAD, other_lengths < NO_ROTATION_RAD
    product = np.where(still | other_still, 1.0, lengths * other_lengths)
    cosine = np.clip(_dot(ones, others) / product, -1.0, 1.0)
    return np.where(still | other_still, np.where(still & other_still, 1.0, 0.0), cosine)


def _dot(ones: Values, others: Values) -> Values:
    """The dot products of vectors (n, 3), summed in the same order for every n."""
    products = ones * others
    return products[:, 0] + products[:, 1] + products[:, 2]


def _state_difference(reference: ActionChunk, candidate: ActionChunk) -> float:
    if len(reference.deltas) and len(candidate.deltas):
        return abs(float(reference.deltas[-1, 6] - candidate.deltas[-1, 6]))
    return 0.0 if len(reference.deltas) == len(candidate.deltas) else 1.0


def _share(values: Values, ends: tuple[float, float], without_range: float) -> Values:
    """The position of each value between the two ends, 0..1; values beyond them are clipped."""
    low, high = ends
    if high == low:
        return np.full(len(values), without_range)
    return np.clip((values - low) / (high - low), 0.0, 1.0)
