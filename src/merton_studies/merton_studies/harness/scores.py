"""The scores of an evaluation: means by answerer and dimension with intervals, and the tables on disk."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from merton.files import write_file
from merton.leaderboard.capabilities import PREDICTIONS
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton_studies.curation.question import Question

SCORES, SUMMARY = "scores.parquet", "scores.json"
OVERALL = "overall"
REASONS = 3
"""Different reasons for questions without a score that are told. Ours."""


@dataclass(frozen=True)
class ScoredAnswer:
    """One answerer and one question.

    Attributes:
        answerer: its name.
        question: asked.
        dimension: that the question counts for.
        prediction: returned by the inference program, "" where it failed.
        score: 0..1; None where there is no answer, or a program failed: neither says how good the answerer is.
        error: why a program failed on the question, or "".
        unasked: why there is no answer, because the answerer failed, was not asked or was cut off, or "".
        cut_off: whether an answer was cut off at its limit of tokens, or ends in its reasoning.
    """

    answerer: str
    question: Question
    dimension: str
    prediction: str
    score: float | None
    error: str = ""
    unasked: str = ""
    cut_off: bool = False


@dataclass(frozen=True)
class Mean:
    """A mean score.

    Attributes:
        mean: 0..1; None without any score.
        interval: 95 % of it (`statistics.means.mean_interval`), as on the board; None without any score.
        n: questions.
        scenes: of these questions.
    """

    mean: float | None
    interval: Interval | None
    n: int
    scenes: int


@dataclass(frozen=True)
class Scores:
    """Means by answerer and dimension.

    Attributes:
        dimensions: answerer to dimension to mean.
        overall: answerer to the mean of its dimensions' means, each counting the same (A2Eval, Table 7).
        failed: answerer to the number of questions that a program failed on.
        unasked: answerer to the number of questions without an answer.
        cut_off: answerer to the number of questions whose answers were cut off.
        cut_off_blank: of these, the number without any answer before the cut.
        made: what they were computed from.
    """

    dimensions: Mapping[str, Mapping[str, Mean]]
    overall: Mapping[str, Mean]
    failed: Mapping[str, int]
    unasked: Mapping[str, int]
    cut_off: Mapping[str, int]
    cut_off_blank: Mapping[str, int]
    made: Mapping[str, Any]


def scores_of(rows: Sequence[ScoredAnswer], made: Mapping[str, Any]) -> Scores:
    """The means of some rows, and what they were `made` from."""
    names = list(dict.fromkeys(row.answerer for row in rows))
    dimensions, overall = {}, {}
    for name in names:
        own = [row for row in rows if row.answerer == name]
        dimensions[name], overall[name] = _means(own)

    def counted(holds: Callable[[ScoredAnswer], object]) -> dict[str, int]:
        return {name: sum(bool(holds(row)) for row in rows if row.answerer == name) for name in names}

    return Scores(
        dimensions,
        overall,
        counted(lambda row: row.error),
        counted(lambda row: row.unasked),
        counted(lambda row: row.cut_off),
        counted(lambda row: row.cut_off and (row.unasked or not row.prediction)),
        made,
    )


def _means(rows: Sequence[ScoredAnswer]) -> tuple[dict[str, Mean], Mean]:
    """The means of one answerer's dimensions, and of these."""
    dimensions = sorted({row.dimension for row in rows})
    answered = [row for row in rows if row.score is not None]
    means = {name: _mean([row for row in answered if row.dimension == name]) for name in dimensions}
    return means, _mean(answered)


def _mean(rows: Sequence[ScoredAnswer]) -> Mean:
    """The mean of the dimensions' means, of rows with a score."""
    if not rows:
        return Mean(None, None, 0, 0)
    score, scene, dimension = (
        np.array(column)
        for column in zip(*((row.score, row.question.unit_of_intervals, row.dimension) for row in rows), strict=True)
    )
    mean = float(np.mean([score[dimension == name].mean() for name in np.unique(dimension)]))
    return Mean(mean, mean_interval(score, scene, dimension), len(rows), len(np.unique(scene)))


def write_predictions(rows: Sequence[ScoredAnswer], out: Path) -> None:
    """Write predictions.parquet: answerer, id, dimension, scene, prediction, score, error, unasked, cut_off."""
    columns = ("answerer", "id", "dimension", "scene", "prediction", "score", "error", "unasked", "cut_off")
    table = [{**vars(row), "id": row.question.id, "scene": row.question.unit_of_intervals} for row in rows]
    _write(out / PREDICTIONS, {name: [row[name] for row in table] for name in columns}, {"score"}, {"cut_off"})


def reasons_of(rows: Sequence[ScoredAnswer], name: str) -> list[tuple[str, int]]:
    """Why an answerer has questions without a score: the `REASONS` commonest reasons, and the number of each."""
    told = [row.unasked or row.error.splitlines()[-1] for row in rows if row.answerer == name and row.score is None]
    return Counter(told).most_common(REASONS)


def write_scores(
    rows: Sequence[ScoredAnswer], scores: Scores, out: Path, failures: Mapping[str, str] | None = None
) -> None:
    """Write scores.parquet, blank where a row has no score, and scores.json.

    Args:
        rows: of the answerers in `scores`.
        scores: see `scores_of`.
        out: folder.
        failures: answerers without any row, to the reason.
    """
    names = list(scores.overall)
    columns: dict[str, list[Any]] = {"agent": names}
    for row in rows:
        columns.setdefault(row.question.id, []).append(row.score)
    _write(out / SCORES, columns, set(columns) - {"agent"})
    found = {
        name: {
            OVERALL: asdict(scores.overall[name]),
            "dimensions": {dimension: asdict(mean) for dimension, mean in scores.dimensions[name].items()},
            "failed": scores.failed[name],
            "unasked": scores.unasked[name],
            "cut_off": scores.cut_off[name],
            "cut_off_blank": scores.cut_off_blank[name],
            "reasons": reasons_of(rows, name),
        }
        for name in names
    }
    summary = {
        "form": "merton scores 1",
        "made": dict(scores.made),
        "answerers": found,
        "failures": dict(failures or {}),
    }
    write_file(out / SUMMARY, (json.dumps(summary, indent=1) + "\n").encode())


def _write(path: Path, columns: Mapping[str, Sequence[Any]], numbers: set[str], flags: Collection[str] = ()) -> None:
    pyarrow = require_pyarrow()
    types = dict.fromkeys(numbers, pyarrow.float64()) | dict.fromkeys(flags, pyarrow.bool_())
    fields = [(name, types.get(name, pyarrow.string())) for name in columns]
    table = pyarrow.Table.from_pydict(dict(columns), schema=pyarrow.schema(fields))
    write_file(path, parquet_bytes(table))
