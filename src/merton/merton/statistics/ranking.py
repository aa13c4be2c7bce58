"""Whether two benchmarks, or a benchmark and people, rank models alike: rank correlations with intervals, and power.

Two questions have intervals of their own: what other models would have given (`over_models`), and what other questions
from other scenes would have given for these models (`over_questions`). Both are ours:

- Over models: percentiles of 1,000 resamples of the models. For 13 and 30 models from a normal distribution with a rho
  of .6 or .85, they held 96 to 98 % of the true rhos, and 95 to 97 % of the true differences of two.
- Over questions: percentiles of 1,000 resamples of the scenes, together with their mirror image about the value, since
  the noise of a resample adds to that of the questions and weakens a correlation. For 12 and 30 models and 600 to 3,000
  questions they held 94 to 98 % of the true rhos; the percentiles alone held 49 to 85 %. Where a score's reliability
  is below .8 they hold 49 to 77 % (docs/reference/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from merton.errors import InputError
from merton.seeding import generator
from merton.statistics.clustered import centred_correlations, row_correlations, scene_draws
from merton.statistics.coefficients import krcc, plcc, srcc
from merton.statistics.intervals import Interval
from merton.statistics.means import Z_95
from merton.statistics.resampling import interval, is_resolved, resamples

Floats = NDArray[np.float64]

_STUDIES, _MODELS = 2000, 200
_CHUNK = 2_000_000


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of correlation.

    Attributes:
        name: as the field writes it.
        of: two columns (n,), by scipy.
        of_rows: of each row of two arrays (rows | 1, n), each pair counted (rows, n) times.
    """

    name: str
    of: Callable[[ArrayLike, ArrayLike], float]
    of_rows: Callable[[Floats, Floats, Floats | None], Floats]


@dataclass(frozen=True)
class RankAgreement:
    """The agreement of two columns of scores on the models.

    Attributes:
        coefficient: key of `COEFFICIENTS`.
        value: -1..1; None where it is undefined: fewer than three models, or a column without differences.
        over_models, over_questions: 95 % intervals; None where there is nothing to resample.
        models: that both columns have.
    """

    coefficient: str
    value: float | None
    over_models: Interval | None
    over_questions: Interval | None
    models: int


@dataclass(frozen=True)
class Difference:
    """By how much more one column agrees with a third than another does.

    Attributes:
        coefficient: key of `COEFFICIENTS`.
        value: coefficient(one, third) - coefficient(other, third), -2..2; None where one of them is undefined.
        over_models: 95 % interval with the same models drawn for both.
        models: that all three columns have.
    """

    coefficient: str
    value: float | None
    over_models: Interval | None
    models: int

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return is_resolved(self.over_models)


def agreements(
    one: ArrayLike, other: ArrayLike, draws: tuple[Floats, Floats] | None = None, seed: int = 0
) -> list[RankAgreement]:
    """Each of `COEFFICIENTS` of two columns of scores.

    Args:
        one, other: (models,) in the same order; models with a NaN on either side are left out.
        draws: of either column, as `score_draws` gives them; for `over_questions`.
        seed: of the resamples of models.
    """
    columns, known = _known(one, other)
    times = _model_draws(int(known.sum()), seed)
    found = []
    for key, coefficient in COEFFICIENTS.items():
        value = coefficient.of(*columns)
        if math.isnan(value):
            found.append(RankAgreement(key, None, None, None, len(columns[0])))
            continue
        over_models = interval(coefficient.of_rows(columns[0][None], columns[1][None], times))
        over_questions = None
        if draws is not None:
            one_drawn, other_drawn = (side[1:, known] for side in draws)
            over_questions = _with_mirror(value, interval(coefficient.of_rows(one_drawn, other_drawn, None)))
        found.append(RankAgreement(key, value, over_models, over_questions, len(columns[0])))
    return found


def differences(one: ArrayLike, other: ArrayLike, third: ArrayLike, seed: int = 0) -> list[Difference]:
    """For each of `COEFFICIENTS`, by how much more `one` agrees with `third` than `other` does.

    Args:
        one, other, third: (models,) in the same order; models with a NaN are left out.
        seed: of the resamples of models.
    """
    columns, known = _known(one, other, third)
    times = _model_draws(int(known.sum()), seed)
    first, second, last = (column[None] for column in columns)
    found = []
    for key, coefficient in COEFFICIENTS.items():
        value = coefficient.of(columns[0], columns[2]) - coefficient.of(columns[1], columns[2])
        if math.isnan(value):
            found.append(Difference(key, None, None, len(columns[0])))
            continue
        drawn = coefficient.of_rows(first, last, times) - coefficient.of_rows(second, last, times)
        found.append(Difference(key, value, interval(drawn), len(columns[0])))
    return found


def score_draws(
    scores: ArrayLike, scenes: Sequence[Hashable], groups: Sequence[Hashable] | None = None, seed: int = 0
) -> Floats:
    """(1 + draws, models) score of each model: first of all questions, then of those of scenes drawn with replacement.

    Two benchmarks whose questions come from the same scenes get the same draws if both are given all scenes, with NaN
    for the questions that one of them lacks.

    Args:
        scores: (models, questions) in any unit; NaN where a model has none. A question counts for all models or none.
        scenes: (questions,) the scene of each.
        groups: (questions,) such as dimensions; a score is then the mean of the groups' means (A2Eval, table 7).
            One group if not given.
        seed: of the draws.

    Raises:
        InputError: a question that some models have and others lack, or other numbers of scenes or groups.
    """
    values = np.asarray(scores, float)
    labels = ["" for _ in scenes] if groups is None else [repr(group) for group in groups]
    if values.ndim != 2 or values.shape[1] != len(scenes) or len(labels) != len(scenes):
        raise InputError("scores, scenes and groups must belong to the same questions")
    missing = np.isnan(values)
    if (missing.any(axis=0) & ~missing.all(axis=0)).any():
        raise InputError("a question without a score of some models cannot stand in a ranking of all")
    names, scene = np.unique([repr(scene) for scene in scenes], return_inverse=True)
    kinds, group = np.unique(labels, return_inverse=True)
    weights, kept = scene_draws(seed, names), ~missing[0] if len(values) else np.zeros(len(scenes), bool)
    place = (scene * len(kinds) + group)[kept]

    def drawn(of_questions: Floats) -> Floats:
        order = np.lexsort((of_questions, place))  # the last bit of a sum depends on the order
        sums = np.bincount(place[order], of_questions[order], len(names) * len(kinds))
        return weights @ sums.reshape(len(names), len(kinds))

    count = drawn(np.ones(int(kept.sum())))
    met = count > 0
    found = np.full((len(weights), len(values)), np.nan)
    for model, row in enumerate(values[:, kept]):
        means = np.divide(drawn(row), count, out=np.zeros(count.shape), where=met)
        np.divide(means.sum(axis=1), met.sum(axis=1), out=found[:, model], where=met.any(axis=1))
    return found


def models_needed(difference: float, one: float, between: float, power: float = 0.8, seed: int = 0) -> int | None:
    """Number of models that show that two benchmarks differ by so much in their Spearman correlation with people.

    Assumes that the scores of people and of both benchmarks follow a normal distribution, after some monotone change of
    each scale, that models are independent (models of one family are not: the truth is more), and a two-sided 95 %
    interval. The deviation of the difference is that of 2,000 simulated studies of 200 models, scaled by the root of
    the number.

    Args:
        difference: of the two correlations, > 0.
        one: the larger correlation, -1..1; the other is lower by `difference`.
        between: Spearman's correlation of the two benchmarks, -1..1.
        power: the chance that the interval excludes 0, 0..1.
        seed: of the simulation.

    Returns:
        None where no three columns can have these correlations.
    """
    rho = np.array([[1.0, one, one - difference], [one, 1.0, between], [one - difference, between, 1.0]])
    normal = 2.0 * np.sin(np.pi * rho / 6.0)  # Pearson's, of a normal distribution with these ranks (Pearson 1907)
    values, vectors = np.linalg.eigh(normal)
    if difference <= 0 or values[0] < -1e-9:
        return None
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = generator("models needed", seed).standard_normal((_STUDIES, _MODELS, 3)) @ root.T
    people, first, second = np.moveaxis(drawn, 2, 0)
    gains = row_correlations(first, people) - row_correlations(second, people)
    deviation = float(gains.std()) * math.sqrt(_MODELS)
    return math.ceil(((Z_95 + float(ndtri(power))) * deviation / difference) ** 2)


def pearson_rows(x: Floats, y: Floats, times: Floats | None = None) -> Floats:
    """Pearson's correlation of each row of `x` with that of `y`, as `row_correlations`, of values without NaN."""
    counts = np.ones((max(len(x), len(y)), x.shape[1])) if times is None else times
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    one, other = (side - (counts * side).sum(axis=1, keepdims=True) / total for side in (x, y))
    rounding = 1e-12 * np.abs(x).max(axis=1) * np.abs(y).max(axis=1) * total[:, 0]
    return centred_correlations(one, other, counts, rounding)


def kendall_rows(x: Floats, y: Floats, times: Floats | None = None) -> Floats:
    """Kendall's tau-b of each row of `x` with that of `y`, as `row_correlations`, of values without NaN."""
    counts = np.ones((max(len(x), len(y)), x.shape[1])) if times is None else times
    found, step = [], max(1, _CHUNK // max(x.shape[1], 1) ** 2)
    for first in range(0, len(counts), step):
        rows = slice(first, first + step)
        one, other = (_signs(side if len(side) == 1 else side[rows]) for side in (x, y))
        count = counts[rows]
        product, left, right = (
            np.einsum(
                "rij,ri,rj->r", np.broadcast_to(pairs, (len(count), *pairs.shape[1:])), count, count, optimize=True
            )
            for pairs in (one * other, one**2, other**2)
        )
        scale = np.sqrt(left * right)
        enough = (scale > 0.0) & ((count > 0).sum(axis=1) > 2)
        found.append(np.divide(product, scale, out=np.full(len(count), np.nan), where=enough))
    return np.clip(np.concatenate(found), -1.0, 1.0)


COEFFICIENTS = {
    "spearman": Coefficient("Spearman's rho", srcc, row_correlations),
    "kendall": Coefficient("Kendall's tau-b", krcc, kendall_rows),
    "pearson": Coefficient("Pearson's r", plcc, pearson_rows),
}
"""The first two compare ranks; the third says whether scores are proportional."""


def _signs(values: Floats) -> Floats:
    """(rows, n, n) which of two values is larger."""
    rounded = values.round(9)  # a billionth is rounding, and must not decide a rank
    return np.sign(rounded[:, :, None] - rounded[:, None, :])


def _known(*columns: ArrayLike) -> tuple[list[Floats], NDArray[np.bool_]]:
    """The columns over the models that all of them have, rounded as ranks are, and which these are."""
    values = [np.asarray(column, float).round(9) for column in columns]
    if len({len(column) for column in values}) > 1:
        raise InputError("columns of scores must belong to the same models")
    known: NDArray[np.bool_] = ~np.any(np.isnan(values), axis=0)
    return [column[known] for column in values], known


def _model_draws(models: int, seed: int) -> Floats:
    """(draws, models) how often each model is drawn."""
    if not models:
        return np.zeros((1, 0))
    return resamples(range(models), "models", seed).weights


def _with_mirror(value: float, found: Interval | None) -> Interval | None:
    """An interval together with its mirror image about a value, within -1..1."""
    if found is None:
        return None
    low, high = found
    return Interval(max(-1.0, min(low, 2.0 * value - high)), min(1.0, max(high, 2.0 * value - low)))
