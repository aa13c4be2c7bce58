"""Scores of models on a curated benchmark, on the whole pool and by people, side by side (A2Eval, table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.leaderboard.capabilities import PREDICTIONS, question_scores
from merton.results.tables import name_in, number_in, read_rows
from merton.statistics.ranking import Difference, RankAgreement, agreements, differences, models_needed, score_draws

Floats = NDArray[np.float64]

OF_QUESTIONS = ("question_id", "scene", "dimension")
CURATED, FULL, HUMAN = "curated", "full", "people"
WANTED = 0.02
"""The difference of two correlations that `Comparison.needed` is about: the one that the paper reports."""
_FAR = 1e9


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models.

    Attributes:
        models: names, at least one.
        values: (models, questions), or (models, 1) scores as a whole.
        scenes, dimensions: (questions,); empty for scores as a whole.
        left_out: questions that some model has no score of; they are not in `values`.
    """

    models: tuple[str, ...]
    values: Floats
    scenes: tuple[str, ...]
    dimensions: tuple[str, ...]
    left_out: int = 0

    @property
    def has_questions(self) -> bool:
        """Whether there is more than scores as a whole."""
        return bool(self.scenes)


@dataclass(frozen=True)
class Comparison:
    """Columns of scores, compared.

    Attributes:
        models: that all columns have, best on the curated benchmark first.
        columns: `CURATED`, and `FULL` and `HUMAN` where they are given: scores in the order of `models`.
        agreements: of each two columns.
        gains: of the agreement with people, curated less full; empty without both.
        needed: independent models that would resolve a gain of `WANTED`; None without both, or if none could have it.
        questions: of the curated and the full benchmark; 0 for scores as a whole.
    """

    models: tuple[str, ...]
    columns: Mapping[str, Floats]
    agreements: Mapping[tuple[str, str], Sequence[RankAgreement]]
    gains: Sequence[Difference]
    needed: int | None
    questions: Mapping[str, int]


def read_score_table(path: Path) -> ScoreTable:
    """The scores in a folder of `merton curate evaluate`, or in a table.

    A table has the columns model and score: a score as a whole, in any unit; or these and question_id, scene and
    dimension, of which the last two may be left out: a score of each question.

    Raises:
        InputError: no such folder or table, a wrong row, or one that stands twice; with the line.
    """
    if path.is_dir() or path.name == PREDICTIONS:
        file = path / PREDICTIONS if path.is_dir() else path
        if not file.is_file():
            raise InputError(f"{path} has no {PREDICTIONS}: name a folder of `merton curate evaluate`, or a table")
        return _table(
            file, [(one.agent, one.item, one.scene, one.dimension, one.score) for one in question_scores([file])]
        )
    found, whole = [], []
    for where, row in read_rows(path, ("model", "score"), optional=OF_QUESTIONS):
        model, score = name_in(where, row, "model"), number_in(where, row, "score", -_FAR, _FAR)
        if "question_id" in row:
            name = name_in(where, row, "question_id")
            scene = str(row.get("scene") or "").strip() or name
            found.append((model, name, scene, str(row.get("dimension") or "").strip(), score))
        else:
            whole.append((model, score))
        if found and whole:
            raise InputError(f"{where}: has no question_id, but rows before it have")
    if found:
        return _table(path, found)
    if not whole:
        raise InputError(f"{path}: has no score")
    models = [model for model, _ in whole]
    twice = [model for place, model in enumerate(models) if model in models[:place]]
    if twice:
        raise InputError(f"{path}: model {twice[0]!r} stands twice; scores of questions need a column question_id")
    return ScoreTable(tuple(models), np.array([[score] for _, score in whole]), (), ())


def compare(
    curated: ScoreTable, full: ScoreTable | None = None, human: Mapping[str, float] | None = None, seed: int = 0
) -> Comparison:
    """Each two columns of scores, over the models that all of them have.

    The score on the curated benchmark is the mean of its dimensions' means (A2Eval, table 7), the one on the full pool
    the mean over its questions, since that is how a pool without dimensions is scored.

    Raises:
        InputError: neither a full pool nor people to compare with, or fewer than three models in common.
    """
    names = [name for name in curated.models if full is None or name in full.models]
    names = [name for name in names if human is None or name in human]
    if full is None and human is None:
        raise InputError("there is nothing to compare the scores with: give scores on the full pool, or ratings")
    if len(names) < 3:
        raise InputError(f"a ranking needs at least 3 models that all tables have, not {len(names)}")
    tables = {CURATED: curated} | ({FULL: full} if full else {})
    scenes = sorted({scene for table in tables.values() for scene in table.scenes})
    draws = {name: _draws(table, names, scenes, name == CURATED, seed) for name, table in tables.items()}
    columns = {name: drawn[0] for name, drawn in draws.items()}
    if human is not None:
        columns[HUMAN] = np.array([human[name] for name in names])
        draws[HUMAN] = np.tile(columns[HUMAN], (2, 1))
    pairs = [(CURATED, FULL), (CURATED, HUMAN), (FULL, HUMAN)]
    found = {}
    for one, other in pairs:
        if one in columns and other in columns:
            drawn = _paired(draws[one], draws[other])
            found[one, other] = agreements(columns[one], columns[other], drawn, seed)
    gains: list[Difference] = []
    needed = None
    if full is not None and human is not None:
        gains = differences(columns[CURATED], columns[FULL], columns[HUMAN], seed)
        best = max(found[CURATED, HUMAN][0].value or 0.0, found[FULL, HUMAN][0].value or 0.0)
        needed = models_needed(WANTED, best, found[CURATED, FULL][0].value or 0.0, seed=seed)
    order = np.argsort(-columns[CURATED], kind="stable")
    return Comparison(
        tuple(names[place] for place in order),
        {name: column[order] for name, column in columns.items()},
        found,
        gains,
        needed,
        {name: len(table.scenes) for name, table in tables.items()},
    )


def _table(path: Path, rows: Sequence[tuple[str, str, str, str, float | None]]) -> ScoreTable:
    """Of a score of each model and question; questions that some model has no score of are left out."""
    models = list(dict.fromkeys(row[0] for row in rows))
    about: dict[str, tuple[str, str]] = {}
    scored: dict[tuple[str, str], float] = {}
    for model, name, scene, dimension, score in rows:
        if about.setdefault(name, (scene, dimension)) != (scene, dimension):
            raise InputError(f"{path}: question {name!r} has two scenes or dimensions")
        if (model, name) in scored:
            raise InputError(f"{path}: model {model!r} has two scores of question {name!r}")
        scored[model, name] = np.nan if score is None else score
    names = sorted(about)
    values = np.array([[scored.get((model, name), np.nan) for name in names] for model in models])
    kept = np.flatnonzero(~np.isnan(values).any(axis=0)).tolist() if rows else []
    if not kept:
        raise InputError(f"{path}: no question has a score of every model")
    return ScoreTable(
        tuple(models),
        values[:, kept],
        tuple(about[names[place]][0] for place in kept),
        tuple(about[names[place]][1] for place in kept),
        len(names) - len(kept),
    )


def _draws(table: ScoreTable, models: Sequence[str], scenes: Sequence[str], by_dimension: bool, seed: int) -> Floats:
    """(1 + draws, models) scores, with scenes drawn from all of `scenes`; (2, models) of scores as a whole."""
    values = table.values[[table.models.index(model) for model in models]]
    if not table.has_questions:
        return np.tile(values[:, 0], (2, 1))
    rest = sorted(set(scenes) - set(table.scenes))
    padded = np.hstack([values, np.full((len(models), len(rest)), np.nan)])
    groups = [*table.dimensions, *([table.dimensions[0]] * len(rest))] if by_dimension else None
    return score_draws(padded, [*table.scenes, *rest], groups, seed)


def _paired(one: Floats, other: Floats) -> tuple[Floats, Floats] | None:
    """Draws of the same length; a column that does not scatter stays as it is; None where neither scatters."""
    length = max(len(one), len(other))
    if length == 2:
        return None
    first, second = (side if len(side) == length else np.tile(side[0], (length, 1)) for side in (one, other))
    return first, second
