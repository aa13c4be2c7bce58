"""Fidelity of a pipeline to the reference implementations (A2Eval, section 4.6 and appendix F).

overall    F = 1 - |s_agent - s_ref| / s_ref: both its programs against both of the reference
scoring    the same for scores of its own predictions
inference  F = 1 - edit distance / length of the longer one, of its predictions and the reference's, mean of cases
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from merton.files import write_file
from merton_studies.harness.reference import reference_score
from merton_studies.harness.scores import ScoredAnswer

FIDELITY = "fidelity.json"
OVERALL = "overall"


@dataclass(frozen=True)
class Fidelity:
    """Fidelity of one answerer in one dimension, or of all.

    Attributes:
        overall: at most 1; None where it is undefined, because the reference's score is 0 and the pipeline's is not.
        scoring: the same.
        inference: 0..1.
        n: cases; those without an answer are left out. A program that fails on a case has no prediction and scores 0
            there: that is no failure of the answerer, and it is unlike the reference.
    """

    overall: float | None
    scoring: float | None
    inference: float | None
    n: int


def relative_fidelity(agent: float, reference: float) -> float | None:
    """1 - |agent - reference| / reference; 1 where both are 0, None where only the reference is."""
    if reference == 0:
        return 1.0 if agent == 0 else None
    return 1.0 - abs(agent - reference) / reference


def inference_fidelity(agent: str, reference: str) -> float:
    """1 - Levenshtein distance / length of the longer text, 0..1; two empty texts are the same."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(agent, reference))


def fidelity_of(rows: Sequence[ScoredAnswer], references: Sequence[str]) -> dict[str, dict[str, Fidelity]]:
    """Answerer to dimension, and "overall", to fidelity.

    Args:
        rows: of an evaluation.
        references: the prediction of the reference's inference for each row.
    """
    kept = [(row, text) for row, text in zip(rows, references, strict=True) if not row.unasked]
    found: dict[str, dict[str, Fidelity]] = {}
    for name in dict.fromkeys(row.answerer for row, _ in kept):
        own = [(row, text) for row, text in kept if row.answerer == name]
        found[name] = {
            dimension: _fidelity([pair for pair in own if pair[0].dimension == dimension])
            for dimension in sorted({row.dimension for row, _ in own})
        }
        found[name][OVERALL] = _fidelity(own)
    return found


def _fidelity(pairs: Sequence[tuple[ScoredAnswer, str]]) -> Fidelity:
    agent = float(np.mean([row.score or 0.0 for row, _ in pairs]))
    rescored = float(np.mean([reference_score(row.question, row.prediction) for row, _ in pairs]))
    reference = float(np.mean([reference_score(row.question, text) for row, text in pairs]))
    likeness = float(np.mean([inference_fidelity(row.prediction, text) for row, text in pairs]))
    return Fidelity(relative_fidelity(agent, reference), relative_fidelity(agent, rescored), likeness, len(pairs))


def write_fidelity(found: dict[str, dict[str, Fidelity]], out: Path) -> None:
    """Write fidelity.json; raises InfrastructureError if it cannot be written."""
    plain = {name: {dimension: asdict(one) for dimension, one in by.items()} for name, by in found.items()}
    write_file(out / FIDELITY, (json.dumps(plain, indent=1) + "\n").encode())
