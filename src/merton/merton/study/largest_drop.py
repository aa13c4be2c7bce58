"""The agent that loses most success under distortion, and the doubt about it: paired with every other agent.

All agents meet the same scenes through the same distortions, so two drops are compared case by case, by scene: two
intervals that overlap may still be told apart. The largest of several drops is also too large: chance helped to make it
the largest, so its shrunken number stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from merton.results.losses import Loss
from merton.statistics.best import beside_the_first
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_scatter
from merton.statistics.paired import drop_interval, paired_interval


@dataclass(frozen=True)
class Rival:
    """An agent whose drop is compared with the largest one, on the test cases that both have.

    Attributes:
        agent: its id.
        less: mean of the largest drop less its own, -2..2; None without a common case.
        interval: of `less`, clustered by scene, see `largest_drop`; None without a common case.
    """

    agent: str
    less: float | None
    interval: Interval | None

    @property
    def is_told_apart(self) -> bool:
        """Whether its drop is smaller than the largest one, beyond chance."""
        return self.interval is not None and self.interval[0] > 0.0


@dataclass(frozen=True)
class LargestDrop:
    """The largest of several agents' drops of success.

    Attributes:
        first: the loss of the agent that has it.
        is_beyond_chance: whether it is above 0, as the largest of so many: see `largest_drop`.
        others: all other agents, the largest drop first.
        shrunken: the drop moved towards the mean of all, -1..1, by the share of their scatter that is chance (see
            `largest_drop`); None of one agent, or where no two have a common case.
    """

    first: Loss
    is_beyond_chance: bool
    others: tuple[Rival, ...]
    shrunken: float | None

    @property
    def rivals(self) -> tuple[Rival, ...]:
        """The others that are not told apart from the first."""
        return tuple(other for other in self.others if not other.is_told_apart)


def largest_drop(lost: Iterable[Loss]) -> LargestDrop:
    """The largest drop of agents that look, compared with all others.

    An agent stands alone if the 95 % intervals of all comparisons lie above 0: of equal ones, however many, the first
    would have to be told apart from the nearest too. Else the intervals are widened for the number of agents
    (`statistics.best.beside_the_first`), so that the one which truly loses most is seldom left out of those named.

    Of several agents that lose nothing, one looks as if it did. So the largest drop is beyond chance if its interval
    lies above 0 when it is widened for their number, or if it does as it is and so does that of all agents together.

    The shrunken drop is the empirical Bayes estimate by moments (Efron and Morris 1975; James and Stein 1961), positive
    part: mean + (drop - mean) max(0, 1 - error / scatter). The error is half the mean variance of the paired
    differences, in which the scenes' own difficulty cancels; the scatter is the variance of the drops. Ours: without
    the factor (k - 3) / (k - 1), so that two agents are shrunken, too.

    Args:
        lost: of at least one agent, each with its `drops`.
    """
    first, *others = sorted(lost, key=lambda loss: (-loss.points, loss.agent))
    rivals, counts, errors = [], [], []
    for other in others:
        differences, scenes = _common(first, other)
        counts.append(len(set(scenes)))
        if not len(differences):
            rivals.append(Rival(other.agent, None, None))
            continue
        less = float(differences.mean())
        interval = paired_interval(differences, scenes, span=2.0)
        rivals.append(Rival(other.agent, less, interval))
        errors.append(16.0 * mean_scatter((differences + 2.0) / 4.0, scenes).variance / 2.0)
    if not all(rival.is_told_apart for rival in rivals):
        rivals = [_widened(rival, len(others), count) for rival, count in zip(rivals, counts, strict=True)]
    shrunken = _shrunken([loss.points for loss in (first, *others)], errors)
    return LargestDrop(first, _is_beyond_chance(first, others), tuple(rivals), shrunken)


def _widened(rival: Rival, others: int, scenes: int) -> Rival:
    """One of so many others, compared in so many common scenes."""
    if rival.less is None or rival.interval is None:
        return rival
    return replace(rival, interval=beside_the_first(rival.interval, rival.less, others, scenes, span=2.0))


def _is_beyond_chance(first: Loss, others: Sequence[Loss]) -> bool:
    """Whether the largest drop is above 0 in view of the number of agents."""
    if beside_the_first(first.interval, first.points, len(others) + 1, first.scenes).low > 0.0:
        return True
    drops = [drop for loss in (first, *others) for drop in loss.drops.values()]
    scenes = [case.scene for loss in (first, *others) for case in loss.drops]
    return bool(drops) and first.is_above_zero and drop_interval(drops, scenes).low > 0.0


def _common(one: Loss, other: Loss) -> tuple[NDArray[np.float64], list[str]]:
    """The difference of the two drops on each test case that both have, -2..2, and the scenes of the cases."""
    cases = sorted(one.drops.keys() & other.drops.keys())
    differences = np.array([one.drops[case] - other.drops[case] for case in cases], np.float64)
    return differences, [case.scene for case in cases]


def _shrunken(points: list[float], errors: list[float]) -> float | None:
    """The first of these drops, shrunken; `errors` are variances of a drop about the mean of all."""
    if not errors:
        return None
    center, scatter = float(np.mean(points)), float(np.var(points, ddof=1))
    kept = max(0.0, 1.0 - float(np.mean(errors)) / scatter) if scatter > 0.0 else 0.0
    return center + kept * (points[0] - center)
