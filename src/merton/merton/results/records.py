"""The records of a run: trials, agents, experiments, test cases and imported scores."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Final

from merton.world.splits import unit_of

FLOOR_AGENT = "hold"
"""The agent that does nothing; its score is the chance floor."""
NO_PAIR = "no pair: "
"""How the error message of a distorted episode begins that is no pair (`ErrorCode.NOT_PAIRED`)."""
STAIRCASE: Final = "staircase"
"""In place of an experiment's list of levels, in its file and in run.json: each follows from earlier results."""


class Outcome(str, enum.Enum):
    """End of a trial."""

    SUCCESS = "success"
    FAILURE = "failure"
    EMERGENCY_STOP = "emergency_stop"
    INVALID_ACTION = "invalid_action"
    INFRASTRUCTURE = "infrastructure"
    ABSTAINED = "abstained"
    """A chunk was refused because an image that it was decided on was too bad: the trial ends, and the arm is still."""

    @property
    def success(self) -> bool | None:
        """Whether the task was done; None for an infrastructure fault, which says nothing about the agent.

        An abstention is not a success. Ours: left out, an agent that abstains wherever it would fail would look
        perfect.
        """
        return None if self is Outcome.INFRASTRUCTURE else self is Outcome.SUCCESS


SETTLED_PROGRESS = {
    Outcome.SUCCESS: 1.0,
    Outcome.EMERGENCY_STOP: 0.0,
    Outcome.INVALID_ACTION: 0.0,
    Outcome.ABSTAINED: 0.0,
}
"""Progress of the outcomes from which it follows. Ours: a run that had to be stopped, whose model failed, or which was
given up because of its images, has gained nothing, as in the paper's Execution score. That of a failure is judged from
the scene."""


class Reference(str, enum.Enum):
    """The agent whose undistorted run a trial is measured against."""

    OWN = "own"
    ORACLE = "oracle"
    NONE = "none"


@dataclass(frozen=True, order=True)
class TestCase:
    """A scene, a task, and a distortion of the image at a level. Level 0 is the undistorted reference.

    Attributes:
        task: of the world, such as "pick", or "test-pick" in the scenes of a split.
        seed: number of the scene, >= 0; tasks of one group and seed are done in the same scene.
        distortion: name of the distortion, or "reference" at level 0.
        level: 0..5.
        group: of tasks that share their scenes, as a world says it (`merton.worlds.description.WorldTask`); "" if the
            task's name says it (`unit_of`), also if that was given. Two cases of one id are equal whatever their
            groups, so that no look-up by a case misses for a group that one side does not know; the record refuses two
            groups for one case.
    """

    __test__ = False  # no test class, although pytest takes the name for one

    task: str
    seed: int
    distortion: str
    level: int
    group: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.group == unit_of(self.task):
            object.__setattr__(self, "group", "")

    @property
    def id(self) -> str:
        """Such as "pick.0.gaussian_blur.3"; no character in it needs escaping in a file name."""
        return f"{self.task}.{self.seed}.{self.distortion}.{self.level}"

    @property
    def scene(self) -> str:
        """The scene, such as "pick.0": the unit that is sampled. Trials of one scene are alike and count as one.

        The tasks of a split, whose name stands before the verb, share the scene of a seed: "test.4" of "test-pick"; so
        do those of a group.
        """
        return f"{self.group or unit_of(self.task)}.{self.seed}"

    @property
    def is_reference(self) -> bool:
        """True at level 0."""
        return self.level == 0

    @property
    def reference(self) -> TestCase:
        """The same scene and task, undistorted."""
        return TestCase(self.task, self.seed, "reference", 0, self.group)

    @property
    def facts(self) -> dict[str, Any]:
        """The fields by name, as files have them: without a group where the task's name says it."""
        return {name: value for name, value in vars(self).items() if name != "group" or value}


@dataclass(frozen=True)
class TrialRecord:
    """One agent on one test case, as it is stored and rated.

    Attributes:
        experiment, agent: ids.
        cognition: 0..1, similarity of the answers to reference and distorted image; None if not scored, as where the
            VLM gave no answer to one of them: `error_code` is then `merton.errors.ErrorCode.NO_ANSWER`, or
            NOT_JUDGED where the trial is to be judged, too.
        decision: 0..1, similarity of the first action chunks; None if not scored.
        execution: 0..100; None for an infrastructure fault, which never counts as a score.
        distance_m: between the final tool positions of this run and the reference run; None if unknown.
        progress: 0..1, share of the way from the start of the scene to success, 1 exactly for a success; None for an
            infrastructure fault, and for a failure that only a person judged.
        path_m: the largest distance between the tool's path and that of the reference run; None if unknown.
        angle_rad: between the final tool orientations of this run and the reference run, 0..pi; None if unknown.
        reference: the run it is measured against: the agent's own, an oracle's, or none; None if unknown.
        reference_success: whether that run did the task; None without one.
        cut_short: the gate ended a chunk before any contact with table or wall; None if unknown.
        steps: chunks executed.
        simulated_s: time on the cell's clock [s].
        wall_s: duration on the wall clock [s]; the only field that differs between two runs of the same experiment.
        error_code: 0 none, 1xx model, 2xx kinematics, 3xx safety, 4xx hardware, 5xx scoring.
        error_message: one sentence for each error, empty if none.
    """

    experiment: str
    agent: str
    case: TestCase
    outcome: Outcome
    cognition: float | None = None
    decision: float | None = None
    execution: float | None = None
    distance_m: float | None = None
    progress: float | None = None
    path_m: float | None = None
    angle_rad: float | None = None
    reference: Reference | None = None
    reference_success: bool | None = None
    cut_short: bool | None = None
    steps: int = 0
    simulated_s: float = 0.0
    wall_s: float = 0.0
    error_code: int = 0
    error_message: str = ""

    @property
    def success(self) -> bool | None:
        """Whether the task was done, which follows from the outcome; None for an infrastructure fault."""
        return self.outcome.success

    @property
    def id(self) -> str:
        """Such as "servo.pick.0.gaussian_blur.3"; unique within an experiment."""
        return f"{self.agent}.{self.case.id}"


@dataclass(frozen=True, order=True)
class AgentRecord:
    """A rated agent; unknown values are None.

    Attributes:
        id: as in trials and scores.
        version: such as a release, or the commit of the weights' repository.
        weights_sha256: 64 hexadecimal digits over the weights.
        owner: its manufacturer.
    """

    id: str
    version: str | None = None
    weights_sha256: str | None = None
    owner: str | None = None


@dataclass(frozen=True, order=True)
class ExperimentRecord:
    """A run whose trials are recorded; unknown values are None.

    Attributes:
        id: as in trials.
        name, seed: as in the experiment's file.
        spec_sha256: 64 hexadecimal digits over that file.
        merton_version: of the Merton that ran it.
        created_utc: ISO 8601.
        world: its name in the catalogue; None for the embedded cell, and for episodes of another program.
        world_versions: of the world's packages, renderer and assets, a JSON object of texts.
    """

    id: str
    name: str | None = None
    seed: int | None = None
    spec_sha256: str | None = None
    merton_version: str | None = None
    created_utc: str | None = None
    world: str | None = None
    world_versions: str | None = None


@dataclass(frozen=True, order=True)
class CaseRecord:
    """A test case; `task` to `level` are None for a case of a foreign response matrix.

    Attributes:
        id: as in trials and scores.
        source: "" for Merton's own, else the name of the import.
        task, seed, distortion, level, group: as in `TestCase`.
        reference_image: SHA-256 of the undistorted picture's file, or of a scene's first pictures
            (`merton.episodes.pairs.frame_sha256`); None if not known.
    """

    id: str
    source: str = ""
    task: str | None = None
    seed: int | None = None
    distortion: str | None = None
    level: int | None = None
    reference_image: str | None = None
    group: str = ""


@dataclass(frozen=True)
class Size:
    """Size of an experiment or foreign source in a record: distinct agents and cases, and trials or scores."""

    name: str
    agents: int
    cases: int
    results: int


@dataclass(frozen=True, order=True)
class ForeignScore:
    """A cell of a response matrix: the score of an agent on a case, 0..1 (see `merton.results.matrix`)."""

    source: str
    agent: str
    case: str
    score: float
