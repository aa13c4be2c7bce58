"""A policy that looks at nothing and moves at random: the second floor under every score of a world."""

from __future__ import annotations

from dataclasses import replace

from merton.decision.models.base import Policy
from merton.errors import InputError
from merton.seeding import generator
from merton.world.action import ActionChunk
from merton.world.action_space import ActionColumn, ActionSpace
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
        """In a world with an action space of one column."""
        column = ActionColumn(name="x", unit="1", low=-1.0, high=1.0, spread=1.0)
        action = ActionSpace(form="rows", columns=(column,), period_s=0.1, spread_from="made up")
        return replace(super().make_example(), action=action)
