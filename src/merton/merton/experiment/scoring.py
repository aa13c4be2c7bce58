"""The scores of a trial, computed again from its evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

from merton.cognition.score import score as cognition_score
from merton.cognition.text import Cider
from merton.decision.score import score as decision_score
from merton.execution.score import position_distance_m
from merton.execution.score import score as execution_score
from merton.experiment.evidence import Evidence
from merton.results.records import Outcome, TrialRecord

TOLERANCE = 1e-12
"""Ours: the same formulas on the same numbers; more than a last digit of difference is another number."""


@dataclass(frozen=True)
class Scores:
    """The numbers of a trial's record that follow from its evidence; see `TrialRecord` for their ranges."""

    cognition: float | None
    decision: float | None
    execution: float | None
    distance_m: float | None

    @classmethod
    def of(cls, record: TrialRecord) -> Scores:
        """The scores a record has."""
        return cls(record.cognition, record.decision, record.execution, record.distance_m)

    def differences(self, other: Scores) -> Iterator[tuple[str, float | None, float | None]]:
        """Name, own and other value of every score that differs by more than `TOLERANCE`."""
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if (one is None) != (two is None) or (one is not None and not abs(one - two) <= TOLERANCE):
                yield field.name, one, two


@lru_cache(maxsize=8)
def cider_of(corpus: tuple[str, ...]) -> Cider | None:
    """CIDEr over a corpus of reference answers; None for fewer than two, whose document frequencies say nothing."""
    return Cider(corpus) if len(corpus) >= 2 else None


def rescore(evidence: Evidence, outcome: Outcome) -> Scores:
    """The scores of a trial, by the formulas that scored it when it ran; see docs/scores.md."""
    chunks, reference = evidence.first_chunks, evidence.reference_tcp
    distance_m = None if reference is None else position_distance_m(reference, evidence.final_tcp)
    return Scores(
        cognition=cognition_score(*evidence.answers, cider_of(evidence.corpus)).total,
        decision=None if chunks is None else decision_score(*chunks).total,
        execution=None if distance_m is None else execution_score(outcome, distance_m),
        distance_m=distance_m,
    )
