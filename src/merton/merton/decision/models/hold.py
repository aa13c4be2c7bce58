"""Does nothing: what a task's score is when nobody tries."""

from __future__ import annotations

from merton.decision.models.base import Policy, example_observation
from merton.decision.models.motions import STEP_S
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import Observation


class Hold(Policy):
    """Keeps arm and gripper as they are, and calls that done."""

    name = "hold"

    def act(self, observation: Observation) -> ActionChunk:
        """One delta of zeros with the gripper as it is."""
        gripper = min(1.0, max(0.0, observation.gripper_open))
        return checked_chunk([[0.0] * 6 + [gripper]], STEP_S, model=self.name, done=True)

    def make_example(self) -> Observation:
        """Any task will do."""
        return example_observation("reach above the red cube")
