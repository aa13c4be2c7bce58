"""merton-tiny-vlm: a small learned VLM that comes with Merton, for machines without a GPU and without a network.

A `VisionEncoderDecoderModel` (ViT and GPT-2) with its tokenizer, trained by `tools/train/train_tiny_vlm.py` on rendered
scenes; docs/reference/tiny_models.md is its model card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from merton.cognition.models.base import Answer, ModelEntry, Question, question_for
from merton.cognition.models.transformers_vlm import TransformersVlm
from merton.world.tasks import find

CHECKPOINT = Path(__file__).with_name("tiny_vlm")
TRAINED_PROMPT = "In about ten words, say where the object is and how to {instruction}."
"""The only form of question that the model was trained on."""


class TinyVlm(TransformersVlm):
    """The checkpoint in the package, in this process.

    The task inside a question is put to it in the form that it was trained on; a question without a task as it is.
    """

    adapter_version = ""  # weights may change with the package: a hash of sources and weights is the version

    def __init__(self) -> None:
        super().__init__("tiny-vlm", str(CHECKPOINT))

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> TinyVlm:
        """The one model; its entry has no settings."""
        return cls()

    def answer_batch(self, questions: Sequence[Question]) -> list[Answer]:
        """See `TransformersVlm.answer_batch`."""
        return super().answer_batch([replace(question, text=as_trained(question.text)) for question in questions])


def as_trained(question: str) -> str:
    """The question in the form of `TRAINED_PROMPT` if it contains an instruction of `merton.world.tasks`."""
    command = find(question)
    return question if command is None else question_for(command.instruction, TRAINED_PROMPT)
