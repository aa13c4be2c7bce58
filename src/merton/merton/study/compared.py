"""Two runs side by side: the success and the drop of each agent in both, and whether the difference is beyond chance.

A difference is B less A. Where both runs have the same test cases, each case is compared with itself, so a hard scene
is hard on both sides; the scene is the unit that was sampled. Runs without a common case are compared as independent
samples: their designs differ as well as their agents.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from merton.errors import InputError, did_you_mean
from merton.results.losses import by_agent
from merton.results.records import TestCase, TrialRecord
from merton.statistics.best import beside_the_first
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval, mean_scatter
from merton.statistics.paired import drop_interval, paired_interval
from merton.statistics.unpaired import unpaired_interval
from merton.study.power import SceneScatter, scenes_needed
from merton.study.values import success

UNDISTORTED, DISTORTED, DROP = QUANTITIES = ("undistorted", "distorted", "drop")
"""Success undistorted, success distorted, and the first less the second."""
BREAKDOWNS: Mapping[str, Callable[[TestCase], str]] = {
    "distortion": lambda case: case.distortion,
    "level": lambda case: f"level {case.level}",
    "task": lambda case: case.task,
}
"""By which the differences are divided, and the part of a test case."""
LEAST_SCENES = 2
"""Scenes in common that are compared in pairs: of a single one nothing follows for others."""

Cases = Mapping[TestCase, float]
"""Test case to the mean value of an agent's trials on it: success 0..1, or drop -1..1."""


@dataclass(frozen=True)
class AgentPair:
    """An agent of run A and the agent of run B that it is compared with; mostly both have one id."""

    first: str
    second: str

    @property
    def name(self) -> str:
        """Such as "servo", or "servo → servo-2" of two ids."""
        return self.first if self.first == self.second else f"{self.first} → {self.second}"


@dataclass(frozen=True)
class Difference:
    """The difference of two means, B less A.

    Attributes:
        first, second: the means of A and of B, 0..1, or -1..1 of drops; of paired cases, over those alone.
        interval: 95 % of `value`, clustered by scene; within -1..1, or -2..2 of drops.
        is_paired: each test case is compared with itself; else the two are independent samples.
        cases, scenes: how many are compared: of paired ones those in common, else the fewer of the two.
        changed: paired cases whose value differs; None of unpaired ones.
        needed: scenes that would resolve a difference of this size with 80 % power; None if it is resolved or 0, or the
            cases are unpaired, or the scenes do not tell.
    """

    first: float
    second: float
    interval: Interval
    is_paired: bool
    cases: int
    scenes: int
    changed: int | None = None
    needed: int | None = None

    @property
    def value(self) -> float:
        """B less A."""
        return self.second - self.first

    @property
    def is_beyond_chance(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.interval.low <= 0.0 <= self.interval.high

    def among(self, comparisons: int) -> Interval:
        """The interval of a share, widened so that so many hold together with 95 % (Bonferroni)."""
        two_sides = 2 * comparisons
        return beside_the_first(self.interval, self.value, two_sides, self.scenes, span=1.0)


@dataclass(frozen=True)
class AgentDifferences:
    """The differences of one agent; None for a quantity that A or B has no trial of.

    Attributes:
        is_blind: it looks at nothing, so distortion cannot cost it anything.
    """

    pair: AgentPair
    undistorted: Difference | None
    distorted: Difference | None
    drop: Difference | None
    is_blind: bool = False

    @property
    def is_known(self) -> bool:
        """Whether anything is compared."""
        return any(self.of(quantity) for quantity in QUANTITIES)

    def of(self, quantity: str) -> Difference | None:
        """One of `QUANTITIES`."""
        part: Difference | None = getattr(self, quantity)
        return part


@dataclass(frozen=True)
class Breakdown:
    """The differences by one of `BREAKDOWNS`: its name, and from group to those of each agent."""

    name: str
    groups: Mapping[str, Sequence[AgentDifferences]]

    @property
    def differences(self) -> list[Difference]:
        """All of success under distortion: they are many, and one in twenty excludes 0 by chance."""
        return [row.distorted for rows in self.groups.values() for row in rows if row.distorted]


@dataclass(frozen=True)
class Comparison:
    """Two runs compared.

    Attributes:
        agents: those that are compared, by name.
        only_first, only_second: ids of the agents of one run that have no partner.
        breakdowns: those with more than one group.
        flips: the trials on common cases of which one succeeded and the other did not, as (A, B).
        cases_only: test cases of the compared agents that A alone has, and B alone.
        faults: infrastructure faults of the compared agents in A and in B, which are no scores and are left out.
    """

    agents: Sequence[AgentDifferences]
    only_first: Sequence[str]
    only_second: Sequence[str]
    breakdowns: Sequence[Breakdown]
    flips: Sequence[tuple[TrialRecord, TrialRecord]]
    cases_only: tuple[int, int]
    faults: tuple[int, int]

    @property
    def quantity(self) -> str:
        """The quantity of the finding: success under distortion, or undistorted where nothing was distorted."""
        return DISTORTED if any(row.distorted for row in self.agents) else UNDISTORTED

    @property
    def candidates(self) -> list[AgentDifferences]:
        """The agents that the finding is about: those that look, or else all, where both runs have trials."""
        known = [row for row in self.agents if row.of(self.quantity)]
        return [row for row in known if not row.is_blind] or known


def compared(
    first: Sequence[TrialRecord],
    second: Sequence[TrialRecord],
    named: Sequence[AgentPair] = (),
    blind: tuple[Collection[str], Collection[str]] = ((), ()),
    is_staircase: bool = False,
) -> Comparison:
    """Compare two runs.

    Args:
        first, second: the trials of A and of B.
        named: the agents to compare; else those that both have, or, where none is in both and each run has one agent
            that looks, these two.
        blind: ids of the agents of A and of B that look at nothing (`blindness.blind_agents`).
        is_staircase: the levels of one run follow from its results, which drives every agent to the same success: its
            distorted trials are left out.

    Raises:
        InputError: an agent that is named is not there, or the runs have no agent to compare.
    """
    if is_staircase:
        first, second = ([record for record in records if record.case.is_reference] for records in (first, second))
    ids = tuple(sorted({record.agent for record in records}) for records in (first, second))
    pairs = _pairs(ids, named, blind)
    ours, theirs = (_by_agent(records) for records in (first, second))
    chosen = [(ours[pair.first], theirs[pair.second]) for pair in pairs]
    sides = [
        Sides(pair, _quantities(one), _quantities(other), pair.first in blind[0] and pair.second in blind[1])
        for pair, (one, other) in zip(pairs, chosen, strict=True)
    ]
    return Comparison(
        [_differences(side) for side in sides],
        [name for name in ids[0] if name not in {pair.first for pair in pairs}],
        [name for name in ids[1] if name not in {pair.second for pair in pairs}],
        _breakdowns(sides),
        [flip for one, other in chosen for flip in _flips(one, other)],
        (sum(len(_only(one, other)) for one, other in chosen), sum(len(_only(other, one)) for one, other in chosen)),
        (sum(_faults(one) for one, _ in chosen), sum(_faults(other) for _, other in chosen)),
    )


class Sides(NamedTuple):
    """An agent's values in A and in B, by quantity."""

    pair: AgentPair
    first: Mapping[str, Cases]
    second: Mapping[str, Cases]
    is_blind: bool


def _pairs(
    ids: tuple[Sequence[str], ...], named: Sequence[AgentPair], blind: tuple[Collection[str], Collection[str]]
) -> list[AgentPair]:
    for pair in named:
        for run, name, known in zip("AB", (pair.first, pair.second), ids, strict=True):
            if name not in known:
                hint = did_you_mean(name, known)
                raise InputError(f"{run} has no agent {name!r}; {hint}it has: {', '.join(known)}")
    if named:
        return list(dict.fromkeys(named))
    common = [AgentPair(name, name) for name in ids[0] if name in ids[1]]
    looking = tuple([name for name in own if name not in unseeing] for own, unseeing in zip(ids, blind, strict=True))
    alone = all(len(own) == 1 for own in looking) and looking[0] != looking[1]
    if alone and not any(pair.first in looking[0] for pair in common):
        return [AgentPair(looking[0][0], looking[1][0]), *common]
    if not common:
        raise InputError(
            f"A and B have no agent in common: A has {', '.join(ids[0])}; B has {', '.join(ids[1])}; name two with "
            f"--agents {ids[0][0]}={ids[1][0]}"
        )
    return common


def _by_agent(records: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    found: dict[str, list[TrialRecord]] = {}
    for record in records:
        found.setdefault(record.agent, []).append(record)
    return found


def _differences(sides: Sides, part: Callable[[TestCase], bool] = lambda case: True) -> AgentDifferences:
    """The differences of one agent on some test cases."""
    found = {}
    for quantity in QUANTITIES:
        one, other = (
            {case: value for case, value in side[quantity].items() if part(case)}
            for side in (sides.first, sides.second)
        )
        found[quantity] = _difference(one, other, 2.0 if quantity == DROP else 1.0)
    return AgentDifferences(sides.pair, found[UNDISTORTED], found[DISTORTED], found[DROP], sides.is_blind)


def _quantities(records: Sequence[TrialRecord]) -> dict[str, Cases]:
    """Quantity to its value on each test case of one agent."""
    values: dict[TestCase, list[float]] = {}
    for record in records:
        if (own := success(record)) is not None:
            values.setdefault(record.case, []).append(own)
    means = {case: math.fsum(own) / len(own) for case, own in values.items()}
    losses = list(by_agent(records).values())
    return {
        UNDISTORTED: {case: own for case, own in means.items() if case.is_reference},
        DISTORTED: {case: own for case, own in means.items() if not case.is_reference},
        DROP: losses[0].drops if losses else {},
    }


def _difference(one: Cases, other: Cases, span: float) -> Difference | None:
    if not one or not other:
        return None
    common = sorted(one.keys() & other.keys())
    scenes = [case.scene for case in common]
    if len(set(scenes)) >= LEAST_SCENES or one.keys() == other.keys():
        return _paired([one[case] for case in common], [other[case] for case in common], scenes, span)
    means, intervals = [], []
    for cases in (one, other):
        values, own = list(cases.values()), [case.scene for case in cases]
        means.append(math.fsum(values) / len(values))
        intervals.append(mean_interval(values, own) if span == 1.0 else drop_interval(values, own))
    interval = unpaired_interval(means[0], intervals[0], means[1], intervals[1])
    counts = [min(len(cases) for cases in (one, other)), min(len({c.scene for c in cases}) for cases in (one, other))]
    return Difference(means[0], means[1], interval, False, counts[0], counts[1])


def _paired(one: Sequence[float], other: Sequence[float], scenes: Sequence[str], span: float) -> Difference:
    gains = np.array(other) - np.array(one)
    interval = paired_interval(gains, scenes, span=span)
    first, second = (math.fsum(values) / len(values) for values in (one, other))
    needed = None
    if span == 1.0 and interval.low <= 0.0 <= interval.high and len(set(scenes)) >= LEAST_SCENES and gains.any():
        of_mean = 4.0 * mean_scatter((gains + 1.0) / 2.0, scenes).variance  # of values in 0..1, half as far apart
        scatter = SceneScatter(len(set(scenes)) * of_mean, float(gains.var()))
        needed = scenes_needed(second - first, scatter)
        needed = None if needed is None or needed <= len(set(scenes)) else needed
    changed = int(np.count_nonzero(gains))
    return Difference(first, second, interval, True, len(gains), len(set(scenes)), changed, needed)


def _breakdowns(sides: Sequence[Sides]) -> list[Breakdown]:
    """Those with more than one group, of agents that look and distorted trials where there are any."""
    sides = [side for side in sides if not side.is_blind] or sides
    cases = {case for side in sides for own in (side.first, side.second) for values in own.values() for case in values}
    counted = {case for case in cases if not case.is_reference} or cases
    found = []
    for name, group_of in BREAKDOWNS.items():
        members: dict[str, set[TestCase]] = {}
        for case in counted:
            members.setdefault(group_of(case), set()).add(case)
        rows = {
            group: [_differences(side, own.__contains__) for side in sides] for group, own in sorted(members.items())
        }
        groups = {group: known for group, own in rows.items() if (known := [row for row in own if row.is_known])}
        if len(groups) > 1:
            found.append(Breakdown(name, groups))
    return found


def _flips(one: Sequence[TrialRecord], other: Sequence[TrialRecord]) -> list[tuple[TrialRecord, TrialRecord]]:
    ours, theirs = _single(one), _single(other)
    pairs = [(ours[case], theirs[case]) for case in sorted(ours.keys() & theirs.keys())]
    return [(a, b) for a, b in pairs if a.success is not None and b.success is not None and a.success != b.success]


def _single(records: Sequence[TrialRecord]) -> dict[TestCase, TrialRecord]:
    """The trial of each test case that has a single one."""
    number = Counter(record.case for record in records)
    return {record.case: record for record in records if number[record.case] == 1}


def _only(one: Sequence[TrialRecord], other: Sequence[TrialRecord]) -> set[TestCase]:
    return {record.case for record in one} - {record.case for record in other}


def _faults(records: Sequence[TrialRecord]) -> int:
    return sum(record.success is None for record in records)
