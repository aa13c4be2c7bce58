"""The numbers behind the sections of the report: curves, heat maps, failures, mastery, the study of models."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from merton.errors import MODEL_ERRORS
from merton.leaderboard.snapshot.contents import AgentRow, CaseRow, Standing
from merton.rating.predictions import Gap, predicted_score
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.text import printable
from merton.statistics.means import mean, mean_scatter
from merton.study import figures, models

DIMENSION_LABELS = {
    "cognition": "cognition, total",
    "bleu": "BLEU (precision)",
    "rouge_l": "ROUGE-L (recall)",
    "cider": "CIDEr (semantics)",
    "slots": "slots (named alike)",
    "decision": "decision, total",
    "position": "position",
    "rotation": "rotation",
    "state": "state (gripper)",
    "own_spread": "own spread",
}
"""Dimension to how the report calls it; in brackets the paper's word."""


@dataclass(frozen=True)
class Panel:
    """One agent's heat map: undistorted score; rows of (distortion, cells of levels 1..5), each a Point or None."""

    agent: str
    reference: float | None
    rows: tuple[tuple[str, tuple[figures.Point | None, ...]], ...]


@dataclass(frozen=True)
class ModelStudy:
    """One stage of the study of models.

    Attributes:
        dimensions: the total, the three dimensions and the score beside the total, as far as there are scores.
        charts: model to its line for each dimension.
        profiles: dimension to its models.
        correlations: dimension, totals apart, to its matrix; empty for fewer than two models.
    """

    dimensions: tuple[str, ...]
    charts: dict[str, list[figures.Series]]
    profiles: dict[str, list[models.Profile]]
    correlations: dict[str, models.Correlation]


def model_studies(table: models.ScoreTable) -> dict[str, ModelStudy]:
    """The study of models by stage, of the stages that have scores."""
    studies = {}
    for stage, dimensions in models.stages(table).items():
        profiles = {dimension: models.profiles(table, dimension) for dimension in dimensions}
        charts: dict[str, list[figures.Series]] = {}
        for index, (dimension, found) in enumerate(profiles.items()):
            for profile in found:
                points = (
                    figures.Point(level, cell.mean, None, cell.n)
                    for level, cell in enumerate(profile.levels)
                    if cell is not None
                )
                line = figures.Series(DIMENSION_LABELS[dimension], index, tuple(points))
                charts.setdefault(profile.model, []).append(line)
        correlations = {
            dimension: models.correlation(table, dimension)
            for dimension in dimensions
            if dimension != stage and len(profiles[dimension]) > 1
        }
        studies[stage] = ModelStudy(dimensions, charts, profiles, correlations)
    return studies


def rating(standing: Standing | None) -> float:
    """The rating of a player that has one."""
    assert standing is not None
    return standing.mean


def distortions(records: Iterable[TrialRecord]) -> list[str]:
    """The distortions of a run by name, the undistorted reference apart."""
    return sorted({record.case.distortion for record in records if not record.case.is_reference})


Scored = Sequence[tuple[str, float]]
"""Scene and score of trials."""


def _point(level: int, scored: Scored) -> figures.Point | None:
    if not scored:
        return None
    scenes, scores = [scene for scene, _ in scored], [score for _, score in scored]
    count = len(set(scenes))
    error = math.sqrt(mean_scatter(scores, scenes).variance) if count > 1 else None
    return figures.Point(level, float(np.mean(scores)), error, len(scores), count)


def score_of(record: TrialRecord, stage: str) -> float | None:
    """A trial's score of a stage; of success 100 or 0."""
    if stage == "success":
        return None if record.success is None else 100.0 * record.success
    score: float | None = getattr(record, stage)
    return score


def of_models(records: Iterable[TrialRecord], models: Mapping[str, str]) -> list[TrialRecord]:
    """The cognition of models in place of that of agents: a record for each model and case, whose agent is the model.

    Agents that share a VLM show it the same images, so their trials of one case count as one, with their mean score.

    Args:
        models: agent to the name of its VLM; an agent that is not in it stands for itself.
    """
    found: dict[tuple[str, TestCase], list[TrialRecord]] = {}
    for record in records:
        if record.cognition is not None:
            found.setdefault((models.get(record.agent, record.agent), record.case), []).append(record)
    return [
        replace(same[0], agent=model, cognition=mean(record.cognition for record in same))
        for (model, _), same in sorted(found.items())
    ]


def users(models: Mapping[str, str], agents: Iterable[str]) -> dict[str, list[str]]:
    """Model to its agents, models by name."""
    found: dict[str, list[str]] = {}
    for agent in agents:
        found.setdefault(models.get(agent, agent), []).append(agent)
    return dict(sorted(found.items()))


def by_player(records: Iterable[TrialRecord]) -> dict[tuple[str, str | None], list[TrialRecord]]:
    """The trials of each agent, under (agent, None), and its undistorted ones with those of each distortion."""
    whole: dict[tuple[str, str | None], list[TrialRecord]] = {}
    references: dict[str, list[TrialRecord]] = {}
    distorted: dict[tuple[str, str | None], list[TrialRecord]] = {}
    for record in records:
        whole.setdefault((record.agent, None), []).append(record)
        if record.case.is_reference:
            references.setdefault(record.agent, []).append(record)
        else:
            distorted.setdefault((record.agent, record.case.distortion), []).append(record)
    names = {name for _, name in distorted}
    parts = {
        (agent, name): references.get(agent, []) + distorted.get((agent, name), [])
        for agent, _ in whole
        for name in names
    }
    return whole | parts


def series(agent: str, index: int, records: Iterable[TrialRecord], stage: str) -> figures.Series:
    """An agent's mean score of a stage by level, over its own of these trials."""
    scores: dict[int, list[tuple[str, float]]] = {level: [] for level in figures.LEVELS}
    for record in records:
        score = score_of(record, stage) if record.agent == agent else None
        if score is not None:
            scores[record.case.level].append((record.case.scene, score))
    points = (_point(level, found) for level, found in scores.items())
    return figures.Series(printable(agent, 40), index, tuple(point for point in points if point is not None))


def panels(records: Sequence[TrialRecord], agents: Sequence[str], stage: str) -> list[Panel]:
    """A heat map for each agent that has scores of the stage."""
    scores: dict[tuple[str, str, int], list[tuple[str, float]]] = {}
    for record in records:
        score = score_of(record, stage)
        if score is not None:
            key = (record.agent, record.case.distortion, record.case.level)
            scores.setdefault(key, []).append((record.case.scene, score))
    scored, names = {agent for agent, _, _ in scores}, distortions(records)
    return [
        Panel(
            agent,
            mean(score for _, score in scores.get((agent, "reference", 0), [])),
            tuple(
                (name, tuple(_point(level, scores.get((agent, name, level), [])) for level in figures.LEVELS[1:]))
                for name in names
            ),
        )
        for agent in agents
        if agent in scored
    ]


GRAVE = (Outcome.EMERGENCY_STOP, Outcome.INVALID_ACTION, Outcome.INFRASTRUCTURE)
"""Outcomes that are listed first."""


def gravest_first(records: Iterable[TrialRecord], subjects: Collection[str]) -> list[TrialRecord]:
    """All trials: those of `subjects` first, the rarer and graver outcomes before failures, successes last; those in
    which a model failed before other successes."""
    order = [*GRAVE, Outcome.ABSTAINED, Outcome.FAILURE, Outcome.SUCCESS]

    def key(record: TrialRecord) -> tuple[object, ...]:
        model_failed = record.error_code in MODEL_ERRORS
        return record.agent not in subjects, order.index(record.outcome), not model_failed, record.id

    return sorted(records, key=key)


def mastery(agents: Iterable[AgentRow], hardest_first: Sequence[CaseRow]) -> list[tuple[str, float, tuple[Gap, ...]]]:
    """Agent, predicted score on the hardest case, and the gaps to mastery."""
    if not hardest_first:
        return []
    hardest = rating(hardest_first[0].standing)
    return [(row.id, predicted_score(row.standing.mean, hardest), row.gaps) for row in agents if row.standing]
