"""The tasks of a benchmark: one part of the images to learn from and one to test on, and the work that is done on them.

This module is what a worker process runs; `merton_studies.iqa.benchmark` plans the tasks and collects the results.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import merton
from merton.errors import MertonError
from merton.files import written_whole
from merton.perception.quality.learned import TRAINABLE
from merton.perception.quality.pairs import ImagePair
from merton.results.text import one_line
from merton_studies.iqa import metric_floors
from merton_studies.iqa.judged import JudgedImages, sha256_of
from merton_studies.iqa.metric_table import SUBJECT, Column, evaluate
from merton_studies.opinions.splits import divisions, split

Floats = NDArray[np.float64]

FORMAT = 1
"""Of the parts; another number makes those of before invalid."""


@dataclass(frozen=True)
class Fold:
    """One repeat of a split.

    Attributes:
        split: of `metric_table.ALL_SPLITS`.
        repeat: number, from 0; where a subject is left out, the subject's number.
        train, test: indices of images.
        labels: (n,) to train on.
        targets: value to its (n,) opinions to test against.
        subjects: (n,) predictions of the ceiling and its targets, value by value; None where subjects are not known.
    """

    split: str
    repeat: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    labels: Floats
    targets: Mapping[str, Floats]
    subjects: tuple[Mapping[str, Floats], Mapping[str, Floats]] | None

    @property
    def sha256(self) -> str:
        """Of all that a result depends on besides the predictions."""
        arrays = [self.train, self.test, self.labels, *self.targets.values()]
        return sha256_of(FORMAT, merton.__version__, self.split, self.repeat, *arrays)


def folds(judged: JudgedImages, name: str, repeats: int) -> list[Fold]:
    """The folds of a split; of leaving one subject out as many as there are subjects, none where none is known.

    Their test parts differ, since the same part drawn again adds nothing; so there are fewer than `repeats`
    where fewer parts exist. Raises InputError if the images cannot be divided so.
    """
    if name == SUBJECT:
        count = len(judged.subjects)
        return [_fold(judged, name, repeat) for repeat in range(count if count > 1 else 0)]
    wanted, drawn = min(repeats, divisions(name, judged.columns)), set[bytes]()
    found: list[Fold] = []
    seeds = itertools.count()
    while len(found) < wanted:
        fold = _fold(judged, name, next(seeds))
        if (part := fold.test.tobytes()) not in drawn:
            drawn.add(part)
            found.append(fold)
    return found


def _fold(judged: JudgedImages, name: str, repeat: int) -> Fold:
    own, many = judged.own, len(judged.subjects)
    if name == SUBJECT:
        train, test = split("reference", judged.columns, repeat)
        others = np.delete(np.arange(many), repeat)
        rest = {value: _mean(own[value][others]) for value in judged.values}
        targets = {value: own[value][repeat] for value in judged.values}
        train = train[~np.isnan(rest[judged.stage][train])]  # images that this subject alone judged
        return Fold(name, repeat, train, test, rest[judged.stage], targets, (rest, targets))
    train, test = split(name, judged.columns, repeat)
    subjects = None
    if many > 1:
        first, second = (
            {value: _mean(own[value][half]) for value in judged.values} for half in metric_floors.halves(many, repeat)
        )
        subjects = first, second
    return Fold(name, repeat, train, test, judged.labels, judged.targets, subjects)


def _mean(sums: Floats) -> Floats:
    """(n,) over the subjects that judged an image: all models, but seldom all raters; NaN where none did."""
    known = ~np.isnan(sums)
    count = known.sum(axis=0)
    total = np.where(known, sums, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(sums.shape[1], np.nan), where=count > 0)


@dataclass(frozen=True)
class Prediction:
    """Predictions of one row of the table on a fold, and the opinions that they are compared with."""

    row: str
    predicted: Mapping[str, Floats] | Floats
    targets: Mapping[str, Floats]


def floors(judged: JudgedImages, fold: Fold) -> list[Prediction]:
    """The predictions of floors and ceiling."""
    seen = judged.opinions
    cells = metric_floors.cell_means(seen.distortion, seen.level, fold.labels, fold.train)
    reference = metric_floors.with_reference_means(cells, seen.reference_id, fold.labels, fold.train)
    predicted = [metric_floors.level_alone(seen.level), cells, reference]
    names = list(metric_floors.FLOORS)
    if not np.isnan(judged.attributes).any():
        predicted.append(metric_floors.attributes_regression(judged.attributes, fold.labels, fold.train))
    found = [Prediction(name, each, fold.targets) for name, each in zip(names, predicted, strict=False)]
    if fold.subjects:
        found.append(Prediction(metric_floors.CEILING, *fold.subjects))
    return found


def prediction_sha256(fold: Fold, prediction: Prediction) -> str:
    """Of all that the coefficients of a prediction depend on."""
    arrays = prediction.predicted
    parts = [arrays] if isinstance(arrays, np.ndarray) else list(arrays.values())
    return sha256_of(fold.sha256, *parts, *prediction.targets.values())


def training_sha256(fold: Fold, judged: JudgedImages, metric: str, epochs: int | None) -> str:
    """Of all that the coefficients of a trained metric depend on: its version stands for its code."""
    version = getattr(TRAINABLE[metric], "version", 1)
    return sha256_of(fold.sha256, "".join(judged.sha256), metric, version, epochs)


@dataclass(frozen=True)
class Measured:
    """Predictions on one fold whose coefficients are wanted: part file, its key, and the prediction."""

    table: tuple[Column, ...]
    scene: NDArray[Any]
    fold: Fold
    wanted: tuple[tuple[Path, str, Prediction], ...]


def measure_fold(job: Measured) -> None:
    """Compute and write the parts of predictions that are known."""
    for part, key, prediction in job.wanted:
        found = evaluate(job.table, prediction.predicted, prediction.targets, job.fold.test, job.scene)
        write_part(part, key, found)


@dataclass(frozen=True)
class Trained:
    """A metric to be trained and tested on one fold.

    Attributes:
        pairs: of all images.
        part, key: file of the result, and what it must say of itself.
        weights: file that the weights are kept in.
        folder: for checkpoints, until the part is written.
        cache: what was prepared of the images, for all trainings.
        epochs: None for the metric's own number.
    """

    table: tuple[Column, ...]
    scene: NDArray[Any]
    fold: Fold
    metric: str
    pairs: tuple[ImagePair, ...]
    part: Path
    key: str
    weights: Path
    folder: Path
    cache: Path
    epochs: int | None


def train_fold(job: Trained) -> str:
    """Train, test and write the part; returns the reason if the metric cannot be trained here, else "".

    A kill in between costs the epochs since the last checkpoint.
    """
    metric = TRAINABLE[job.metric]
    job.folder.mkdir(parents=True, exist_ok=True)
    progress = progress_file(job.folder)

    def tell(done: int, total: int) -> None:
        with written_whole(progress, durable=False) as file:
            file.write(f"{done} {total}".encode())

    train, test = ([job.pairs[row] for row in rows] for rows in (job.fold.train, job.fold.test))
    try:
        labels = job.fold.labels[job.fold.train]
        weights = metric.train(train, labels, job.fold.repeat, job.folder, job.epochs, tell, job.cache)
        guess = metric.predict(weights, test, job.cache)
    except MertonError as error:
        return f"{job.metric} over the {job.fold.split} split, repeat {job.fold.repeat + 1}: {one_line(error, 300)}"
    predicted = np.full(len(job.pairs), np.nan)
    predicted[job.fold.test] = guess
    found = evaluate(job.table, predicted, job.fold.targets, job.fold.test, job.scene)
    job.weights.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(weights, job.weights.with_suffix(".unfinished"))
    os.replace(job.weights.with_suffix(".unfinished"), job.weights)
    write_part(job.part, job.key, found, guess.tolist(), metric.start(weights))
    shutil.rmtree(job.folder, ignore_errors=True)
    progress.unlink(missing_ok=True)
    return ""


def progress_file(folder: Path) -> Path:
    """The file in which a training tells how far it is: epochs done, and in all."""
    return folder.with_name(f"{folder.name}.progress")


def share_done(folder: Path) -> float:
    """Share of a training that is done, 0..1."""
    try:
        done, total = progress_file(folder).read_text(encoding="utf-8").split()
        return int(done) / max(int(total), 1)
    except (OSError, ValueError):
        return 0.0


Indicators = dict[str, dict[str, float | None]]


def write_part(
    file: Path,
    key: str,
    found: Mapping[str, Mapping[str, float]],
    predictions: Sequence[float] | None = None,
    start: str = "",
) -> None:
    """Write the coefficients of a row on a fold, and what its network began with, whole or not at all."""
    columns = {
        column: {name: None if math.isnan(value) else value for name, value in values.items()}
        for column, values in found.items()
    }
    content: dict[str, Any] = {"key": key, "columns": columns}
    if predictions is not None:
        content |= {"predictions": predictions, "start": start}
    file.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(file, durable=False) as draft:
        draft.write(json.dumps(content, sort_keys=True).encode())


def read_part(file: Path, key: str) -> Indicators | None:
    """The coefficients in a part, None if it is not there or is of other inputs."""
    content = _content(file)
    columns: Indicators | None = content.get("columns")
    return columns if content.get("key") == key else None


def read_start(file: Path) -> str:
    """What the network of a part began with; "" if nothing was trained."""
    return str(_content(file).get("start", ""))


def _content(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
