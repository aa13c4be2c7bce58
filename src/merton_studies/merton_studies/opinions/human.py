"""People beside robots: mean opinions of people on the images that models judged, from `human.csv`.

The paper names the gap between the visual systems of people and robots (Embodied-IQA, Fig. 1) and does not measure it
on the same images; these correlations do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.results.tables import name_in, number_in, plain_number, read_rows
from merton.statistics.correlation import correlations_with_intervals
from merton.statistics.intervals import Interval
from merton.statistics.means import ranks
from merton_studies.opinions.opinion_tables import Opinions

Key = tuple[str, str, int]
"""Reference, distortion, level."""
COLUMNS = ("reference_id", "distortion", "level", "mos")
OPTIONAL = ("image", "scene", "ratings", "mos_low", "mos_high", "deviation", "dmos_ratings", "dmos", "dmos_low",
            "dmos_high")  # fmt: skip
LEAST_SCENES = 20
"""For an interval to be relied on: it is made by leaving out one of twenty groups of scenes after the other."""
_FAR = 1e6


@dataclass(frozen=True)
class ByType:
    """A type of distortion, whose images have both opinions.

    Attributes:
        distortion: its name.
        images: how many.
        people: mean opinion score, as the table has it.
        models: mean of the stage's scores, 0..5.
        people_place, models_place: place of these among the types, 1 for the highest.
    """

    distortion: str
    images: int
    people: float
    models: float
    people_place: int
    models_place: int


@dataclass(frozen=True)
class Beside:
    """People beside the models of a stage.

    Attributes:
        stage: "cognition" or "decision".
        images, scenes: that both judged.
        srcc: Spearman's correlation, -1..1; None where one side does not vary or there are fewer than three images.
        interval: 95 %, clustered by scene.
        within_levels, within_interval: the same of ranks within levels: the part of the agreement that is not merely
            that both like a stronger distortion less.
        by_type: the types, those first whose places differ most.
    """

    stage: str
    images: int
    scenes: int
    srcc: float | None
    interval: Interval | None
    within_levels: float | None
    within_interval: Interval | None
    by_type: tuple[ByType, ...]


def read_human(path: Path) -> dict[Key, float]:
    """Mean opinion of people on each distorted image, higher is better, from `human.csv` or a table of its form.

    Rows of references (level 0) are left out, as the tables of models have none.

    Raises:
        InputError: no such table, a wrong row or one that stands twice, with the line, or no distorted image.
    """
    found: dict[Key, float] = {}
    for where, row in read_rows(path, COLUMNS, OPTIONAL):
        level = plain_number(row["level"])
        if level is None or not str(row["reference_id"] or "").strip():
            raise InputError(f"{where}: has no reference_id or level: only images of a dataset can stand beside models")
        if level == 0:
            continue
        key = (name_in(where, row, "reference_id"), name_in(where, row, "distortion"), int(level))
        if key in found:
            raise InputError(f"{where}: {key[1]} at level {key[2]} of {key[0]!r} stands twice")
        found[key] = number_in(where, row, "mos", -_FAR, _FAR)
    if not found:
        raise InputError(f"{path}: has no opinion of a distorted image")
    return found


def beside(opinions: Opinions, people: Mapping[Key, float]) -> tuple[Beside, ...]:
    """People beside each stage that has opinions.

    Raises:
        InputError: no image has both opinions.
    """
    keys = zip(opinions.reference_id.tolist(), opinions.distortion.tolist(), opinions.level.tolist(), strict=True)
    own = np.array([people.get(key, np.nan) for key in keys])
    if np.isnan(own).all():
        raise InputError("no image has an opinion of people and one of models: they are of different datasets")
    return tuple(_beside(opinions, own, stage) for stage in opinions.stages)


def _beside(opinions: Opinions, people: NDArray[np.float64], stage: str) -> Beside:
    models = opinions.value(stage)
    both = np.flatnonzero(~np.isnan(people) & ~np.isnan(models))
    scores = np.stack([people[both], models[both]])
    scene = opinions.scene[both]
    whole, ends = _pair(*correlations_with_intervals(scores, scene))
    within, within_ends = _pair(*correlations_with_intervals(scores, scene, opinions.level[both]))
    distortion = opinions.distortion[both]
    names = np.unique(distortion).tolist()
    means = [[float(side[distortion == name].mean()) for name in names] for side in scores]
    places = [ranks(side) for side in means]
    rows = [
        ByType(name, int((distortion == name).sum()), means[0][i], means[1][i], places[0][i] or 0, places[1][i] or 0)
        for i, name in enumerate(names)
    ]
    rows.sort(key=lambda row: (-abs(row.people_place - row.models_place), row.distortion))
    scenes = len(np.unique(scene))
    return Beside(stage, len(both), scenes, whole, ends, within, within_ends, tuple(rows))


def _pair(matrix: NDArray[Any], intervals: NDArray[Any]) -> tuple[float | None, Interval | None]:
    """The correlation of the two rows and its interval, None where undefined."""
    value, (low, high) = float(matrix[0, 1]), intervals[0, 1]
    return (
        None if np.isnan(value) else value,
        None if np.isnan(low) or np.isnan(high) else Interval(float(low), float(high)),
    )
