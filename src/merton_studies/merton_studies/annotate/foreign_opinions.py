"""Opinions of a dataset's images that were collected elsewhere, with or without the raters, as tables of opinions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from merton import __version__
from merton.errors import InputError, UnknownNameError
from merton.files import file_sha256, locked_folder
from merton.perception.dataset import layout
from merton.perception.dataset.origin import read_origin
from merton.results.tables import number_in
from merton.results.text import one_line
from merton.study.outputs import DIMENSIONS
from merton_studies.annotate.dataset import REFERENCE
from merton_studies.annotate.foreign import IMAGE_PARTS, Image, ImageFinder, rows_of, text_in
from merton_studies.annotate.views import scenes_of
from merton_studies.opinions import opinion
from merton_studies.opinions.opinion import OPINIONS, SUBJECTS, TASKS, VALUES, Images, Opinions, SubjectSums
from merton_studies.opinions.opinion_tables import numbered_images
from merton_studies.opinions.sensitivity import by_cell

BETTER = ("higher", "lower")
PARTS = {
    **IMAGE_PARTS,
    "score": "the opinion; it becomes that of the stage which --label names",
    **dict.fromkeys(VALUES, "an opinion that is one of this value"),
    "rater": "who judged; a row for each picture and rater",
    "sd": "standard deviation of the raters of a mean score",
    "n": "raters of a mean score",
}
"""Part of a row to its meaning; a column of this name, or the one named for it, holds it."""
_MOST_RATERS = 1e9


def import_opinions(
    table: Path,
    dataset: Path,
    out: Path,
    scale: tuple[float, float],
    better: str,
    label: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> tuple[Opinions, tuple[str, ...]]:
    """Write `opinions.parquet`, and with raters `subjects.parquet`, from a table of scores.

    A score x becomes 5 (x - low) / (high - low), or 5 less that where lower is better. An image's opinion is the mean
    of those who judged it: unlike models, raters seldom judge all.

    Args:
        table: a row for each image, or for each image and rater.
        dataset: a folder that `merton dataset build` has finished, or that was imported.
        out: folder of the result.
        scale: lowest and highest score that was possible.
        better: whether a "higher" or a "lower" score means a better image.
        label: the stage that the column `score` is an opinion of: "cognition" or "decision".
        columns: part of `PARTS` to the column that holds it, where that is called otherwise.

    Returns:
        The opinions, and remarks for the user.

    Raises:
        InputError: no such table or column, an image that the dataset does not have or that stands twice, a score that
            is none or off the scale; with the line.
        MissingDependencyError: pyarrow is not installed.
        InfrastructureError: a file cannot be written.
    """
    low, high = scale
    if not -math.inf < low < high < math.inf:
        raise InputError(f"--range {low:g} {high:g}: the lowest score must be below the highest")
    if better not in BETTER:
        raise UnknownNameError("direction", better, BETTER)
    finder = ImageFinder(dataset)
    rows, unused = rows_of(table, PARTS, columns or {})
    held = set().union(*(cells for _, cells in rows))
    value_of = _values(table, held, label)
    found: dict[tuple[str, Image], tuple[str, dict[str, float]]] = {}
    extra: dict[Image, tuple[float, int]] = {}
    for where, cells in rows:
        image, rater = finder.find(where, cells), text_in(cells, "rater")
        if "rater" in held and not rater:
            raise InputError(f"{where}: rater is empty; write who judged")
        if (rater, image) in found:
            raise InputError(f"{where}: has a picture that stands in {found[rater, image][0]} already")
        scores = {}
        for part, value in value_of.items():
            if text_in(cells, part):
                share = (number_in(where, cells, part, low, high) - low) / (high - low)
                scores[value] = TASKS * (share if better == "higher" else 1.0 - share)
        found[rater, image] = where, scores
        extra[image] = _spread(where, cells, TASKS / (high - low))
    about: dict[str, Any] = {
        "dataset": layout.sha256_of(dataset / layout.MANIFEST),
        **read_origin(dataset).facts,
        "merton": __version__,
        "domain": "all",
        "imported": {"file": table.name, "sha256": file_sha256(table), "range": [low, high], "better": better},
    }
    scores_of = {key: scores for key, (_, scores) in found.items()}
    if not any(scores for (_, image), scores in scores_of.items() if image[1] != REFERENCE):
        raise InputError(f"{table}: no row has a score of a distorted picture of {dataset}")
    with locked_folder(out, "merton study import"):
        if "rater" in held:
            sums = _sums(scores_of, scenes_of(dataset), {**about, "least_subjects": 1})
            opinion.write_subjects(sums, out / SUBJECTS)
            made = opinion.opinions(sums, opinion.read_images(dataset))
        else:
            (out / SUBJECTS).unlink(missing_ok=True)
            judged = {image: scores for (_, image), scores in scores_of.items()}
            made = _means(judged, extra, opinion.read_images(dataset), scenes_of(dataset), about)
        opinion.write_opinions(made, out / OPINIONS)
    remarks = [f"{table}: columns that are not used: {', '.join(one_line(name, 40) for name in unused)}"]
    return made, tuple(remarks if unused else ())


def _values(table: Path, held: set[str], label: str | None) -> dict[str, str]:
    """Part that holds scores to the value that they are of."""
    found = {name: name for name in VALUES if name in held}
    if label is not None and label not in DIMENSIONS:
        raise UnknownNameError("label", label, DIMENSIONS)
    if "score" in held:
        if label is None:
            raise InputError("--label is missing: the scores can stand for cognition or decision; choose one")
        if label in found:
            raise InputError(f"{table}: both score and {label} hold {label}; name one")
        found["score"] = label
    if not found:
        raise InputError(f"{table}: no column holds scores; name it: --column score=NAME")
    return found


def _spread(where: str, cells: dict[str, Any], factor: float) -> tuple[float, int]:
    """The standard deviation on 0 .. 5, NaN without one, and the number of raters, 0 without one."""
    deviation = number_in(where, cells, "sd", 0.0, math.inf) * factor if text_in(cells, "sd") else math.nan
    raters = number_in(where, cells, "n", 1, _MOST_RATERS) if text_in(cells, "n") else 0.0
    return deviation, int(raters)


def _sums(
    scores: Mapping[tuple[str, Image], Mapping[str, float]], scene_of: Mapping[str, str], about: Mapping[str, Any]
) -> SubjectSums:
    """What each rater thinks of each image, in the place of a model's sum over tasks."""
    raters, row = np.unique(np.array([rater for rater, _ in scores], np.str_), return_inverse=True)
    reference, distortion = (np.array([image[part] for _, image in scores], np.str_) for part in (0, 1))
    level = np.array([image[2] for _, image in scores], np.int64)
    place, first = numbered_images(reference, distortion, level)
    values = {name: np.full((len(raters), len(first)), np.nan) for name in VALUES}
    for name, matrix in values.items():
        matrix[row, place] = [each.get(name, math.nan) for each in scores.values()]
    scene = np.array([scene_of[name] for name in reference[first].tolist()], np.str_)
    return SubjectSums(raters, scene, reference[first], distortion[first], level[first], values, TASKS, about)


def _means(
    scores: Mapping[Image, Mapping[str, float]],
    extra: Mapping[Image, tuple[float, int]],
    images: Images,
    scene_of: Mapping[str, str],
    about: Mapping[str, Any],
) -> Opinions:
    """Opinions whose raters are not known, sorted as those of `opinion.opinions`."""
    images = images.where(np.lexsort((images.level, images.distortion_id, images.reference_id)))
    keys = list(zip(images.reference_id.tolist(), images.distortion.tolist(), images.level.tolist(), strict=True))
    nothing: dict[str, float] = {}
    columns = {name: np.array([scores.get(key, nothing).get(name, math.nan) for key in keys]) for name in VALUES}
    sos, n = {}, {}
    for name, column in columns.items():
        known = ~np.isnan(column)
        sos[name] = np.where(known, [extra.get(key, (math.nan, 0))[0] for key in keys], np.nan)
        n[name] = np.where(known, [extra.get(key, (math.nan, 0))[1] for key in keys], 0).astype(np.int64)
    parts = {field.name: getattr(images, field.name) for field in fields(images)}
    jnd = {f"jnd_{stage}": by_cell(columns[stage], images.distortion_id, images.level) for stage in DIMENSIONS}
    facts = {**about, "label": "mean", "subjects": {stage: [] for stage in DIMENSIONS}, "jnd": "by_cell"}
    scene = np.array([scene_of[name] for name in images.reference_id.tolist()], np.str_)
    return Opinions(scene=scene, sos=sos, n=n, about=facts, **parts, **columns, **jnd)  # type: ignore[arg-type]
