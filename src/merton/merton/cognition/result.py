"""What scoring an answer gives; apart from the formulas, which not everybody who passes it on has to load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CognitionScore:
    """Likeness of the answers to the reference and to the distorted image.

    Attributes:
        total: 0..1; the sum over the paper's five tasks is its Cognition score of 0..5.
        bleu: BLEU-4, 0..1.
        rouge_l: ROUGE-L, 0..1.
        cider: CIDEr as a share of what the reference scores against itself, 0..10; None where that is 0.
    """

    total: float
    bleu: float
    rouge_l: float
    cider: float | None
