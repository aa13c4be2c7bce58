"""What a policy is: it looks once and answers with a chunk of tool motions; learned models follow it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
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
    """

    name: str

    def act(self, observation: Observation, rng: np.random.Generator) -> ActionChunk:
        """The next chunk of deltas, to be executed from where the observation was made.

        Keeps nothing between calls: `observation.step` tells how far the trial is.

        Args:
            observation: the views and, if so, the scene its entry asks for; the arm's state, the instruction.
            rng: the only source of randomness.

        Raises:
            InputError: an instruction it cannot understand, or a view or scene it needs is missing.
            InvalidActionError: its output is not a usable action.
        """
        ...

    def make_example(self) -> Observation:
        """A made-up observation that `act` accepts, to warm a model up and to check an adapter."""
        ...


@dataclass(frozen=True)
class PolicyEntry:
    """A policy of the catalogue: what it needs, and where its class is, imported when it is built.

    Attributes:
        name: the name it is asked for by.
        description: one line for people.
        path: "module:class".
        cameras: names of the views it looks at.
        needs_scene: whether it reads the simulator's state; such a policy is a yardstick, not a contestant.
    """

    name: str
    description: str
    path: str
    cameras: tuple[str, ...] = ()
    needs_scene: bool = False

    def build(self) -> Policy:
        """An instance of the policy."""
        module, _, attribute = self.path.partition(":")
        factory: Callable[[], Policy] = getattr(import_module(module), attribute)
        return factory()


POLICIES: Registry[PolicyEntry] = Registry("vla")
_MODELS = "merton.decision.models"
for _entry in (
    PolicyEntry(
        "expert", "reads the simulator's state: the paper's human expert", f"{_MODELS}.expert:Expert", needs_scene=True
    ),
    PolicyEntry(
        "servo", "finds the object by colour and depth, and servoes to it", f"{_MODELS}.servo:Servo", ("top", "wrist")
    ),
    PolicyEntry("hold", "does nothing: the floor under every score", f"{_MODELS}.hold:Hold"),
    PolicyEntry("plunge", "drives straight down, to exercise the emergency stop", f"{_MODELS}.plunge:Plunge"),
):
    POLICIES.add(_entry.name, _entry)


def make_policy(name: str) -> Policy:
    """A fresh policy; raises UnknownNameError with the names there are."""
    return POLICIES[name].build()


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
