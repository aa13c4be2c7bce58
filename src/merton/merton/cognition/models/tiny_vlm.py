"""merton-tiny-vlm: a small learned VLM that comes with Merton, for machines without a GPU and without a network.

A `VisionEncoderDecoderModel` (ViT and GPT-2) with its tokenizer, trained by `tools/train_tiny_vlm.py` on rendered
scenes; docs/tiny_models.md is its model card.
"""

from __future__ import annotations

from pathlib import Path

from merton.cognition.models.base import ModelEntry
from merton.cognition.models.transformers_vlm import TransformersVlm

CHECKPOINT = Path(__file__).with_name("tiny_vlm")


class TinyVlm(TransformersVlm):
    """The checkpoint in the package, in this process."""

    adapter_version = ""  # weights may change with the package: a hash of sources and weights is the version

    def __init__(self) -> None:
        super().__init__("tiny-vlm", str(CHECKPOINT))

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> TinyVlm:
        """The one model; its entry has no settings."""
        return cls()
