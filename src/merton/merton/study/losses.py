"""The cost of distortion: each agent's success without and with it, by distortion and by task.

Every distorted trial is paired with the undistorted trial of its agent, task and scene, so a hard scene is hard on both
sides; the scene is the unit that was sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from merton.results.records import TestCase, TrialRecord
from merton.results.text import count_of
from merton.statistics.intervals import Interval
from merton.statistics.means import mean
from merton.statistics.paired import drop_interval
from merton.study.values import success


@dataclass(frozen=True)
class Loss:
    """The success of an agent on the distorted trials of a group, and on their undistorted ones.

    Attributes:
        before, after: shares of trials that did the task, 0..1, undistorted and distorted.
        points: before less after, -1..1.
        interval: 95 % of `points`, clustered by scene; (-1, 1) from one scene alone.
        trials, scenes: distorted trials that have an undistorted one, and their scenes.
        drops: test case to its own drop, -1..1, so that two agents can be compared on the cases that both have.
    """

    agent: str
    before: float
    after: float
    points: float
    interval: Interval
    trials: int
    scenes: int
    drops: Mapping[TestCase, float] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_above_zero(self) -> bool:
        """Whether the interval lies above 0: distortion costs success, beyond chance."""
        return self.interval[0] > 0.0


@dataclass(frozen=True)
class Group:
    """The losses of several agents under one distortion or in one task, the largest first."""

    name: str
    losses: tuple[Loss, ...]

    @property
    def points(self) -> float:
        """The mean loss of its agents, -1..1."""
        return mean(loss.points for loss in self.losses) or 0.0

    @property
    def size(self) -> str:
        """Trials and scenes of each agent, such as "16 in 12 scenes"; empty where they differ."""
        sizes = {count_of(loss.trials, loss.scenes) for loss in self.losses}
        return sizes.pop() if len(sizes) == 1 else ""


def by_agent(records: Iterable[TrialRecord]) -> dict[str, Loss]:
    """Agent to its loss over all distorted trials, of the agents that have a pair."""
    found = _groups(records, lambda record: record.agent)
    return {agent: loss for agent, rows in found.items() for loss in rows}


def by_distortion(records: Iterable[TrialRecord], agents: Sequence[str]) -> list[Group]:
    """The losses of these agents under each distortion, over its levels; the costliest first."""
    return _sorted(_groups(_of(records, agents), lambda record: record.case.distortion))


def by_task(records: Iterable[TrialRecord], agents: Sequence[str]) -> list[Group]:
    """The losses of these agents in each task, over distortions and levels; the costliest first."""
    return _sorted(_groups(_of(records, agents), lambda record: record.case.task))


def _of(records: Iterable[TrialRecord], agents: Sequence[str]) -> list[TrialRecord]:
    return [record for record in records if record.agent in agents]


def _sorted(groups: Mapping[str, Sequence[Loss]]) -> list[Group]:
    found = [
        Group(name, tuple(sorted(rows, key=lambda loss: (-loss.points, loss.agent)))) for name, rows in groups.items()
    ]
    return sorted(found, key=lambda group: (-round(group.points, 9), group.name))


def _groups(records: Iterable[TrialRecord], key: Callable[[TrialRecord], str]) -> dict[str, list[Loss]]:
    """Group to the loss of each agent that has a pair in it."""
    known = list(records)
    undistorted: dict[tuple[str, TestCase], float] = {
        (record.agent, record.case): value
        for record in known
        if record.case.is_reference and (value := success(record)) is not None
    }
    pairs: dict[tuple[str, str], list[tuple[TestCase, float, float]]] = {}
    for record in known:
        before, after = undistorted.get((record.agent, record.case.reference)), success(record)
        if not record.case.is_reference and before is not None and after is not None:
            pairs.setdefault((key(record), record.agent), []).append((record.case, before, after))
    found: dict[str, list[Loss]] = {}
    for (name, agent), rows in sorted(pairs.items()):
        found.setdefault(name, []).append(_loss(agent, rows))
    return found


def _loss(agent: str, rows: Sequence[tuple[TestCase, float, float]]) -> Loss:
    scenes = [case.scene for case, _, _ in rows]
    before = sum(first for _, first, _ in rows) / len(rows)
    after = sum(second for _, _, second in rows) / len(rows)
    interval = drop_interval([first - second for _, first, second in rows], scenes)
    drops: dict[TestCase, list[float]] = {}
    for case, first, second in rows:
        drops.setdefault(case, []).append(first - second)
    means = {case: sum(values) / len(values) for case, values in drops.items()}
    return Loss(agent, before, after, before - after, interval, len(rows), len(set(scenes)), means)
