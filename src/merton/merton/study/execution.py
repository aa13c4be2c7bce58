"""The execution study of Embodied-IQA (sections 3.5 and 5.4): do cognition and decision tell how the arm fares?

Correlations of stages over the types of distortion, over types and levels, and over trials. Scenes are the sampling
unit: intervals of means of types draw them again, those of single trials leave them out in turn, and both take the
types as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.results.records import Outcome, TrialRecord
from merton.seeding import generator
from merton.statistics.clustered import (
    Floats,
    Integers,
    Measured,
    correlation_interval,
    difference_interval,
    pair_correlations,
    partial,
    permutation_p,
    row_correlations,
    steadied,
)
from merton.statistics.coefficients import krcc, plcc, plcc_after_logistic
from merton.statistics.correlation import correlation_left_out, difference_left_out, without_each
from merton.statistics.intervals import Interval
from merton.study.blindness import blind_agents
from merton.study.opinions import Opinions

UNITS = ("type", "type_level", "trial")
"""One point of a correlation: the mean of a type, that of a type at a level, or a trial."""
STAGES = ("cognition", "decision")
OUTCOMES = ("execution", "success", "progress")
_COLUMNS = ("id", "agent", "reference", "scene", "distortion", "level")
_NO_ATTEMPT = (Outcome.INFRASTRUCTURE, Outcome.ABSTAINED)
"""Outcomes of trials whose decision was not carried out, in the order of `Excluded`."""
SEED = 0
"""Of resamples and permutations."""
MOST_TRIALS = 20_000
"""Distorted trials of a correlation over single trials; of more, those of scenes drawn at random are compared (ours:
each is permuted ten thousand times)."""


@dataclass(frozen=True)
class Excluded:
    """Distorted trials that take no part.

    Attributes:
        blind_agents: those that look at nothing (`study.blindness`), so that no image can tell how they fare.
        failed_references: (agent, reference) whose undistorted run did not do the task, or was not recorded.
        failed_reference_trials: distorted trials of those.
        infrastructure: trials that ended by an infrastructure fault, which says nothing about the agent.
        abstained: trials that were given up because of the quality of their images, which is what is compared.
    """

    blind_agents: tuple[str, ...] = ()
    failed_references: tuple[tuple[str, str], ...] = ()
    failed_reference_trials: int = 0
    infrastructure: int = 0
    abstained: int = 0


@dataclass(frozen=True)
class Trials:
    """The distorted trials of a study, columns of shape (n,), sorted by reference, type, level and agent.

    Attributes:
        reference: task and scene, such as "test-pick.3".
        scene: the unit that was sampled.
        values: name to its column: cognition, decision, success and progress 0..1, execution 0..100, and metrics of
            image quality in their own units; NaN where a trial has none.
    """

    id: NDArray[np.str_]
    agent: NDArray[np.str_]
    reference: NDArray[np.str_]
    scene: NDArray[np.str_]
    distortion: NDArray[np.str_]
    level: NDArray[np.int64]
    values: Mapping[str, Floats]
    excluded: Excluded
    include_failed_references: bool

    @property
    def types(self) -> list[str]:
        """The types of distortion by name."""
        return sorted(set(self.distortion.tolist()))

    @cached_property
    def compared(self) -> Trials:
        """All trials, or at most `MOST_TRIALS`: every one of scenes that are drawn at random, two scenes at least."""
        if len(self.id) <= MOST_TRIALS:
            return self
        names, scene, count = np.unique(self.scene, return_inverse=True, return_counts=True)
        order = generator("compared scenes", SEED).permutation(len(names))
        fitting = int(np.searchsorted(np.cumsum(count[order]), MOST_TRIALS, side="right"))
        kept = np.isin(scene, order[: max(fitting, 2)])
        columns = {name: getattr(self, name)[kept] for name in _COLUMNS}
        return replace(self, **columns, values={name: column[kept] for name, column in self.values.items()})

    @cached_property
    def without_scenes(self) -> Mapping[tuple[str, str], Floats]:
        """Spearman's correlation over trials of each column, and of the level, with each outcome, and of each column
        with the level: (1 + parts,), of all scenes and without each group of them (`without_each`)."""
        names, scene = np.unique(self.scene, return_inverse=True)
        columns = {**self.values, "level": self.level.astype(np.float64)}
        pairs = [(name, other) for name in self.values for other in (*OUTCOMES, "level")]
        return pair_correlations(columns, pairs, np.stack(without_each(names)).astype(float), scene)

    def with_metrics(self, metrics: Mapping[str, Mapping[str, float]]) -> Trials:
        """With columns of further names, each {trial id: value}.

        An infinite value, such as the PSNR of two equal pictures, counts as the largest finite one, of which there are
        means (ours).
        """
        new = {}
        for name, found in metrics.items():
            column = np.array([found.get(key, math.nan) for key in self.id.tolist()], np.float64)
            finite = column[np.isfinite(column)]
            new[name] = np.clip(column, finite.min(), finite.max()) if len(finite) else column
        return replace(self, values={**self.values, **new})


@dataclass(frozen=True)
class Coefficients:
    """The correlations of a stage, or of a metric of image quality, with an outcome of the trials; None for undefined.

    Attributes:
        predictor: "cognition", "decision", or the name of a metric.
        source: "run", or "opinions": the mean opinions of a dataset's images of the same types (the paper's way).
        outcome: of `OUTCOMES`.
        unit: of `UNITS`.
        n: units.
        trials, scenes: distorted trials that the outcome is the mean of, and their scenes.
        srcc: Spearman's correlation, and its 95 % interval over scenes.
        given_level: the partial Spearman correlation given the (mean) level of the unit, and its interval.
        krcc: Kendall's tau-b. plcc: Pearson's; plcc_logistic: after the logistic of VQEG.
        p: of `srcc`, by permutation: of types, of types and levels, or of the distorted images of a reference.
    """

    predictor: str
    source: str
    outcome: str
    unit: str
    n: int
    trials: int
    scenes: int
    srcc: float | None
    interval: Interval | None
    given_level: float | None
    given_level_interval: Interval | None
    krcc: float | None
    plcc: float | None
    plcc_logistic: float | None
    p: float | None


@dataclass(frozen=True)
class Difference:
    """SRCC of one predictor with an outcome less that of another; both share the outcome and its resampled scenes."""

    one: str
    other: str
    source: str
    outcome: str
    unit: str
    value: float | None
    interval: Interval | None


def select(
    records: Iterable[TrialRecord], include_failed_references: bool = False, declared: Collection[str] = ()
) -> Trials:
    """The distorted trials that a study is made of.

    An emergency stop and an invalid action have execution 0 and stay; infrastructure faults, abstentions, agents that
    look at nothing, and trials whose reference run did not do the task are left out and counted. The reference run
    is the agent's own undistorted trial of the same task and scene.

    Args:
        records: of any trials.
        include_failed_references: keep trials whose reference run failed.
        declared: ids of agents that are known to look through no camera (`blindness.declared_blind`).
    """
    found = sorted(records, key=lambda item: (item.case, item.agent, item.experiment))
    done = {(record.agent, record.case.reference) for record in found if record.case.is_reference and record.success}

    def has_reference(record: TrialRecord) -> bool:
        return (record.agent, record.case.reference) in done

    distorted = [record for record in found if not record.case.is_reference]
    blind = blind_agents(found, declared)
    looking = [record for record in distorted if record.agent not in blind]
    ended = {outcome: sum(record.outcome is outcome for record in looking) for outcome in _NO_ATTEMPT}
    valid = [record for record in looking if record.outcome not in _NO_ATTEMPT]
    failed = [record for record in valid if not has_reference(record)]
    kept = valid if include_failed_references else [record for record in valid if has_reference(record)]
    names = sorted({(record.agent, _reference(record)) for record in failed})
    columns = {
        name: np.array([_number(getattr(record, name)) for record in kept], np.float64) for name in STAGES + OUTCOMES
    }

    def texts(get: Callable[[TrialRecord], str]) -> NDArray[np.str_]:
        return np.array([get(record) for record in kept], np.str_)

    return Trials(
        texts(lambda record: record.id),
        texts(lambda record: record.agent),
        texts(_reference),
        texts(lambda record: record.case.scene),
        texts(lambda record: record.case.distortion),
        np.array([record.case.level for record in kept], np.int64),
        columns,
        Excluded(tuple(sorted(blind)), tuple(names), len(failed), *ended.values()),
        include_failed_references,
    )


def stage_correlation(
    trials: Trials, predictor: str, outcome: str = "execution", unit: str = "type", opinions: Opinions | None = None
) -> Coefficients:
    """The coefficients of a predictor and an outcome.

    Args:
        trials: of `select`.
        predictor: a column of the trials; with `opinions` "cognition" or "decision".
        opinions: takes the predictor's means over types, or over types and levels, from there; trials have none.

    Raises:
        InputError: a unit of trials with opinions, which are of other images.
    """
    if opinions is not None and unit == "trial":
        raise InputError("opinions are of other images than those of the trials: compare types, or types and levels")
    trials = trials.compared if unit == "trial" else trials
    x, y, level, reliability = _rows(trials, predictor, outcome, unit, opinions)
    if unit == "trial":
        pairs = ((predictor, outcome), (predictor, "level"), (outcome, "level"))
        draws, *with_level = (trials.without_scenes[pair] for pair in pairs)
    else:
        draws, *with_level = (row_correlations(*pair) for pair in ((x, y), (x, level), (y, level)))
    known = ~(np.isnan(x[0]) | np.isnan(y[0]))
    count = int(known.sum())
    given = partial(draws, *with_level)
    scenes = _scene_count(trials, outcome)

    def interval_of(several: Floats) -> Interval:
        if unit == "trial":
            return correlation_left_out(several)
        return correlation_interval(several, scenes, count, reliability)

    one, other = x[0][known], y[0][known]
    return Coefficients(
        predictor,
        "run" if opinions is None else "opinions",
        outcome,
        unit,
        count,
        int((~np.isnan(trials.values[outcome])).sum()),
        scenes,
        _shown(draws[0]),
        _ends(interval_of(draws)),
        _shown(given[0]),
        _ends(interval_of(given)),
        _shown(krcc(one, other)),
        _shown(plcc(one, other)),
        _shown(plcc_after_logistic(one, other)),
        _shown(_permuted(trials, x[0], y[0], unit)),
    )


def difference(
    trials: Trials,
    one: str = "decision",
    other: str = "cognition",
    outcome: str = "execution",
    unit: str = "type",
    opinions: Opinions | None = None,
) -> Difference:
    """SRCC of `one` less that of `other` with its 95 % interval, the same scenes drawn or left out for both."""
    trials = trials.compared if unit == "trial" else trials
    draws, shares = [], []
    for predictor in (one, other):
        x, y, _, reliability = _rows(trials, predictor, outcome, unit, opinions)
        draws.append(trials.without_scenes[predictor, outcome] if unit == "trial" else row_correlations(x, y))
        shares.append(reliability)
    less = draws[0] - draws[1]
    source = "run" if opinions is None else "opinions"
    if unit == "trial":
        ends = difference_left_out(less)
    else:
        least = min((share for share in shares if share is not None), default=None)
        ends = difference_interval(less, _scene_count(trials, outcome), least)
    return Difference(one, other, source, outcome, unit, _shown(less[0]), _ends(ends))


def all_coefficients(
    trials: Trials, predictors: Sequence[str] = STAGES, opinions: Opinions | None = None
) -> tuple[Coefficients, ...]:
    """Every predictor with every outcome in every unit; with opinions the units that these have."""
    return tuple(
        stage_correlation(trials, predictor, outcome, unit, opinions)
        for outcome in OUTCOMES
        for unit in UNITS
        for predictor in predictors
        if opinions is None or unit != "trial"
    )


def _rows(
    trials: Trials, predictor: str, outcome: str, unit: str, opinions: Opinions | None
) -> tuple[Floats, Floats, Floats, float | None]:
    """Predictor, outcome and level of each unit, first of all scenes and then of each draw, of trials of all scenes
    alone; the reliability of the means of types. Types and levels have too few scenes each to tell theirs."""
    if unit == "trial":
        wanted = (trials.values[predictor], trials.values[outcome], trials.level.astype(np.float64))
        x, y, level = (column[None, :] for column in wanted)
        return x, y, level, None
    units = _units(trials.distortion, trials.level, unit)
    found = sorted(set(units.tolist()))
    place = _places(units, found)
    levels = np.where(np.isnan(trials.values[outcome]), np.nan, trials.level.astype(np.float64))
    columns = [Measured(place, trials.scene, values) for values in (trials.values[outcome], levels)]
    if opinions is None:
        columns.append(Measured(place, trials.scene, trials.values[predictor]))
    else:
        theirs = _places(_units(opinions.distortion, opinions.level, unit), found)
        columns.append(Measured(theirs, opinions.scene, opinions.value(predictor)))
    draws = [column.draws(SEED, len(found)) for column in columns]
    if unit == "type_level":
        return draws[2], draws[0], draws[1], None
    steady = [steadied(means, column.scenes) for means, column in zip(draws, columns, strict=True)]
    return steady[2][0], steady[0][0], steady[1][0], math.sqrt(steady[0][1] * steady[2][1])


def _permuted(trials: Trials, x: Floats, y: Floats, unit: str) -> float:
    """The p of a correlation over units; of trials those of one image stay together, and images in their reference."""
    if unit != "trial":
        return permutation_p(x, y, SEED)
    images = np.char.add(np.char.add(trials.reference, " "), _units(trials.distortion, trials.level, "type_level"))
    names, first, image = np.unique(images, return_index=True, return_inverse=True)
    agents, agent = np.unique(trials.agent, return_inverse=True)
    sides = []
    for values in (x, y):
        side = np.full((len(names), len(agents)), np.nan)
        side[image, agent] = values
        sides.append(side)
    block: Integers = np.unique(trials.reference[first], return_inverse=True)[1]
    return permutation_p(sides[0], sides[1], SEED, block)


def _units(distortion: NDArray[np.str_], level: NDArray[np.int64], unit: str) -> NDArray[np.str_]:
    if unit == "type":
        return distortion
    return np.char.add(np.char.add(distortion, " "), level.astype(np.str_))


def _places(names: NDArray[np.str_], known: Sequence[str]) -> Integers:
    """The number of each name in `known`; -1 for one that is not there."""
    number = {name: place for place, name in enumerate(known)}
    return np.array([number.get(name, -1) for name in names.tolist()], np.intp)


def _scene_count(trials: Trials, outcome: str) -> int:
    return len(set(trials.scene[~np.isnan(trials.values[outcome])].tolist()))


def _reference(record: TrialRecord) -> str:
    return f"{record.case.task}.{record.case.seed}"


def _number(value: float | bool | None) -> float:
    return math.nan if value is None else float(value)


def _shown(value: float) -> float | None:
    """To six decimals; None for NaN."""
    return None if math.isnan(value) else round(float(value), 6)


def _ends(interval: Interval) -> Interval | None:
    low, high = interval
    return None if math.isnan(low) or math.isnan(high) else Interval(round(low, 6), round(high, 6))
