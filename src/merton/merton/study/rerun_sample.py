"""The distorted trials that an attribution runs again, so that nothing follows from their choice.

Run again are all trials that lose and all that gain, and a sample of the others, drawn in every scene. Each trial
counts for as many as it stands for (Horvitz and Thompson 1952), so a mean over those that were run again is on average
that over all of them, and the sum of the weights of a scene is the number of its trials. Losing trials alone, as if
the others had no part, would be a choice by the outcome: a part without any effect would seem to lose what chance lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from merton.results.records import TrialRecord
from merton.seeding import generator
from merton.study.values import VALUES

ATTRIBUTED = ("success", "progress")
"""Names of `values.VALUES` whose loss is shared out."""
ALIKE_DIGITS = 3
"""Decimals of a loss. Ours: objects at rest still differ by a millionth of the way, which is no loss."""
SHARE = 0.25
"""Of the trials of a scene that neither lose nor gain, the share that is run again. Ours: they can only tell of
effects that cancel out, so a quarter costs little and tells most of it."""
LEAST = 2
"""Trials of a scene that neither lose nor gain that are run again, or all where there are fewer. Ours: runs with a few
trials a scene are run again whole, and no trial of a usual one counts for many."""


@dataclass(frozen=True)
class Pair:
    """A distorted trial and the undistorted one of its agent and scene, both with a known success."""

    before: TrialRecord
    after: TrialRecord

    def loss(self, value: str, after: TrialRecord | None = None) -> float | None:
        """The undistorted value less the distorted one, -1..1, in thousandths; None where one of them is unknown.

        Args:
            value: of `ATTRIBUTED`.
            after: the trial in another design; the run's own if left out.
        """
        first, second = VALUES[value](self.before), VALUES[value](self.after if after is None else after)
        return None if first is None or second is None else round(first - second, ALIKE_DIGITS) + 0.0

    @property
    def changes(self) -> bool:
        """Whether success or progress is lost or gained."""
        return any(self.loss(value) for value in ATTRIBUTED)

    @property
    def loses(self) -> bool:
        """Whether success or progress is lost."""
        return any((self.loss(value) or 0.0) > 0.0 for value in ATTRIBUTED)


def pairs_of(records: Iterable[TrialRecord], agent: str) -> list[Pair]:
    """Every distorted trial of an agent with its undistorted one: those that the report's drop is the mean of.

    A trial without a result, or whose undistorted run has none, has no pair.
    """
    known = {record.case: record for record in records if record.agent == agent and record.success is not None}
    return [
        Pair(known[case.reference], record)
        for case, record in known.items()
        if not case.is_reference and case.reference in known
    ]


def rerun_weights(pairs: Iterable[Pair], seed: int) -> dict[str, float]:
    """Id of each distorted trial that is run again, to the number of trials that it stands for, at least 1.

    Args:
        pairs: all of the agents.
        seed: of the experiment: the same run has the same sample.
    """
    weights: dict[str, float] = {}
    others: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        if pair.changes:
            weights[pair.after.id] = 1.0
        else:
            others.setdefault((pair.after.agent, pair.after.case.scene), []).append(pair.after.id)
    for scene, ids in sorted(others.items()):
        count = min(len(ids), max(LEAST, math.ceil(SHARE * len(ids))))
        drawn = generator("attribution", seed, *scene).permutation(len(ids))[:count]
        weights |= {sorted(ids)[number]: len(ids) / count for number in drawn}
    return weights


@dataclass(frozen=True)
class Rerun:
    """A distorted trial that was run again in every design.

    Attributes:
        pair: the trials of the run itself.
        found: design to the record of the trial in it. The design in which all parts are distorted need not be there:
            the trial of the run is its result.
        weight: the number of trials that it stands for (`rerun_weights`).
        placebo: the undistorted and the distorted trial with images that differ by one grey level at most
            (`merton.experiment.placebo`); None where they were not run.
    """

    pair: Pair
    found: Mapping[str, TrialRecord]
    weight: float = 1.0
    placebo: tuple[TrialRecord, TrialRecord] | None = None
