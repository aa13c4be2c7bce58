"""The contract of a VLM, and the registry of those that are built in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from merton.observation import Image
from merton.registry import Registry


@dataclass(frozen=True)
class Answer:
    """What a VLM said.

    Attributes:
        text: the answer, about ten words.
        latency_s: time it took [s].
    """

    text: str
    latency_s: float = 0.0


class VisionLanguageModel(Protocol):
    """One method: look and answer."""

    name: str

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = 32) -> Answer:
        """Answer `question` about `images` ((height, width, 3) uint8 RGB each) in at most `max_tokens` word pieces."""
        ...


@dataclass(frozen=True)
class ModelEntry:
    """A model of the catalogue: its description and where its class is, imported when it is built."""

    name: str
    description: str
    path: str

    def build(self) -> VisionLanguageModel:
        """An instance of the model."""
        module, _, attribute = self.path.partition(":")
        factory: Callable[[], VisionLanguageModel] = getattr(import_module(module), attribute)
        return factory()


MODELS: Registry[ModelEntry] = Registry("vlm")
for _entry in (
    ModelEntry(
        "describe",
        "rules: names what colour segmentation finds and says what to do",
        "merton.cognition.models.describe:Describe",
    ),
):
    MODELS.add(_entry.name, _entry)


def question_for(instruction: str) -> str:
    """The question every VLM is asked (paper 3.3: solve the task in about ten words)."""
    return f"In about ten words, say where the object is and how to {instruction}."
