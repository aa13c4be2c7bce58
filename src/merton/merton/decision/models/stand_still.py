"""A policy that does nothing: the score of a task without any attempt."""

from __future__ import annotations

from merton.decision.models.base import Policy
from merton.errors import InputError
from merton.world.action import ActionChunk, checked_chunk
from merton.world.motion import STEP_S
from merton.world.observation import Observation


class StandStill(Policy):
    """Keeps arm and gripper where they are, and reports done."""

    name = "hold"

    def act(self, observation: Observation) -> ActionChunk:
        """One delta of zeros with the present gripper value; in another world its row of rest."""
        if observation.action is not None:
            if observation.rest_row is None:
                raise InputError("this world does not say by which row its robot stays where it is")
            return observation.action.chunk([observation.rest_row], self.name, done=True)
        gripper = min(1.0, max(0.0, observation.opened))
        return checked_chunk([[0.0] * 6 + [gripper]], STEP_S, model=self.name, done=True)
