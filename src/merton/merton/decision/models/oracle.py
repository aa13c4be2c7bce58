"""The oracle: does the task from the simulator's state, in place of the papers' human expert."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from merton.decision.models import motions, prop_motions
from merton.decision.models.base import Policy, example_observation
from merton.errors import InputError
from merton.world.action import ActionChunk, checked_chunk
from merton.world.cell import Props, load_cell
from merton.world.geometry import transform
from merton.world.observation import Observation, SceneObject, SceneState
from merton.world.tasks import Command, parse

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
        return checked_chunk(deltas, motions.STEP_S, model=self.name, done=True)

    def make_example(self) -> Observation:
        """A red cube to pick up."""
        cube = SceneObject("red cube", transform((0.45, 0.10, 0.0225)))
        return example_observation("pick up the red cube", scene=SceneState((cube,)))


def _deltas(command: Command, observation: Observation, scene: SceneState) -> NDArray[np.float64]:
    """The whole task as deltas (n, 7)."""
    hand = (observation.base_from_tcp, observation.gripper_open)
    found = scene.find(command.object)
    thing, yaw_rad = found.base_from_object, yaw_of(found)
    target = scene.find(command.target).base_from_object if command.target else thing
    direction, sizes = str(command.direction), _sizes()
    skills: dict[str, Callable[[], NDArray[np.float64]]] = {
        "reach": lambda: motions.reach(*hand, thing[:3, 3]),
        "push": lambda: motions.push(*hand, thing[:3, 3], direction),
        "pick": lambda: motions.pick(*hand, thing[:3, 3], yaw_rad),
        "place": lambda: motions.place(*hand, thing[:3, 3], yaw_rad, target[:3, 3]),
        "move": lambda: prop_motions.move(*hand, thing, yaw_rad, target, direction),
        "press": lambda: prop_motions.press(*hand, thing, sizes.button),
        "pull": lambda: prop_motions.pull(*hand, thing, sizes.drawer),
        "twist": lambda: prop_motions.twist(*hand, thing, direction, sizes.knob),
        "cover": lambda: prop_motions.cover(*hand, thing, target, sizes.lid),
        "insert": lambda: prop_motions.insert(*hand, thing, target, sizes.peg),
        "pour": lambda: prop_motions.pour(*hand, thing, target, sizes.cup),
    }
    return skills[command.verb]()


@lru_cache(maxsize=1)
def _sizes() -> Props:
    """The sizes of props, which the oracle knows like the poses."""
    return load_cell().objects.props


def yaw_of(thing: SceneObject) -> float | None:
    """Yaw [rad] of an object's sides in `base_link`, or None for a round object."""
    if not thing.name.endswith(_SIDED):
        return None
    return math.atan2(thing.base_from_object[1, 0], thing.base_from_object[0, 0])
