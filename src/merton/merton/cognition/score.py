"""The Cognition score: what distortion did to an answer (Embodied-IQA, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.cognition.result import CognitionScore
from merton.cognition.text import CIDER_MAXIMUM, Cider, text_scores


@dataclass(frozen=True)
class CognitionScores:
    """`CognitionScore` of n pairs, each field of shape (n,); `cider` is NaN where it has no say."""

    total: NDArray[np.float64]
    bleu: NDArray[np.float64]
    rouge_l: NDArray[np.float64]
    cider: NDArray[np.float64]


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
        cider: CIDEr over all reference answers of the model; None while there are fewer than two of those.

    Raises:
        InputError: an answer is not text.
    """
    scores = score_batch([reference], [candidate], cider)
    total, b, r, c = (float(values[0]) for values in (scores.total, scores.bleu, scores.rouge_l, scores.cider))
    return CognitionScore(total, b, r, None if np.isnan(c) else c)


def score_batch(references: Sequence[str], candidates: Sequence[str], cider: Cider | None) -> CognitionScores:
    """`score` of each reference with the candidate at the same place.

    Raises:
        InputError: lists of different lengths, or an answer that is not text.
    """
    b, r, c, best = text_scores(references, candidates, cider)
    has_say = best > 0
    share = np.minimum(CIDER_MAXIMUM, CIDER_MAXIMUM * c / np.where(has_say, best, 1.0))
    total = np.where(has_say, (b + r + share / CIDER_MAXIMUM) / 3, (b + r) / 2)
    return CognitionScores(total, b, r, np.where(has_say, share, np.nan))
