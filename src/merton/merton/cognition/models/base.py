"""The contract of a VLM, and the catalogue of those there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import field_validator

from merton.config import Model
from merton.models.catalogue import Adapter, Catalogue, Entry, Finding, make, unique
from merton.world.observation import Image

MAX_TOKENS = 32
"""Enough for the ten words that are asked for."""


@dataclass(frozen=True)
class Answer:
    """What a VLM said.

    Attributes:
        text: the answer, about ten words; empty if the model said nothing, which scores as such.
        latency_s: time it took [s]; in a batch, the batch's time divided by its size.
        truncated: the model had more to say than `max_tokens`.
    """

    text: str
    latency_s: float = 0.0
    truncated: bool = False


@dataclass(frozen=True)
class Question:
    """One question of a batch: images ((height, width, 3) uint8 RGB each), text, most word pieces of the answer."""

    images: tuple[Image, ...]
    text: str
    max_tokens: int = MAX_TOKENS


class VisionLanguageModel(ABC):
    """A model that looks and answers. Building one loads nothing heavy; the first answer, or `warm_up`, does.

    Attributes:
        name: the name it is asked for by.
        adapter_version: raised with every change that may change an answer, so that answers that were kept are told
            from new ones; "": every change to the adapter's sources counts as one (`merton.annotate.identity`).
    """

    name: str
    adapter_version: str = ""

    @abstractmethod
    def answer(self, images: Sequence[Image], question: str, max_tokens: int = MAX_TOKENS) -> Answer:
        """Answer `question` about `images` ((height, width, 3) uint8 RGB each) in at most `max_tokens` word pieces.

        The same images and question give the same answer: no sampling.

        Raises:
            InputError: no image, or more than the model takes.
            MissingDependencyError: an extra or the weights are not there; the text says how to get them.
            InvalidAnswerError: the model failed where it runs, or what it gave is no text; an outcome.
            InfrastructureError: the server or the machine failed; never counted as the model's answer.
        """

    def answer_batch(self, questions: Sequence[Question]) -> Sequence[Answer | Exception]:
        """Answer many questions, each as `answer` would; here one after the other.

        An exception in the list is what became of that question alone; one that is raised is the whole batch's.
        """
        return [self.answer(one.images, one.text, one.max_tokens) for one in questions]

    def make_example(self) -> Question:
        """A made-up question that `answer` accepts, to warm a model up and to check an adapter."""
        return example_question()

    def warm_up(self) -> None:
        """Load whatever there is to load, and answer the example."""
        example = self.make_example()
        self.answer(example.images, example.text, example.max_tokens)

    def check(self) -> Iterator[Finding]:
        """What is there and what is missing, without the network; ends with the example being answered."""
        example = self.make_example()
        answer = self.answer(example.images, example.text, example.max_tokens)
        yield Finding("example", True, f"{answer.text!r} in {1000 * answer.latency_s:.0f} ms")


class ModelEntry(Entry):
    """A VLM of the catalogue. Its `prompt` is what the question is put into."""

    prompt: str = "{question}"

    @field_validator("prompt")
    @classmethod
    def _asks(cls, value: str) -> str:
        if value.count("{question}") != 1:
            raise ValueError("a prompt says {question} once, where the question goes")
        return value

    def build(self) -> VisionLanguageModel:
        """An instance of the model; raises what `merton.models.catalogue.make` raises."""
        model: VisionLanguageModel = make(self, ADAPTERS)
        return model


class _File(Model):
    """A file of the catalogue as this stage reads it."""

    vlm: tuple[ModelEntry, ...] = ()
    vla: tuple[Any, ...] = ()

    _names_differ = field_validator("vlm")(unique)


_HERE = "merton.cognition.models"
ADAPTERS = {
    "describe": Adapter(path=f"{_HERE}.describe:Describe"),
    "transformers": Adapter(path=f"{_HERE}.transformers_vlm:TransformersVlm", extra="models"),
    "tiny_vlm": Adapter(path=f"{_HERE}.tiny_vlm:TinyVlm", extra="models"),
    "openai_chat": Adapter(path=f"{_HERE}.openai_chat:OpenAIChat", extra="remote"),
}
"""What a catalogue entry may name as its adapter, beside a "module:class" of the lab's own."""

MODELS: Catalogue[ModelEntry] = Catalogue("vlm", _File)


def question_for(instruction: str) -> str:
    """The question every VLM is asked (paper 3.3: solve the task in about ten words)."""
    return f"In about ten words, say where the object is and how to {instruction}."


def example_question() -> Question:
    """A grey image [424 x 240] with a red square in it, and the question where that is."""
    image = np.full((240, 424, 3), 128, np.uint8)
    image[100:140, 190:230] = (200, 30, 30)
    return Question((image,), question_for("pick up the red cube"))
