"""The expert that a world has: its yardstick, as the oracle is the UR5 cell's."""

from __future__ import annotations

from collections.abc import Iterator

from merton.decision.models.base import Policy
from merton.errors import InputError
from merton.models.base import Finding
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

    def check(self) -> Iterator[Finding]:
        """See `ModelAdapter.check`: there is nothing to load, and a world alone can ask it."""
        yield Finding("expert", True, "of a world that has one: merton world check")
