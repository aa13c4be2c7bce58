"""The table of a benchmark of image quality metrics (Embodied-IQA, Tables 2 and 4): columns and cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, UnknownNameError
from merton.statistics.coefficients import krcc, plcc, plcc_after_logistic, srcc
from merton.statistics.correlation import correlations_with_intervals
from merton.statistics.intervals import Interval
from merton.statistics.means import fisher_z, from_fisher_z, student
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.opinion import Opinions
from merton_studies.opinions.sensitivity import JND
from merton_studies.opinions.splits import SPLITS, TEST_SHARE

Floats = NDArray[np.float64]

INDICATORS = {"srcc": "SRCC", "krcc": "KRCC", "plcc": "PLCC", "plcc_logistic": "PLCC*"}
"""Coefficients and their titles; PLCC* is after the five-parameter logistic, fitted on the tested images."""
GROUPS = {
    "zero_shot": "Zero-shot",
    "full_reference": "Trained, full reference",
    "no_reference": "Trained, no reference",
    "floor": "Floor",
    "ceiling": "Ceiling",
}
"""Groups of rows in the order of the table. A floor sees no image, or hardly one; a ceiling is what subjects themselves
agree on."""
MARKED = ("zero_shot", "full_reference", "no_reference")
"""Groups whose best and second best are marked, as in the paper."""
SUBJECT = "subject"
ALL_SPLITS = {**SPLITS, SUBJECT: "over scenes, trained without one subject and tested on that subject's own scores"}
"""Name of a split, or of leaving one subject out, to the sentence about it."""
OVERALL = "overall"
DIGITS = 8
TITLES = {
    "position": "Position",
    "rotation": "Rotation",
    "state": "State",
    "bleu": "Precision",
    "rouge_l": "Recall",
    "cider": "Semantic",
}
"""Dimension to its title in the paper's tables."""


@dataclass(frozen=True)
class Column:
    """Images over which a coefficient is taken, and the opinions it is taken with.

    Attributes:
        name: such as "position", "first", "mild", "real", "level_1" or "overall".
        title: of the table.
        value: the opinion: the stage, or one of its dimensions. Metrics are trained on the stage's in every column
            (ours: the paper does not say).
        images: (n,) whether an image counts.
        reason: why the column is empty; "" if it is not.
    """

    name: str
    title: str
    value: str
    images: NDArray[np.bool_]
    reason: str


@dataclass(frozen=True)
class Cell:
    """A coefficient over repeats of a split.

    Attributes:
        mean, sd: over the repeats in which it is defined; sd is NaN for fewer than two.
        low, high: 95 % interval, clustered by scene, of the SRCC over all images; else NaN. It is that of a single
            repeat's test part, on average: repeats share scenes, so their mean is no worse known, and perhaps better.
        n: tested images of a repeat, on average.
        repeats: in which it is defined.
        values: of every repeat, NaN where it is undefined.
    """

    mean: float
    sd: float
    low: float
    high: float
    n: float
    repeats: int
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class CoefficientRow:
    """A metric, floor or ceiling under one split.

    Attributes:
        cells: column to indicator to cell.
        start: what the network of a trained metric began with; "" for all others.
    """

    metric: str
    group: str
    split: str
    cells: Mapping[str, Mapping[str, Cell]]
    start: str = ""

    @property
    def began(self) -> str:
        """The first clause of `start`, such as "random start"."""
        return self.start.partition(";")[0]

    def mean(self, column: str = OVERALL, indicator: str = "srcc") -> float:
        """Of a cell; NaN where there is none."""
        cell = self.cells.get(column, {}).get(indicator)
        return cell.mean if cell else float("nan")


@dataclass(frozen=True)
class Benchmark:
    """The result of a benchmark.

    Attributes:
        stage: "decision" or "cognition".
        table: the columns.
        rows: of every split, in the order of the table: by group, then as the metrics were named.
        about: versions, hashes, numbers of images, references, scenes and subjects, repeats.
        remarks: sentences that a reader should know.
        failures: a sentence for every training that could not be done.
    """

    stage: str
    table: tuple[Column, ...]
    rows: tuple[CoefficientRow, ...]
    about: Mapping[str, Any]
    remarks: tuple[str, ...]
    failures: tuple[str, ...]

    def of_split(self, split: str) -> list[CoefficientRow]:
        """The rows of one split."""
        return [row for row in self.rows if row.split == split]

    @property
    def splits(self) -> list[str]:
        """That have rows, in the order of `ALL_SPLITS`."""
        there = {row.split for row in self.rows}
        return [name for name in ALL_SPLITS if name in there]


def columns(opinions: Opinions, stage: str) -> tuple[Column, ...]:
    """All images, which the paper has not, and its 15 columns; of other levels than its five as many as there are.

    Args:
        opinions: of the images.
        stage: "decision" or "cognition".

    Raises:
        UnknownNameError: no such stage.
        InputError: no image has opinions of this stage.
    """
    if stage not in DIMENSIONS:
        raise UnknownNameError("label", stage, DIMENSIONS)
    if stage not in opinions.stages:
        raise InputError(f"no image has opinions of {stage}; it has those of: {', '.join(opinions.stages) or 'none'}")
    known = ~np.isnan(opinions.value(stage))
    jnd = getattr(opinions, f"jnd_{stage}")
    subsets: list[tuple[str, str, str, NDArray[np.bool_]]] = [(OVERALL, "Overall", stage, known)]
    subsets += [(name, TITLES[name], name, known & ~np.isnan(opinions.value(name))) for name in DIMENSIONS[stage]]
    subsets += [
        (name, title, stage, known & (opinions.perspective == tag))
        for name, title, tag in (("first", "First", "first_person"), ("third", "Third", "third_person"))
    ]
    subsets += [(name, name.capitalize(), stage, known & (jnd == name)) for name in JND]
    subsets += [
        (name, title, stage, known & (opinions.domain == name))
        for name, title in (("real", "Real"), ("simulation", "Simulation"))
    ]
    subsets += [(f"level_{k}", f"Level {k}", stage, known & (opinions.level == k)) for k in opinions.levels]
    return tuple(
        Column(name, title, value, images, "" if images.any() else f"no image of this study is in {title!r}")
        for name, title, value, images in subsets
    )


def evaluate(
    table: Sequence[Column],
    predicted: Mapping[str, Floats] | Floats,
    targets: Mapping[str, Floats],
    rows: NDArray[np.intp],
    scene: NDArray[Any],
) -> dict[str, dict[str, float]]:
    """The coefficients of predictions on some images, column by column.

    Args:
        table: of `columns`.
        predicted: (n,) scores, higher is better, NaN where there is none; or such scores for each value of the columns.
        targets: value to its (n,) opinions.
        rows: the tested images.
        scene: (n,) of each image.

    Returns:
        Column to its indicators, "n", and "low" and "high" of the SRCC, to `DIGITS` decimals: the last bit of a sum
        depends on where its terms lie in memory. Empty columns are left out.
    """
    found = {}
    for column in table:
        tested = rows[column.images[rows]]
        guess = predicted if isinstance(predicted, np.ndarray) else predicted[column.value]
        x, y = guess[tested], targets[column.value][tested]
        both = ~(np.isnan(x) | np.isnan(y))
        x, y, scenes = x[both], y[both], scene[tested][both]
        if not len(x):
            continue
        low, high = math.nan, math.nan
        if column.name == OVERALL:  # of each column it would take as long as all coefficients together
            low, high = correlations_with_intervals(np.stack([x, y]), scenes)[1][0, 1].tolist()
        values = {
            "n": float(len(x)),
            "srcc": srcc(x, y),
            "krcc": krcc(x, y),
            "plcc": plcc(x, y),
            "plcc_logistic": plcc_after_logistic(x, y),
            "low": low,
            "high": high,
        }
        found[column.name] = {name: round(value, DIGITS) for name, value in values.items()}
    return found


def summarised(
    metric: str, group: str, split: str, repeats: Iterable[Mapping[str, Mapping[str, float | None]]]
) -> CoefficientRow:
    """The row of a metric from what `evaluate` gave in every repeat: nothing where there was no prediction."""
    found = list(repeats)
    names = dict.fromkeys(name for repeat in found for name in repeat)
    return CoefficientRow(
        metric,
        group,
        split,
        {
            name: {indicator: _cell([repeat.get(name, {}) for repeat in found], indicator) for indicator in INDICATORS}
            for name in names
        },
    )


def _cell(repeats: Sequence[Mapping[str, float | None]], indicator: str) -> Cell:
    values = _known(every := tuple(_or_nan(repeat.get(indicator)) for repeat in repeats))
    if not len(values):
        return Cell(math.nan, math.nan, math.nan, math.nan, math.nan, 0, every)
    low, high = math.nan, math.nan
    if indicator == "srcc":
        ends = [_known(_or_nan(repeat.get(end)) for repeat in repeats) for end in ("low", "high")]
        low, high = (float(from_fisher_z(fisher_z(end).mean())) if len(end) else math.nan for end in ends)
    sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    n = float(_known(_or_nan(repeat.get("n")) for repeat in repeats).mean())
    return Cell(float(values.mean()), sd, low, high, n, len(values), every)


def _known(values: Iterable[float]) -> Floats:
    found = np.array(list(values), np.float64)
    return found[~np.isnan(found)]


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def baseline(rows: Sequence[CoefficientRow], column: str, indicator: str) -> float:
    """The best zero-shot mean of a column among rows of one split; NaN if there is none."""
    means = [row.mean(column, indicator) for row in rows if row.group == "zero_shot"]
    return max((value for value in means if not math.isnan(value)), default=math.nan)


def marks(rows: Sequence[CoefficientRow], column: str, indicator: str) -> dict[str, str]:
    """Metric to the paper's marks of its cell, separated by spaces, for the rows of one split.

    "best" and "second" of its group, "baseline" for the best zero-shot metric, "below" for a trained metric that is
    lower than that. Floors and ceilings are not marked.
    """
    found: dict[str, list[str]] = {}
    line = baseline(rows, column, indicator)
    for group in MARKED:
        ranked = sorted(
            (row for row in rows if row.group == group and not math.isnan(row.mean(column, indicator))),
            key=lambda row: (-row.mean(column, indicator), row.metric),
        )
        for place, row in enumerate(ranked):
            words = [("best", "second")[place]] if place < 2 else []
            if group == "zero_shot":
                words += ["baseline"] if place == 0 else []
            elif row.mean(column, indicator) < line:
                words.append("below")
            found[row.metric] = words
    return {metric: " ".join(words) for metric, words in found.items()}


def difference(one: Cell, other: Cell) -> tuple[float, Interval] | None:
    """The mean difference of two cells over repeats that both have, and its 95 % interval.

    Student's t with the variance of Nadeau and Bengio (2003), (1/J + 1/4) times that over J repeats: repeats share
    three quarters of their training images and many of their test images, and the plain variance would be far too
    small. None for fewer than two repeats, and where all have the same difference: nothing is known of its scatter.
    """
    pairs = np.array(list(zip(one.values, other.values, strict=False)), np.float64).reshape(-1, 2)
    gaps = (pairs[:, 0] - pairs[:, 1])[~np.isnan(pairs).any(axis=1)]
    if len(gaps) < 2 or bool((gaps == gaps[0]).all()):
        return None
    share = TEST_SHARE / (1.0 - TEST_SHARE)
    half = float(student(len(gaps) - 1)) * math.sqrt((1.0 / len(gaps) + share) * float(gaps.var(ddof=1)))
    mean = float(gaps.mean())
    return mean, Interval(mean - half, mean + half)


def best_zero_shot(rows: Sequence[CoefficientRow]) -> CoefficientRow | None:
    """The zero-shot row with the highest SRCC over all images among rows of one split."""
    found = [row for row in rows if row.group == "zero_shot" and not math.isnan(row.mean())]
    return max(found, key=CoefficientRow.mean, default=None)
