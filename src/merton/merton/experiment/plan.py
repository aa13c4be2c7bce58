"""What an experiment consists of, and the order its trials are run in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from merton.cognition.models.base import MODELS as VLMS
from merton.config import Model
from merton.decision.models.base import POLICIES
from merton.errors import UnknownNameError
from merton.perception.distortion import DISTORTIONS
from merton.results.records import TestCase
from merton.seeding import derive_seed
from merton.world.cell import load_cell
from merton.world.tasks import TASKS

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


def _known(kind: str, names: Mapping[str, object], value: str) -> str:
    if value not in names:
        raise ValueError(str(UnknownNameError(kind, value, names)))
    return value


class AgentSpec(Model):
    """An agent: who answers, and who decides."""

    id: Identifier
    vlm: str = "describe"
    vla: str

    @field_validator("vlm")
    @classmethod
    def _vlm(cls, value: str) -> str:
        return _known("vlm", VLMS, value)

    @field_validator("vla")
    @classmethod
    def _vla(cls, value: str) -> str:
        return _known("vla", POLICIES, value)


class ExperimentSpec(Model):
    """An experiment: agents x tasks x scenes x (the reference + distortions x levels).

    Attributes:
        scenes: scenes of each task.
        reference_scenes: further scenes of each task, run undistorted only: the floors of chance compare a model's
            outputs for different scenes, and CIDEr's corpus are its reference answers, so both gain from them.
    """

    name: Identifier
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    agents: Annotated[tuple[AgentSpec, ...], Field(min_length=1)]
    tasks: Annotated[tuple[str, ...], Field(min_length=1)]
    distortions: tuple[str, ...] = ()
    levels: Annotated[tuple[Annotated[int, Field(ge=0, le=5)], ...], Field(min_length=1)] = (0, 1, 2, 3, 4, 5)
    scenes: Annotated[int, Field(ge=1, le=100_000)] = 1
    reference_scenes: Annotated[int, Field(ge=0, le=100_000)] = 0
    max_steps: Annotated[int, Field(ge=1, le=1000)] = 8
    vlm_camera: str = "top"

    @field_validator("tasks")
    @classmethod
    def _tasks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _unique("task", tuple(_known("task", TASKS, name) for name in value))

    @field_validator("distortions")
    @classmethod
    def _distortions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _unique("distortion", tuple(_known("distortion", DISTORTIONS, name) for name in value))

    @field_validator("levels")
    @classmethod
    def _levels(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return _unique("level", value)

    @field_validator("vlm_camera")
    @classmethod
    def _camera(cls, value: str) -> str:
        return _known("camera", dict.fromkeys(load_cell().camera_names), value)

    @model_validator(mode="after")
    def _agents_differ(self) -> ExperimentSpec:
        _unique("agent", tuple(agent.id for agent in self.agents))
        return self

    def cases(self) -> list[TestCase]:
        """Every test case, the reference (level 0) of each scene first. Level 0 is always there: scores need it."""
        cases = []
        for task in self.tasks:
            for scene in range(self.scenes + self.reference_scenes):
                cases.append(TestCase(task, scene, "reference", 0))
                if scene >= self.scenes:
                    continue
                cases += [
                    TestCase(task, scene, distortion, level)
                    for distortion in self.distortions
                    for level in sorted(self.levels)
                    if level > 0
                ]
        return cases

    def trials(self) -> list[Trial]:
        """Every trial in the order it has to run: all references before anything distorted, the experts' first.

        The order is part of the method: a failure is measured against the final pose of a reference run, and
        CIDEr's document frequencies come from all reference answers.
        """
        everything = [Trial(agent, case) for agent in self.agents for case in self.cases()]
        return sorted(everything, key=lambda t: (not t.case.is_reference, t.agent.vla != "expert"))


def _unique(kind: str, values: tuple) -> tuple:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{kind} {value!r} is listed twice")
    return values


@dataclass(frozen=True)
class Trial:
    """One agent on one test case."""

    agent: AgentSpec
    case: TestCase

    @property
    def id(self) -> str:
        """Such as "servo.pick.0.gaussian_blur.3"."""
        return f"{self.agent.id}.{self.case.id}"


def distortion_seed(experiment_seed: int, case: TestCase) -> int:
    """The seed of a case's distortion: every agent sees the same distorted image."""
    return derive_seed(experiment_seed, "distortion", case.id)


def policy_seed(experiment_seed: int, trial: Trial) -> int:
    """The noise seed of a policy: the same for all levels of a scene, so that only the image differs."""
    return derive_seed(experiment_seed, "policy", trial.agent.id, trial.case.task, trial.case.seed)
