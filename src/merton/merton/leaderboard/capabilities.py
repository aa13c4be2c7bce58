"""A board of models by capability from the scores of single questions, as `merton curate evaluate` writes them.

A dimension is the mean score of its questions, the total the mean of the dimensions, each counting the same (A2Eval,
Table 7; Embodied Arena's rule for capabilities). Questions about one scene are alike: intervals are clustered by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.errors import InputError
from merton.leaderboard.board import Board, BoardCell, BoardRow, missing_cell, ranked
from merton.results.tables import read_columns
from merton.statistics.means import mean_interval

MAXIMUM = 100.0
PREDICTIONS = "predictions.parquet"
"""The file of an evaluation with a row for each model and question."""
COLUMNS = ("answerer", "id", "dimension", "scene", "score")


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """The score of one model for one question.

    Attributes:
        agent: the model.
        item: id of the question.
        dimension: that it counts for.
        scene: that it is about.
        score: 0..1; None where the model could not be asked.
    """

    agent: str
    item: str
    dimension: str
    scene: str
    score: float | None


def question_scores(folders: Sequence[Path]) -> list[QuestionScore]:
    """The scores in folders of `merton curate evaluate`, or in their `PREDICTIONS`.

    Raises:
        InputError: a folder without them, a score that is not in 0..1, or a model that has a question twice.
        MissingDependencyError: pyarrow is not installed.
    """
    found: dict[tuple[str, str], QuestionScore] = {}
    dimensions: dict[str, str] = {}
    for folder in folders:
        file = folder / PREDICTIONS if folder.is_dir() else folder
        for agent, item, dimension, scene, score in zip(*read_columns(file, COLUMNS), strict=True):
            if score is not None and not 0.0 <= score <= 1.0:
                raise InputError(f"{file}: {agent!r} has the score {score} for {item!r}; it must be from 0 to 1")
            if (agent, item) in found:
                raise InputError(f"{file}: {agent!r} has the question {item!r} twice; leave one")
            if dimensions.setdefault(item, dimension) != dimension:
                raise InputError(f"{file}: the question {item!r} is of {dimension!r} here and of {dimensions[item]!r}")
            found[agent, item] = QuestionScore(agent, item, dimension, scene, score)
    if not found:
        raise InputError("there is no score of any question")
    return list(found.values())


def capability_board(scores: Iterable[QuestionScore]) -> Board:
    """Models against dimensions, in percent; a cell is missing where a model lacks a question that another has."""
    by_agent: dict[str, list[QuestionScore]] = {}
    items: dict[str, set[str]] = {}
    for one in sorted(scores, key=lambda score: (score.agent, score.dimension, score.item)):
        by_agent.setdefault(one.agent, []).append(one)
        items.setdefault(one.dimension, set()).add(one.item)
    columns = sorted(items)
    rows = []
    for agent, own in by_agent.items():
        cells = [_cell([one for one in own if one.dimension == name], len(items[name])) for name in columns]
        lacking = [f"{name} ({cell.missing})" for name, cell in zip(columns, cells, strict=True) if cell.score is None]
        rows.append(
            BoardRow(agent, None, missing_cell(f"lacks {lacking[0]}") if lacking else _total(own), tuple(cells))
        )
    note = (
        "A dimension is the mean score of its questions in percent, the total the mean of the dimensions; intervals "
        "are clustered by scene."
    )
    return Board("capabilities", "Capabilities", note, tuple(columns), ranked(rows), MAXIMUM)


def _cell(scores: Sequence[QuestionScore], wanted: int) -> BoardCell:
    known = [one.score for one in scores if one.score is not None]
    if len(known) < wanted:
        return missing_cell(f"{wanted - len(known)} of {wanted} questions missing", len(known))
    return _shown(math.fsum(known) / len(known), scores, None)


def _total(scores: Sequence[QuestionScore]) -> BoardCell:
    groups: dict[str, list[float]] = {}
    for one in scores:
        groups.setdefault(one.dimension, []).append(one.score or 0.0)
    mean = math.fsum(math.fsum(group) / len(group) for group in groups.values()) / len(groups)
    return _shown(mean, scores, [one.dimension for one in scores])


def _shown(mean: float, scores: Sequence[QuestionScore], columns: Sequence[str] | None) -> BoardCell:
    scenes = [one.scene for one in scores]
    interval = mean_interval([one.score or 0.0 for one in scores], scenes, columns)
    return BoardCell(MAXIMUM * mean, interval.scaled(MAXIMUM), len(scores), scenes=len(set(scenes)))
