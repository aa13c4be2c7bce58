"""A policy that looks at nothing and moves at random: the second floor under every score of a world."""

from __future__ import annotations

from merton.decision.models.base import Policy, example_in_a_world
from merton.errors import InputError
from merton.seeding import generator
from merton.world.action import ActionChunk
from merton.world.observation import Observation

ROWS_A_CHUNK = 10
"""Ours: as many as of a world's expert."""


class AtRandom(Policy):
    """Rows that are drawn evenly from the ranges of the world's action space."""

    name = "random"

    def act(self, observation: Observation) -> ActionChunk:
        """The next rows, by noise seed and step alone; raises InputError in the UR5 cell, which has no ranges."""
        if observation.action is None:
            raise InputError("random draws from the ranges of a world's action space, and the UR5 cell has none")
        columns = observation.action.columns
        low, high = [column.low for column in columns], [column.high for column in columns]
        rng = generator(self.name, observation.noise_seed, observation.step)
        rows = rng.uniform(low, high, (ROWS_A_CHUNK, len(columns)))
        return observation.action.chunk(rows, self.name)

    def make_example(self) -> Observation:
        """See `example_in_a_world`."""
        return example_in_a_world()
