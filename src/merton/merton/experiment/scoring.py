"""The scores of a trial: the evidence they are computed from, and the one function that computes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from merton.cognition.score import CognitionScore
from merton.cognition.score import score as cognition_score
from merton.cognition.words import corpus_version
from merton.decision.score import DecisionScore
from merton.decision.score import score as decision_score
from merton.execution.score import angle_rad, path_deviation_m, position_distance_m
from merton.execution.score import score as execution_score
from merton.results.records import SETTLED_PROGRESS, Outcome, TrialRecord
from merton.world.action import ActionChunk
from merton.world.geometry import Matrix

if TYPE_CHECKING:
    from merton.cognition.text import Cider

ToolPath = tuple[tuple[float, float, float], ...]
"""Positions (x, y, z) [m] of the tool centre point in `base_link`, in order."""

TOLERANCE = 1e-12
"""Ours: the same formulas on the same numbers may differ in the last digit, not by more."""


@dataclass(frozen=True)
class Evidence:
    """The inputs of a trial's scores, except its outcome.

    Attributes:
        answers: to the reference and to the distorted image; None where the VLM gave none. A text without words is one.
        corpus: all reference answers of the study, for CIDEr.
        first_chunks: decided on the reference and on the distorted images; None if there are none.
        reference_tcp: final tool pose (4, 4) in `base_link` of the run measured against; None if there is none.
        final_tcp: final tool pose (4, 4) in `base_link` of the trial; None of a robot without one, whose execution has
            no score then: a success would count and a failure could not.
        reference_path: of the tool in the run measured against; empty if there is none.
        path: of the tool in the trial.
        progress: 0..1 as the cell judged it at the end; None if it was not judged, or by a person.
    """

    answers: tuple[str | None, str | None]
    corpus: tuple[str, ...]
    first_chunks: tuple[ActionChunk, ActionChunk] | None
    reference_tcp: Matrix | None
    final_tcp: Matrix | None
    reference_path: ToolPath = ()
    path: ToolPath = ()
    progress: float | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of a trial.

    Attributes:
        cognition: likeness of the two answers; None unless there are two (`merton.cognition.unanswered`).
        decision: likeness of the two first chunks; None without chunks.
        execution: 0..100; None if the outcome is not scored or there is no run to measure against.
        distance_m: between the final tool positions of the trial and of the run measured against; None without one.
        progress: 0..1, 1 exactly for a success; None if the outcome is not scored or a failure was not measured.
        path_m: largest distance between the tool's paths of the two runs; None without one.
        angle_rad: between the final tool orientations of the two runs; None without one.
    """

    cognition: CognitionScore | None
    decision: DecisionScore | None
    execution: float | None
    distance_m: float | None
    progress: float | None = None
    path_m: float | None = None
    angle_rad: float | None = None

    @property
    def totals(self) -> dict[str, float | None]:
        """The number of each stage, by the field of `TrialRecord` that holds it."""
        return {
            "cognition": self.cognition.total if self.cognition else None,
            "decision": self.decision.total if self.decision else None,
            "execution": self.execution,
            "distance_m": self.distance_m,
            "progress": self.progress,
            "path_m": self.path_m,
            "angle_rad": self.angle_rad,
        }


def score(evidence: Evidence, outcome: Outcome) -> Scores:
    """The scores of a trial; the formulas are in docs/reference/scores.md.

    Raises:
        InputError: an answer that is not text, chunks in different frames, or a failure without a finite distance.
    """
    (one, other), reference, final = evidence.answers, evidence.reference_tcp, evidence.final_tcp
    both = None if reference is None or final is None else (reference, final)
    distance_m = None if both is None else position_distance_m(*both)
    return Scores(
        cognition=None if one is None or other is None else cognition_score(one, other, _cider(evidence.corpus)),
        decision=None if evidence.first_chunks is None else decision_score(*evidence.first_chunks),
        execution=None if distance_m is None else execution_score(outcome, distance_m),
        distance_m=distance_m,
        progress=_progress(outcome, evidence.progress),
        path_m=path_deviation_m(evidence.reference_path, evidence.path) if both and evidence.reference_path else None,
        angle_rad=None if both is None else angle_rad(*both),
    )


def _progress(outcome: Outcome, judged: float | None) -> float | None:
    """Progress of a trial: it follows from every outcome but a failure, whose progress the cell has judged."""
    return judged if outcome is Outcome.FAILURE else SETTLED_PROGRESS.get(outcome)


def differences(record: TrialRecord, scores: Scores) -> Iterator[tuple[str, float | None, float | None]]:
    """Name, recorded and computed value of every score that differs from the record by more than `TOLERANCE`."""
    for name, computed in scores.totals.items():
        recorded: float | None = getattr(record, name)
        if recorded is None or computed is None:
            differ = recorded is not computed
        else:
            differ = not abs(recorded - computed) <= TOLERANCE  # true for NaN
        if differ:
            yield name, recorded, computed


@lru_cache(maxsize=8)
def version_of(corpus: tuple[str, ...]) -> str:
    """`corpus_version`, computed once for the corpus that all distorted trials of a VLM share."""
    return corpus_version(corpus)


@lru_cache(maxsize=8)
def _cider(corpus: tuple[str, ...]) -> Cider | None:
    """CIDEr over a corpus of reference answers; None for fewer than two, whose document frequencies say nothing."""
    from merton.cognition.text import Cider  # loads scipy and rapidfuzz, which only the process that scores needs

    return Cider(corpus) if len(corpus) >= 2 else None
