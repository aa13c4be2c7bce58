"""What a policy is: it looks once and answers with a chunk of tool motions. Adapters of learned models follow this too."""

from __future__ import annotations

import importlib
from typing import Protocol

import numpy as np

from merton.decision.action import ActionChunk
from merton.geometry import from_rpy, transform
from merton.observation import CameraView, Intrinsics, Observation, SceneState
from merton.registry import Registry


class Policy(Protocol):
    """A model that decides.

    Attributes:
        name: the name it is registered under.
        cameras: names of the views it looks at.
        needs_scene: whether it reads the simulator's state; such a policy is a yardstick, not a contestant.
    """

    name: str
    cameras: tuple[str, ...]
    needs_scene: bool

    def act(self, observation: Observation, rng: np.random.Generator) -> ActionChunk:
        """The next chunk of deltas, to be executed from where the observation was made.

        Keeps nothing between calls: `observation.step` tells how far the trial is.

        Args:
            observation: views of `cameras`, the arm's state, the instruction; the scene if `needs_scene`.
            rng: the only source of randomness.

        Raises:
            InputError: an instruction it cannot understand, or a view or scene it needs is missing.
            InvalidActionError: its output is not a usable action.
        """
        ...

    def make_example(self) -> Observation:
        """A made-up observation that `act` accepts, to warm a model up and to check an adapter."""
        ...


POLICIES: Registry[str] = Registry("policy")
"""Name to "module:class"; a policy's module, and whatever it depends on, is imported when it is made."""
POLICIES.add("expert", "merton.decision.models.expert:Expert")
POLICIES.add("hold", "merton.decision.models.hold:Hold")
POLICIES.add("plunge", "merton.decision.models.plunge:Plunge")


def make_policy(name: str) -> Policy:
    """A fresh policy; raises UnknownNameError with the names there are."""
    module, _, factory = POLICIES[name].partition(":")
    policy: Policy = getattr(importlib.import_module(module), factory)()
    return policy


def example_observation(
    instruction: str, cameras: tuple[str, ...] = (), scene: SceneState | None = None
) -> Observation:
    """An observation with grey images [424 x 240], an open gripper at (0.45, 0, 0.30) m that points straight down."""
    intrinsics = Intrinsics(424, 240, 212.0, 212.0, 211.5, 119.5)
    color = np.full((intrinsics.height, intrinsics.width, 3), 128, np.uint8)
    depth = np.ones((intrinsics.height, intrinsics.width), np.float32)
    base_from_camera = from_rpy((0.45, 0.0, 1.0), (np.pi, 0.0, -np.pi / 2))
    base_from_tcp = transform((0.45, 0.0, 0.30))
    base_from_tcp[:3, :3] = [[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]
    return Observation(
        views={name: CameraView(name, color, depth, intrinsics, base_from_camera) for name in cameras},
        joints_rad=np.array([-0.2450, -1.6559, 1.3857, -1.3006, -1.5708, -0.2450]),
        base_from_tcp=base_from_tcp,
        gripper_open=1.0,
        instruction=instruction,
        scene=scene,
    )
