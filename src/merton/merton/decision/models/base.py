"""What a policy is: it looks once and answers with a chunk of tool motions; and the catalogue of those there are."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import field_validator

from merton.config import Model
from merton.errors import InvalidActionError
from merton.models.catalogue import Adapter, Catalogue, Entry, Finding, make, unique
from merton.world.action import ActionChunk
from merton.world.geometry import from_rpy, transform
from merton.world.observation import CameraView, Intrinsics, Observation, SceneState


class Policy(ABC):
    """A model that decides. Building one loads nothing heavy; the first decision, or `warm_up`, does.

    Attributes:
        name: the name it is asked for by.
        cameras: names of the views it looks at.
        needs_scene: whether it reads the simulator's state.
        adapter_version: raised with every change that may change an action, that of its convention included, so that
            actions that were kept are told from new ones; "": every change to the adapter's sources counts as one
            (`merton.annotate.identity`).
    """

    name: str
    cameras: tuple[str, ...] = ()
    needs_scene: bool = False
    adapter_version: str = ""

    @abstractmethod
    def act(self, observation: Observation) -> ActionChunk:
        """The next chunk of deltas, to be executed from where the observation was made.

        Keeps nothing between calls: `observation.step` tells how far the trial is, and `observation.noise_seed` is the
        only source of randomness, so that equal observations give equal chunks.

        Args:
            observation: the views; depth and scene if its entry asks for them; the arm's state, the instruction.

        Raises:
            InputError: an instruction it cannot understand, or a view or scene it needs is missing.
            InvalidActionError: its output is not a usable action; an outcome of the trial.
            MissingDependencyError: an extra or the weights are not there; the text says how to get them.
            InfrastructureError: the server or the machine failed; never counted as the model's decision.
        """

    def act_batch(self, observations: Sequence[Observation]) -> list[ActionChunk | InvalidActionError]:
        """Decide on many observations, each as `act` would; here one after the other.

        An output that is no action stands in the list as its error, so that it does not take the others with it.
        """
        results: list[ActionChunk | InvalidActionError] = []
        for observation in observations:
            try:
                results.append(self.act(observation))
            except InvalidActionError as error:
                results.append(error)
        return results

    @abstractmethod
    def make_example(self) -> Observation:
        """A made-up observation that `act` accepts, to warm a model up and to check an adapter."""

    def warm_up(self) -> None:
        """Load whatever there is to load, and act on the example."""
        self.act(self.make_example())

    def check(self) -> Iterator[Finding]:
        """What is there and what is missing, without the network; ends with the example being acted on."""
        started = time.perf_counter()
        chunk = self.act(self.make_example())
        yield Finding("example", True, f"{len(chunk.deltas)} deltas in {1000 * (time.perf_counter() - started):.0f} ms")


class PolicyEntry(Entry):
    """A policy of the catalogue.

    Attributes:
        cameras: names of the views it looks at, in the order the model wants them.
        needs_scene: whether it reads the simulator's state; such a policy is a yardstick, not a contestant.
        needs_depth: whether it looks at depth; in a trial it is shown none otherwise.
        convention: how its numbers are meant: a name of `merton.decision.models.conventions.CONVENTIONS`; "" if it
            speaks Merton's own.
        unnorm_key: data set whose statistics un-normalise the output.
        state: what of the arm's state it is shown: nothing, the tool, or joints of the arm its convention names.
        stochastic: it draws noise, from the seed of the observation.
    """

    prompt: str = "{instruction}"
    cameras: tuple[str, ...] = ()
    needs_scene: bool = False
    needs_depth: bool = False
    convention: str = ""
    unnorm_key: str = ""
    state: Literal["none", "tool", "joints"] = "none"
    stochastic: bool = False

    @field_validator("prompt")
    @classmethod
    def _tells(cls, value: str) -> str:
        if value.count("{instruction}") != 1:
            raise ValueError("a prompt says {instruction} once, where the instruction goes")
        return value

    @field_validator("convention")
    @classmethod
    def _known(cls, value: str) -> str:
        from merton.decision.models.conventions import CONVENTIONS

        if value and value not in CONVENTIONS:
            raise ValueError(f"unknown convention {value!r}; choose one of: {', '.join(CONVENTIONS)}")
        return value

    def build(self) -> Policy:
        """An instance of the policy; raises what `merton.models.catalogue.make` raises."""
        policy: Policy = make(self, ADAPTERS)
        return policy


class _File(Model):
    """A file of the catalogue as this stage reads it."""

    vla: tuple[PolicyEntry, ...] = ()
    vlm: tuple[Any, ...] = ()

    _names_differ = field_validator("vla")(unique)


_HERE = "merton.decision.models"
ADAPTERS = {
    "expert": Adapter(path=f"{_HERE}.expert:Expert"),
    "servo": Adapter(path=f"{_HERE}.servo:Servo"),
    "hold": Adapter(path=f"{_HERE}.hold:Hold"),
    "plunge": Adapter(path=f"{_HERE}.plunge:Plunge"),
    "tiny_vla": Adapter(path=f"{_HERE}.tiny_vla:TinyVla"),
    "openvla": Adapter(path=f"{_HERE}.openvla:OpenVla", extra="models"),
    "openvla_rest": Adapter(path=f"{_HERE}.openvla_rest:OpenVlaRest", extra="remote"),
    "openpi": Adapter(path=f"{_HERE}.openpi:OpenPi", extra="remote"),
    "lerobot": Adapter(path=f"{_HERE}.lerobot:LeRobot", extra="lerobot"),
}
"""What a catalogue entry may name as its adapter, beside a "module:class" of the lab's own."""

POLICIES: Catalogue[PolicyEntry] = Catalogue("vla", _File)


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
