"""The common part of the small VLMs whose weights come with the package."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from merton.cognition.models.base import MAX_TOKENS, Answer, ModelEntry, VisionLanguageModel
from merton.errors import InputError
from merton.models.networks import NumpyNetwork, weights_file
from merton.world.observation import Image

FOLDER = Path(__file__).parent
"""Folder of the members' weights, NAME.npz."""


Network = TypeVar("Network", bound=NumpyNetwork)


class LearnedVlm(VisionLanguageModel, Generic[Network]):
    """Answers about the first image, in words that are counted.

    Attributes:
        kind: its adapter, with which the names of its members begin.
        network_class: reads a network from `weights`.
        weights: file of the member's weights.

    Args:
        member: name of its weights in `FOLDER`.
    """

    kind: ClassVar[str]
    network_class: type[Network]

    def __init__(self, member: str) -> None:
        self.name = member
        self.weights = weights_file(FOLDER, self.kind, member)

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> LearnedVlm[Network]:
        """The member of the entry's name."""
        return cls(entry.name)

    @cached_property
    def network(self) -> Network:
        """Its network, read when it is needed first."""
        return self.network_class(self.weights)

    def answer(self, images: Sequence[Image], question: str, max_tokens: int = MAX_TOKENS) -> Answer:
        """Answer a question about the first image.

        Args:
            images: (height, width, 3) uint8 RGB of any size, from above with the robot at the bottom; the first counts.
            question: as in `say`.
            max_tokens: most words in the answer, >= 1.

        Raises:
            InputError: no image, or no room for an answer.
        """
        started = time.perf_counter()
        if not images or max_tokens < 1:
            raise InputError(f"{self.name} needs an image and room for at least one word")
        text, whole = self.say(images[0], question, max_tokens)
        return Answer(text, time.perf_counter() - started, truncated=not whole)

    @abstractmethod
    def say(self, image: Image, question: str, most: int) -> tuple[str, bool]:
        """The answer in at most `most` words, and whether it is whole."""
