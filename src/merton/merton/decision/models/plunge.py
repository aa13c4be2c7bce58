"""A policy that drives into the table: a check that the emergency stop works for any model."""

from __future__ import annotations

from merton.decision.models.base import Policy
from merton.world.action import ActionChunk, checked_chunk
from merton.world.motion import STEP_S
from merton.world.observation import Observation

_STEP_DOWN_M = 0.05
_STEPS = 10


class Plunge(Policy):
    """Moves straight down, 5 cm a step, until it is stopped."""

    name = "plunge"

    def act(self, observation: Observation) -> ActionChunk:
        """Half a metre down, never done."""
        gripper = min(1.0, max(0.0, observation.opened))
        return checked_chunk([[0.0, 0.0, -_STEP_DOWN_M, 0.0, 0.0, 0.0, gripper]] * _STEPS, STEP_S, model=self.name)
