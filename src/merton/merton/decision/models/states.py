"""The state of the arm in a request to a policy, in the numbers of its family."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.decision.models.conventions import Convention
from merton.world.geometry import rotation_vector_of
from merton.world.observation import Observation

OF_LIBERO = "openpi_state"
"""LIBERO's name, in `Observation.extra`, of the eight numbers that its policies read."""
_FINGER_OPEN_M = 0.04
"""Opening of one finger of a Panda's hand, as in LIBERO's state."""


def state_of(observation: Observation, kind: str, convention: Convention) -> NDArray[np.float64]:
    """The state to send, in the family's own numbers.

    Args:
        kind: "tool": position [m] and rotation vector [rad] of the tool centre point in `base_link`, then both fingers
            of a Panda [m], (8,); as LIBERO itself gives them, if it does. "joints": see `Convention.joints_of`. "none":
            the convention's `rest`.
    """
    if kind == "tool":
        extra: Any = observation.extra or {}
        if OF_LIBERO in extra:
            return np.asarray(extra[OF_LIBERO], np.float64)
        finger_m = _FINGER_OPEN_M * observation.opened
        pose = observation.tool
        return np.concatenate((pose[:3, 3], rotation_vector_of(pose), (finger_m, -finger_m)))
    return convention.joints_of(observation) if kind == "joints" else np.array(convention.rest)
