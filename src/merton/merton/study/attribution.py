"""The origin of an agent's loss under distortion: the loss of trials shared out among the parts of the images.

A trial's loss is its undistorted value less its distorted one, and negative where it gains. With only a subset of the
parts distorted it is v of that subset; a part's share is its Shapley value (Shapley 1953): the mean, over all orders in
which the parts are distorted one after the other, of the loss that it adds. Shares add up to the loss, a part without
any effect has none, and parts with the same effects have the same.

The loss is that of all distorted trials, the report's drop; shares are weighted means over those that were run again
(`merton.study.rerun_sample`), and add up to it, for the trials that stand for others lose nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from operator import mul

from merton.results.records import Reference, TrialRecord
from merton.statistics.intervals import Interval
from merton.statistics.paired import drop_interval
from merton.study.rerun_sample import ATTRIBUTED, Pair, Rerun

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
    """A mean over trials, -1..1, and its 95 % interval, clustered by scene; the whole range from one scene.

    Attributes:
        interval: None where the agent does not look: the value is 0, by construction and not by measurement.
    """

    value: float
    interval: Interval | None


UNSEEN = Mean(0.0, None)
"""Of a part at which the agent does not look."""
MOST_STAGES = 4
"""Values between 0 and 1 of a progress that counts stages, at most. Ours: gym-aloha's has three."""
SEEN_AT_STEP_0 = "cameras"
"""The axis whose parts are all seen at step 0, whose decision is recorded everywhere."""


@dataclass(frozen=True)
class Attribution:
    """The mean loss of an agent in one value, and its shares by the parts of one axis.

    Attributes:
        axis: of `merton.experiment.parts.AXES`.
        value: of `ATTRIBUTED`.
        trials, scenes: how many the loss is of: all distorted trials whose value is known.
        lost, gained: how many of them lose it, and gain it.
        reruns: how many were run again in all designs: the shares' sample.
        loss: the mean loss over all of them.
        shares: part to the mean of its Shapley values, which add up to the loss.
        chance: the mean that a part has which nobody can see (`chance`); None without a placebo.
    """

    agent: str
    axis: str
    value: str
    trials: int
    scenes: int
    lost: int
    gained: int
    reruns: int
    loss: Mean
    shares: Mapping[str, Mean]
    chance: Mean | None = None


@dataclass(frozen=True)
class Step:
    """One step of an agent's trials.

    Attributes:
        saved: share of the trials that fail under distortion alone which do the task if the images are clean from this
            step on, and distorted before.
        spoiled: share of the trials that do the task under distortion which then fail: the control. Chance saves some
            trials and spoils others; None if none does the task.
        won: success that clean images from this step on win over all distorted trials: saved less spoiled ones, each
            counted for those that it stands for. At step 0 it is the loss.
        lost: `won` less that of the next step: the part of the loss that falls on this step.
    """

    saved: float
    spoiled: float | None
    won: Mean
    lost: Mean


@dataclass(frozen=True)
class Failure:
    """The steps at which an agent's success is lost.

    Attributes:
        trials, scenes: of the trials that do the task undistorted and fail distorted.
        others: trials that do the task under distortion and were run again, the control.
        at: by the step from which images are clean, which stands for all up to the next one here.
        steps: number of steps to the end of the distorted trial, to the number of `trials`.
        simulated_s: mean time on the cell's clock from start to end of `trials`, distorted [s].
    """

    agent: str
    trials: int
    scenes: int
    others: int
    at: Mapping[int, Step]
    steps: Mapping[int, int]
    simulated_s: float

    @property
    def has_gaps(self) -> bool:
        """Whether steps of `at` may stand for several."""
        return any(later - step > 1 for step, later in pairwise(self.at))


def attribute(
    agent: str,
    axis: str,
    parts: Sequence[str],
    designs: Mapping[frozenset[str], str],
    pairs: Sequence[Pair],
    reruns: Sequence[Rerun],
    unseen: Sequence[str] = (),
    values: Sequence[str] = ATTRIBUTED,
) -> list[Attribution]:
    """The shares of an agent's loss by the parts of one axis, for each of `values`.

    A part at which the agent does not look (`is_unseen`) has no interval.

    Args:
        parts: names of the parts, in the order in which they are shown.
        designs: every subset of the parts but the empty one, to the name of its design.
        pairs: all distorted trials of the agent.
        reruns: those of them that were run again. One whose value is unknown in a design is left out: where that one
            changes, shares miss it.
        unseen: further parts, at which the agent is known not to look.
        values: of `ATTRIBUTED`; those that are known of failures, too.
    """
    tells = tells_unseen(axis, reruns)
    blind = {part for part in parts if tells and is_unseen(part, designs, reruns)}
    attributions = []
    for value in values:
        sample, shares = [], []
        for rerun in reruns:
            ends = {some: rerun.pair.loss(value, _result(rerun, some, designs)) for some in designs}
            known = {some: loss for some, loss in ends.items() if loss is not None}
            if len(known) == len(designs):
                sample.append(rerun)
                shares.append(shapley(parts, known))
        if not sample:
            continue
        means = {part: UNSEEN if part in blind else _mean([one[part] for one in shares], sample) for part in parts}
        loss, losses, scenes = _whole_loss(value, pairs)
        counts = len(losses), len(set(scenes)), sum(one > 0.0 for one in losses), sum(one < 0.0 for one in losses)
        shown = means | dict.fromkeys(unseen, UNSEEN)
        floor = chance(value, sample)
        attributions.append(Attribution(agent, axis, value, *counts, len(sample), loss, shown, floor))
    return attributions


def _whole_loss(value: str, pairs: Sequence[Pair]) -> tuple[Mean, list[float], list[str]]:
    """The mean loss of all pairs whose value is known, by the rule of the report's drop; their losses and scenes."""
    known = [(loss, pair.after.case.scene) for pair in pairs if (loss := pair.loss(value)) is not None]
    losses, scenes = [loss for loss, _ in known], [scene for _, scene in known]
    return Mean(math.fsum(losses) / len(losses), drop_interval(losses, scenes)), losses, scenes


def chance(value: str, reruns: Sequence[Rerun]) -> Mean | None:
    """The share of a part that nobody can see, by the same rule as that of any other: the floor of an attribution.

    The placebo is a player beside the distortion: the mean of the loss that it adds without and with the distortion.
    On average that is 0; the interval says how much chance alone makes of such a sample. None without a placebo.
    """
    values, sample = [], []
    for rerun in reruns:
        added = [rerun.pair.loss(value, record) for record in rerun.placebo or ()]
        known = [loss for loss in (rerun.pair.loss(value), *added) if loss is not None]
        if len(known) == 3:
            values.append((known[1] + known[2] - known[0]) / 2.0)
            sample.append(rerun)
    return _mean(values, sample) if sample else None


def changed_by_placebo(reruns: Iterable[Rerun]) -> tuple[int, int]:
    """Runs with the placebo that end with another success than without it, and all of them, each counted once."""
    ends = {
        record.id: record.success != origin.success
        for rerun in reruns
        for record, origin in zip(rerun.placebo or (), (rerun.pair.before, rerun.pair.after), strict=False)
    }
    return sum(ends.values()), len(ends)


def failure(
    agent: str,
    prefixes: Mapping[int, str],
    pairs: Sequence[Pair],
    reruns: Sequence[Rerun],
) -> Failure | None:
    """The steps at which an agent's success is lost; None if no trial does the task undistorted and fails distorted.

    Args:
        prefixes: each distorted step, or of many the first of some, to the design in which it, all up to the next of
            these and those before it are distorted; the last one's is the trial of the run.
        pairs, reruns: as of `attribute`.
    """
    lost = [pair for pair in pairs if pair.before.success and pair.after.success is False]
    if not lost:
        return None
    names = [name for _, name in sorted(prefixes.items())][:-1]
    ends = [[rerun.pair.before, *(rerun.found[name] for name in names), rerun.pair.after] for rerun in reruns]
    wins = [[float(bool(record.success)) for record in row] for row in ends]
    tells = tells_unseen("steps", reruns)
    looks = [
        not tells or any(not _moves_alike(row[step], row[step + 1]) for row in ends) for step in range(len(names) + 1)
    ]
    at = {}
    for step, (label, now) in enumerate(zip(sorted(prefixes), looks, strict=True)):
        won = _mean([row[step] - row[-1] for row in wins], reruns) if any(looks[step:]) else UNSEEN
        at[label] = Step(
            _share([row[step] for row in wins], reruns, [row[0] > row[-1] for row in wins]) or 0.0,
            _share([1.0 - row[step] for row in wins], reruns, [row[-1] == 1.0 for row in wins]),
            won if step else _whole_loss("success", pairs)[0],
            _mean([row[step] - row[step + 1] for row in wins], reruns) if now else UNSEEN,
        )
    return Failure(
        agent,
        len(lost),
        len({pair.after.case.scene for pair in lost}),
        sum(bool(rerun.pair.after.success) for rerun in reruns),
        at,
        dict(sorted(Counter(pair.after.steps for pair in lost).items())),
        math.fsum(pair.after.simulated_s for pair in lost) / len(lost),
    )


@dataclass(frozen=True)
class Findings:
    """All that is said of a run: attributions and failures of its agents, and sentences about each agent.

    Attributes:
        unseeing: agents that look at none of the distorted images.
    """

    attributions: tuple[Attribution, ...]
    failures: tuple[Failure, ...]
    remarks: tuple[str, ...]
    unseeing: tuple[str, ...] = ()

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            self.attributions + other.attributions,
            self.failures + other.failures,
            self.remarks + other.remarks,
            self.unseeing + other.unseeing,
        )


def is_unseen(part: str, designs: Mapping[frozenset[str], str], reruns: Sequence[Rerun]) -> bool:
    """Whether the agent does not look at a part: in no design and no trial it moves otherwise with it than without it.

    A policy that looks moves otherwise by a little in one trial at least, also where it does the task all the same.
    """
    with_it = [some for some in designs if part in some]
    return all(
        _moves_alike(_result(rerun, some - {part}, designs), _result(rerun, some, designs))
        for some in with_it
        for rerun in reruns
    )


def tells_unseen(axis: str, reruns: Iterable[Rerun]) -> bool:
    """Whether equal records of trials mean equal motions, so that a part without any effect is one that is not seen.

    They do where a path is known, or a progress of failures that no two scenes share, since neither is equal by chance;
    else, as in a world that counts stages or in episodes of other programs, only the decision of step 0 tells, of each
    camera.
    """
    ends = [rerun.pair.after for rerun in reruns]
    if axis == SEEN_AT_STEP_0 or any(end.path_m is not None for end in ends):
        return True
    scenes: dict[float, set[str]] = {}
    for end in ends:
        if end.success is False and end.progress is not None and 0.0 < end.progress < 1.0:
            scenes.setdefault(end.progress, set()).add(end.case.scene)
    return len(scenes) > MOST_STAGES and all(len(alike) == 1 for alike in scenes.values())


_MOTION = ("outcome", "progress", "steps", "simulated_s", "cut_short")
"""Fields of a record that follow from chunks and path alone, exactly."""
_MEASURED = (*_MOTION, "decision", "path_m", "distance_m", "angle_rad")
"""Those and fields that are measured against another run, the same for all designs of a distorted trial."""


def _moves_alike(first: TrialRecord, second: TrialRecord) -> bool:
    """Whether two trials of one scene have the same chunks and path, by all that their records say of them."""
    if not first.case.is_reference:
        return all(getattr(first, name) == getattr(second, name) for name in _MEASURED)
    same_path = second.reference is not Reference.OWN or not second.path_m
    if first.reference is second.reference is Reference.ORACLE:  # both paths are measured against the oracle's
        same_path = first.path_m == second.path_m
    same_chunk = second.decision is None or math.isclose(second.decision, 1.0)
    return same_path and same_chunk and all(getattr(first, name) == getattr(second, name) for name in _MOTION)


def _result(rerun: Rerun, some: frozenset[str], designs: Mapping[frozenset[str], str]) -> TrialRecord:
    """The trial with these parts distorted: of the run itself with none and with all of them."""
    if len(some) == max(map(len, designs)):
        return rerun.pair.after
    return rerun.found[designs[some]] if some else rerun.pair.before


def _mean(values: Sequence[float], reruns: Sequence[Rerun]) -> Mean:
    """The mean of a value in -1..1 of each trial, by what it stands for."""
    weights = [rerun.weight for rerun in reruns]
    scenes = [rerun.pair.after.case.scene for rerun in reruns]
    return Mean(_weighted(values, weights), drop_interval(values, scenes, weights))


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(map(mul, values, weights)) / math.fsum(weights)


def _share(values: Sequence[float], reruns: Sequence[Rerun], chosen: Sequence[bool]) -> float | None:
    """The mean of the values of the chosen trials, by what each stands for; None if none is chosen."""
    some = [(value, rerun.weight) for value, rerun, is_chosen in zip(values, reruns, chosen, strict=True) if is_chosen]
    return _weighted(*zip(*some, strict=True)) if some else None
