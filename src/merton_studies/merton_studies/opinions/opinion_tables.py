"""The tables of opinions: sums of every subject, one score per image, and their Parquet files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError, UnknownNameError
from merton.files import write_file
from merton.perception.dataset import layout
from merton.results.parquet import metadata, parquet_bytes, read_columns, require_pyarrow
from merton.results.text import one_line
from merton.study.outputs import DIMENSIONS

SUBJECTS, OPINIONS = "subjects.parquet", "opinions.parquet"
"""Names of the files beside a dataset's scores."""
TASKS = 5
"""Tasks of a reference image (Embodied-IQA 3.2)."""
LEVELS = 5
"""Of a dataset that says nothing else."""
VALUES = tuple(name for stage, names in DIMENSIONS.items() for name in (stage, *names))
"""cognition, its three dimensions, decision, its three dimensions."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Texts = NDArray[np.str_]

SCORE_COLUMNS = ("model", "scene", "image", "task", "dimension", "level", "score")
_IMAGE_COLUMNS = ("reference_id", "distortion_id", "distortion", "category", "level")
_REFERENCE_COLUMNS = ("domain", "perspective", "object", "background")
_KEYS = ("model", "scene", "reference_id", "distortion", "level")


@dataclass(frozen=True)
class SubjectSums:
    """Scores of every subject (model) on every image, summed over the tasks of the image.

    Attributes:
        models: (m,) names, sorted.
        scene, reference_id, distortion: (n,) of each image, sorted by reference, distortion and level; the reference
            itself is "reference" of level 0.
        level: (n,) 0 and up.
        values: name of `VALUES` to (m, n), each 0..tasks (CIDEr divided by 10); NaN where the subject is one of the
            other stage, or one of its tasks has no score: a sum is missing, never smaller.
        tasks: summed.
        about: dataset, versions and models as the scores' files name them; of text and numbers.
    """

    models: Texts
    scene: Texts
    reference_id: Texts
    distortion: Texts
    level: NDArray[np.int64]
    values: Mapping[str, Floats]
    tasks: int
    about: Mapping[str, Any]

    def subjects(self, value: str) -> list[str]:
        """The models that have this value on at least one distorted image."""
        known = ~np.isnan(self.values[value][:, self.level > 0])
        return [str(name) for name in self.models[known.any(axis=1)]]

    def where(self, images: NDArray[Any]) -> SubjectSums:
        """The sums on some of the images; `images` is an index or a mask."""
        columns = {name: getattr(self, name)[images] for name in ("scene", "reference_id", "distortion", "level")}
        return replace(self, **columns, values={name: matrix[:, images] for name, matrix in self.values.items()})


@dataclass(frozen=True)
class Images:
    """The distorted images of a dataset, columns of shape (n,): those of its manifest, and of each one's reference."""

    reference_id: Texts
    distortion_id: Texts
    distortion: Texts
    category: Texts
    level: NDArray[np.int64]
    domain: Texts
    perspective: Texts
    object: Texts
    background: Texts

    def where(self, rows: NDArray[Any]) -> Images:
        """Some of the images; `rows` is an index or a mask."""
        return Images(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True)
class Opinions:
    """One score per distorted image (mean opinion score); all columns have shape (n,), sorted by reference and type.

    Attributes:
        scene: the unit that was sampled; every interval is clustered by it.
        cognition, bleu, rouge_l, cider, decision, position, rotation, state: the mean over subjects of their sums over
            the tasks, 0..5 each; with the label "zscore" the mean of their standardised sums. NaN where fewer than the
            least number of subjects have it: such an image is listed by `unused`, and not used.
        sos: value to the standard deviation over subjects (n - 1 in the denominator); NaN for fewer than two.
        n: value to the number of subjects that have it.
        jnd_cognition, jnd_decision: "mild", "medium" or "severe", by cells of type and level
            (`study.sensitivity.by_cell`); "" where there is no score, or all scores are equal.
        about: label, subjects, least number of them, tasks, dataset, versions; whose distortions they are, and how many
            levels these have.
    """

    scene: Texts
    reference_id: Texts
    distortion_id: Texts
    distortion: Texts
    category: Texts
    level: NDArray[np.int64]
    domain: Texts
    perspective: Texts
    object: Texts
    background: Texts
    cognition: Floats
    bleu: Floats
    rouge_l: Floats
    cider: Floats
    decision: Floats
    position: Floats
    rotation: Floats
    state: Floats
    sos: Mapping[str, Floats]
    n: Mapping[str, NDArray[np.int64]]
    jnd_cognition: Texts
    jnd_decision: Texts
    about: Mapping[str, Any]

    def value(self, name: str) -> Floats:
        """The column of a value; raises UnknownNameError for a name that is not in `VALUES`."""
        if name not in VALUES:
            raise UnknownNameError("value", name, VALUES)
        column: Floats = getattr(self, name)
        return column

    @property
    def levels(self) -> tuple[int, ...]:
        """1 to the highest level of the dataset: five where Merton distorted, as in Embodied-IQA (3.1)."""
        return tuple(range(1, max(int(self.about.get("levels", LEVELS)), int(self.level.max(initial=1))) + 1))

    @property
    def stages(self) -> list[str]:
        """The stages, cognition and decision, that at least one image has a score of."""
        return [stage for stage in DIMENSIONS if not np.isnan(self.value(stage)).all()]

    def unused(self, stage: str) -> NDArray[np.int64]:
        """Rows of the images without a score of a stage that others have."""
        missing = np.isnan(self.value(stage))
        return np.flatnonzero(missing) if stage in self.stages else np.zeros(0, np.int64)

    def where(self, rows: NDArray[Any]) -> Opinions:
        """Some of the images; `rows` is an index or a mask. Their JND classes stay as they are."""
        parts: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                parts[field.name] = value[rows]
            elif field.name != "about":
                parts[field.name] = {name: column[rows] for name, column in value.items()}
        return replace(self, **parts)


def read_images(dataset: Path) -> Images:
    """The distorted images of a dataset's folder, in the order of its manifest.

    Raises InputError if it has no manifest or no table of references, or these do not belong together.
    """
    manifest = read_columns(dataset / layout.MANIFEST, _IMAGE_COLUMNS)
    references = read_columns(dataset / layout.REFERENCE_TABLE, ("id", *_REFERENCE_COLUMNS))
    row_of = {name: row for row, name in enumerate(references.column("id").to_pylist())}
    ids = manifest.column("reference_id").to_pylist()
    unknown = next((name for name in ids if name not in row_of), None)
    if unknown is not None:
        raise InputError(f"{dataset}: the manifest names a reference {one_line(unknown)!r} that does not exist")
    rows = [row_of[name] for name in ids]
    columns: dict[str, Any] = {name: np.array(manifest.column(name).to_pylist()) for name in _IMAGE_COLUMNS}
    for name in _REFERENCE_COLUMNS:
        columns[name] = np.array(references.column(name).to_pylist())[rows]
    return Images(**{**columns, "level": columns["level"].astype(np.int64)})


def write_subjects(sums: SubjectSums, path: Path) -> None:
    """Write `subjects.parquet`: a row for every model and image that has a sum; values as float32, null for NaN."""
    arrow = require_pyarrow()
    known = np.logical_or.reduce([~np.isnan(matrix) for matrix in sums.values.values()])
    model, image = np.nonzero(known)
    columns = {"model": arrow.array(sums.models[model].tolist())}
    for name in ("scene", "reference_id", "distortion"):
        columns[name] = arrow.array(getattr(sums, name)[image].tolist())
    columns["level"] = arrow.array(sums.level[image], arrow.int8())
    for name in VALUES:
        columns[name] = arrow.array(sums.values[name][model, image].astype(np.float32), from_pandas=True)
    _write(path, columns, {**sums.about, "tasks": sums.tasks})


def read_subjects(path: Path) -> SubjectSums:
    """The sums in a file of `write_subjects`; raises InputError if it is none."""
    table = read_columns(path, (*_KEYS, *VALUES))
    about = metadata(table.schema)
    model, scene, reference, distortion = (np.array(table.column(name).to_pylist(), np.str_) for name in _KEYS[:4])
    level = table.column("level").to_numpy().astype(np.int64)
    models, row = np.unique(model, return_inverse=True)
    place, first = numbered_images(reference, distortion, level)
    values = {}
    for name in VALUES:
        values[name] = np.full((len(models), len(first)), np.nan)
        values[name][row, place] = table.column(name).to_numpy()
    tasks = int(about.pop("tasks", TASKS))
    shown = (scene[first], reference[first], distortion[first], level[first])
    return SubjectSums(models, *shown, values, tasks, about)


def write_opinions(found: Opinions, path: Path) -> None:
    """Write `opinions.parquet`: a row for every distorted image; scores are null where `Opinions` has NaN."""
    arrow = require_pyarrow()
    columns = {}
    for field in fields(found):
        value = getattr(found, field.name)
        if field.name in ("sos", "n"):
            columns.update(
                {f"{name}_{field.name}": arrow.array(column, from_pandas=True) for name, column in value.items()}
            )
        elif field.name == "level":
            columns["level"] = arrow.array(value, arrow.int8())
        elif field.name != "about":
            texts = value.dtype.kind == "U"
            columns[field.name] = arrow.array(value.tolist()) if texts else arrow.array(value, from_pandas=True)
    _write(path, columns, found.about)


def read_opinions(path: Path) -> Opinions:
    """The opinions in a file of `write_opinions`; raises InputError if it is none."""
    plain = [field.name for field in fields(Opinions) if field.name not in ("sos", "n", "about")]
    suffixed = {kind: {name: f"{name}_{kind}" for name in VALUES} for kind in ("sos", "n")}
    table = read_columns(path, (*plain, *(column for names in suffixed.values() for column in names.values())))
    parts: dict[str, Any] = {}
    for name in plain:
        column = table.column(name)
        if name == "level" or name in VALUES:
            parts[name] = column.to_numpy().astype(np.int64 if name == "level" else np.float64)
        else:
            parts[name] = np.array(column.to_pylist(), np.str_)
    for kind, names in suffixed.items():
        as_type = np.int64 if kind == "n" else np.float64
        parts[kind] = {name: table.column(column).to_numpy().astype(as_type) for name, column in names.items()}
    return Opinions(**parts, about=metadata(table.schema))


def numbered_images(reference: Texts, distortion: Texts, level: Integers) -> tuple[Integers, Integers]:
    """Of each row the number of its image, in the order of reference, distortion and level; and a row of each image."""
    number = np.zeros(len(level), np.int64)
    for column in (reference, distortion, level):
        _, values = np.unique(column, return_inverse=True)
        number = number * (int(values.max(initial=0)) + 1) + values
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    return place, first


def _write(path: Path, columns: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    arrow = require_pyarrow()
    table = arrow.table(dict(columns)).replace_schema_metadata({"merton": json.dumps(about, sort_keys=True)})
    write_file(path, parquet_bytes(table))
