"""The study of models (Embodied-IQA, Fig. 3 and 4): scores by level, and rank correlations between models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.decision.score import Normalisation, compare, normalised
from merton.errors import InputError
from merton.results.tables import read_columns
from merton.statistics.correlation import alike_beside, average_with_interval, correlations_with_intervals
from merton.statistics.intervals import Interval
from merton.study.outputs import BESIDE, DIMENSIONS, Output
from merton.world.action import ActionChunk

COLUMNS = ("model", "scene", "image", "task", "dimension", "level", "score")
LEVELS = (1, 2, 3, 4, 5)
HIGHEST_LEVEL = 20
"""Of distortions that somebody else made; Merton's have `LEVELS`."""
UNORDERED = 10
"""Models that a matrix shows by name; more are ordered so that those that agree stand side by side."""


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models, a row each; all columns have shape (n,).

    As a Parquet file it has the columns of this name, others are ignored.

    Attributes:
        model: name of the model (text).
        scene: the unit that was sampled (text): images of one scene are alike. Of a run: as in `TestCase.scene`.
        image: the scene and distortion (text); image, task and level together identify the image pair of a score, so
            two models saw the same pair if all three are equal. Of a run: "<scene>.<distortion>".
        task: name of the task (text).
        dimension: "bleu", "rouge_l", "cider", "position", "rotation", "state", the name of a stage for its total, or
            that of the score beside it, "slots" or "own_spread".
        level: level of the distortion, 1 and up, 5 at most of Merton's; 0 for the undistorted image (whole number).
        score: 0..1, CIDEr too.
    """

    model: NDArray[np.str_]
    scene: NDArray[np.str_]
    image: NDArray[np.str_]
    task: NDArray[np.str_]
    dimension: NDArray[np.str_]
    level: NDArray[np.int64]
    score: NDArray[np.float64]


@dataclass(frozen=True)
class TableCell:
    """Mean of `n` scores, 0..1."""

    mean: float
    n: int


@dataclass(frozen=True)
class Profile:
    """One model in one dimension.

    Attributes:
        levels: mean score at the levels from 0 to the highest of the table, at least 5; None where there is none.
        distorted: over all but level 0.
    """

    model: str
    levels: tuple[TableCell | None, ...]
    distorted: TableCell | None


@dataclass(frozen=True)
class Correlation:
    """The agreement of models on the images that cost them score, in one dimension.

    Attributes:
        models: their names, sorted; more than `UNORDERED` in an order in which those that agree stand side by side.
        matrix: (models, models) Spearman's rank correlation over the distorted images both were shown, -1..1; NaN
            where a model's scores do not vary, or fewer than `correlation.MINIMUM_SHARED` images are shared.
        intervals: (models, models, 2) of the matrix, 95 %, clustered by scene; NaN where there is none.
        average: of the pairs of different models; NaN if none is defined.
        average_interval: its 95 % interval, clustered by scene; None where there is none.
        scenes: of the images.
    """

    models: tuple[str, ...]
    matrix: NDArray[np.float64]
    intervals: NDArray[np.float64]
    average: float
    average_interval: Interval | None
    scenes: int

    @property
    def pairs(self) -> list[tuple[str, str, float, Interval | None]]:
        """Of every two different models the names, the correlation, and its interval, None where there is none."""
        found = []
        for one, other in zip(*np.triu_indices(len(self.models), 1), strict=True):
            low, high = self.intervals[one, other].tolist()
            interval = None if np.isnan(low) else Interval(low, high)
            found.append((self.models[one], self.models[other], float(self.matrix[one, other]), interval))
        return found


def from_outputs(outputs: Iterable[Output]) -> ScoreTable:
    """The table of a run. A model of several agents has a row for each of them."""
    rows = [
        (
            output.models[stage],
            output.case.scene,
            f"{output.case.seed}.{output.case.distortion}",
            output.case.task,
            name,
            level,
            score,
        )
        for output in outputs
        for level in [output.case.level]
        for stage, scores in output.scores.items()
        for name, score in scores.items()
    ]
    return _table([[row[index] for row in rows] for index in range(len(COLUMNS))])


def from_parquet(path: Path | str) -> ScoreTable:
    """The table in a Parquet file (or a folder of them), as annotation writes it.

    Raises:
        InputError: no such file, a column is missing, or a score or level is out of range.
        MissingDependencyError: pyarrow is not installed.
    """
    return _table(read_columns(Path(path), COLUMNS))


def profiles(table: ScoreTable, dimension: str) -> list[Profile]:
    """Every model's mean score by level, models sorted by name; empty if the dimension is not in the table."""
    levels = range(max(LEVELS[-1], int(table.level.max(initial=0))) + 1)
    found = []
    for model in np.unique(table.model[table.dimension == dimension]).tolist():
        rows = (table.dimension == dimension) & (table.model == model)
        by_level = tuple(_cell(table.score[rows & (table.level == level)]) for level in levels)
        found.append(Profile(model, by_level, _cell(table.score[rows & (table.level > 0)])))
    return found


def correlation(table: ScoreTable, dimension: str) -> Correlation:
    """Spearman's rank correlation of every two models over the distorted images; repeated ones are averaged."""
    rows = (table.dimension == dimension) & (table.level > 0)
    models, which = np.unique(table.model[rows], return_inverse=True)
    sample = _samples(table, rows)
    shape = (len(models), int(sample.max(initial=-1)) + 1)
    place = np.ravel_multi_index((which, sample), shape) if len(sample) else sample
    counts = np.bincount(place, minlength=shape[0] * shape[1])
    sums = np.bincount(place, weights=table.score[rows], minlength=shape[0] * shape[1])
    scores = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0).reshape(shape)
    scenes = np.empty(shape[1], table.scene.dtype)
    scenes[sample] = table.scene[rows]
    return correlation_of(models.tolist(), scores, scenes)


def correlation_of(models: Sequence[str], scores: NDArray[np.float64], scenes: NDArray[np.str_]) -> Correlation:
    """The same from scores (models, images), NaN where a model has none, and the scene of each image (images,)."""
    matrix, intervals = correlations_with_intervals(scores, scenes)
    average, average_interval = average_with_interval(scores, scenes)
    order = alike_beside(matrix) if len(models) > UNORDERED else list(range(len(models)))
    names = tuple(models[row] for row in order)
    again = np.ix_(order, order)
    return Correlation(names, matrix[again], intervals[again], average, average_interval, len(np.unique(scenes)))


def decision_by_study_range(outputs: Iterable[Output]) -> list[tuple[str, dict[str, float]]]:
    """Each model's mean decision score with every dimension normalised by the study's own extremes, as in the paper.

    Over the distorted trials that kept both chunks of Merton's own deltas; "decision" is the total. Empty if there are
    none.
    """
    models: list[str] = []
    pairs: list[tuple[ActionChunk, ActionChunk]] = []
    for output in outputs:
        chunks = output.chunks if output.case.level > 0 else None
        if chunks and chunks[0].frame == chunks[1].frame and chunks[0].spread is None:
            models.append(output.models["decision"])
            pairs.append(chunks)
    if not pairs:
        return []
    comparison = compare([one for one, _ in pairs], [other for _, other in pairs])
    scores = normalised(comparison, Normalisation.of_study(comparison))
    values = {"decision": scores.total, **{name: getattr(scores, name) for name in DIMENSIONS["decision"]}}
    names = np.array(models)
    return [
        (model, {name: float(found[names == model].mean()) for name, found in values.items()})
        for model in sorted(set(models))
    ]


def stages(table: ScoreTable) -> dict[str, tuple[str, ...]]:
    """Stage to those of its dimensions that are in the table: its total first, the score beside it last."""
    there = set(np.unique(table.dimension).tolist())
    named = {stage: (stage, *names, BESIDE[stage]) for stage, names in DIMENSIONS.items()}
    found = {stage: tuple(name for name in names if name in there) for stage, names in named.items()}
    return {stage: names for stage, names in found.items() if names}


def _table(columns: Sequence[Sequence[Any]]) -> ScoreTable:
    *names, levels, scores = columns
    model, scene, image, task, dimension = (np.array([str(value) for value in column], np.str_) for column in names)
    try:
        level, score = np.array(levels, dtype=np.int64), np.array(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"levels must be whole numbers and scores numbers: {error}") from None
    if ((level < 0) | (level > HIGHEST_LEVEL)).any():
        raise InputError(f"levels must be 0 .. {HIGHEST_LEVEL}, got {level.min()} .. {level.max()}")
    if not ((score >= 0) & (score <= 1)).all():
        raise InputError(f"scores must be in 0 .. 1 (CIDEr divided by 10), got {score.min():g} .. {score.max():g}")
    return ScoreTable(model, scene, image, task, dimension, level, score)


def _cell(scores: NDArray[np.float64]) -> TableCell | None:
    return TableCell(float(scores.mean()), len(scores)) if len(scores) else None


def _samples(table: ScoreTable, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each combination of image, task and level."""
    number = table.level[rows]
    for column in (table.image, table.task):
        _, values = np.unique(column[rows], return_inverse=True)
        _, number = np.unique(number * (int(values.max(initial=0)) + 1) + values, return_inverse=True)
    return number
