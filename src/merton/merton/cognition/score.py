"""The Cognition score: what distortion did to an answer (Embodied-IQA, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

from merton.cognition.text import CIDER_MAXIMUM, Cider, bleu, rouge_l


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


def score(reference: str, candidate: str, cider: Cider | None) -> CognitionScore:
    """Score the answer to the distorted image against the answer to the reference image.

    total = (BLEU + ROUGE-L + 0.1 CIDEr) / 3, the paper's weights 1 : 1 : 0.1 scaled to 0..1.

    Ours: CIDEr of a text against itself falls short of 10 where the text has fewer than 4 words, or where all its
    n-grams of some order stand in every answer of the corpus. So that identical answers score exactly 1, CIDEr is
    divided by the reference's score against itself, times 10; where that is 0 (nothing in the reference is rarer than
    anything else) CIDEr has no say and total = (BLEU + ROUGE-L) / 2.

    Args:
        reference: answer to the undistorted image.
        candidate: answer to the distorted image.
        cider: CIDEr over all reference answers of the study; None while there are fewer than two of those.

    Raises:
        InputError: an answer is not text.
    """
    b, r = bleu(reference, candidate), rouge_l(reference, candidate)
    best = cider.score(reference, reference) if cider is not None else 0.0
    if cider is None or best <= 0.0:
        return CognitionScore((b + r) / 2, b, r, None)
    c = min(CIDER_MAXIMUM, CIDER_MAXIMUM * cider.score(reference, candidate) / best)
    return CognitionScore((b + r + c / CIDER_MAXIMUM) / 3, b, r, c)
