"""The ports of a trial: one protocol, over ROS (`merton_nodes.experiment.ros_ports`) or in one process (`local`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.base import Answer
from merton.errors import MODEL_ERRORS, ErrorCode
from merton.experiment.scoring import Evidence, Scores, ToolPath
from merton.results.records import Outcome
from merton.world.action import ActionChunk
from merton.world.geometry import Matrix
from merton.world.observation import CameraView, Image, Observation

Side = Literal["reference", "distorted"]
"""One of the two images of one instant: the one that a model is shown."""

SIDES: tuple[Side, Side] = ("reference", "distorted")

Stage = Literal["cognition", "decision"]
"""A stage that looks at images."""

STAGES: tuple[Stage, Stage] = ("cognition", "decision")

Region = Literal["things", "surroundings"]
"""A part of an image: the pixels that show a thing which the instruction names, or all others."""

REGIONS: tuple[Region, Region] = ("things", "surroundings")

StopRule = Literal["gate", "contact"]
"""The event that stops the arm before table and walls: "gate", a predicted collision, before contact; "contact", a
forbidden contact, as in Embodied-IQA (section 3.5), in the embedded cell alone."""


@dataclass(frozen=True)
class CellView:
    """Images and state of the cell at one instant at which the arm is at rest.

    With a latency (`Ports.set_latency`), images and the state of arm and gripper are older than that instant, and all
    of one age, which the stamp of the images says. A view without images has the present state.

    Attributes:
        stamp_ns: the instant at which the arm is at rest, on the cell's clock [ns].
        reference: camera name to undistorted view, of the cameras that were asked for.
        distorted: camera name to distorted view (the same pixels at level 0).
        joints_rad: (6,) joint angles; this and the next two are None of a robot that has none.
        base_from_tcp: (4, 4) tool centre point in `base_link`.
        gripper_open: 0 closed .. 1 open.
        success: the task is done, as judged from the objects.
        progress: 0..1 of the way to success; None if the cell does not know.
        own_point: (x, y, z) for the path, in the frame of a world that has no tool in `base_link`.
        robot: further parts of a policy's `Observation`, as the world gives them: `rest_row`, `extra` and `action`.
    """

    stamp_ns: int
    reference: Mapping[str, CameraView]
    distorted: Mapping[str, CameraView]
    joints_rad: NDArray[np.float64] | None
    base_from_tcp: Matrix | None
    gripper_open: float | None
    success: bool
    progress: float | None = None
    own_point: tuple[float, float, float] | None = None
    robot: Mapping[str, Any] = field(default_factory=dict)

    @property
    def point(self) -> tuple[float, float, float] | None:
        """The point of the path at this instant; None of a robot that has none."""
        if self.own_point is not None or self.base_from_tcp is None:
            return self.own_point
        x, y, z = np.asarray(self.base_from_tcp)[:3, 3].tolist()
        return x, y, z

    def images(self, side: Side) -> Mapping[str, CameraView]:
        return self.reference if side == "reference" else self.distorted

    def observation(self, side: Side, instruction: str, step: int = 0, noise_seed: int = 0) -> Observation:
        """The input of a policy, with the images of one side and without the simulator's state."""
        return Observation(
            self.images(side),
            self.joints_rad,
            self.base_from_tcp,
            self.gripper_open,
            instruction,
            step,
            noise_seed=noise_seed,
            **self.robot,
        )


@dataclass(frozen=True)
class Execution:
    """The result of executing a chunk.

    Attributes:
        executed: deltas carried out, <= the chunk's.
        path: of the tool along the way.
        error_code: 0, or why it was cut short: a `merton.errors.ErrorCode`.
        error_message: one sentence, empty if none.
        ended: why the world has ended the trial with this chunk, such as "success"; empty if it goes on.
    """

    executed: int
    path: ToolPath
    error_code: int = 0
    error_message: str = ""
    ended: str = ""

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of the trial, if it follows from the error; else None."""
        if self.error_code in MODEL_ERRORS:
            return Outcome.INVALID_ACTION
        if self.error_code in (ErrorCode.COLLISION, ErrorCode.CONTACT):
            return Outcome.EMERGENCY_STOP
        return Outcome.ABSTAINED if self.error_code == ErrorCode.IMAGE_QUALITY else None


@dataclass(frozen=True)
class Judgement:
    """A judgement of whether the task was done.

    Attributes:
        success: None if it could not be judged: then the trial is an infrastructure fault, and has no score.
        judge: "cell", or the name the operator gave.
        message: one sentence if it could not be judged, else empty.
        progress: 0..1 of the way to success; None if a person judged, who measures nothing.
    """

    success: bool | None
    judge: str
    message: str = ""
    progress: float | None = None


class Ports(Protocol):
    """The world, as a trial sees it. Every method raises InfrastructureError if the other side does not answer."""

    @property
    def knows_scene(self) -> bool:
        """Whether the oracle, or the world's own expert, can decide from its state: reference runs can be added."""
        ...

    def reset(self, task: str, scene: int) -> str:
        """Put the cell into the start state of a scene and return the instruction.

        Releases a stop that a collision caused; raises OperatorStopError for one that a person caused.
        """
        ...

    def set_sensor(self, name: str) -> None:
        """Have simulated cameras imitate a sensor of `merton.simulation.sensor.SENSORS` from the next reset on.

        Raises InfrastructureError if these cameras cannot.
        """
        ...

    def set_latency(self, latency_s: float) -> None:
        """Have views show the cell as it was `latency_s` before, from the next reset on; 0 is the present.

        No view is older than the beginning of the last chunk. Raises InfrastructureError if this world cannot.
        """
        ...

    def set_image_gate(self, metric: str, minimum: float) -> None:
        """Refuse chunks that were decided on images worse than `minimum` by a metric, from the next one on.

        Args:
            metric: of `merton.perception.quality.METRICS`, one that needs no reference image.
            minimum: as of `merton.execution.gate.image_quality.quality_verdict`; 0 leaves the cell's own gate, if
                it has one.

        Raises InfrastructureError if this world cannot.
        """
        ...

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        """Distort every camera from now on; level 0 passes images through."""
        ...

    def view(self, color: Collection[str] | None = None, depth: Collection[str] | None = None) -> CellView:
        """Wait until the arm is at rest and the cameras have images of that time.

        Args:
            color: cameras whose images the view has; None for every one. A simulated cell renders no other.
            depth: those of them whose images have depth; None for all of them.
        """
        ...

    def answer(self, model: str, image: Image, question: str, side: Side) -> Answer:
        """Ask a VLM about an image of the newest view; raises InvalidAnswerError if there is no answer."""
        ...

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        """Have a VLA decide on an observation of the newest view; raises InvalidActionError for unusable output."""
        ...

    def execute(self, chunk: ActionChunk, view: CellView, stop_rule: StopRule = "gate") -> Execution:
        """Carry out a chunk decided on `view`, and wait until the arm is at rest or stopped."""
        ...

    def judge(self, trial_id: str, instruction: str, view: CellView) -> Judgement:
        """Judge whether the task is done in `view`, the last one: by the simulator, or by a person at the robot."""
        ...

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        """The scores of the trial, as `merton.experiment.scoring.score` computes them."""
        ...


@runtime_checkable
class SegmentingPorts(Ports, Protocol):
    """A world that knows which pixels show which thing, such as the embedded cell."""

    def things(self, camera: str) -> NDArray[np.bool_]:
        """The pixels (height, width) of a camera's image of the newest view that belong to the region "things"."""
        ...
