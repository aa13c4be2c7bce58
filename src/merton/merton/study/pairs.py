"""Two agents on the same trials: the difference of their scores, its interval and its p, clustered by scene.

The one comparison of agents in Merton. Both agents meet the same scenes with the same seeds, through the same
distortions and levels, so the scene's difficulty cancels; the scene remains the unit that was sampled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.results.records import TrialRecord
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.paired import paired_interval
from merton.study.values import Value

EXACT_SCENES = 16
"""With at most as many scenes p is exact: 2^16 signs; with more it is of `SIGNS` drawn ones."""
SIGNS = 20_000

_AT_ONCE = 1 << 18  # signs in memory

_SAME = 1e-9  # relative: sums that are equal but for rounding


@dataclass(frozen=True)
class Paired:
    """Two agents compared on the trials that both have.

    Attributes:
        one, other: ids of the agents.
        difference: mean of the first one's values less the other's, -1..1.
        interval: 95 % of it, clustered by scene (`statistics.paired_interval`); (-1, 1) from one scene alone.
        p: two-sided, by flipping the signs of whole scenes; at least 2 / 2^scenes, so no fewer than 6 scenes fall
            below .05.
        scenes, trials: how many both have.
    """

    one: str
    other: str
    difference: float
    interval: Interval
    p: float
    scenes: int
    trials: int

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.interval[0] <= 0.0 <= self.interval[1]


def compare_agents(records: Iterable[TrialRecord], one: str, other: str, value: Value) -> Paired:
    """Compare two agents on the test cases that both have a value of; every trial counts the same.

    Args:
        records: of one experiment, or of several with the same seed.
        value: of a trial, 0..1; a trial with None is left out (`study.values`).

    Raises:
        InputError: they have no test case in common.
    """
    return _compared(_values(records, value), one, other)


def all_pairs(records: Sequence[TrialRecord], value: Value) -> list[Paired]:
    """Every two agents of the records that have test cases in common, by name."""
    values = _values(records, value)
    found = []
    for one, other in combinations(sorted(values), 2):
        if values[one].keys() & values[other].keys():
            found.append(_compared(values, one, other))
    return found


Cases = dict[str, tuple[str, list[float]]]
"""Case id to its scene and the values of its trials."""


def _values(records: Iterable[TrialRecord], value: Value) -> dict[str, Cases]:
    found: dict[str, Cases] = {}
    for record in records:
        if (own := value(record)) is not None:
            found.setdefault(record.agent, {}).setdefault(record.case.id, (record.case.scene, []))[1].append(own)
    return found


def _compared(values: Mapping[str, Cases], one: str, other: str) -> Paired:
    mine, its = values.get(one, {}), values.get(other, {})
    common = sorted(mine.keys() & its.keys())
    if not common:
        raise InputError(f"the agents {one!r} and {other!r} have no scored test case in common; run both on the same")
    scenes = [mine[case][0] for case in common]
    gains = np.array([math.fsum(mine[case][1]) / len(mine[case][1]) for case in common]) - np.array(
        [math.fsum(its[case][1]) / len(its[case][1]) for case in common]
    )
    interval = paired_interval(gains, scenes)
    names, scene = np.unique(scenes, return_inverse=True)
    p = sign_flip_p(np.bincount(scene, weights=gains).astype(np.float64))
    difference = math.fsum(gains.tolist()) / len(gains)
    return Paired(one, other, difference, interval, p, len(names), len(common))


def sign_flip_p(sums: NDArray[np.float64]) -> float:
    """Two-sided p of no difference: the share of signs of the scenes whose sum is as far from 0 as the one found.

    If the agents are alike, each scene's difference is as likely its opposite (Fisher 1935; Pitman 1937). All signs
    are tried for up to `EXACT_SCENES` scenes, else `SIGNS` seeded ones beside the one found, so that p is never 0.

    Args:
        sums: (scenes,) sum of the differences of each scene's trials.
    """
    found, n = abs(float(sums.sum())), len(sums)
    if n <= EXACT_SCENES:
        numbers = np.arange(2 ** max(n - 1, 0))  # the opposite signs give the opposite sum
        bits = (numbers[:, None] >> np.arange(n)) & 1
        flipped = np.abs((1.0 - 2.0 * bits) @ sums)
        return float(np.mean(flipped >= found * (1.0 - _SAME)))
    rng, rows, far = generator("sign flips", n), max(_AT_ONCE // n, 1), 0
    for first in range(0, SIGNS, rows):
        signs = rng.choice((-1.0, 1.0), (min(rows, SIGNS - first), n))
        far += int(np.sum(np.abs(signs @ sums) >= found * (1.0 - _SAME)))
    return (far + 1) / (SIGNS + 1)
