"""The design of a run of episodes: the conditions of every scene, and the part of the pictures that is distorted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from merton.config import FaultError, Model, one_of
from merton.episodes.shown import ShownPart
from merton.errors import InputError
from merton.experiment.fields import ONE_LEVEL, DistortionName, Identifier, Level, distinct, one_or_list
from merton.experiment.plan import drawn_level
from merton.experiment.subsets import (
    STEP_PARTS,
    WHOLE,
    Dissection,
    Game,
    Later,
    Part,
    Steps,
    design_name,
    parts_of_steps,
    subsets,
)
from merton.perception.distortion import DEPTH_FAULTS, TEMPORAL_FAULTS
from merton.perception.distortion.setting import setting_of
from merton.perception.distortion.stream import REFERENCE
from merton.results.records import STAIRCASE, TestCase

AXES = ("cameras", "steps")
"""Axes by which a loss of episodes can be shared out."""


def _conventions() -> Collection[str]:
    from merton.decision.models.conventions import CONVENTIONS  # needs scipy

    return CONVENTIONS.keys()


def _of_a_policy(stage: Any) -> Any:
    if stage == "cognition":
        raise ValueError(
            "episodes of other programs have the stage 'decision' alone: a policy is asked, and no VLM is; leave "
            "stages out"
        )
    return stage


def _one_or_list(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    if isinstance(value, str) and value != ONE_LEVEL:
        why = (
            ": another program decides which scene is next, so no level can follow from the scenes before"
            if value == STAIRCASE
            else ""
        )
        raise ValueError(f"must be {ONE_LEVEL!r} or a list of levels such as [0, 3], got {value!r}{why}")
    return one_or_list(value, check)


def _shows(name: str) -> str:
    if name in DEPTH_FAULTS or (name in TEMPORAL_FAULTS and TEMPORAL_FAULTS[name].depth_alone):
        raise InputError(f"{name!r} acts on depth, and episodes of other programs have colour pictures alone")
    return name


Convention = Annotated[str, one_of("convention", lambda: ("", *_conventions()))]


class EpisodePart(Part):
    """The part of an episode's pictures that is distorted; elsewhere the policy sees them as they are.

    Attributes:
        cameras: names as the program has them; every camera if left out.
        stages: `decision` alone.
        steps: numbers of observations in the episode, from 0; every one if left out.
    """

    stages: tuple[Annotated[Literal["decision"], BeforeValidator(_of_a_policy)], ...] = ("decision",)


@dataclass(frozen=True, order=True)
class Condition:
    """What an episode is shown: a distortion at a level, in all of the design's part or in a part of that.

    Attributes:
        distortion: a type of images or a fault of time; "reference" at level 0.
        level: 0 .. 5.
        part: the name of a design of parts, such as "cameras.wrist"; "all" for the design's own.
    """

    distortion: str = REFERENCE
    level: int = 0
    part: str = WHOLE

    @property
    def is_reference(self) -> bool:
        """Whether the pictures are shown as they are."""
        return self.level == 0

    def case(self, task: str, scene: int) -> TestCase:
        """The test case of an episode under it."""
        return TestCase(task, scene, self.distortion, self.level)

    def __str__(self) -> str:
        shown = f"{self.distortion} {self.level}" if self.level else self.distortion
        return shown if self.part == WHOLE else f"{shown} in {self.part}"


UNDISTORTED = Condition()


def condition_of(distortion: str, level: int, part: str = WHOLE) -> Condition:
    """The condition of a type of images or a fault of time, by its name or number, at a level.

    Raises:
        InputError: no such distortion or level, or one that acts on depth.
    """
    if distortion == REFERENCE and level == 0:
        return UNDISTORTED
    found = setting_of(f"{distortion}@{level}")
    return Condition(_shows(found.distortion), found.level, part) if found.level else UNDISTORTED


class Design(Model):
    """The design of a run of episodes, for all scenes that another program visits.

    Attributes:
        name: of the design, and the beginning of its runs' names.
        description: any text; the report shows it.
        seed: of distortions, of the order of conditions and of the levels under `one`.
        distortions: types of images and faults of time; without one episodes are recorded undistorted.
        levels: severities of every distortion, 5 the worst; every scene has the undistorted one, too. `one` is one
            for each scene and distortion (`merton.experiment.plan.drawn_level`).
        distort: the part of the pictures that is distorted; everything if left out.
        attribute: `cameras`, `steps`: further conditions, in which only some parts are distorted. `cameras` needs the
            cameras listed in `distort`, since a program's are not known before its first observation.
        step_parts: parts of the steps: single steps, and all later ones in the last part.
        clean_every: 0 asks the policy about the undistorted pictures at step 0 alone; n at every n-th step from 0.
        convention: the meaning of the policy's rows, a convention of the catalogue; empty compares them as they are.
        spread: the width in which each column of an action varies, in its unit; that of the policy's own undistorted
            answers in the run if left out.
    """

    name: Identifier
    description: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    distortions: Annotated[tuple[Annotated[DistortionName, AfterValidator(_shows)], ...], distinct("distortion")] = ()
    levels: Annotated[
        Annotated[tuple[Level, ...], Field(min_length=1), distinct("level")] | Literal["one"],
        WrapValidator(_one_or_list),
    ] = (0, 1, 2, 3, 4, 5)
    distort: EpisodePart = EpisodePart()
    attribute: Annotated[tuple[Literal["cameras", "steps"], ...], distinct("axis")] = ()
    step_parts: Annotated[int, Field(ge=2, le=8)] = STEP_PARTS
    clean_every: Annotated[int, Field(ge=0)] = 0
    convention: Convention = ""
    spread: Annotated[tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _parts_are_known(self) -> Self:
        """Refuse axes without two parts."""
        cameras, steps = self.distort.cameras, self.distort.steps
        for number, axis in enumerate(self.attribute):
            if axis == "cameras" and (cameras is None or len(cameras) < 2):
                raise FaultError(
                    "'cameras' needs at least two cameras listed in distort.cameras, by the names that the program "
                    "gives them",
                    "attribute",
                    number,
                )
            if axis == "steps" and steps is not None and len(steps) < 2:
                raise FaultError(
                    "'steps' needs at least two steps, or none listed in distort.steps", "attribute", number
                )
        return self

    @model_validator(mode="after")
    def _faults_are_seen(self) -> Self:
        """Refuse a fault of time where only first pictures are distorted."""
        if self.distort.steps is not None and max(self.distort.steps) == 0:
            for number, name in enumerate(self.distortions):
                if name in TEMPORAL_FAULTS:
                    raise FaultError(
                        f"{name!r} acts from step 1 on, and no such step is distorted", "distortions", number
                    )
        return self

    def levels_of(self, task: str, scene: int, distortion: str) -> tuple[int, ...]:
        """The distorted levels of a scene and distortion, in rising order; `task` is a name of `names.safe_name`."""
        if self.levels == ONE_LEVEL:
            return (drawn_level(self.seed, task, scene, distortion),)
        return tuple(sorted(level for level in self.levels if isinstance(level, int) and level > 0))

    @cached_property
    def dissection(self) -> Dissection:
        """The designs of every subset of the parts of each axis of `attribute`, and of the first steps."""
        values = {"cameras": self.distort.cameras or (), "steps": self._steps}
        designs: dict[str, Any] = {}
        games = []
        for axis in (name for name in AXES if name in self.attribute):
            everything = values[axis]
            parts: Mapping[str, tuple[Any, ...]] = (
                parts_of_steps(everything, self.step_parts)
                if axis == "steps"
                else {name: (name,) for name in everything}
            )
            names = {}
            for some in subsets(parts):
                chosen = {value for part in some for value in parts[part]}
                names[some] = design_name(axis, chosen, everything)
                designs[names[some]] = self._shown(axis, tuple(value for value in everything if value in chosen))
            games.append(Game(axis, parts, names))
        steps = values["steps"] if "steps" in self.attribute else ()
        first = steps[: self.step_parts - 1]
        prefixes = {step: design_name("steps", steps[: place + 1], steps) for place, step in enumerate(first)}
        if rest := steps[len(first) :]:
            prefixes[rest[0].first if isinstance(rest[0], Later) else rest[0]] = WHOLE
        return Dissection(tuple(games), prefixes, designs)

    @property
    def _steps(self) -> tuple[Any, ...]:
        """The steps that are distorted; without a list single ones, as many as have a part, and all later ones."""
        if self.distort.steps is not None:
            return tuple(sorted(self.distort.steps))
        return (*range(self.step_parts - 1), Later(self.step_parts - 1))

    def _shown(self, axis: str, values: tuple[Any, ...]) -> ShownPart:
        """The part with other values of an axis."""
        cameras = frozenset(values) if axis == "cameras" else self.distort.cameras
        return ShownPart(cameras, Steps(values) if axis == "steps" else self.distort.steps)

    def part(self, name: str = WHOLE) -> ShownPart:
        """The part of the pictures that a condition with this name of a part has distorted."""
        return ShownPart(self.distort.cameras, self.distort.steps) if name == WHOLE else self.dissection.designs[name]

    def conditions(self, task: str, scene: int) -> tuple[Condition, ...]:
        """Every distorted condition of a scene, in the order of the design; each is given once to every agent."""
        parts = (WHOLE, *(name for name in self.dissection.designs if name != WHOLE))
        return tuple(
            Condition(distortion, level, part)
            for distortion in self.distortions
            for level, part in product(self.levels_of(task, scene, distortion), parts)
        )
