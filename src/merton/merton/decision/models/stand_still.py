"""A policy that does nothing: the score of a task without any attempt."""

from __future__ import annotations

from merton.decision.models.base import Policy
from merton.world.action import ActionChunk, checked_chunk
from merton.world.motion import STEP_S
from merton.world.observation import Observation


class StandStill(Policy):
    """Keeps arm and gripper where they are, and reports done."""

    name = "hold"

    def act(self, observation: Observation) -> ActionChunk:
        """One delta of zeros with the present gripper value."""
        gripper = min(1.0, max(0.0, observation.gripper_open))
        return checked_chunk([[0.0] * 6 + [gripper]], STEP_S, model=self.name, done=True)
