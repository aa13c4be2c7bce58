"""The study of an annotated dataset: all that its page shows, computed once (Embodied-IQA 4, Fig. 4 to 7, 11, 13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from merton.errors import InputError
from merton.statistics.intervals import Interval
from merton.study.models import Correlation, correlation_of
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.claims import StageResults, claims, dimension_falls
from merton_studies.opinions.distributions import categories, dimensions, trends
from merton_studies.opinions.opinion_tables import Opinions, SubjectSums
from merton_studies.opinions.published import Claim
from merton_studies.opinions.sensitivity import HalfLoss, by_image, half_losses
from merton_studies.opinions.whose import is_imported

PUBLISHED_AGREEMENT = {"bleu": 0.31, "rouge_l": 0.31, "cider": 0.30, "position": 0.25, "rotation": 0.23, "state": 0.28}
"""Mean SRCC of 15 VLMs or 15 VLAs (Embodied-IQA, Fig. 4)."""
CASES = 10
"""Shown of each kind."""
BLIND = 4.75
"""A subject whose output for another scene scores more than this of 5 hardly depends on the image. Ours."""
HIGH, LOW = 0.7, 0.4
"""Shares of the highest level from which on a level is high, and up to which it is low: 4 and 5, 1 and 2 of five."""


@dataclass(frozen=True)
class Case:
    """An image whose level and score disagree.

    Attributes:
        score: 0..5.
        pictures: data URIs of the reference and the distorted image; None without them.
        outputs: for each task: its words, a model's output for the reference, and that for the distorted image.
        model: whose outputs these are; "" without any.
    """

    stage: str
    reference_id: str
    distortion: str
    level: int
    score: float
    pictures: tuple[str | None, str | None] = (None, None)
    outputs: tuple[tuple[str, str, str | Markup], ...] = ()
    model: str = ""


@dataclass(frozen=True)
class StageStudy:
    """A stage's part of the page.

    Attributes:
        falls: dimension to how much of 5 it falls over the distorted images, and the interval; the least first.
        half_losses: of every type; empty where chance is unknown, or no lower than no change.
        agreement: dimension to the rank correlation of subjects; empty for fewer than two.
        same_class: share of images that have one class by image and by cell.
    """

    results: StageResults
    falls: Mapping[str, tuple[float, Interval | None]]
    half_losses: tuple[HalfLoss, ...]
    chance: float | None
    agreement: Mapping[str, Correlation]
    same_class: float


@dataclass(frozen=True)
class DatasetStudy:
    """The results that the page shows."""

    opinions: Opinions
    stages: Mapping[str, StageStudy]
    claims: Sequence[Claim]
    remarks: Sequence[str]


def dataset_study(opinions: Opinions, sums: SubjectSums | None = None) -> DatasetStudy:
    """Compute it.

    Args:
        opinions: of the dataset; at least one of the stages has scores that differ.
        sums: of the subjects, for how far they agree; without them that part is left out.

    Raises InputError where there is nothing to study: no scores, all of them equal, or z-scores.
    """
    if opinions.about.get("label", "mean") != "mean":
        raise InputError("the study is of scores of 0 .. 5: make the opinions with the label mean, not zscore")
    stages = [stage for stage in opinions.stages if np.nanmax(opinions.value(stage)) > np.nanmin(opinions.value(stage))]
    if not stages:
        raise InputError("there is nothing to study: no image has a score, or all scores are the same")
    found = {stage: _stage(opinions, sums, stage) for stage in stages}
    results = {stage: part.results for stage, part in found.items()}
    return DatasetStudy(opinions, found, claims(opinions, results), list(remarks(opinions)))


def remarks(opinions: Opinions) -> list[str]:
    """Remarks that should be known before the numbers are used, a sentence each."""
    found = []
    if levels := opinions.about.get("quality_levels"):
        ends = levels["lowest and highest value"]
        spans = ", ".join(f"{level}: {low:.3g} to {high:.3g}" for level, (low, high) in ends.items())
        metric = levels["fifths of the images by"]
        found.append(f"Levels are fifths of the images by {metric}, not the types' own: {spans}.")
    for stage in opinions.stages:
        subjects = opinions.about.get("subjects", {}).get(stage, [])
        if len(subjects) == 1:
            found.append(
                f"{stage} is the opinion of one subject, {subjects[0]}: it has no spread, and is no mean opinion."
            )
        by_chance = opinions.about.get("by_chance", {})
        for name in subjects:
            if by_chance.get(name, {}).get(stage, 0.0) > BLIND:
                score = by_chance[name][stage]
                found.append(f"{name} scores {score:.2f} of 5 with its {stage} for another scene: it hardly looks.")
        scores = opinions.value(stage)
        known = scores[~np.isnan(scores)]
        if np.ptp(known) < 1e-12:
            found.append(
                f"{stage} is {known[0]:g} on every image, so it tells nothing apart: no levels of sensitivity."
            )
        missing = opinions.unused(stage)
        if len(missing):
            why = "nobody judged them" if is_imported(opinions.about) else "a subject has none of one of the tasks"
            references = np.unique(opinions.reference_id[missing])
            found.append(
                f"{len(missing)} images have no {stage}, because {why}, and are not "
                f"used: those of {len(references)} references, such as {references[0]}."
            )
    return found


def instructive(opinions: Opinions, stage: str, count: int = CASES) -> tuple[list[int], list[int]]:
    """Rows of the images with the highest scores at high levels, and of those with the lowest at low ones.

    Each type and each reference at most once, so that the cases differ; none where there is one level alone.
    """
    score = opinions.value(stage)
    chosen = []
    for levels, order in zip(extreme_levels(opinions), (-score, score), strict=True):
        rows = np.flatnonzero(np.isin(opinions.level, levels) & ~np.isnan(score))
        keys = (opinions.reference_id[rows], opinions.distortion_id[rows], order[rows].round(9))
        types: set[str] = set()
        references: set[str] = set()
        kept: list[int] = []
        for row in rows[np.lexsort(keys)].tolist():
            name, reference = str(opinions.distortion[row]), str(opinions.reference_id[row])
            if name not in types and reference not in references and len(kept) < count:
                kept.append(row)
                types.add(name)
                references.add(reference)
        chosen.append(kept)
    return chosen[0], chosen[1]


def extreme_levels(opinions: Opinions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The high levels of a dataset, and the low ones."""
    highest = opinions.levels[-1]
    if highest < 2:
        return (), ()
    high = tuple(level for level in opinions.levels if level >= HIGH * highest)
    low = tuple(level for level in opinions.levels if level == 1 or level <= LOW * highest)
    return high, low


def _stage(opinions: Opinions, sums: SubjectSums | None, stage: str) -> StageStudy:
    results = StageResults(trends(opinions, stage), categories(opinions, stage), dimensions(opinions, stage))
    chance = opinions.about.get("chance", {}).get(stage)
    score = opinions.value(stage)
    halves: list[HalfLoss] = []
    if chance is not None:
        halves = half_losses(score, opinions.distortion, opinions.level, opinions.scene, chance)
    thirds = by_image(score, opinions.distortion_id, opinions.level, opinions.reference_id)
    cells = getattr(opinions, f"jnd_{stage}")
    known = thirds != ""
    return StageStudy(
        results,
        dimension_falls(opinions, stage),
        tuple(halves),
        chance,
        _agreement(sums, opinions, stage) if sums else {},
        float((thirds[known] == cells[known]).mean()) if known.any() else float("nan"),
    )


def _agreement(sums: SubjectSums, opinions: Opinions, stage: str) -> dict[str, Correlation]:
    """Agreement of the subjects of a stage on the distorted images, by dimension; empty for fewer than two subjects."""
    names = [name for name in sums.subjects(stage) if name in opinions.about.get("subjects", {}).get(stage, [name])]
    if len(names) < 2:
        return {}
    rows = np.isin(sums.models, names)
    columns = (sums.level > 0) & np.isin(sums.reference_id, np.unique(opinions.reference_id))
    return {
        value: correlation_of(names, sums.values[value][np.ix_(rows, columns)], sums.scene[columns])
        for value in DIMENSIONS[stage]
    }


def map_rows(opinions: Opinions, stage: str) -> list[tuple[str, tuple[str, ...]]]:
    """The class of every type, by its number, at every level; "" without images."""
    classes = getattr(opinions, f"jnd_{stage}")
    rows = []
    for number in np.unique(opinions.distortion_id).tolist():
        mine = opinions.distortion_id == number
        seen = [np.unique(classes[mine & (opinions.level == level) & (classes != "")]) for level in opinions.levels]
        label = f"{number} {str(opinions.distortion[mine][0]).replace('_', ' ')}"
        rows.append((label, tuple(str(one[0]) if len(one) else "" for one in seen)))
    return rows
