"""The origin of an agent's loss under distortion: the loss of trials shared out among the parts of the images.

A trial's loss is its undistorted value less its distorted one. With only a subset of the parts distorted it is v of
that subset; a part's share is its Shapley value (Shapley 1953): the mean, over all orders in which the parts are
distorted one after the other, of the loss that it adds. Shares add up to the loss, a part without any effect has
none, and parts with the same effects have the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from merton.results.records import TrialRecord
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.study.values import VALUES

ATTRIBUTED = ("success", "progress")
"""Names of `values.VALUES` whose loss is shared out."""

ALIKE_DIGITS = 3
"""Decimals in which values must differ to tell of scatter. Ours: objects at rest still differ by a millionth of the
way, from which an interval of no width would follow."""

Losses = Mapping[frozenset[str], float]
"""The loss with each subset of the parts distorted; that of none is 0 and is left out."""


def shapley(parts: Sequence[str], losses: Losses) -> dict[str, float]:
    """The share of each part, exactly, over all subsets: the sum over S without the part of
    `|S|! (n - |S| - 1)! / n! (v(S with it) - v(S))`."""
    known = {frozenset[str](): 0.0, **losses}
    shares = {}
    for part in parts:
        others = [other for other in parts if other != part]
        gains = [
            (known[frozenset((*some, part))] - known[frozenset(some)]) / math.comb(len(others), size)
            for size in range(len(parts))
            for some in combinations(others, size)
        ]
        shares[part] = math.fsum(gains) / len(parts)
    return shares


@dataclass(frozen=True)
class Mean:
    """A mean over trials and its 95 % interval, clustered by scene; the whole range from one scene."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Attribution:
    """The mean loss of an agent in one value, and its shares by the parts of one axis.

    Attributes:
        axis: "stages", "cameras" or "steps".
        value: of `ATTRIBUTED`.
        trials, scenes: how many the means are of: all distorted trials whose value is known.
        lost: how many of them lose success or progress; of the others loss and shares are 0, also of one that gains.
        loss: the mean loss.
        shares: part to the mean of its Shapley values, which add up to the loss.
    """

    agent: str
    axis: str
    value: str
    trials: int
    scenes: int
    lost: int
    loss: Mean
    shares: Mapping[str, Mean]


@dataclass(frozen=True)
class Failure:
    """The steps at which an agent's trials are lost: of those that do the task undistorted, and not distorted.

    Attributes:
        trials, scenes: how many they are.
        saved: k to the share of them that do the task if the images are undistorted from step k on.
        lost_at: step to the number of trials that are lost at it: with clean images from the next step on they fail,
            and from any later one, while those from this step on still would have saved them.
        steps: number of steps to the end of the distorted trial, to the number of trials.
        simulated_s: mean time on the cell's clock from start to end of the distorted trial [s].
    """

    agent: str
    trials: int
    scenes: int
    saved: Mapping[int, Mean]
    lost_at: Mapping[int, int]
    steps: Mapping[int, int]
    simulated_s: float


Found = Mapping[str, TrialRecord]
"""Design to the record of one trial in it."""


def attribute(
    agent: str,
    axis: str,
    parts: Sequence[str],
    designs: Mapping[frozenset[str], str],
    trials: Sequence[tuple[TrialRecord, Found]],
    unharmed: Sequence[str] = (),
) -> list[Attribution]:
    """The shares of an agent's loss by the parts of one axis, for each of `ATTRIBUTED`.

    Args:
        designs: every subset of the parts but the empty one, to the name of its design.
        parts: names of the parts, in the order in which they are shown.
        trials: undistorted run and the results in all designs, of each trial that loses; one with an unknown value is
            left out.
        unharmed: the scene of each distorted trial that loses nothing.
    """
    attributions = []
    for value in ATTRIBUTED:
        scenes, losses, shares = [], [], []
        for reference, found in trials:
            before = VALUES[value](reference)
            after = {some: VALUES[value](found[name]) for some, name in designs.items()}
            lost = {some: before - known for some, known in after.items() if before is not None and known is not None}
            if len(lost) < len(designs):
                continue
            scenes.append(reference.case.scene)
            losses.append(lost[frozenset(parts)])
            shares.append(shapley(parts, lost))
        if scenes:
            everywhere, none = [*scenes, *unharmed], [0.0] * len(unharmed)
            means = {part: _mean([*(share[part] for share in shares), *none], everywhere) for part in parts}
            size = len(everywhere), len(set(everywhere)), len(scenes)
            attributions.append(Attribution(agent, axis, value, *size, _mean([*losses, *none], everywhere), means))
    return attributions


def failure(
    agent: str, whole: str, prefixes: Mapping[int, str], trials: Sequence[tuple[TrialRecord, Found]]
) -> Failure | None:
    """The steps at which an agent's trials are lost; None if none of them loses success.

    Args:
        whole: the design in which all steps are distorted.
        prefixes: k to the design in which the first k steps are distorted, for k from 1 to all of them.
    """
    lost = [(reference, found) for reference, found in trials if reference.success and found[whole].success is False]
    if not lost:
        return None
    scenes = [reference.case.scene for reference, _ in lost]
    saved = {k: [float(bool(found[name].success)) for _, found in lost] for k, name in sorted(prefixes.items())}
    last = [max((k for k in saved if saved[k][trial]), default=0) for trial in range(len(lost))]
    ended = [found[whole].steps for _, found in lost]
    time_s = math.fsum(found[whole].simulated_s for _, found in lost) / len(lost)
    return Failure(
        agent,
        len(lost),
        len(set(scenes)),
        {k: _mean(values, scenes, 0.0) for k, values in saved.items()},
        dict(sorted(Counter(last).items())),
        dict(sorted(Counter(ended).items())),
        time_s,
    )


@dataclass(frozen=True)
class Findings:
    """All that is said of a run: attributions and failures of its agents, and a sentence for each agent without any."""

    attributions: tuple[Attribution, ...]
    failures: tuple[Failure, ...]
    remarks: tuple[str, ...]

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            self.attributions + other.attributions, self.failures + other.failures, self.remarks + other.remarks
        )


def _mean(values: Sequence[float], scenes: Sequence[str], least: float = -1.0) -> Mean:
    """The mean of values in `least`..1."""
    span = 1.0 - least
    interval = mean_interval([(round(value, ALIKE_DIGITS) - least) / span for value in values], scenes)
    return Mean(math.fsum(values) / len(values), interval.scaled(span, least))
