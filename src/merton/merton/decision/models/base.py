"""The contract of a policy, which decides on a chunk of tool motions, and the catalogue of policies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np
from pydantic import Discriminator, Tag, field_validator, model_validator

from merton.decision.models.convention_entry import ConventionEntry, of_dataset
from merton.errors import InputError, InvalidActionError, UnknownNameError
from merton.models.base import ModelAdapter
from merton.models.catalogue import AdapterClass, Catalogue, CatalogueEntry
from merton.world.action import ActionChunk
from merton.world.action_space import ActionColumn, ActionSpace
from merton.world.geometry import from_rpy, transform
from merton.world.observation import CameraView, Intrinsics, Observation, SceneState

if TYPE_CHECKING:
    from merton.decision.models.conventions import Convention


class Policy(ModelAdapter[Observation, ActionChunk]):
    """A model that decides; `ModelAdapter` has the part common to VLMs.

    Its `adapter_version` covers its convention: raise it when that changes, too.

    Attributes:
        cameras: names of the views it uses.
        needs_scene: whether it reads the simulator's state.
    """

    cameras: tuple[str, ...] = ()
    needs_scene: bool = False

    @abstractmethod
    def act(self, observation: Observation) -> ActionChunk:
        """The next chunk of deltas, from the pose at the time of the observation.

        Equal observations give equal chunks: a policy keeps no state between calls (`observation.step` is the progress
        of the trial), and `observation.noise_seed` is the only source of randomness. One that is `stateful` in the
        catalogue keeps some within a trial, from `begin_trial` on.

        Args:
            observation: the views, with depth and scene if the policy's entry asks for them.

        Raises:
            InputError: an unknown instruction, or a missing view or scene.
            InvalidActionError: the output is not a usable action; an outcome of the trial.
            MissingDependencyError: an extra or the weights are missing; the text says how to get them.
            InfrastructureError: the server or the machine failed; never counted as the model's decision.
        """

    def act_batch(self, observations: Sequence[Observation]) -> Sequence[ActionChunk | Exception]:
        """Decide on many observations as `act` does, here one after the other; exceptions as in `respond`."""
        results: list[ActionChunk | Exception] = []
        for observation in observations:
            try:
                results.append(self.act(observation))
            except InvalidActionError as error:
                results.append(error)
        return results

    def respond(self, requests: Sequence[Observation]) -> Sequence[ActionChunk | Exception]:
        """See `ModelAdapter.respond`."""
        return self.act_batch(requests)

    def make_example(self) -> Observation:
        """A made-up observation that `act` accepts: here grey images of its cameras, and a cube to pick up."""
        return example_observation("pick up the red cube", self.cameras)

    @staticmethod
    def summary(response: ActionChunk) -> str:
        """See `ModelAdapter.summary`: the number of deltas."""
        return f"{len(response.deltas)} deltas"

    def begin_trial(self) -> None:
        """Forget everything: a new trial begins. Nothing here; one that is `stateful` in the catalogue has its own."""

    def require_views(self, observation: Observation) -> None:
        """Raise InputError, naming the camera, if the view of one of `cameras` is missing."""
        for camera in self.cameras:
            if camera not in observation.views:
                raise InputError(f"{self.name} needs camera {camera!r}")


_HERE = "merton.decision.models"
ADAPTERS = {
    "oracle": AdapterClass(path=f"{_HERE}.oracle:Oracle"),
    "servo": AdapterClass(path=f"{_HERE}.servo:Servo"),
    "expert": AdapterClass(path=f"{_HERE}.expert:Expert"),
    "random": AdapterClass(path=f"{_HERE}.at_random:AtRandom"),
    "hold": AdapterClass(path=f"{_HERE}.stand_still:StandStill"),
    "plunge": AdapterClass(path=f"{_HERE}.plunge:Plunge"),
    "glance": AdapterClass(path=f"{_HERE}.glance:Glance"),
    "gist": AdapterClass(path=f"{_HERE}.gist:Gist"),
    "second_glance": AdapterClass(path=f"{_HERE}.glance:SecondGlance"),
    "openvla": AdapterClass(path=f"{_HERE}.openvla:OpenVla", extra="models"),
    "openvla_rest": AdapterClass(path=f"{_HERE}.openvla_rest:OpenVlaRest", extra="remote"),
    "openpi": AdapterClass(path=f"{_HERE}.openpi:OpenPi", extra="remote"),
    "lerobot": AdapterClass(path=f"{_HERE}.lerobot:LeRobot", extra="lerobot"),
}
"""The adapters that a catalogue entry may name, beside a "module:class" of the lab's own."""


def _form(convention: Any) -> str:
    return "entry" if isinstance(convention, dict | ConventionEntry) else "name"


class PolicyEntry(CatalogueEntry):
    """A policy of the catalogue; its `prompt` contains the instruction as {instruction}.

    Attributes:
        cameras: names of the views it uses, in the model's order.
        stand_ins: one of `cameras` to the camera that takes its place in a world that lacks it: {top: agentview}.
        needs_scene: whether it reads the simulator's state; such a policy is a yardstick, not a contestant.
        needs_depth: whether it uses depth; otherwise its views in a trial have none.
        convention: the meaning of its numbers: a name of `merton.decision.models.conventions.CONVENTIONS`, or the
            entry itself, which takes the place of a name from a lab's own file, and of {from: FOLDER}, a data set
            that `merton export lerobot` wrote; so a run records it, and every worker knows it. "" for Merton's own.
        unnorm_key: data set whose statistics un-normalise the output.
        state: the part of the arm's state in a request: none, the tool, or joints of its convention's arm.
        stochastic: whether it draws noise, from the seed of the observation.
        stateful: whether it keeps a state from one call to the next, such as a buffer of actions: then the two sides of
            an image have a copy each, which begins anew with every trial, and a trial cannot be forked.
        action: the actions that it gives: `tool_deltas`; `rows`, of a world with another form; or `any`, as that of
            its world.
    """

    adapters: ClassVar = ADAPTERS
    placeholder: ClassVar = "{instruction}"

    prompt: str = "{instruction}"
    cameras: tuple[str, ...] = ()
    stand_ins: Mapping[str, str] = {}
    needs_scene: bool = False
    needs_depth: bool = False
    convention: Annotated[
        Annotated[str, Tag("name")] | Annotated[ConventionEntry, Tag("entry")], Discriminator(_form)
    ] = ""
    unnorm_key: str = ""
    state: Literal["none", "tool", "joints"] = "none"
    stochastic: bool = False
    stateful: bool = False
    action: Literal["tool_deltas", "rows", "any"] = "tool_deltas"

    @model_validator(mode="after")
    def _stand_ins_stand_in(self) -> Self:
        if strange := [camera for camera in self.stand_ins if camera not in self.cameras]:
            raise ValueError(f"stand_ins: {strange[0]!r} is none of its cameras: {', '.join(self.cameras) or 'none'}")
        return self

    def among(self, cameras: Collection[str]) -> Self:
        """The entry as it looks in a world with these cameras: its `cameras` are that world's names."""
        there = {own: other for own, other in self.stand_ins.items() if own not in cameras and other in cameras}
        if not there:  # asked for at every decision
            return self
        return self.model_copy(update={"cameras": tuple(there.get(own, own) for own in self.cameras)})

    @field_validator("convention", mode="before")
    @classmethod
    def _convention_is_read(cls, convention: Any) -> Any:
        if not isinstance(convention, dict) or "from" not in convention:
            return convention
        if set(convention) != {"from"} or not isinstance(convention["from"], str):
            raise ValueError("`from` names the folder of a data set, and stands alone")
        return of_dataset(convention["from"])

    @field_validator("convention")
    @classmethod
    def _convention_is_known(cls, convention: str | ConventionEntry) -> str | ConventionEntry:
        if not convention or isinstance(convention, ConventionEntry):
            return convention
        from merton.decision.models.conventions import CONVENTIONS

        if convention not in CONVENTIONS:
            raise UnknownNameError("convention", convention, CONVENTIONS)
        of_lab = CONVENTIONS[convention].entry if CONVENTIONS.file_of(convention) else None
        return of_lab or convention

    @property
    def means(self) -> Convention | None:
        """The convention of its numbers; None for Merton's own."""
        from merton.decision.models.conventions import CONVENTIONS, convention_of

        if isinstance(self.convention, ConventionEntry):
            return convention_of(self.convention)
        return CONVENTIONS[self.convention] if self.convention else None

    def build(self) -> Policy:
        """See `CatalogueEntry.build`."""
        return cast(Policy, super().build())


class Policies(Catalogue[PolicyEntry]):
    """The policies of the catalogue, read after the conventions that the same files may hold."""

    def __init__(self) -> None:
        super().__init__("vla", PolicyEntry)

    def read(self) -> None:
        """See `Catalogue.read`."""
        from merton.decision.models.conventions import CONVENTIONS

        CONVENTIONS.read()
        super().read()


POLICIES = Policies()


def example_observation(
    instruction: str, cameras: tuple[str, ...] = (), scene: SceneState | None = None
) -> Observation:
    """An observation with grey images of 424 x 240 px and an open gripper at (0.45, 0, 0.30) m that points down."""
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


def example_in_a_world(cameras: tuple[str, ...] = ()) -> Observation:
    """As `example_observation`, in a world with one column of action, whose expert moves along it."""
    column = ActionColumn(name="x", unit="1", low=-1.0, high=1.0, spread=1.0)
    action = ActionSpace(form="rows", columns=(column,), period_s=0.1, spread_from="made up")
    seen = example_observation("go to the goal", cameras)
    return replace(seen, action=action, rest_row=np.zeros(1), expert=lambda: np.ones((1, 1)))
