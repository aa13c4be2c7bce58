"""The drop: each agent's success undistorted, distorted, and the difference, for reports and boards alike.

Every distorted trial is paired with the undistorted trials of its agent, task and scene, so a hard scene is hard on
both sides; the scene is the unit that was sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from merton.results.records import TestCase, TrialRecord
from merton.statistics.intervals import Interval
from merton.statistics.means import mean
from merton.statistics.paired import drop_interval

Success = tuple[str, TestCase, float]
"""An agent, a test case, and the agent's success on it, 0..1."""


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


def by_agent(records: Iterable[TrialRecord]) -> dict[str, Loss]:
    """Agent to its loss over all distorted trials, of the agents that have a pair."""
    return of_agents(successes(records))


def of_agents(scored: Iterable[Success]) -> dict[str, Loss]:
    """The same of successes that were not stored as trials, such as those of a submission."""
    return {agent: loss for losses in grouped(scored, lambda case: "").values() for agent, loss in losses.items()}


def successes(records: Iterable[TrialRecord]) -> list[Success]:
    """The success of every trial, infrastructure faults apart, which say nothing about the agent."""
    return [(record.agent, record.case, float(record.success)) for record in records if record.success is not None]


def grouped(scored: Iterable[Success], key: Callable[[TestCase], str]) -> dict[str, dict[str, Loss]]:
    """Group to agent to its loss in that group, of the agents that have a pair in it; in any order the same.

    Args:
        scored: of one agent on one test case there may be several, as where a trial was run again; a distorted one is
            paired with the mean of the undistorted ones.
        key: the group of a distorted test case.
    """
    known = sorted(scored)
    undistorted: dict[tuple[str, TestCase], list[float]] = {}
    for agent, case, value in known:
        if case.is_reference:
            undistorted.setdefault((agent, case), []).append(value)
    pairs: dict[tuple[str, str], list[tuple[TestCase, float, float]]] = {}
    for agent, case, value in known:
        before = mean(undistorted.get((agent, case.reference), ()))
        if not case.is_reference and before is not None:
            pairs.setdefault((key(case), agent), []).append((case, before, value))
    found: dict[str, dict[str, Loss]] = {}
    for (name, agent), rows in sorted(pairs.items()):
        found.setdefault(name, {})[agent] = _loss(agent, rows)
    return found


def _loss(agent: str, rows: Sequence[tuple[TestCase, float, float]]) -> Loss:
    scenes = [case.scene for case, _, _ in rows]
    before = math.fsum(first for _, first, _ in rows) / len(rows)
    after = math.fsum(second for _, _, second in rows) / len(rows)
    interval = drop_interval([first - second for _, first, second in rows], scenes)
    drops: dict[TestCase, list[float]] = {}
    for case, first, second in rows:
        drops.setdefault(case, []).append(first - second)
    means = {case: sum(values) / len(values) for case, values in drops.items()}
    return Loss(agent, before, after, before - after, interval, len(rows), len(set(scenes)), means)
