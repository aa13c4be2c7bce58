"""The expert: does the task from the simulator's own state, as the papers' human expert would."""

from __future__ import annotations

import math

import numpy as np

from merton.decision.action import ActionChunk, checked_chunk
from merton.decision.models import motions
from merton.decision.models.base import example_observation
from merton.errors import InputError
from merton.geometry import transform
from merton.observation import Observation, SceneObject, SceneState
from merton.tasks import parse


class Expert:
    """Knows where everything is, and does a whole task in one chunk."""

    name = "expert"
    cameras: tuple[str, ...] = ()
    needs_scene = True

    def act(self, observation: Observation, rng: np.random.Generator) -> ActionChunk:
        """The whole task at step 0, nothing afterwards; raises InputError without a scene or for unknown words."""
        if observation.scene is None:
            raise InputError("the expert needs the simulator's state of the scene, which only the embedded cell gives")
        command = parse(observation.instruction)
        thing = observation.scene.find(command.object)
        position = thing.base_from_object[:3, 3]
        hand = (observation.base_from_tcp, observation.gripper_open)
        if observation.step > 0:
            deltas = np.empty((0, 7))
        elif command.verb == "reach":
            deltas = motions.reach(*hand, position)
        elif command.verb == "push":
            deltas = motions.push(*hand, position, str(command.direction))
        elif command.verb == "pick":
            deltas = motions.pick(*hand, position, yaw_of(thing))
        else:
            target = observation.scene.find(str(command.target)).base_from_object[:3, 3]
            deltas = motions.place(*hand, position, yaw_of(thing), target)
        return checked_chunk(deltas, motions.STEP_S, model=self.name, done=True)

    def make_example(self) -> Observation:
        """A red cube to pick up."""
        cube = SceneObject("red cube", transform((0.45, 0.10, 0.0225)))
        return example_observation("pick up the red cube", scene=SceneState((cube,)))


def yaw_of(thing: SceneObject) -> float | None:
    """Yaw [rad] of an object's sides in `base_link`, or None for a round object."""
    if not thing.name.endswith("cube"):
        return None
    return math.atan2(thing.base_from_object[1, 0], thing.base_from_object[0, 0])
