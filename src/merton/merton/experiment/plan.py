"""The plan of an experiment: its trials, and the order they are run in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, WrapValidator, model_validator

from merton.cognition.models.base import NEUTRAL_PROMPT
from merton.config import FaultError, validated
from merton.decision.models.base import POLICIES
from merton.errors import InputError
from merton.experiment.agents import AgentSpec, DistortedPart
from merton.experiment.fields import (
    ONE_LEVEL,
    Camera,
    DistortionName,
    Identifier,
    Level,
    QualityMetric,
    SensorName,
    Task,
    WorldName,
    asks_for_the_task,
    distinct,
    one_or_list,
)
from merton.experiment.in_world import InWorld, refuse_foreign
from merton.experiment.ports import StopRule
from merton.experiment.staircase import Staircase
from merton.experiment.world_facts import MOST_STEPS, UR5, YARDSTICKS, present, reading_of
from merton.perception.distortion import TEMPORAL_FAULTS, all_distortions
from merton.perception.distortion.faults import Fault
from merton.results.records import STAIRCASE, TestCase
from merton.seeding import derive_seed, generator
from merton.simulation.delay import LONGEST_LATENCY_S

LEVELS = (1, 2, 3, 4, 5)
"""Levels that are distorted."""


class ExperimentSpec(InWorld):
    """An experiment: agents x tasks x scenes x (the reference + distortions x levels).

    Attributes:
        name: name of the experiment, and the beginning of its runs' names.
        description: any text; the report shows it.
        world: the place where trials happen, a name of `merton world list`; another than the embedded UR5 cell has
            tasks, cameras and actions of its own.
        seed: of distortions, of models with chance, of the levels under `one` and the order under `staircase`.
        agents: the agents that are compared, each a VLM that answers and a VLA that acts.
        tasks: what the arm is to do, a verb such as `pick`; `test-pick` and `train-pick` are in scenes that vary.
        distortions: types of images, faults of depth and faults of time; without one only references are run.
        levels: severities of every distortion, 5 the worst; the reference, level 0, is always run. `one` is the one of
            `drawn_level`, as in Embodied-IQA (section 3.5); `staircase` is one per scene, from the agent's results
            in scenes before it.
        scenes: scenes of each task, the sampling unit of every interval. For `test-pick`: the first scenes of the
            split `test` that contain a pick.
        reference_scenes: further scenes of each task, undistorted only, for floors of chance and CIDEr's corpus. The
            floors compare a model's outputs for different scenes.
        max_steps: chunks of a trial, at most; left out, 8 in the UR5 cell, and as many as another world's own limit of
            rows allows.
        vlm_camera: the camera whose image the VLM is asked about, at step 0.
        prompt: the question for the VLM; `{instruction}` is replaced by the task.
        distort: the part of the images that is distorted; everything if left out.
        couple: `vlm -> vla` gives the VLM's answer to the policy, word by word, in place of the task. Without it
            cognition has no effect on the arm. An answer that the policy cannot read is an invalid action: if the task
            took its place, an unreadable answer would do better than a wrong one.
        stop_rule: `gate` stops the arm before a predicted collision, `contact` at one, in the embedded cell alone.
        sensor: of the embedded cell's cameras: `ideal`, pictures as they are rendered, or `d455`, with its errors.
        latency_s: simulated time between the images of a chunk and its first motion, in the embedded cell alone. The
            arm is still carrying out the chunk before, as in asynchronous inference (SmolVLA, arXiv 2506.01844;
            inference delay in 2506.07339), with one chunk after the other; 0 stops the world while a model thinks.
        min_image_quality: a chunk that was decided on a worse image is rejected, and the trial ends, `abstained`; 0
            rejects none. Of a metric of which lower is better it is the highest value that passes.
        quality_metric: metric of `min_image_quality`, one that needs no reference image.
    """

    name: Identifier
    description: str = ""
    world: WorldName = UR5
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    agents: Annotated[tuple[AgentSpec, ...], Field(min_length=1), distinct("agent", lambda agent: agent.id)]
    tasks: Annotated[tuple[Task, ...], Field(min_length=1), distinct("task")]
    distortions: Annotated[tuple[DistortionName, ...], distinct("distortion")] = ()
    levels: Annotated[
        Annotated[tuple[Level, ...], Field(min_length=1), distinct("level")] | Literal["one", "staircase"],
        WrapValidator(one_or_list),
    ] = (0, 1, 2, 3, 4, 5)
    scenes: Annotated[int, Field(ge=1, le=100_000)] = 1
    reference_scenes: Annotated[int, Field(ge=0, le=100_000)] = 0
    max_steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] = Field(default_factory=lambda: present().max_steps)
    vlm_camera: Camera = Field(default_factory=lambda: present().vlm_camera)
    prompt: Annotated[str, AfterValidator(asks_for_the_task)] = NEUTRAL_PROMPT
    distort: DistortedPart = Field(default_factory=DistortedPart)
    couple: Literal["vlm -> vla"] | None = None
    stop_rule: StopRule = "gate"
    sensor: SensorName = "ideal"
    latency_s: Annotated[float, Field(ge=0, le=LONGEST_LATENCY_S)] = 0.0
    min_image_quality: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    quality_metric: QualityMetric = "merton-nr"

    @model_validator(mode="after")
    def _the_oracle_is_the_oracle(self) -> Self:
        """Refuse another agent with the id of the reference runs."""
        for agent in self.agents:
            if agent.id in ("oracle", self.facts.yardstick) and agent.id != agent.vla:
                raise ValueError(
                    f"agents: the id {agent.id!r} is for an agent with vla: {agent.id}, and this one has {agent.vla}"
                )
        return self

    @model_validator(mode="after")
    def _the_world_can(self) -> Self:
        """Refuse whatever the world does not have."""
        refuse_foreign(((number, self.vla_entry(agent.vla)) for number, agent in enumerate(self.agents)), self.facts)
        if self.facts.description is None:
            return self
        for task in self.tasks:
            try:
                self.facts.scenes(task, self.scenes + self.reference_scenes)
            except InputError as error:
                raise FaultError(str(error), "scenes") from None
        for key, ability, asked in (
            ("sensor", "sensor", self.sensor != "ideal"),
            ("latency_s", "latency", self.latency_s > 0),
            ("stop_rule", "stop", self.stop_rule != "gate"),
            ("distort", "things", not self.distort.is_whole_image),
        ):
            if asked and not self.facts.can(ability):
                raise FaultError(f"the world {self.world} does not have that, only the UR5 cell has", key)
        return self

    @model_validator(mode="after")
    def _something_is_distorted(self) -> Self:
        """Refuse a part of which no model ever sees an image."""
        for step in self.distort.steps or ():
            if step >= self.max_steps:
                raise FaultError(f"there is no step {step}: steps are 0 to {self.max_steps - 1}", "distort", "steps")
        asked = self.vlm_camera in self.distort.cameras and 0 in (self.distort.steps or (0,))
        if "decision" not in self.distort.stages and not asked:
            raise FaultError(
                f"nothing would be distorted: the VLM sees the camera {self.vlm_camera!r} at step 0 alone", "distort"
            )
        return self

    @model_validator(mode="after")
    def _faults_are_seen(self) -> Self:
        """Refuse a fault of depth or of time that no model of the experiment ever sees."""
        later = self.max_steps > 1 if self.distort.steps is None else max(self.distort.steps) > 0
        for number, name in enumerate(self.distortions):
            if not isinstance(fault := all_distortions()[name], Fault):
                continue
            if "decision" not in self.distort.stages:
                raise FaultError(f"{name!r} acts on the images of 'decision' alone", "distort", "stages")
            if fault.depth_alone and not any(self.vla_entry(agent.vla).needs_depth for agent in self.agents):
                users = ", ".join(sorted(vla for vla, entry in POLICIES.items() if entry.needs_depth))
                raise FaultError(
                    f"{name!r} acts on depth, which no agent uses; it is used by: {users}", "distortions", number
                )
            if name in TEMPORAL_FAULTS and not later:
                raise FaultError(f"{name!r} acts from step 1 on, and no such step is distorted", "distortions", number)
        return self

    @model_validator(mode="after")
    def _judged_images_are_seen(self) -> Self:
        """Refuse a least quality where models see other images than those on the topics of distorted images."""
        if not self.min_image_quality:
            return self
        if not self.distorts_everything:
            raise FaultError(
                "must be left out beside min_image_quality, which judges whole images that are distorted everywhere",
                "distort",
            )
        for number, name in enumerate(self.distortions):
            if name in TEMPORAL_FAULTS:
                raise FaultError(
                    f"{name!r} is a fault of time, which no quality of an image shows", "distortions", number
                )
        return self

    @property
    def distorts_everything(self) -> bool:
        """Whether `distort` is as if it were left out: every image of every stage and step, as a whole."""
        with reading_of(self.world, self.facts.description):
            return self.distort == DistortedPart()

    @property
    def design(self) -> dict[str, Any]:
        """All that shapes a trial beside its agent and case, with the defaults that hold: part of run.json."""
        elsewhere = {"name", "description", "agents", "tasks", "distortions", "seed"}
        return self.model_dump(mode="json", exclude=elsewhere | ({"world"} if self.world == UR5 else set()))

    @property
    def reference_agent(self) -> AgentSpec | None:
        """The agent of the reference runs that are added because none of the agents is a yardstick; else None.

        None, too, in a world that has no expert.
        """
        yardstick = self.facts.yardstick
        if yardstick is None or any(agent.vla in YARDSTICKS for agent in self.agents):
            return None
        return AgentSpec(id=yardstick, vla=yardstick)

    @property
    def agents_and_reference(self) -> tuple[AgentSpec, ...]:
        """The agents, and `reference_agent` if one is added."""
        added = self.reference_agent
        return (*self.agents, added) if added else self.agents

    @property
    def models(self) -> list[tuple[str, str]]:
        """("vlm" or "vla", name) of every model of the agents and of `reference_agent`, each once."""
        agents = self.agents_and_reference
        return list(dict.fromkeys(pair for agent in agents for pair in (("vlm", agent.vlm), ("vla", agent.vla))))

    def reference_runs(self) -> list[Trial]:
        """The undistorted trials of `reference_agent`, one in each scene, in order; none if an agent is an oracle.

        Failures are measured against them. They are not trials of the experiment: not recorded, not rated, on no board.
        """
        agent = self.reference_agent
        return [Trial(agent, case) for case in self.cases() if case.is_reference] if agent else []

    def for_trial(self, trial: Trial) -> ExperimentSpec:
        """The experiment as it holds for a trial: a reference run that is added is not coupled.

        It is given the task itself: the words of a VLM, which may be wrong, would be read in its place.
        """
        return self.model_copy(update={"couple": None}) if trial.agent == self.reference_agent else self

    @property
    def only_rendered(self) -> str:
        """The part that only a cell whose images Merton renders can fulfil, and why, in words; else empty."""
        if self.sensor != "ideal":
            return f"cameras cannot imitate a sensor, so sensor: {self.sensor} is refused"
        if not self.distort.is_whole_image:
            return "images do not say which pixels show which thing, so distort.regions is refused"
        if self.latency_s:
            return "there are no images of the past, so latency_s is refused"
        return ""

    def levels_of(self, task: str, scene: int, distortion: str) -> tuple[int, ...]:
        """The distorted levels of a scene and distortion that are known before a run, in rising order."""
        if self.levels == ONE_LEVEL:
            return (drawn_level(self.seed, task, scene, distortion),)
        if self.levels == STAIRCASE:
            return ()
        return tuple(sorted(level for level in self.levels if level > 0))

    def cases(self) -> list[TestCase]:
        """Every test case, the reference (level 0) of each scene first: it is always included, since scores need it.

        Under `levels: staircase` the references alone: the others are known in the course of a run (`rounds`).
        """
        cases = []
        for task in self.tasks:
            for number, scene in enumerate(self.facts.scenes(task, self.scenes + self.reference_scenes)):
                cases.append(self.case(task, scene))
                if number >= self.scenes:
                    continue
                cases += [
                    self.case(task, scene, distortion, level)
                    for distortion in self.distortions
                    for level in self.levels_of(task, scene, distortion)
                ]
        return cases

    def case(self, task: str, scene: int, distortion: str = "reference", level: int = 0) -> TestCase:
        """A test case in its world, with the sampling group of the task."""
        return TestCase(task, scene, distortion, level, self.facts.group(task))

    def trials(self) -> list[Trial]:
        """Every trial of `cases` in the order of the run: all references before all distorted ones, the oracle's first.

        The order is part of the method: a failure is measured against the final pose of a reference run, and
        CIDEr's document frequencies come from all reference answers.
        """
        trials = [Trial(agent, case) for agent in self.agents for case in self.cases()]
        return sorted(trials, key=lambda trial: trial.phase)

    @property
    def trial_count(self) -> int:
        """The number of all trials of `rounds`."""
        levels = 1 if isinstance(self.levels, str) else sum(level > 0 for level in self.levels)
        in_scenes = self.scenes * (1 + len(self.distortions) * levels) + self.reference_scenes
        return len(self.agents) * len(self.tasks) * in_scenes

    def rounds(self, successes: Mapping[str, bool | None]) -> Iterator[list[Trial]]:
        """Every trial in the order of the run, in groups: a trial needs results of earlier groups alone.

        Under `levels: staircase` the trials of an agent and distortion are a chain: one in each scene of each task, in
        an order that is drawn from the seed and the same for all agents. So the level says nothing about the scene. A
        round after the references has one trial of each chain.

        Args:
            successes: by id, of the trials that are finished; those of a group are entered before the next is asked
                for. A missing one leaves the level of its chain.
        """
        for _, group in groupby(self.trials(), key=lambda trial: trial.phase):
            yield list(group)
        if self.levels != STAIRCASE:
            return
        scenes = [(task, scene) for task in sorted(self.tasks) for scene in self.facts.scenes(task, self.scenes)]
        order = {name: generator("staircase", self.seed, name).permutation(len(scenes)) for name in self.distortions}
        chains = {(agent, name): Staircase() for agent in self.agents for name in self.distortions}
        for number in range(len(scenes)):
            trials = []
            for (agent, name), chain in chains.items():
                task, scene = scenes[order[name][number]]
                trials.append(Trial(agent, self.case(task, scene, name, chain.level)))
            yield trials
            for chain, trial in zip(chains.values(), trials, strict=True):
                chain.add(successes.get(trial.id))


@dataclass(frozen=True)
class Trial:
    """One agent on one test case."""

    agent: AgentSpec
    case: TestCase

    @property
    def id(self) -> str:
        """Such as "servo.pick.0.gaussian_blur.3"."""
        return f"{self.agent.id}.{self.case.id}"

    @property
    def phase(self) -> tuple[bool, bool]:
        """Its place in the order of a run: trials of one phase need results of earlier phases alone."""
        return not self.case.is_reference, self.agent.vla not in YARDSTICKS


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
    return spec, Trial(spec_of_agent, spec.case(task, scene, distortion if level else "reference", level))


def drawn_level(experiment_seed: int, task: str, scene: int, distortion: str) -> int:
    """The level, 1 .. 5, of a scene and distortion under `levels: one`: uniform, and the same for every agent.

    Embodied-IQA (section 3.5) executes each reference and type once; the level is not said. Ours: its database's rule,
    one random level for each.
    """
    return LEVELS[derive_seed(experiment_seed, "level", task, scene, distortion) % len(LEVELS)]


def distortion_seed(experiment_seed: int, case: TestCase) -> int:
    """The seed of a case's distortion: every agent sees the same distorted image."""
    return derive_seed(experiment_seed, "distortion", case.id)


def policy_seed(experiment_seed: int, agent: str, task: str, scene: int) -> int:
    """The noise seed of a policy: the same for all levels of a scene, so that only the image differs."""
    return derive_seed(experiment_seed, "policy", agent, task, scene)
