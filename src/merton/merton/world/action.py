"""Merton's one action type: chunks of 7-DoF deltas of the tool centre point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InvalidActionError

DIMENSIONS = 7
FRAMES = ("base_link", "tcp")
"""Frames a delta may be expressed in: the robot's base (applied from the left) or the tool (from the right)."""


@dataclass(frozen=True)
class ActionChunk:
    """A sequence of deltas that is executed open loop from the pose the observation was made at.

    Attributes:
        deltas: (n, 7) float64, n >= 0; columns are translation x, y, z [m], rotation vector [rad], and the gripper
            (absolute, 0 closed, 1 open).
        step_s: time one delta takes [s], > 0.
        frame: one of `FRAMES`.
        model: name of the model that decided.
        latency_s: time the decision took [s]; not part of equality, it is never the same twice.
        done: the model considers the task finished after this chunk.
    """

    deltas: NDArray[np.float64]
    step_s: float
    frame: str = "base_link"
    model: str = ""
    latency_s: float = 0.0
    done: bool = False


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
            positive, or an unknown frame. Checked before anything clips: `np.clip(nan)` is nan.
    """
    try:
        array = np.array(deltas, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidActionError(f"the action of {model or 'the model'} is not numeric: {error}") from None
    if array.size == 0:
        array = array.reshape(0, DIMENSIONS)
    if array.ndim != 2 or array.shape[1] != DIMENSIONS:
        raise InvalidActionError(f"an action chunk must have shape (n, {DIMENSIONS}), got {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidActionError(f"delta {int(np.argwhere(~np.isfinite(array))[0, 0])} of the action is not finite")
    if ((array[:, 6] < 0) | (array[:, 6] > 1)).any():
        raise InvalidActionError(
            f"the gripper must be in 0 (closed) .. 1 (open), got {array[:, 6].min():g} .. {array[:, 6].max():g}"
        )
    if not (np.isfinite(step_s) and step_s > 0):
        raise InvalidActionError(f"the step of an action chunk must be a positive time, got {step_s!r} s")
    if frame not in FRAMES:
        raise InvalidActionError(f"unknown action frame {frame!r}; choose one of: {', '.join(FRAMES)}")
    return ActionChunk(array, float(step_s), frame, model, float(latency_s), bool(done))
