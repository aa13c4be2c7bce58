"""Ways to sample compared on one pool (A2Eval, Table 4): what each covers, repeats and says of models.

The paper compares three, one draw of each, by rank correlations alone and without intervals. Here each is drawn with
many seeds. Of a drawn sample:

- distance: of a question of the pool to the nearest kept question of its dimension, 0 for a kept one and 2, the most
  there is, where its dimension has none; the mean of the dimensions' means.
- twins apart: share of the planted pairs that are not both kept.
- like the questions: Spearman's correlation, over models, of their score on the sample and their mean score on all
  questions of the pool, each counting the same (the paper's "source").
- like the dimensions: the same with the mean of the dimensions' means of the pool.

A model's score on a sample is the mean of its dimensions' means, or, for ways that know no dimensions, the mean of its
questions. "Other" is left out throughout. Intervals hold the middle 95 % of the seeds: they say what the draw does, not
what other questions or other models would do, for which there is `merton curate ranking`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.progress import Step, quiet
from merton.results.matrix import read_matrix
from merton.statistics.coefficients import srcc
from merton.statistics.intervals import Interval
from merton.statistics.resampling import interval
from merton_studies.curation.assignment import entropy
from merton_studies.curation.embedding import Embeddings
from merton_studies.curation.pool import Pool
from merton_studies.curation.redundancy import planted, without_restatements
from merton_studies.curation.sampling import STRATEGIES, UNSEEDED, Vectors, one_thread, pair_distances, sample
from merton_studies.curation.taxonomy import OTHER

Floats = NDArray[np.float64]

THINNED = "diverse, restatements removed"
"""The strategy diverse, after `redundancy.without_restatements`."""
UNIFORM = "dimension"
"""The strategy that the others' distances are compared with, seed by seed."""
_WITHOUT_DIMENSIONS = ("proportional", "random")
_FARTHEST = 2.0
_BLOCK = 512


@dataclass(frozen=True)
class Drawn:
    """A statistic of a strategy.

    Attributes:
        mean: over the seeds; None where it is undefined.
        interval: the middle 95 % of the seeds; None for one draw, or where all are equal.
    """

    mean: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Ablated:
    """A strategy.

    Attributes:
        name: one of `STRATEGIES`, or `THINNED`.
        draws: seeds; 1 for a strategy that has none.
        kept: questions.
        entropy: of the kept questions by dimension, 0..1: 1 is even.
        distance: see the top of this file, 0..2.
        better: share of the seeds with a smaller distance than `UNIFORM` of that seed.
        apart: share of the planted pairs; undefined without any.
        like_questions, like_dimensions: -1..1; undefined without scores.
    """

    name: str
    draws: int
    kept: Drawn
    entropy: Drawn
    distance: Drawn
    better: float
    apart: Drawn
    like_questions: Drawn
    like_dimensions: Drawn


def ablate(
    pool: Pool,
    embeddings: Embeddings,
    assigned: Sequence[str],
    k: int,
    seeds: int,
    scores: Floats | None = None,
    step: Step = quiet,
) -> list[Ablated]:
    """Every strategy with seeds 0, 1, ...; then equation 5 without restatements.

    Args:
        pool: to sample from.
        embeddings: of it.
        assigned: (n,) dimension of each question.
        k: most that are kept of a dimension.
        seeds: how many, at least 1.
        scores: (models, n) of each question; NaN where a model has none.
        step: shows the progress of sampling and of comparing.

    Raises:
        InputError: a number out of range, or inputs of different lengths.
        MissingDependencyError: scikit-learn is not installed.
    """
    if seeds < 1:
        raise InputError(f"at least one seed is needed, got {seeds}")
    if scores is not None and scores.shape[1] != len(assigned):
        raise InputError(f"{len(assigned)} questions are assigned, but {scores.shape[1]} have scores")
    drawn = _samples(pool, embeddings, assigned, k, seeds, step)
    distances = _distances(assigned, embeddings.vectors, drawn, step)
    found = []
    for name, kept in drawn.items():
        dimension = np.asarray(assigned, str)
        evenness = [entropy(list(_counts(dimension[each], assigned).values())) for each in kept]
        twins = [planted(pool, each.tolist()).avoided for each in kept]
        liked = _likeness(scores, dimension, kept, name not in _WITHOUT_DIMENSIONS)
        found.append(
            Ablated(
                name,
                len(kept),
                _over_seeds([float(len(each)) for each in kept]),
                _over_seeds(evenness),
                _over_seeds(distances[name]),
                float(np.mean(distances[name] < distances[UNIFORM][: len(kept)])),
                _over_seeds([np.nan if share is None else share for share in twins]),
                _over_seeds(liked[0]),
                _over_seeds(liked[1]),
            )
        )
    return found


def read_pool_scores(path: Path, ids: Sequence[str]) -> tuple[list[str], Floats]:
    """Names of the models, and their (models, n) scores of the questions with these ids, NaN where one has none.

    Args:
        path: scores.parquet of `merton curate evaluate`, or another response matrix with the questions as columns.
        ids: of the pool's questions, in order.

    Raises:
        InputError: no such matrix, or one without some of the questions.
        MissingDependencyError: it is Parquet and pyarrow is not installed.
    """
    matrix = read_matrix(path)
    place = {name: number for number, name in enumerate(ids)}
    there = set(matrix.cases)
    if lacking := [name for name in ids if name not in there]:
        raise InputError(
            f"{path} has no column {lacking[0]!r}, and {len(lacking) - 1} more are missing: evaluate the whole pool"
        )
    models = [agent.id for agent in matrix.agents]
    row = {model: number for number, model in enumerate(models)}
    scores = np.full((len(models), len(ids)), np.nan)
    for model, question, score in matrix.cells:
        if question in place:
            scores[row[model], place[question]] = score
    return models, scores


def _samples(
    pool: Pool, embeddings: Embeddings, assigned: Sequence[str], k: int, seeds: int, step: Step
) -> dict[str, list[NDArray[np.intp]]]:
    """Name to the rows kept with each seed."""
    sources = [question.source for question in pool.questions]
    stays = without_restatements(pool, embeddings).tolist()
    plans: list[tuple[str, str, list[int] | None]] = [(name, name, None) for name in STRATEGIES]
    plans.append((THINNED, "diverse", stays))
    found: dict[str, list[NDArray[np.intp]]] = {}
    done, total = 0, sum(1 if strategy in UNSEEDED else seeds for _, strategy, _ in plans)
    with step("sampling") as on_progress:
        for name, strategy, among in plans:
            found[name] = []
            for seed in range(1 if strategy in UNSEEDED else seeds):
                kept = sample(assigned, embeddings.vectors, k, seed, strategy, sources, among)
                found[name].append(np.array([each.index for each in kept], np.intp))
                done += 1
                on_progress(done, total)
    return found


def _distances(
    assigned: Sequence[str], vectors: Vectors, drawn: Mapping[str, Sequence[NDArray[np.intp]]], step: Step
) -> dict[str, Floats]:
    """Name to the distance of each draw."""
    dimension = np.asarray(assigned, str)
    names = sorted(set(assigned) - {OTHER})
    sums = {name: np.zeros((len(names), len(kept))) for name, kept in drawn.items()}
    members = [np.flatnonzero(dimension == name) for name in names]
    done, total = 0, sum(map(len, members))
    with step("comparing") as on_progress, one_thread():
        for number, own in enumerate(members):
            place = np.full(len(vectors), -1)
            place[own] = np.arange(len(own))
            kept = {name: [place[each][place[each] >= 0] for each in draws] for name, draws in drawn.items()}
            rows = vectors[own].astype(np.float64)
            for start in range(0, len(own), _BLOCK):
                block = pair_distances(rows[start : start + _BLOCK], rows)
                np.fill_diagonal(block[:, start:], 0.0)  # exactly, so that a kept question is at no distance
                for name, draws in kept.items():
                    for draw, places in enumerate(draws):
                        near = block[:, places].min(axis=1, initial=_FARTHEST)
                        sums[name][number, draw] += float(near.sum())
                done += len(block)
                on_progress(done, total)
            for name in drawn:
                sums[name][number] /= len(own)
    return {name: values.mean(axis=0) for name, values in sums.items()}


def _likeness(
    scores: Floats | None, dimension: NDArray[np.str_], kept: Sequence[NDArray[np.intp]], by_dimension: bool
) -> tuple[Floats, Floats]:
    """(draws,) correlations with the pool's mean over questions and with its mean over dimensions."""
    if scores is None:
        return np.full(len(kept), np.nan), np.full(len(kept), np.nan)
    named = np.flatnonzero(dimension != OTHER)
    of_samples = [_means(scores[:, each], dimension[each], by_dimension) for each in kept]
    by_question, by_dimensions = (_means(scores[:, named], dimension[named], each) for each in (False, True))
    return (
        np.array([srcc(one, by_question) for one in of_samples]),
        np.array([srcc(one, by_dimensions) for one in of_samples]),
    )


def _means(scores: Floats, dimension: NDArray[np.str_], by_dimension: bool) -> Floats:
    """(models,) mean over all questions, or over the means of the dimensions; NaN where a model has none."""
    groups = [dimension == name for name in np.unique(dimension)] if by_dimension else [np.ones(len(dimension), bool)]
    known = [~np.isnan(scores[:, group]) for group in groups]
    sums = np.stack([np.nansum(scores[:, group], axis=1) for group in groups])
    counts = np.stack([each.sum(axis=1) for each in known])
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    there = ~np.isnan(means)
    return np.divide(
        np.nansum(means, axis=0), there.sum(axis=0), out=np.full(means.shape[1], np.nan), where=there.any(axis=0)
    )


def _counts(kept: NDArray[np.str_], assigned: Sequence[str]) -> dict[str, int]:
    """Dimension to the number of kept questions, with the dimensions that have none."""
    return {name: int((kept == name).sum()) for name in sorted(set(assigned) - {OTHER})}


def _over_seeds(values: Sequence[float] | Floats) -> Drawn:
    found = np.asarray(values, float)
    if np.isnan(found).any() or not len(found):
        return Drawn(None, None)
    return Drawn(float(found.mean()), interval(found) if len(found) > 1 else None)


def told(rows: Sequence[Ablated], made: Mapping[str, Any]) -> dict[str, Any]:
    """The content of the results file."""
    strategies = {
        row.name: {
            name: {"mean": value.mean, "interval": value.interval} if isinstance(value, Drawn) else value
            for name, value in vars(row).items()
            if name != "name"
        }
        for row in rows
    }
    return {"form": "merton ablation 1", "made": dict(made), "strategies": strategies}
