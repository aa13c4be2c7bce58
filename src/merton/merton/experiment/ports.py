"""The ports of a trial: one protocol, over ROS (`merton_nodes.experiment.ros_ports`) or in one process (`local`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.base import Answer
from merton.experiment.scoring import Evidence, Scores
from merton.results.records import Outcome
from merton.world.action import ActionChunk
from merton.world.geometry import Matrix
from merton.world.observation import CameraView, Image


@dataclass(frozen=True)
class Look:
    """What is there to be seen and felt while the arm rests.

    Attributes:
        stamp_ns: time on the cell's clock [ns]; everything below belongs to it.
        reference: camera name to undistorted view.
        distorted: camera name to distorted view of the same instant (the same pixels at level 0).
        joints_rad: (6,) joint angles.
        base_from_tcp: (4, 4) tool centre point in `base_link`.
        gripper_open: 0 closed .. 1 open.
        success: the task is done now, as judged from the objects.
    """

    stamp_ns: int
    reference: Mapping[str, CameraView]
    distorted: Mapping[str, CameraView]
    joints_rad: NDArray[np.float64]
    base_from_tcp: Matrix
    gripper_open: float
    success: bool


@dataclass(frozen=True)
class Execution:
    """What the arm did with a chunk.

    Attributes:
        executed: deltas carried out, <= the chunk's.
        path: tool positions (x, y, z) in `base_link` [m] along the way.
        error_code: 0, or why it was cut short: a `merton.errors.ErrorCode`.
        error_message: one sentence, empty if none.
    """

    executed: int
    path: tuple[tuple[float, float, float], ...]
    error_code: int = 0
    error_message: str = ""


@dataclass(frozen=True)
class Judgement:
    """Whether the task was done, and who says so.

    Attributes:
        success: None if nobody could tell: then the trial is an infrastructure fault, and no score.
        judge: "cell", or the name the operator gave.
        message: one sentence if nobody could tell, else empty.
    """

    success: bool | None
    judge: str
    message: str = ""


class Ports(Protocol):
    """The world, as a trial sees it. Every method raises InfrastructureError if the other side does not answer."""

    def reset(self, task: str, scene: int) -> str:
        """Put the cell into the start state of a scene and return the instruction.

        Releases a stop that a collision caused; raises OperatorStopError for one that a person caused.
        """
        ...

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        """Distort every camera from now on; level 0 passes images through."""
        ...

    def look(self) -> Look:
        """Wait until the arm rests and all cameras have seen it there."""
        ...

    def answer(self, model: str, image: Image, question: str) -> Answer:
        """Ask a VLM about an image."""
        ...

    def act(
        self, model: str, views: Mapping[str, CameraView], look: Look, instruction: str, step: int, seed: int
    ) -> ActionChunk:
        """Let a VLA decide on the given views; raises InvalidActionError for unusable output."""
        ...

    def execute(self, chunk: ActionChunk, look: Look) -> Execution:
        """Carry out a chunk decided at `look`, and wait until the arm rests or was stopped."""
        ...

    def judge(self, trial_id: str, instruction: str, look: Look) -> Judgement:
        """Whether the task is done, as the last look found the cell; by the simulator, or by a person at the robot."""
        ...

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        """The scores of the trial, as `merton.experiment.scoring.score` computes them."""
        ...
