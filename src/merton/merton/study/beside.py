"""A second score beside that of a stage: slots beside cognition, and decisions in units of the policy's own spread.

Both are computed from what a run recorded, so old runs have them too; ratings do not use them. The slots of two answers
are those of `merton.cognition.slots`. The own spread of a policy is ours, because the decision score has one range,
half a metre, for all policies: of one that only goes near first, every decision is above .98, and those for other
scenes are too. With d the decision score of a trial and e the policy's mean decision score of its undistorted first
chunk for one scene against that for another scene of the same task:

    own spread = 1 - min(1, (1 - d) / (1 - e))        1 is the same decision, 0 as far as that for another scene
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from merton.cognition.slots import slots
from merton.cognition.unanswered import unanswered
from merton.decision.score import score_batch
from merton.results.csv_writer import csv_text
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.study.outputs import BESIDE, Output, references, scene_pairs

LEAST_SPREAD = 1e-3
"""A mean decision score of other scenes above 1 - this leaves nothing to measure in: the policy decides the same."""


@dataclass(frozen=True)
class Spread:
    """How far an agent's undistorted first chunks for two scenes of a task are apart.

    Attributes:
        value: mean of 1 - decision score over pairs of scenes, 0..1; None if it is no unit to measure in.
        reason: why not, as a clause; "" where there is a value.
    """

    value: float | None
    reason: str = ""


@dataclass(frozen=True)
class StageScore:
    """A model's mean of one score of a stage over its distorted trials.

    Attributes:
        stage: "cognition" or "decision".
        name: the stage's own name, or that of the score beside it.
        mean: 0..1; None without a score.
        interval: 95 %, clustered by scene; None without a score.
        trials, scenes: with this score.
        without: distorted trials of the model that have none.
        reason: why those have none; "" if it is not known.
    """

    stage: str
    model: str
    name: str
    mean: float | None
    interval: Interval | None
    trials: int
    scenes: int
    without: int
    reason: str


def scored(outputs: Sequence[Output]) -> list[Output]:
    """The outputs of a run with the scores of `BESIDE` among their scores, where there are any."""
    spread = spreads(outputs)
    return [replace(output, scores=_with_beside(output, spread)) for output in outputs]


def spreads(outputs: Sequence[Output]) -> dict[tuple[str, str], Spread]:
    """Agent and task to the `Spread` of its decisions; each scene is compared with at most ten others."""
    found = {}
    for agent in sorted({output.agent for output in outputs}):
        tasks = references(outputs, agent)
        for task in sorted({output.case.task for output in outputs if output.agent == agent}):
            found[agent, task] = _spread(tasks.get(task, []))
    return found


def stage_scores(outputs: Sequence[Output]) -> dict[str, list[StageScore]]:
    """Stage to the means of its models, by name: of the stage's score, and of that beside it.

    Args:
        outputs: as `scored` gives them.
    """
    spread = spreads(outputs)
    found: dict[str, list[StageScore]] = {}
    for stage, beside in BESIDE.items():
        by_model: dict[str, list[Output]] = {}
        for output in outputs:
            if output.case.level > 0:
                by_model.setdefault(output.models[stage], []).append(output)
        rows = [
            _stage_score(stage, model, name, by_model[model], spread)
            for model in sorted(by_model)
            for name in (stage, beside)
        ]
        if any(row.trials for row in rows):
            found[stage] = rows
    return found


def as_csv(found: Mapping[str, Iterable[StageScore]]) -> str:
    """A table with a line for each `StageScore`; without a score the mean and its interval are empty."""
    rows = []
    for row in (row for rows in found.values() for row in rows):
        numbers = (None, None, None) if row.mean is None or row.interval is None else (row.mean, *row.interval)
        rounded = (value if value is None else round(value, 4) for value in numbers)
        rows.append((row.stage, row.model, row.name, *rounded, row.trials, row.scenes, row.without, row.reason))
    return csv_text(("stage", "model", "score", "mean", "low", "high", "trials", "scenes", "without", "reason"), rows)


def by_trial(outputs: Iterable[Output]) -> dict[str, dict[tuple[str, str], float]]:
    """Each score of `BESIDE` to its values by agent and test case, for a table of trials."""
    found: dict[str, dict[tuple[str, str], float]] = {name: {} for name in BESIDE.values()}
    for output in outputs:
        for stage, name in BESIDE.items():
            if name in output.scores[stage]:
                found[name][output.agent, output.case.id] = output.scores[stage][name]
    return found


def _with_beside(output: Output, spread: Mapping[tuple[str, str], Spread]) -> dict[str, dict[str, float]]:
    unit, decision = spread[output.agent, output.case.task].value, output.scores.get("decision", {}).get("decision")
    values: dict[str, float | None] = {
        "slots": slots(*output.answers) if output.answers else None,
        "own_spread": None if unit is None or decision is None else 1.0 - min(1.0, (1.0 - decision) / unit),
    }
    found = {stage: dict(output.scores.get(stage, {})) for stage in BESIDE}
    for stage, name in BESIDE.items():
        if (value := values[name]) is not None:
            found[stage][name] = value
    return found


def _spread(scenes: Sequence[Output]) -> Spread:
    chunks = [(one.chunks[0], other.chunks[0]) for one, other in scene_pairs(scenes) if one.chunks and other.chunks]
    alike = [(one, other) for one, other in chunks if one.frame == other.frame]
    if not chunks and sum("decision" in one.scores.get("decision", {}) for one in scenes) > 1:
        return Spread(None, "its decisions are rows, of which no spread is computed")
    if not alike:
        return Spread(None, "its task has no two scenes with an undistorted decision")
    decision = score_batch([one for one, _ in alike], [other for _, other in alike]).total
    apart = float(np.mean(1.0 - decision))
    return Spread(apart) if apart >= LEAST_SPREAD else Spread(None, "it decides the same in all scenes of the task")


def _stage_score(
    stage: str, model: str, name: str, mine: Sequence[Output], spread: Mapping[tuple[str, str], Spread]
) -> StageScore:
    there = [output for output in mine if name in output.scores[stage]]
    values, scenes = [output.scores[stage][name] for output in there], [output.case.scene for output in there]
    missing = [output for output in mine if name not in output.scores[stage]]
    reasons = dict.fromkeys(_reason(name, output, spread) for output in missing)
    return StageScore(
        stage,
        model,
        name,
        float(np.mean(values)) if values else None,
        mean_interval(values, scenes) if values else None,
        len(values),
        len(set(scenes)),
        len(missing),
        "; ".join(reason for reason in reasons if reason),
    )


def _reason(name: str, output: Output, spread: Mapping[tuple[str, str], Spread]) -> str:
    """Why a trial has no score of this name; "" if it is not known."""
    if name == "own_spread":
        return spread[output.agent, output.case.task].reason or "no decision to compare"
    if name == "slots" and output.answers and not any(unanswered(*output.answers)):
        return "neither answer names a thing or an action of the scene"
    return "no answer" if name in ("slots", "cognition") else "no decision to compare"
