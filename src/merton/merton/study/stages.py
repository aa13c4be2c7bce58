"""The fall of a run's stages with the level of distortion, and their agreement trial by trial."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.results.records import Outcome, TrialRecord
from merton.statistics.correlation import correlations_with_intervals
from merton.statistics.intervals import Interval
from merton.statistics.paired import drop_interval

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
class StageCorrelation:
    """Spearman's correlation of two stages over the distorted trials, -1..1; NaN where one of them never varies.

    Attributes:
        interval: 95 %, clustered by scene; NaN where it is unknown.
        within: among trials of one agent at one level: agents and levels that are better in both count for nothing.
        within_interval: of `within`.
    """

    one: str
    other: str
    correlation: float
    interval: Interval
    within: float
    within_interval: Interval


@dataclass(frozen=True)
class Fall:
    """The fall of a stage from undistorted to the highest level: paired by agent, task and scene.

    Attributes:
        points: the fall, in points of 100.
        interval: 95 %, clustered by scene; None for a single scene.
        share: of the way from the undistorted mean to the floor, in per cent: 100 is as bad as the output for another
            scene. None for a stage without a floor, or where the floor leaves no way.
        share_interval: of `share`, the floor taken as known; None without either.
    """

    points: float
    interval: Interval | None
    share: float | None
    share_interval: Interval | None


@dataclass(frozen=True)
class Stages:
    """The stages of a run's agents that look.

    Attributes:
        agents: how many.
        levels: those of the run, ascending.
        falls: stage to its fall from undistorted to the highest level, of the stages that have scores.
        at_ceiling: stage to the share of its distorted trials with a score of `CEILINGS`, 0..1.
        agreements: of `PAIRS`.
        trials, scenes: distorted ones.
    """

    agents: int
    levels: tuple[Level, ...]
    falls: dict[str, Fall]
    at_ceiling: dict[str, float]
    agreements: tuple[StageCorrelation, ...]
    trials: int
    scenes: int


def stages(
    records: Iterable[TrialRecord], agents: Collection[str], floors: Mapping[str, float] | None = None
) -> Stages | None:
    """The stages over the trials of some agents; None without distorted ones.

    Args:
        records: abstentions are left out: what would have been executed is not known.
        agents: those whose decisions depend on the image: trials of others tell nothing about how stages go together.
        floors: stage to the score of the output for another scene (`merton.study.floors`), mean of these agents.
    """
    acted = (record for record in records if record.agent in agents and record.outcome is not Outcome.ABSTAINED)
    found = sorted(acted, key=lambda item: (item.agent, item.case))
    distorted = [record for record in found if record.case.level]
    if not distorted:
        return None
    scores = _scores(distorted)
    scenes = [record.case.scene for record in distorted]
    strata = [f"{record.case.level} {record.agent}" for record in distorted]
    whole, whole_ends = correlations_with_intervals(scores, scenes)
    within, within_ends = correlations_with_intervals(scores, scenes, strata)
    names = list(CEILINGS)

    def agreement(one: str, other: str) -> StageCorrelation:
        at = names.index(one), names.index(other)
        ends, within_ends_of = Interval(*whole_ends[at].tolist()), Interval(*within_ends[at].tolist())
        return StageCorrelation(one, other, float(whole[at]), ends, float(within[at]), within_ends_of)

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
        count,
        tuple(levels),
        _falls(found, floors or {}),
        shares,
        tuple(agreement(*pair) for pair in PAIRS),
        len(distorted),
        len(set(scenes)),
    )


def _falls(records: Iterable[TrialRecord], floors: Mapping[str, float]) -> dict[str, Fall]:
    found = list(records)
    undistorted = {(record.agent, record.case.reference): record for record in found if not record.case.level}
    highest = max(record.case.level for record in found)
    after = [
        record
        for record in found
        if record.case.level == highest and (record.agent, record.case.reference) in undistorted
    ]
    if not after:
        return {}
    before = [undistorted[record.agent, record.case.reference] for record in after]
    scenes = np.array([record.case.scene for record in after])
    falls = {}
    for name, start, end in zip(CEILINGS, _scores(before), _scores(after), strict=True):
        known = ~np.isnan(start) & ~np.isnan(end)
        if known.any():
            scale = 100.0 if name == "execution" else 1.0
            way = float(start[known].mean()) / scale - floors[name] if name in floors else 0.0
            falls[name] = _fall((start - end)[known] / scale, scenes[known], way)
    return falls


def _fall(losses: NDArray[np.float64], scenes: NDArray[np.str_], way: float) -> Fall:
    """Of losses of -1..1 in these scenes; `way` is the distance from the undistorted mean to the floor, 0..1."""
    points = 100.0 * float(losses.mean())
    interval = None
    if len(set(scenes.tolist())) > 1:
        interval = drop_interval(losses, scenes).scaled(100.0)
    if way <= 0.0:
        return Fall(points, interval, None, None)
    return Fall(points, interval, points / way, interval and Interval(interval[0] / way, interval[1] / way))


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
