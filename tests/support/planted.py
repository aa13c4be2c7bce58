"""A world whose agents are known to fail where they are shown a distorted image, and nowhere else."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from merton.cognition.models.base import Answer
from merton.experiment.ports import CellView, Execution, Judgement, Side
from merton.experiment.scoring import Evidence, Scores, score
from merton.results.records import Outcome
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import CameraView, Image, Intrinsics, Observation

CAMERAS = ("wrist", "top", "side")
STEPS = 4


class PlantedPorts:
    """A world of four steps whose images are black, or white where they are distorted; `sees` says what harms the arm.

    Args:
        sees: (camera, step) pairs. The arm fails if the policy is shown white there.
        pixels: those of an image that count: the first shows the thing of the task, the second its surroundings.
    """

    knows_scene = True

    def __init__(self, sees: Collection[tuple[str, int]], pixels: Collection[int] = (0, 1)) -> None:
        self.sees, self.pixels = set(sees), list(pixels)
        self.asked: list[tuple[str, Side, int]] = []
        self.harmed = False

    def snapshot(self) -> bool:
        return self.harmed

    def restore(self, snapshot: bool) -> None:
        self.harmed = snapshot

    def set_sensor(self, name: str) -> None:
        assert name == "ideal"

    def set_image_gate(self, metric: str, minimum: float) -> None:
        pass

    def set_latency(self, latency_s: float) -> None:
        pass  # its world stands still whenever it is looked at

    def set_distortion(self, name: str, level: int, seed: int) -> None:
        self.white = 255 if level else 0

    def reset(self, task: str, scene: int) -> str:
        self.harmed = False
        return "reach above the red cube"

    def view(self, color: Collection[str] | None = None, depth: Collection[str] | None = None) -> CellView:
        names = CAMERAS if color is None else color
        lens = Intrinsics(2, 1, 1.0, 1.0, 0.5, 0.0)
        sides = [
            {name: CameraView(name, np.full((1, 2, 3), value, np.uint8), None, lens, np.eye(4)) for name in names}
            for value in (0, self.white)
        ]
        return CellView(0, sides[0], sides[1], np.zeros(6), np.eye(4), 1.0, not self.harmed)

    def things(self, camera: str) -> NDArray[np.bool_]:
        return np.array([[True, False]])

    def answer(self, model: str, image: Image, question: str, side: Side) -> Answer:
        self.asked.append((question, side, int(image.max())))
        return Answer("white" if image.any() else "black")

    def act(self, model: str, observation: Observation, side: Side) -> ActionChunk:
        white = {name for name, view in observation.views.items() if view.color[:, self.pixels].any()}
        wrong = any((name, observation.step) in self.sees for name in white)
        delta = [0.02 if wrong else 0.01, 0, 0, 0, 0, 0, 1]
        return checked_chunk([delta], 0.2, done=observation.step == STEPS - 1)

    def execute(self, chunk: ActionChunk, view: CellView, stop_rule: str = "gate") -> Execution:
        self.harmed |= bool(chunk.deltas[0, 0] > 0.015)
        return Execution(1, ((0.0, 0.0, 0.0),))

    def judge(self, trial_id: str, instruction: str, view: CellView) -> Judgement:
        return Judgement(view.success, "cell", progress=float(view.success))

    def score(self, evidence: Evidence, outcome: Outcome) -> Scores:
        return score(evidence, outcome)
