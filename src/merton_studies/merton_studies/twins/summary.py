"""Twins in numbers: a row for each decision, and for each distortion the share of trials that would have left."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

import numpy as np

from merton.perception.distortion.setting import UNDISTORTED, Setting
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, mean_scatter
from merton_studies.twins.motion import CARRIED_OUT, VERDICTS
from merton_studies.twins.replay import Replay
from merton_studies.twins.twin import Twin

COLUMNS: dict[str, str] = {
    "trial": "string",
    "agent": "string",
    "policy": "string",
    "task": "string",
    "scene": "int64",
    "outcome": "string",
    "distortion": "string",
    "level": "int64",
    "step": "int64",
    "verdict": "string",
    "executed": "int64",
    "deltas": "int64",
    "code": "int64",
    "why": "string",
    "end_cm": "float64",
    "path_cm": "float64",
    "distance_cm": "float64",
    "angle_deg": "float64",
    "left": "bool",
    "gripper_open": "float64",
    "reference_gripper_open": "float64",
    "same_chunk": "bool",
}
"""Columns of a table of twins, and the types of pyarrow that they have."""


def row(twin: Twin) -> tuple[object, ...]:
    """The values of `COLUMNS`; lengths to a micrometre."""
    trial, motion, away = twin.trial, twin.motion, twin.away
    return (
        trial.id,
        trial.agent,
        twin.policy,
        trial.task,
        trial.scene,
        trial.outcome.value,
        twin.setting.distortion,
        twin.setting.level,
        twin.step,
        motion.verdict,
        motion.executed,
        motion.deltas,
        motion.code,
        motion.why,
        round(100 * away.end_m, 4),
        round(100 * away.path_m, 4),
        round(100 * away.distance_m, 4),
        round(math.degrees(away.angle_rad), 3),
        away.has_left,
        round(motion.gripper_open, 4),
        round(twin.reference.gripper_open, 4),
        twin.is_same,
    )


@dataclass(frozen=True)
class TrialTwin:
    """A recorded trial under one setting.

    Attributes:
        twins: of its decisions, in order.
    """

    twins: tuple[Twin, ...]

    @property
    def farthest(self) -> Twin:
        """The decision whose motion would have gone farthest from the recorded one."""
        return max(self.twins, key=lambda twin: twin.away.distance_m)

    @property
    def left_at(self) -> int | None:
        """The first step whose motion would have left the recorded one; None if none."""
        return next((twin.step for twin in self.twins if twin.away.has_left), None)

    @property
    def verdict(self) -> str:
        """The gate's first verdict that lets not all of a chunk through; else "carried out"."""
        return next((twin.motion.verdict for twin in self.twins if twin.motion.verdict != CARRIED_OUT), CARRIED_OUT)


@dataclass(frozen=True)
class SettingSummary:
    """All trials of a policy under one setting.

    Attributes:
        trials: in the order of the recording.
        scenes: how many there are; they are the unit of the intervals.
        left: share of the trials that would have left, with its 95 % interval.
        verdicts: trials by the gate's verdict.
        mean_cm: mean over the trials of the distance at the decision that goes farthest, with its 95 % interval; None
            where there is one scene alone.
        median_cm, most_cm: of the same distances.
    """

    policy: str
    setting: Setting
    trials: tuple[TrialTwin, ...]
    scenes: int
    left: float
    left_interval: Interval
    verdicts: Mapping[str, int]
    mean_cm: float
    mean_interval_cm: Interval | None
    median_cm: float
    most_cm: float


@dataclass(frozen=True)
class SelfCheck:
    """The undistorted twins of a policy against the recorded chunks.

    Attributes:
        decisions: that were asked again.
        same: of them with the recorded chunk to the last bit.
        within: of them that did not leave the recorded motion.
        most_cm: the largest distance from it.
    """

    policy: str
    decisions: int
    same: int
    within: int
    most_cm: float


def by_trial(twins: Iterable[Twin]) -> list[TrialTwin]:
    """The twins of each trial and setting together, in their order."""
    return [TrialTwin(tuple(group)) for _, group in groupby(twins, key=lambda one: (one.trial.id, one.setting))]


def summaries(found: Replay) -> list[SettingSummary]:
    """For each policy and each setting that was asked for, in their order."""
    trials = by_trial(found.twins)
    policies = sorted({each.twins[0].policy for each in trials})
    return [
        _summary(policy, setting, group)
        for policy in policies
        for setting in found.settings
        if (group := [t for t in trials if (t.twins[0].policy, t.twins[0].setting) == (policy, setting)])
    ]


def self_checks(found: Replay) -> list[SelfCheck]:
    """For each policy that was recorded itself; another one has no recorded chunk to be compared with."""
    twins = [each for each in found.twins if each.setting == UNDISTORTED and each.policy == each.trial.policy]
    checks = []
    for policy in sorted({each.policy for each in twins}):
        own = [each for each in twins if each.policy == policy]
        within = sum(not each.away.has_left for each in own)
        most_cm = max(100 * each.away.distance_m for each in own)
        checks.append(SelfCheck(policy, len(own), sum(each.is_same for each in own), within, most_cm))
    return checks


def _summary(policy: str, setting: Setting, trials: Sequence[TrialTwin]) -> SettingSummary:
    scenes = [each.twins[0].trial.cluster for each in trials]
    left = [float(each.left_at is not None) for each in trials]
    distances = [100 * each.farthest.away.distance_m for each in trials]
    verdicts = Counter(each.verdict for each in trials)
    return SettingSummary(
        policy,
        setting,
        tuple(trials),
        len(set(scenes)),
        math.fsum(left) / len(left),
        mean_interval(left, scenes),
        {name: verdicts[name] for name in VERDICTS},
        math.fsum(distances) / len(distances),
        distance_interval(distances, scenes),
        median(distances),
        max(distances),
    )


def distance_interval(distances: Sequence[float], scenes: Sequence[str]) -> Interval | None:
    """95 % interval of a mean of lengths >= 0, clustered by scene (CR2 and Student's t); None for one scene."""
    if len(set(scenes)) < 2:
        return None
    scale = max(distances) or 1.0
    center = math.fsum(distances) / len(distances)
    half = scale * mean_scatter(np.array(distances) / scale, scenes).half_width
    return Interval(max(0.0, center - half), center + half)
