"""How far the stages of a run fall with the level of distortion, and how far they agree trial by trial."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.results.records import TrialRecord
from merton.study.correlation import correlation_intervals, rank_correlations

CEILINGS = {"cognition": 0.999, "decision": 0.999, "execution": 99.9, "success": 1.0, "progress": 1.0}
"""Stage to the score from which on distortion has cost nothing. Ours."""
PAIRS = (
    ("cognition", "decision"),
    ("cognition", "execution"),
    ("decision", "execution"),
    ("decision", "success"),
    ("decision", "progress"),
    ("execution", "success"),
)
"""Stages that are compared: the paper's three (section 5.4), and success and progress beside its execution."""


@dataclass(frozen=True)
class Level:
    """The trials of one level.

    Attributes:
        level: 0 is undistorted, 1..5.
        means: stage to its mean, execution 0..100, the others 0..1; None without scores.
    """

    level: int
    trials: int
    scenes: int
    means: dict[str, float | None]


@dataclass(frozen=True)
class Agreement:
    """Spearman's correlation of two stages over the distorted trials, -1..1; NaN where one of them never varies.

    Attributes:
        interval: 95 %, clustered by scene; NaN where it is unknown.
        within: among trials of one agent at one level: agents and levels that are better in both count for nothing.
        within_interval: of `within`.
    """

    one: str
    other: str
    correlation: float
    interval: tuple[float, float]
    within: float
    within_interval: tuple[float, float]


@dataclass(frozen=True)
class Stages:
    """The stages of a run's agents that look.

    Attributes:
        agents: how many.
        levels: those of the run, ascending.
        at_ceiling: stage to the share of its distorted trials with a score of `CEILINGS`, 0..1.
        agreements: of `PAIRS`.
        trials, scenes: distorted ones.
    """

    agents: int
    levels: tuple[Level, ...]
    at_ceiling: dict[str, float]
    agreements: tuple[Agreement, ...]
    trials: int
    scenes: int


def stages(records: Iterable[TrialRecord], agents: Collection[str]) -> Stages | None:
    """The stages over the trials of some agents; None without distorted ones.

    Args:
        agents: those whose decisions depend on the image: trials of others tell nothing about how stages go together.
    """
    found = sorted((record for record in records if record.agent in agents), key=lambda item: (item.agent, item.case))
    distorted = [record for record in found if record.case.level]
    if not distorted:
        return None
    scores = _scores(distorted)
    scenes = [record.case.scene for record in distorted]
    strata = [f"{record.case.level} {record.agent}" for record in distorted]
    whole, whole_ends = rank_correlations(scores), correlation_intervals(scores, scenes)
    within, within_ends = rank_correlations(scores, strata), correlation_intervals(scores, scenes, strata)
    names = list(CEILINGS)

    def agreement(one: str, other: str) -> Agreement:
        at = names.index(one), names.index(other)
        (low, high), (within_low, within_high) = whole_ends[at].tolist(), within_ends[at].tolist()
        return Agreement(one, other, float(whole[at]), (low, high), float(within[at]), (within_low, within_high))

    ceilings = np.array(list(CEILINGS.values()))[:, None]
    known = ~np.isnan(scores)
    shares = {
        name: float(row[has].mean())
        for name, row, has in zip(names, scores >= ceilings, known, strict=True)
        if has.any()
    }
    levels = [_level(level, found) for level in sorted({record.case.level for record in found})]
    count = len({record.agent for record in found})
    return Stages(
        count, tuple(levels), shares, tuple(agreement(*pair) for pair in PAIRS), len(distorted), len(set(scenes))
    )


def _level(level: int, records: Iterable[TrialRecord]) -> Level:
    own = [record for record in records if record.case.level == level]
    means = {
        name: float(row[~np.isnan(row)].mean()) if not np.isnan(row).all() else None
        for name, row in zip(CEILINGS, _scores(own), strict=True)
    }
    return Level(level, len(own), len({record.case.scene for record in own}), means)


def _scores(records: Iterable[TrialRecord]) -> NDArray[np.float64]:
    """(stages, trials); NaN where a trial has no score."""
    rows = [[getattr(record, name) for record in records] for name in CEILINGS]
    return np.array([[np.nan if score is None else float(score) for score in row] for row in rows])
