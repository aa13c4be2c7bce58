"""Distributions of opinions by type and level, their trends, and those of categories (Embodied-IQA, Fig. 5, 6, 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from merton.statistics.correlation import correlations_with_intervals
from merton.statistics.intervals import Interval
from merton.statistics.resampling import Floats, Resamples, interval, resamples
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.opinion_tables import Opinions

MAXIMUM = 5.0
"""Of a score: five tasks of at most 1."""
BINS = 40
EDGES = np.linspace(0.0, MAXIMUM, BINS + 1)
"""Of every histogram, so that two studies can be laid over each other."""
SIGNIFICANT = 0.05
"""False discovery rate of the trends."""
CATEGORIES = ("domain", "perspective", "object", "background")


@dataclass(frozen=True)
class Spread:
    """The distribution of n scores.

    Attributes:
        deviation: standard deviation; None of a single score.
        quartiles: lower quartile, median, upper quartile.
        ends: the outermost scores within 1.5 interquartile ranges of the box (Tukey's whiskers).
        histogram: (`BINS`,) share of scores between `EDGES`; of z-scores all 0.
    """

    n: int
    mean: float
    deviation: float | None
    quartiles: tuple[float, float, float]
    ends: tuple[float, float]
    histogram: tuple[float, ...]


@dataclass(frozen=True)
class Trend:
    """Whether the scores of a type of distortion fall with its level.

    Attributes:
        levels: the distribution at each of `Opinions.levels`; None without images.
        tau: Kendall's tau-b of score and level: below 0 where scores fall; NaN where one of them does not vary.
        fall: mean at the type's lowest level with images less that at its highest; NaN where it has only one.
        ends: these two levels.
        p: one-sided, of Jonckheere and Terpstra's test against scores that do not fall; 1 where tau is undefined.
        adjusted: p after Benjamini and Hochberg over all types.
    """

    distortion: str
    distortion_id: str
    category: str
    levels: tuple[Spread | None, ...]
    tau: float
    tau_interval: Interval | None
    fall: float
    fall_interval: Interval | None
    ends: tuple[int, int]
    p: float
    adjusted: float

    @property
    def falls(self) -> bool:
        """Whether the test finds it."""
        return self.adjusted < SIGNIFICANT


@dataclass(frozen=True)
class Category:
    """Differences of the scores of a stage between the values of a tag of the references.

    Attributes:
        name: of `CATEGORIES`.
        values: its values, sorted, to their distributions.
        scenes: value to its number of scenes.
        test: "Mann-Whitney" of two values, "Kruskal-Wallis" of more, of the scenes' mean scores; "" if there is one.
        p: of the test, two-sided; NaN without one.
        range: highest mean less lowest mean of the values.
    """

    name: str
    values: dict[str, Spread]
    scenes: dict[str, int]
    test: str
    p: float
    range: float
    range_interval: Interval | None


@dataclass(frozen=True)
class Dimensions:
    """SRCC of a stage's total and its three dimensions over the images, (4, 4), and intervals by scene, (4, 4, 2)."""

    names: tuple[str, ...]
    matrix: Floats
    intervals: Floats

    @property
    def between(self) -> list[float]:
        """The three correlations of two different dimensions."""
        return [float(self.matrix[one, other]) for one, other in ((1, 2), (1, 3), (2, 3))]


def spread(scores: Floats) -> Spread | None:
    """The distribution of scores (n,); None for n = 0."""
    if not len(scores):
        return None
    scores = np.sort(scores)  # the last bit of a mean depends on the order
    low, middle, high = (float(value) for value in np.quantile(scores, (0.25, 0.5, 0.75)))
    reach = 1.5 * (high - low)
    inside = scores[(scores >= low - reach) & (scores <= high + reach)]
    counts = np.histogram(scores, EDGES)[0]
    deviation = float(scores.std(ddof=1)) if len(scores) > 1 else None
    ends = float(inside[0]), float(inside[-1])
    return Spread(len(scores), float(scores.mean()), deviation, (low, middle, high), ends, tuple(counts / len(scores)))


def trends(opinions: Opinions, stage: str) -> list[Trend]:
    """The trend of every type of distortion in a stage, by the types' numbers.

    Jonckheere and Terpstra's statistic counts, as Kendall's does, the pairs of images whose scores and levels are in
    order, so its test is `scipy.stats.kendalltau`'s, one-sided, with the variance for ties in both. Ours: the test
    takes images as exchangeable between levels, which the random level of each image and type provides; intervals are
    of the bootstrap over scenes.
    """
    used = opinions.where(~np.isnan(opinions.value(stage)))
    found = []
    for number in np.unique(used.distortion_id).tolist():
        part = used.where(used.distortion_id == number)
        score = part.value(stage).round(9)  # a billionth is rounding, and must not decide a rank
        drawn = resamples(part.scene, "trend", stage, number)
        tau, p = kendall(part.level, score)
        step = part.level - 1
        means = drawn.means(score, step, len(opinions.levels))
        spreads = tuple(spread(score[part.level == level]) for level in opinions.levels)
        ends = int(part.level.min()), int(part.level.max())
        first, last = spreads[ends[0] - 1], spreads[ends[1] - 1]
        found.append(
            Trend(
                str(part.distortion[0]),
                number,
                str(part.category[0]),
                spreads,
                tau,
                interval(_taus(part.level, score, drawn)),
                first.mean - last.mean if first and last and ends[0] < ends[1] else float("nan"),
                interval(means[:, ends[0] - 1] - means[:, ends[1] - 1]) if ends[0] < ends[1] else None,
                ends,
                p,
                p,
            )
        )
    adjusted = stats.false_discovery_control([one.p for one in found]) if found else []
    return [Trend(**{**vars(one), "adjusted": float(p)}) for one, p in zip(found, adjusted, strict=True)]


def kendall(level: NDArray[np.int64], score: Floats) -> tuple[float, float]:
    """Kendall's tau-b of score and level, and Jonckheere and Terpstra's one-sided p-value; NaN and 1 if undefined."""
    if len(level) < 2:
        return float("nan"), 1.0
    tau, p = stats.kendalltau(level, score, method="asymptotic", alternative="less")
    return (float(tau), float(p)) if np.isfinite(tau) else (float("nan"), 1.0)


def categories(opinions: Opinions, stage: str) -> list[Category]:
    """Differences of the scores between domains, perspectives, objects and backgrounds.

    Ours: the tests compare scenes by their mean scores, not images, which are alike within a scene; a scene seen from
    two perspectives is in both groups, which makes that test careful rather than bold.
    """
    used = opinions.where(~np.isnan(opinions.value(stage)))
    score = used.value(stage)
    found = []
    for name in CATEGORIES:
        column = getattr(used, name)
        values, group = np.unique(column, return_inverse=True)
        drawn = resamples(used.scene, "category", stage, name)
        means = drawn.means(score, group.astype(np.int64), len(values))
        shown = {str(value): one for value in values if (one := spread(score[column == value]))}
        scene_means = [_scene_means(used.scene[column == value], score[column == value]) for value in values]
        test, p = _compared(scene_means)
        centers = [one.mean for one in shown.values()]
        found.append(
            Category(
                name,
                shown,
                {str(value): len(scenes) for value, scenes in zip(values, scene_means, strict=True)},
                test,
                p,
                max(centers) - min(centers) if centers else float("nan"),
                interval(np.ptp(means, axis=1)) if len(values) > 1 else None,
            )
        )
    return found


def dimensions(opinions: Opinions, stage: str) -> Dimensions:
    """Correlations of a stage's total and its dimensions over the images."""
    names = (stage, *DIMENSIONS[stage])
    matrix, intervals = correlations_with_intervals(np.stack([opinions.value(name) for name in names]), opinions.scene)
    return Dimensions(names, matrix, intervals)


def _taus(level: NDArray[np.int64], score: Floats, drawn: Resamples) -> Floats:
    """(draws,) Kendall's tau-b in every draw; pairs of copies of one image are tied, and count for nothing."""
    scenes = drawn.weights.shape[1]
    member = np.zeros((len(level), scenes))
    member[np.arange(len(level)), drawn.scene] = 1.0
    x, y = (np.sign(column[:, None] - column[None, :]).astype(float) for column in (level.astype(float), score))
    both, by_level, by_score = (
        ((drawn.weights @ (member.T @ pairs @ member)) * drawn.weights).sum(axis=1) for pairs in (x * y, x * x, y * y)
    )
    scale = np.sqrt(by_level * by_score)
    return np.divide(both, scale, out=np.full(len(both), np.nan), where=scale > 0)


def _scene_means(scenes: NDArray[np.str_], score: Floats) -> Floats:
    """The mean score of each scene, sorted by scene."""
    _, scene = np.unique(scenes, return_inverse=True)
    order = np.lexsort((score, scene))
    return np.asarray(np.bincount(scene[order], score[order]) / np.bincount(scene)).round(9)


def _compared(groups: Sequence[Floats]) -> tuple[str, float]:
    """The name of the test of groups of scenes, and its p-value."""
    if len(groups) < 2:
        return "", float("nan")
    if np.ptp(np.concatenate(groups)) < 1e-9:
        return ("Mann-Whitney" if len(groups) == 2 else "Kruskal-Wallis"), 1.0
    if len(groups) == 2:
        return "Mann-Whitney", float(stats.mannwhitneyu(*groups).pvalue)
    return "Kruskal-Wallis", float(stats.kruskal(*groups).pvalue)
