"""Models that fail, each in a way of its own; stand-ins for those of a lab."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from merton.cognition.models.base import Answer, VisionLanguageModel
from merton.decision.models.base import Policy, example_observation
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation


class Voiceless(VisionLanguageModel):
    """A VLM that gives no answer.

    Args:
        how: "raises", "none" (None for an answer), "no text" (None for its text), "distorted" (raises for a picture
            that is all of one colour), "empty" (an answer without a word), "refuses", "blind" (refuses such a picture),
            "package" (an import fails), "socket".
    """

    def __init__(self, name: str, how: str) -> None:
        self.name, self.how = name, how

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = 32) -> Answer:
        if self.how == "none":
            return None  # type: ignore[return-value]
        if self.how == "package":
            raise ImportError("cannot import name 'AutoVideoProcessor' from 'transformers'")
        if self.how == "socket":
            raise ConnectionRefusedError(111, "Connection refused")
        if self.how == "raises" or (self.how == "distorted" and np.ptp(images[0]) == 0):
            raise RuntimeError("shapes do not fit")
        if self.how == "refuses" or (self.how == "blind" and np.ptp(images[0]) == 0):
            return Answer("Sorry, I can't see the image.")
        text = {"no text": None, "empty": ""}.get(self.how, "the red cube is on the left side of the table")
        return Answer(text)  # type: ignore[arg-type]


class Motionless(Policy):
    """A policy that raises: always, or for pictures with more than one colour."""

    name = "motionless"

    def __init__(self, on_reference_alone: bool = False) -> None:
        self.on_reference_alone = on_reference_alone

    def act(self, observation: Observation) -> ActionChunk:
        is_plain = all(np.ptp(view.color) == 0 for view in observation.views.values())
        if not (self.on_reference_alone and is_plain):
            raise RuntimeError("queues are empty")
        return ActionChunk(np.array([[0, 0, 0, 0, 0, 0, 1.0]]), 0.2, done=True)

    def make_example(self) -> Observation:
        return example_observation("reach")
