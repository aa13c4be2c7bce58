"""The Cognition score: the effect of distortion on an answer (Embodied-IQA, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from merton.cognition.unanswered import unanswered

if TYPE_CHECKING:
    from merton.cognition.text import Cider


@dataclass(frozen=True)
class CognitionScore:
    """Likeness of the answers to the reference and to the distorted image.

    Attributes:
        total: 0..1; the sum over the paper's five tasks is its Cognition score of 0..5.
        bleu: BLEU-4, 0..1.
        rouge_l: ROUGE-L, 0..1.
        cider: CIDEr as a share of the reference's score against itself, 0..10; None where that score is 0.
    """

    total: float
    bleu: float
    rouge_l: float
    cider: float | None


@dataclass(frozen=True)
class CognitionScores:
    """`CognitionScore` of n pairs, each field of shape (n,); `cider` is NaN where it is undefined.

    All are NaN where one of the two is no answer (`merton.cognition.unanswered`).
    """

    total: NDArray[np.float64]
    bleu: NDArray[np.float64]
    rouge_l: NDArray[np.float64]
    cider: NDArray[np.float64]


def score(reference: str, candidate: str, cider: Cider | None = None) -> CognitionScore | None:
    """Score the answer to the distorted image against the answer to the reference image.

    None where one of the two is no answer: a refusal, or two texts without a word (`merton.cognition.unanswered` says
    why). A text without a word beside an answer scores 0.

    total = (BLEU + ROUGE-L + 0.1 CIDEr) / 3, the paper's weights 1 : 1 : 0.1 scaled to 0..1.

    Ours: CIDEr of a text against itself is below 10 where the text has fewer than 4 words, or where all its n-grams
    of some order occur in every answer of the corpus. So that identical answers score exactly 1, CIDEr is divided by
    the reference's score against itself, times 10. Where that score is 0 (no n-gram of the reference is rarer than
    another), and without `cider`, CIDEr is undefined and total = (BLEU + ROUGE-L) / 2.

    Args:
        reference, candidate: answers to the undistorted and to the distorted image.
        cider: `Cider` of all reference answers of the model; None if there are fewer than two.

    Raises:
        InputError: an answer is not text.
    """
    scores = score_batch([reference], [candidate], cider)
    total, b, r, c = (float(values[0]) for values in (scores.total, scores.bleu, scores.rouge_l, scores.cider))
    return None if np.isnan(total) else CognitionScore(total, b, r, None if np.isnan(c) else c)


def score_batch(references: Sequence[str], candidates: Sequence[str], cider: Cider | None = None) -> CognitionScores:
    """`score` of each reference and the candidate at the same index.

    Raises:
        InputError: lists of different lengths, or an answer that is not text.
    """
    from merton.cognition.text import CIDER_MAXIMUM, text_scores  # loads scipy: slow

    b, r, c, best = text_scores(references, candidates, cider)
    defined = best > 0
    share = np.minimum(CIDER_MAXIMUM, CIDER_MAXIMUM * c / np.where(defined, best, 1.0))
    total = np.where(defined, (b + r + share / CIDER_MAXIMUM) / 3, (b + r) / 2)
    answered = np.array([not any(unanswered(*pair)) for pair in zip(references, candidates, strict=True)], dtype=bool)
    values = (np.where(answered, value, np.nan) for value in (total, b, r, np.where(defined, share, np.nan)))
    return CognitionScores(*values)
