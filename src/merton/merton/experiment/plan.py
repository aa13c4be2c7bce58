"""The plan of an experiment: its trials, and the order they are run in."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from merton.cognition.models.base import MODELS as VLMS
from merton.config import Model, validated
from merton.decision.models.base import POLICIES
from merton.errors import UnknownNameError
from merton.perception.distortion import DISTORTIONS
from merton.results.records import TestCase
from merton.seeding import derive_seed
from merton.world.cell import load_cell
from merton.world.tasks import TASKS

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


def _one_of(kind: str, names: Callable[[], Collection[str]]) -> AfterValidator:
    """A constraint of a field: its value is one of the names, which an error lists."""

    def check(value: str) -> str:
        if value not in names():
            raise ValueError(str(UnknownNameError(kind, value, names())))
        return value

    return AfterValidator(check)


def _distinct(kind: str, key: Callable[[Any], object] = lambda value: value) -> AfterValidator:
    """A constraint of a tuple: no two of its values have the same key."""

    def check(values: tuple) -> tuple:
        keys = [key(value) for value in values]
        for value in keys:
            if keys.count(value) > 1:
                raise ValueError(f"{kind} {value!r} is listed twice")
        return values

    return AfterValidator(check)


class AgentSpec(Model):
    """An agent: the VLM that answers, and the VLA that decides."""

    id: Identifier
    vlm: Annotated[str, _one_of("vlm", VLMS.keys)] = "describe"
    vla: Annotated[str, _one_of("vla", POLICIES.keys)]


Task = Annotated[str, _one_of("task", TASKS.keys)]
DistortionName = Annotated[str, _one_of("distortion", DISTORTIONS.keys)]
Level = Annotated[int, Field(ge=0, le=5)]
Camera = Annotated[str, _one_of("camera", lambda: load_cell().camera_names)]


class ExperimentSpec(Model):
    """An experiment: agents x tasks x scenes x (the reference + distortions x levels).

    Attributes:
        scenes: scenes of each task.
        reference_scenes: further scenes of each task, run undistorted only: the floors of chance compare a model's
            outputs for different scenes, and CIDEr's corpus are its reference answers, so both gain from them.
        max_steps: chunks of a trial, at most.
        vlm_camera: the camera whose image the VLM is asked about.
    """

    name: Identifier
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    agents: Annotated[tuple[AgentSpec, ...], Field(min_length=1), _distinct("agent", lambda agent: agent.id)]
    tasks: Annotated[tuple[Task, ...], Field(min_length=1), _distinct("task")]
    distortions: Annotated[tuple[DistortionName, ...], _distinct("distortion")] = ()
    levels: Annotated[tuple[Level, ...], Field(min_length=1), _distinct("level")] = (0, 1, 2, 3, 4, 5)
    scenes: Annotated[int, Field(ge=1, le=100_000)] = 1
    reference_scenes: Annotated[int, Field(ge=0, le=100_000)] = 0
    max_steps: Annotated[int, Field(ge=1, le=1000)] = 8
    vlm_camera: Camera = "top"

    def cases(self) -> list[TestCase]:
        """Every test case, the reference (level 0) of each scene first: it is always included, since scores need it."""
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
        """Every trial in the order of the run: all references before all distorted trials, the experts' first.

        The order is part of the method: a failure is measured against the final pose of a reference run, and
        CIDEr's document frequencies come from all reference answers.
        """
        trials = [Trial(agent, case) for agent in self.agents for case in self.cases()]
        return sorted(trials, key=lambda t: (not t.case.is_reference, t.agent.vla != "expert"))


@dataclass(frozen=True)
class Trial:
    """One agent on one test case."""

    agent: AgentSpec
    case: TestCase

    @property
    def id(self) -> str:
        """Such as "servo.pick.0.gaussian_blur.3"."""
        return f"{self.agent.id}.{self.case.id}"


def single_trial(
    vla: str,
    task: str,
    distortion: str = "reference",
    level: int = 0,
    *,
    scene: int = 0,
    vlm: str = "describe",
    agent: str = "",
    seed: int = 0,
    max_steps: int = 8,
) -> tuple[ExperimentSpec, Trial]:
    """A trial on its own, and the experiment it belongs to.

    Args:
        vla, vlm: models of the catalogue.
        distortion, level: of the images; level 0 is the undistorted reference, of whichever distortion.
        agent: id of the agent; empty: the name of the VLA.
        max_steps: chunks, at most.

    Raises:
        InputError: a name that does not exist, or a number out of its range; the text lists the choices.
    """
    spec_of_agent = validated(AgentSpec, {"id": agent or vla, "vlm": vlm, "vla": vla}, "")
    values = {
        "name": "live",
        "seed": seed,
        "agents": (spec_of_agent,),
        "tasks": (task,),
        "distortions": (distortion,) if level else (),
        "levels": (level,),
        "max_steps": max_steps,
    }
    spec = validated(ExperimentSpec, values, "")
    return spec, Trial(spec_of_agent, TestCase(task, scene, distortion if level else "reference", level))


def distortion_seed(experiment_seed: int, case: TestCase) -> int:
    """The seed of a case's distortion: every agent sees the same distorted image."""
    return derive_seed(experiment_seed, "distortion", case.id)


def policy_seed(experiment_seed: int, trial: Trial) -> int:
    """The noise seed of a policy: the same for all levels of a scene, so that only the image differs."""
    return derive_seed(experiment_seed, "policy", trial.agent.id, trial.case.task, trial.case.seed)
