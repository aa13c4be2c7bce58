"""Chunks of actions: 7-DoF deltas of the tool centre point, or rows in the own form of another world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InvalidActionError
from merton.world.geometry import Array

DIMENSION_NAMES = ("x", "y", "z", "rotation x", "rotation y", "rotation z", "gripper")
DIMENSIONS = len(DIMENSION_NAMES)
FRAMES = ("base_link", "tcp")
"""Frames a delta may be expressed in: the robot's base (applied from the left) or the tool (from the right)."""
ROWS = "rows"
"""In place of a frame: the chunk's rows are in the form `rows` of a world's action space (`merton.world.action_space`),
which alone says their columns."""


@dataclass(frozen=True)
class ActionChunk:
    """A sequence of deltas that is executed open loop from the pose the observation was made at.

    Attributes:
        deltas: (n, 7) float64, n >= 0; columns are translation x, y, z [m], rotation vector [rad], and the gripper
            (absolute, 0 closed, 1 open). Of `ROWS` (n, columns), in the units of the world's action space.
        step_s: time one delta takes [s], > 0.
        frame: one of `FRAMES`, or `ROWS`.
        model: name of the model that decided.
        latency_s: time the decision took [s].
        done: the model considers the task finished after this chunk.
        images: camera to the stamp of its image that the chunk was decided on [ns]; empty for a model that looks at
            none, None if it is not known.
        spread: width in which each column varies, by which two chunks of a world with an action space are compared
            (`merton.world.action_space`); None of Merton's own deltas.
    """

    deltas: Array
    step_s: float
    frame: str = "base_link"
    model: str = ""
    latency_s: float = 0.0
    done: bool = False
    images: Mapping[str, int] | None = None
    spread: tuple[float, ...] | None = None


def checked_chunk(
    deltas: ArrayLike,
    step_s: float,
    *,
    frame: str = "base_link",
    model: str = "",
    latency_s: float = 0.0,
    done: bool = False,
) -> ActionChunk:
    """An ActionChunk from a model's raw output.

    Raises:
        InvalidActionError: wrong shape, NaN or infinity anywhere, a gripper outside [0, 1], a step that is not
            positive, or an unknown frame. Of `ROWS` a world checks the columns.
    """
    try:
        array = np.array(deltas, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidActionError(f"the action of {model or 'the model'} is not numeric: {error}") from None
    if array.size == 0:
        array = array.reshape(0, array.shape[1] if frame == ROWS and array.ndim == 2 else DIMENSIONS)
    if (fault := chunk_fault(array, step_s, frame)) is not None:
        raise InvalidActionError(fault[0])
    return ActionChunk(array, float(step_s), frame, model, float(latency_s), bool(done))


def chunk_fault(deltas: Array, step_s: float, frame: object) -> tuple[str, int] | None:
    """The fault of numbers that are no chunk, in one sentence, and the delta concerned or -1; None if they are one.

    Call this before anything clips: `np.clip(nan)` is nan. Not finite comes first: NaN passes comparisons.

    Args:
        deltas: numbers of any shape; as in an `ActionChunk` if there is no fault.
        step_s: time per delta [s].
        frame: expected to be one of `FRAMES`, or `ROWS`.
    """
    is_rows = isinstance(frame, str) and frame == ROWS
    if deltas.ndim != 2 or (not is_rows and deltas.shape[1] != DIMENSIONS):
        return f"an action chunk must have shape (n, {'columns' if is_rows else DIMENSIONS}), got {deltas.shape}", -1
    if not 0 < step_s < inf:
        return f"the step of an action chunk must be a positive time, got {step_s!r} s", -1
    if not is_rows and (not isinstance(frame, str) or frame not in FRAMES):
        return f"unknown action frame {str(frame)[:40]!r}; choose one of: {', '.join(FRAMES)}", -1
    for index, delta in enumerate(deltas):
        if not np.isfinite(delta).all():
            return f"delta {index} of the action is not finite", index
        if not is_rows and not 0 <= delta[6] <= 1:
            return f"the gripper of delta {index} must be in 0 (closed) .. 1 (open), got {delta[6]:g}", index
    return None
