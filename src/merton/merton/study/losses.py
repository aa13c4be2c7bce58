"""The cost of distortion in a report: each agent's drop by distortion and by task; see `merton.results.losses`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from merton.results.losses import Loss, grouped, successes
from merton.results.records import TestCase, TrialRecord
from merton.results.text import count_of
from merton.statistics.means import mean


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


def by_distortion(records: Iterable[TrialRecord], agents: Sequence[str]) -> list[Group]:
    """The losses of these agents under each distortion, over its levels; the costliest first."""
    return _groups(records, agents, lambda case: case.distortion)


def by_task(records: Iterable[TrialRecord], agents: Sequence[str]) -> list[Group]:
    """The losses of these agents in each task, over distortions and levels; the costliest first."""
    return _groups(records, agents, lambda case: case.task)


def _groups(records: Iterable[TrialRecord], agents: Sequence[str], key: Callable[[TestCase], str]) -> list[Group]:
    losses = grouped(successes(record for record in records if record.agent in agents), key)
    found = [
        Group(name, tuple(sorted(rows.values(), key=lambda loss: (-loss.points, loss.agent))))
        for name, rows in losses.items()
    ]
    return sorted(found, key=lambda group: (-round(group.points, 9), group.name))
