"""The numbers of an execution study, ready to be shown and stored: execution.json, and the section of a page."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from merton.config import validated
from merton.results.records import TrialRecord
from merton.results.text import one_line
from merton.results.trial_files import json_object
from merton.statistics.clustered import PERMUTATIONS
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_scatter
from merton.statistics.resampling import DRAWS
from merton.study.blindness import declared_blind
from merton.study.execution import (
    OUTCOMES,
    SEED,
    STAGES,
    UNITS,
    Coefficients,
    Difference,
    Excluded,
    Trials,
    all_coefficients,
    difference,
    select,
    stage_correlation,
)
from merton.study.execution_examples import Example, examples
from merton.study.opinions import Opinions

LEAST_TYPES = 5
"""Fewer types of distortion are not correlated."""
PUBLISHED = {"cognition": ("below", 0.5), "decision": ("above", 0.6)}
"""Embodied-IQA, section 5.4: the Spearman correlation with execution over the 30 types is below .5 and above .6."""
PUBLISHED_TYPES = 30
UNTOUCHED = 99.0
"""A mean execution from which on a type has cost next to nothing. Ours."""
SCALES = {"execution": 100.0, "opinion_cognition": 5.0, "opinion_decision": 5.0}
"""The largest value of a mean that is not 0..1."""


@dataclass(frozen=True)
class TypeMean:
    """The mean trial of a type of distortion.

    Attributes:
        means: of cognition, decision, success and progress 0..1, execution 0..100, and with opinions opinion_cognition
            and opinion_decision 0..5.
        errors: their standard errors, clustered by scene; None of one scene.
        below: the stages (keys of `means`) from whose line the type's execution lies more than one deviation down.
    """

    distortion: str
    trials: int
    scenes: int
    means: dict[str, float | None]
    errors: dict[str, float | None]
    below: tuple[str, ...]


@dataclass(frozen=True)
class PublishedBound:
    """A published bound beside the correlation of this study; the verdict is "holds", "does not hold" or "not
    resolved", by the interval over scenes."""

    stage: str
    source: str
    relation: str
    bound: float
    value: float | None
    interval: Interval | None
    verdict: str


@dataclass(frozen=True)
class MetricRow:
    """The correlation of a metric of image quality, the higher the better, or of a stage beside it, with execution.

    Attributes:
        behind: the best metric's correlation in this unit less this one's, resampled jointly; None of the best.
    """

    metric: str
    kind: str
    unit: str
    n: int
    srcc: float | None
    interval: Interval | None
    behind: float | None
    behind_interval: Interval | None


@dataclass(frozen=True)
class ExecutionStudy:
    """All that a page of the study shows.

    Attributes:
        about: run, versions, seeds, hashes.
        agents: whose trials are compared; references: how many tasks and scenes; levels: "one" or a list.
    """

    about: dict[str, Any]
    agents: tuple[str, ...]
    trials: int
    scenes: int
    references: int
    excluded: Excluded
    include_failed_references: bool
    types: tuple[TypeMean, ...]
    coefficients: tuple[Coefficients, ...]
    differences: tuple[Difference, ...]
    claims: tuple[PublishedBound, ...]
    metrics: tuple[MetricRow, ...]
    examples: tuple[Example, ...]


def is_enough(run: Path, records: Sequence[TrialRecord], include_failed_references: bool = False) -> bool:
    """Whether there are `LEAST_TYPES` types of distortion that an agent which looks has met."""
    return len(_selected(run, records, include_failed_references).types) >= LEAST_TYPES


def execution_study(
    run: Path,
    records: Sequence[TrialRecord],
    opinions: Opinions | None = None,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    include_failed_references: bool = False,
    about: Mapping[str, Any] | None = None,
) -> ExecutionStudy | None:
    """The study of a run; None for one with fewer than `LEAST_TYPES` types, or without an agent that looks.

    Args:
        run: the run's folder, for run.json and the pictures of the examples.
        records: its trials.
        opinions: mean opinions of the images of a dataset, for the paper's way: its means of the same types.
        metrics: metric to {trial id: value}, the higher the better the image.
        about: further facts for execution.json.
    """
    trials = _selected(run, records, include_failed_references)
    if len(trials.types) < LEAST_TYPES:
        return None
    trials = trials.with_metrics(metrics or {})
    sources: list[Opinions | None] = [None] if opinions is None else [None, opinions]
    stages = [[stage for stage in STAGES if _has(trials, source, stage)] for source in sources]
    coefficients = [
        row for source, known in zip(sources, stages, strict=True) for row in all_coefficients(trials, known, source)
    ]
    differences = [
        difference(trials, outcome=outcome, unit=unit, opinions=source)
        for source, known in zip(sources, stages, strict=True)
        if len(known) == len(STAGES)
        for outcome in OUTCOMES
        for unit in UNITS
        if source is None or unit != "trial"
    ]
    return ExecutionStudy(
        {**_facts(run, records), **(about or {})},
        tuple(sorted(set(trials.agent.tolist()))),
        len(trials.id),
        len(set(trials.scene.tolist())),
        len(set(trials.reference.tolist())),
        trials.excluded,
        include_failed_references,
        _type_means(trials, opinions),
        tuple(coefficients),
        tuple(differences),
        tuple(_claims(coefficients)),
        _metric_rows(trials, sorted(metrics or {})),
        tuple(examples(run, records, set(trials.id.tolist()))),
    )


def _selected(run: Path, records: Sequence[TrialRecord], include_failed_references: bool) -> Trials:
    """The trials of a run that take part; its run.json tells which agents are blind."""
    return select(records, include_failed_references, declared_blind(json_object(run / "run.json") or {}))


def to_json(study: ExecutionStudy) -> bytes:
    """The study as JSON; equal studies, equal bytes."""
    return TypeAdapter(ExecutionStudy).dump_json(study, indent=1) + b"\n"


def from_json(content: bytes | str, where: str) -> ExecutionStudy:
    """The study in a file of `to_json`; raises InputError, which names `where`, if it is none."""
    return validated(TypeAdapter(ExecutionStudy), content, where)


def _has(trials: Trials, opinions: Opinions | None, stage: str) -> bool:
    values = trials.values[stage] if opinions is None else opinions.value(stage)
    return not bool(np.isnan(values).all())


def _facts(run: Path, records: Iterable[TrialRecord]) -> dict[str, Any]:
    """The run, the study's settings, and a hash over the trials, whose wall time alone may differ between two runs."""
    facts = json_object(run / "run.json") or {}
    return {
        "run": one_line(str(facts.get("id", run.name)), 80),
        "merton": one_line(str(facts.get("merton", "")), 40),
        "experiment_sha256": one_line(str(facts.get("experiment_sha256", "")), 64),
        "experiment_seed": facts.get("seed") if isinstance(facts.get("seed"), int) else None,
        "trials_sha256": _digest(records),
        "seed": SEED,
        "draws": DRAWS,
        "permutations": PERMUTATIONS,
    }


def _digest(records: Iterable[TrialRecord]) -> str:
    """SHA-256 over the trials in the order of their texts; those of one agent alone are in memory at once."""
    by_agent: dict[str, list[TrialRecord]] = {}
    for record in records:  # a trial's text begins with these two
        by_agent.setdefault(f"{record.experiment!r} {record.agent!r}", []).append(record)
    digest, separator = hashlib.sha256(), ""
    for agent in sorted(by_agent):
        for text in sorted(repr({**vars(r), "case": vars(r.case), "wall_s": 0.0}) for r in by_agent[agent]):
            digest.update(f"{separator}{text}".encode())
            separator = "\n"
    return digest.hexdigest()


def _type_means(trials: Trials, opinions: Opinions | None) -> tuple[TypeMean, ...]:
    found = []
    for name in trials.types:
        own = trials.distortion == name
        columns = {stage: (trials.values[stage][own], trials.scene[own]) for stage in STAGES + OUTCOMES}
        if opinions is not None:
            theirs = opinions.distortion == name
            columns |= {f"opinion_{stage}": (opinions.value(stage)[theirs], opinions.scene[theirs]) for stage in STAGES}
        summary = {key: _mean_and_error(*column, SCALES.get(key, 1.0)) for key, column in columns.items()}
        means = {key: value for key, (value, _) in summary.items()}
        errors = {key: error for key, (_, error) in summary.items()}
        found.append(TypeMean(name, int(own.sum()), len(set(trials.scene[own].tolist())), means, errors, ()))
    return tuple(_marked(found))


def _mean_and_error(value: np.ndarray, scene: np.ndarray, scale: float) -> tuple[float | None, float | None]:
    known = ~np.isnan(value)
    if not known.any():
        return None, None
    several = len(set(scene[known].tolist())) > 1
    error = scale * math.sqrt(mean_scatter(value[known] / scale, scene[known]).variance) if several else None
    return round(float(value[known].mean()), 6), None if error is None else round(error, 6)


def _marked(types: Sequence[TypeMean]) -> list[TypeMean]:
    """With `below`: types whose execution is more than one standard deviation under the line of least squares.

    Ours: a type that costs less than a point is not one of them, though the line may end above 100.
    """
    below: dict[str, list[str]] = {item.distortion: [] for item in types}
    for stage in [key for key in types[0].means if key.removeprefix("opinion_") in STAGES]:
        pairs = [
            (item.distortion, x, y)
            for item in types
            if (x := item.means[stage]) is not None and (y := item.means["execution"]) is not None
        ]
        if (line := line_of([(x, y) for _, x, y in pairs])) is None:
            continue
        rests = [(name, y - line[0] * x - line[1], y) for name, x, y in pairs]
        deviation = float(np.std([rest for _, rest, _ in rests], ddof=2))
        for name, rest, y in rests:
            if rest < -deviation < 0.0 and y < UNTOUCHED:
                below[name].append(stage)
    return [replace(item, below=tuple(below[item.distortion])) for item in types]


def line_of(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Slope and offset of the line of least squares; None for fewer than three points or without any spread."""
    x, y = (np.array(side, np.float64) for side in (zip(*points, strict=True) if points else ((), ())))
    if len(x) < 3 or float(np.ptp(x)) < 1e-9:
        return None
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    return slope, float(y.mean()) - slope * float(x.mean())


def _claims(coefficients: Iterable[Coefficients]) -> Iterable[PublishedBound]:
    for row in coefficients:
        if row.unit != "type" or row.outcome != "execution":
            continue
        relation, bound = PUBLISHED[row.predictor]
        verdict = "not resolved"
        if row.interval is not None:
            low, high = row.interval
            held = high < bound if relation == "below" else low > bound
            failed = low >= bound if relation == "below" else high <= bound
            verdict = "holds" if held else "does not hold" if failed else verdict
        yield PublishedBound(row.predictor, row.source, relation, bound, row.srcc, row.interval, verdict)


def _metric_rows(trials: Trials, names: Sequence[str]) -> tuple[MetricRow, ...]:
    """Of each unit the metrics, best first, and the stages beside them."""
    rows = []
    for unit in UNITS if names else ():
        found = {name: stage_correlation(trials, name, "execution", unit) for name in [*names, *STAGES]}
        ordered = sorted(names, key=lambda name: (-_or_least(found[name].srcc), name))
        for name in [*ordered, *STAGES]:
            gap = None if name == ordered[0] else difference(trials, ordered[0], name, "execution", unit)
            rows.append(
                MetricRow(
                    name,
                    "stage" if name in STAGES else "metric",
                    unit,
                    found[name].n,
                    found[name].srcc,
                    found[name].interval,
                    gap.value if gap else None,
                    gap.interval if gap else None,
                )
            )
    return tuple(rows)


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value
