"""The expert that a world has: its yardstick, as the oracle is the UR5 cell's."""

from __future__ import annotations

from merton.decision.models.base import Policy, example_in_a_world
from merton.errors import InputError
from merton.world.action import ActionChunk
from merton.world.observation import Observation


class Expert(Policy):
    """Decides as the world itself does, from its state."""

    name = "expert"
    needs_scene = True

    def act(self, observation: Observation) -> ActionChunk:
        """The expert's next rows; raises InputError in a world that has none."""
        if observation.expert is None or observation.action is None:
            raise InputError("the expert is a world's own, and this world has none")
        return observation.action.chunk(observation.expert(), self.name)

    def make_example(self) -> Observation:
        """See `example_in_a_world`."""
        return example_in_a_world()
