"""The contract of a VLM, and the catalogue of VLMs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, cast

import numpy as np
from pydantic import Field

from merton.errors import InvalidAnswerError
from merton.models.base import ModelAdapter
from merton.models.catalogue import AdapterClass, Catalogue, CatalogueEntry
from merton.world.observation import Image

MAX_TOKENS = 32
"""Enough for the ten words of an answer."""


@dataclass(frozen=True)
class Answer:
    """The answer of a VLM.

    Attributes:
        text: about ten words. An empty one is an answer, and is compared as any other; a model that has none to give
            raises InvalidAnswerError.
        latency_s: its duration; in a batch, the batch's duration divided by its size.
        truncated: whether it was cut off at `max_tokens`.
    """

    text: str
    latency_s: float = 0.0
    truncated: bool = False


@dataclass(frozen=True)
class Question:
    """One question of a batch.

    Attributes:
        images: (height, width, 3) uint8 RGB each; a chat model (`VisionLanguageModel.is_chat`) needs none.
        text: of the question.
        max_tokens: limit of the answer.
        temperature: of sampling, from 0, which is greedy; only a chat model samples.
        seed: of sampling; None for the model's own.
    """

    images: tuple[Image, ...]
    text: str
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0
    seed: int | None = None


class VisionLanguageModel(ModelAdapter[Question, Answer]):
    """A model that answers questions about images; `ModelAdapter` has the part common to policies.

    Attributes:
        is_chat: whether it also answers questions without images, and samples with `Question.temperature` and `seed`;
            only such a model can take a role in `merton curate`.
        parallel: most questions that it wants under way at once, each a call of `respond` from a thread of its own.
    """

    is_chat: bool = False
    parallel: int = 1

    @abstractmethod
    def answer(self, images: Sequence[Image], question: str, max_tokens: int = MAX_TOKENS) -> Answer:
        """Answer `question` about `images` ((height, width, 3) uint8 RGB each) in at most `max_tokens` tokens.

        The same images and question give the same answer: no sampling.

        Raises:
            InputError: no image, or more than the model takes.
            MissingDependencyError: an extra or the weights are missing; the text says how to get them.
            InvalidAnswerError: the model failed where it runs, or its output is no text: there is no answer to score.
            InfrastructureError: the server or the machine failed; never counted as the model's answer.
        """

    def answer_batch(self, questions: Sequence[Question]) -> Sequence[Answer | Exception]:
        """Answer many questions as `answer` does, here one after the other; exceptions as in `respond`."""
        return [self.answer(question.images, question.text, question.max_tokens) for question in questions]

    def respond(self, requests: Sequence[Question]) -> Sequence[Answer | Exception]:
        """See `ModelAdapter.respond`."""
        return self.answer_batch(requests)

    def make_example(self) -> Question:
        """See `ModelAdapter.make_example`."""
        return example_question()

    @staticmethod
    def summary(response: Answer) -> str:
        """The text of an answer, quoted."""
        return repr(response.text)


def checked_answer(output: object, model: str) -> Answer:
    """The answer that an adapter gave, for its users: no adapter of a lab is trusted to give one.

    Halves of surrogate pairs, which UTF-8 cannot hold, become "?"; zeros, which end the strings of ROS, are left out.

    Raises InvalidAnswerError if it is no `Answer`, or its text is none.
    """
    if not isinstance(output, Answer):
        raise InvalidAnswerError(f"{model} gave {_article(output)} instead of an answer")
    if not isinstance(output.text, str):
        raise InvalidAnswerError(f"the answer of {model} is no text but {_article(output.text)}")
    return replace(output, text=sendable(output.text))


def sendable(text: str) -> str:
    """A text without what UTF-8 and the strings of ROS cannot hold (see `checked_answer`)."""
    return text.encode("utf-8", "replace").decode().replace("\0", "")


def _article(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


_HERE = "merton.cognition.models"
ADAPTERS = {
    "describe": AdapterClass(path=f"{_HERE}.describe:Describe"),
    "transformers": AdapterClass(path=f"{_HERE}.transformers_vlm:TransformersVlm", extra="models"),
    "gaze": AdapterClass(path=f"{_HERE}.gaze:Gaze"),
    "scribe": AdapterClass(path=f"{_HERE}.scribe:Scribe"),
    "openai_chat": AdapterClass(path=f"{_HERE}.openai_chat:OpenAIChat", extra="remote"),
}
"""The adapters that a catalogue entry may name, beside a "module:class" of the lab's own."""


class ModelEntry(CatalogueEntry):
    """A VLM of the catalogue; its `prompt` contains the question as {question}.

    Attributes:
        max_tokens: least limit of an answer in tokens, for a model that reasons before it answers; None for that of
            each question (`MAX_TOKENS` where nothing else asks for more).
    """

    adapters: ClassVar = ADAPTERS
    placeholder: ClassVar = "{question}"

    prompt: str = "{question}"
    max_tokens: Annotated[int, Field(ge=1)] | None = None

    def limit(self, asked: int = MAX_TOKENS) -> int:
        """The limit [tokens] of an answer for which a question asks for some."""
        return max(asked, self.max_tokens or 0)

    def limited(self, max_tokens: int | None) -> ModelEntry:
        """The entry with another least limit; with its own for None."""
        return self if max_tokens is None else self.model_copy(update={"max_tokens": max_tokens})

    def build(self) -> VisionLanguageModel:
        """See `CatalogueEntry.build`."""
        return cast(VisionLanguageModel, super().build())


MODELS = Catalogue("vlm", ModelEntry)


NEUTRAL_PROMPT = "Solve this task in about ten words: {instruction}."
"""The question for every VLM unless an experiment has its own (Embodied-IQA, section 3.3: solve the task in about ten
words). It says nothing about the form of the answer."""


def question_for(instruction: str, prompt: str = NEUTRAL_PROMPT) -> str:
    """The question for a VLM: `prompt` with the task in place of {instruction}."""
    return prompt.replace("{instruction}", instruction)


def example_question() -> Question:
    """A question about a grey image of 424 x 240 px with a red square."""
    image = np.full((240, 424, 3), 128, np.uint8)
    image[100:140, 190:230] = (200, 30, 30)
    return Question((image,), question_for("pick up the red cube"))
