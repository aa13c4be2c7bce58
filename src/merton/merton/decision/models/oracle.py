"""The oracle: does the task from the simulator's state, in place of the papers' human expert."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from merton.decision.models.base import Policy, example_observation
from merton.errors import InputError
from merton.world.action import ActionChunk, checked_chunk
from merton.world.geometry import transform
from merton.world.motion import STEP_S, Motion
from merton.world.observation import Observation, SceneObject, SceneState
from merton.world.tasks import TASKS, Command, Poses, parse

_SIDED = ("cube", "brick", "mug")
"""Shapes to which the fingers have to be square; of a mug, which is turned by 30 degrees at most, beside its handle."""


class Oracle(Policy):
    """Does a whole task in one chunk, from the true poses."""

    name = "oracle"
    needs_scene = True

    def act(self, observation: Observation) -> ActionChunk:
        """The whole task at step 0, nothing afterwards; raises InputError without a scene or for unknown words."""
        if observation.scene is None:
            raise InputError("the oracle needs the simulator's state of the scene, which only the embedded cell gives")
        command = parse(observation.instruction)
        observation.scene.find(command.object)
        deltas = _deltas(command, observation, observation.scene) if observation.step == 0 else np.empty((0, 7))
        return checked_chunk(deltas, STEP_S, model=self.name, done=True)

    def make_example(self) -> Observation:
        """A red cube to pick up."""
        cube = SceneObject("red cube", transform((0.45, 0.10, 0.0225)))
        return example_observation("pick up the red cube", scene=SceneState((cube,)))


def _deltas(command: Command, observation: Observation, scene: SceneState) -> NDArray[np.float64]:
    """The whole task as deltas (n, 7)."""
    hand, thing = Motion(observation.tool, observation.opened), scene.find(command.object)
    target = scene.find(command.target).base_from_object if command.target else transform()
    poses = Poses(thing.base_from_object, yaw_of(thing), target, command.direction)
    return TASKS[command.verb].motion(hand, poses).deltas


def yaw_of(thing: SceneObject) -> float | None:
    """Yaw [rad] of an object's sides in `base_link`, or None for a round object."""
    if not thing.name.endswith(_SIDED):
        return None
    return math.atan2(thing.base_from_object[1, 0], thing.base_from_object[0, 0])
