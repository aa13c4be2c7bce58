"""Models for the tests of annotation: quick, deterministic, and able to go wrong on demand.

They write a line into the file MERTON_TEST_CALLS for every request, and from line MERTON_TEST_HALT_AFTER on they write
into the pipe MERTON_TEST_HALTED and stop for ever, so that a test can kill a run at a place it knows.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from merton.cognition.models.base import Answer, Question, VisionLanguageModel
from merton.decision.models.base import Policy, example_observation
from merton.errors import InfrastructureError, InvalidAnswerError, MissingDependencyError
from merton.world.action import ActionChunk, checked_chunk
from merton.world.observation import Image, Observation

PLACES = ("far left", "far right", "near left", "near right", "in the middle", "at the edge", "behind", "in front")


def count(text: str) -> None:
    """Tell that a request was made."""
    path = os.environ.get("MERTON_TEST_CALLS")
    if path is None:
        return
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    halt = os.environ.get("MERTON_TEST_HALT_AFTER")
    if halt is not None and len(Path(path).read_bytes().splitlines()) >= int(halt):
        with open(os.environ["MERTON_TEST_HALTED"], "wb") as pipe:
            pipe.write(b".")
        while True:
            signal.pause()


class Teller(VisionLanguageModel):
    """Says something about the image's colours; if it `fails`, a bright image takes its whole batch with it."""

    adapter_version = "1"

    def __init__(self, name: str = "teller", fails: bool = False) -> None:
        self.name, self.fails = name, fails

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = 32) -> Answer:
        count(f"{self.name} {question}")
        mean = images[0].reshape(-1, 3).mean(axis=0)
        if self.fails and mean.mean() > 190:
            raise InvalidAnswerError("blinded")
        where = PLACES[int(mean.sum()) % len(PLACES)]
        return Answer(f"It is {where}, {question.split()[-1]} of {int(mean[0]) // 16} and {int(mean[2]) // 16}.")


class Leaner(Policy):
    """Leans where the image is bright, with noise from the seed; a dark image gives no action."""

    name = "leaner"
    cameras = ("top", "wrist")
    adapter_version = "1"

    def act(self, observation: Observation) -> ActionChunk:
        count(f"leaner {observation.instruction}")
        view, black = (observation.views[camera].color for camera in self.cameras)
        assert not black.any()
        mean = view.reshape(-1, 3).mean(axis=0) / 255.0
        noise = np.random.default_rng(observation.noise_seed).normal(0, 0.01, 3)
        deltas = [[*(0.2 * mean - 0.1 + noise), 0.0, 0.0, mean[0] - 0.5, mean[1]]]
        return checked_chunk(deltas if mean.mean() > 0.45 else [[np.nan] * 7], 0.2, model=self.name)

    def make_example(self) -> Observation:
        return example_observation("pick up the red cube", self.cameras)


class Faulty(VisionLanguageModel):
    """Fails outside the model: `how` is "dead", "bug", "once", "some", "missing" or "dies"."""

    name = "faulty"
    adapter_version = "1"

    def __init__(self, how: str, marker: str = "") -> None:
        self.how, self.marker = how, Path(marker)

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = 32) -> Answer:
        return self.answer_batch([Question(tuple(images), question, max_tokens)])[0]

    def answer_batch(self, questions: Sequence[Question]) -> list[Any]:
        for question in questions:
            count(f"faulty {question.text}")
        if self.how == "missing":
            raise MissingDependencyError("the weights are not here: fetch them")
        if self.how == "bug":
            raise ZeroDivisionError("a bug")
        if self.how == "dead":
            raise InfrastructureError("the server is dead")
        if not self.marker.exists():
            self.marker.touch()
            if self.how == "dies":
                os._exit(9)
            if self.how == "some":
                failures = [InfrastructureError("not now"), ValueError("a bug"), InvalidAnswerError("blinded")]
                return [*failures, *(Answer("nothing is wrong") for _ in questions[3:])]
            raise InfrastructureError("not now")
        return [Answer(f"answer number {len(question.text)}") for question in questions]
