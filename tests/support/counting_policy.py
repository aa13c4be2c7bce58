"""A policy that keeps a state: of each chunk of three rows it gives one a call, and the rows tell themselves apart."""

from __future__ import annotations

import numpy as np

from merton.decision.models.base import Policy
from merton.errors import InputError
from merton.world.action import ActionChunk
from merton.world.observation import Observation

ROWS, STEP = 3, 0.01


class Counting(Policy):
    """Row i of a chunk is (i + 1) STEP along the first column, and the brightness of the picture it was made of."""

    name = "counting"
    cameras = ("top",)

    def __init__(self) -> None:
        self.begin_trial()

    def begin_trial(self) -> None:
        self.buffer: list[np.ndarray] = []

    def act(self, observation: Observation) -> ActionChunk:
        """The next row; looks when it has none left."""
        self.require_views(observation)
        if observation.action is None:
            raise InputError("it acts in the point world alone")
        if not self.buffer:
            bright = STEP * float(observation.views["top"].color.mean()) / 255
            self.buffer = [np.array([STEP * (row + 1), bright]) for row in range(ROWS)]
        return observation.action.chunk([self.buffer.pop(0)], self.name)
