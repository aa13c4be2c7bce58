"""The judgement of a candidate against a baseline: one interval over all scenes, and one for every task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from merton.errors import InputError
from merton.results.records import TrialRecord
from merton.statistics.intervals import Interval
from merton.statistics.sequential import ERROR, Conclusion, ConfidenceSequence
from merton.study.pairs import Paired, compare_agents
from merton.study.values import VALUES, Value

FORESEEN = 50
"""A forecast looks at most so many times as far ahead as there are scenes."""

Pair = tuple[TrialRecord, TrialRecord]
"""The candidate's and the baseline's trial of one scene."""


@dataclass(frozen=True)
class TaskConclusion:
    """The scenes of one task, or all of them.

    Attributes:
        name: of the task; empty for all.
        difference: mean of the candidate's values less the baseline's, -1..1; None without scenes.
        interval: of it, valid at every number of scenes.
    """

    name: str
    scenes: int
    difference: float | None
    interval: Interval
    verdict: Conclusion


@dataclass(frozen=True)
class Judgement:
    """The result of a comparison so far.

    Attributes:
        metric: name of the value that is compared.
        delta: the loss that is looked for, 0..1.
        scenes: the pairs of each scene, in the order of drawing: a scene counts once, with the mean of its pairs.
        means: the candidate's and the baseline's, 0..1; None without scenes.
        whole: all scenes; its verdict is the result.
        tasks: by name; all of their intervals hold together.
        types: by name of the distortion, fixed intervals that do not allow for the early end; "reference" among them.
        outcomes: numbers of trials by outcome, the candidate's and the baseline's.
    """

    metric: str
    delta: float
    scenes: tuple[tuple[Pair, ...], ...]
    means: tuple[float | None, float | None]
    whole: TaskConclusion
    tasks: tuple[TaskConclusion, ...]
    types: tuple[tuple[str, Paired], ...]
    outcomes: tuple[Counter[str], Counter[str]]

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs, in the order of their scenes."""
        return tuple(pair for scene in self.scenes for pair in scene)

    @property
    def gains(self) -> list[float]:
        """The difference of each scene, -1..1."""
        return [gain(scene, VALUES[self.metric]) for scene in self.scenes]


def gain(scene: Sequence[Pair], value: Value) -> float:
    """The mean difference of a scene's pairs; raises as `difference`."""
    return math.fsum(difference(pair, value) for pair in scene) / len(scene)


def difference(pair: Pair, value: Value) -> float:
    """The candidate's value less the baseline's.

    Raises:
        InputError: one of the trials has none.
    """
    candidate, baseline = (value(record) for record in pair)
    if candidate is None or baseline is None:
        raise InputError(f"the scene {pair[0].case.id} cannot be compared: a trial of it has no such value")
    return candidate - baseline


def judge(pairs: Sequence[Pair], metric: str, value: Value, delta: float, tasks: Sequence[str]) -> Judgement:
    """The judgement of pairs each of which is of a scene of its own; arguments as of `judge_scenes`."""
    return judge_scenes([(pair,) for pair in pairs], metric, value, delta, tasks)


def judge_scenes(
    scenes: Sequence[Sequence[Pair]], metric: str, value: Value, delta: float, tasks: Sequence[str]
) -> Judgement:
    """The judgement of all scenes so far.

    Args:
        scenes: the pairs of each scene, one at least, all of one task; of scenes drawn independently, in the order of
            drawing.
        metric, value: the name and the function of `study.values.VALUES`.
        delta: the loss that is looked for, 0..1.
        tasks: of the design; each gets an equal part of the error of `sequential.ERROR`.
    """
    pairs = [pair for scene in scenes for pair in scene]
    gains = [(scene[0][0].case.task, gain(scene, value)) for scene in scenes]
    parts = []
    for task in sorted(tasks):
        own = [found for name, found in gains if name == task]
        parts.append(_part(task, own, delta, ERROR / len(tasks)))
    names = sorted({pair[0].case.distortion for pair in pairs})
    types = []
    for name in names:
        records = [record for pair in pairs if pair[0].case.distortion == name for record in pair]
        types.append((name, compare_agents(records, pairs[0][0].agent, pairs[0][1].agent, value)))
    return Judgement(
        metric,
        delta,
        tuple(map(tuple, scenes)),
        (_of_scenes(scenes, 0, value), _of_scenes(scenes, 1, value)),
        _part("", [found for _, found in gains], delta, ERROR),
        tuple(parts),
        tuple(types),
        (Counter(pair[0].outcome.value for pair in pairs), Counter(pair[1].outcome.value for pair in pairs)),
    )


def worst(pairs: Sequence[Pair], value: Value) -> Pair | None:
    """The scene in which the candidate loses most, of equals that with the least progress; None if it loses none."""
    lost = [pair for pair in pairs if difference(pair, value) < 0.0]
    return min(lost, key=lambda pair: (difference(pair, value), pair[0].progress or 0.0), default=None)


def scenes_for(judgement: Judgement) -> int | None:
    """The number of scenes that resolve the question if all go on like those so far; None if `FORESEEN` times as many
    do not."""
    gains = judgement.gains
    sequence = ConfidenceSequence(judgement.delta, differences=gains)
    for times in range(1, FORESEEN + 1):
        if sequence.verdict_after(times) is not Conclusion.UNRESOLVED:
            return len(gains) * times
    return None


def _part(name: str, gains: Sequence[float], delta: float, error: float) -> TaskConclusion:
    sequence = ConfidenceSequence(delta, error, gains)
    return TaskConclusion(name, len(gains), sequence.mean, sequence.interval, sequence.verdict)


def _of_scenes(scenes: Sequence[Sequence[Pair]], side: int, value: Value) -> float | None:
    """The mean over scenes of the mean value of the candidate's trials, side 0, or the baseline's, side 1."""
    return _mean([math.fsum(value(pair[side]) or 0.0 for pair in scene) / len(scene) for scene in scenes])


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
