"""The benchmark of image quality metrics on a judged dataset (Embodied-IQA, Tables 2 and 4), split by split.

Every metric, floor and ceiling has a file for each split and repeat, written whole: after a kill the same call goes on,
and the tables have the same bytes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import merton
from merton.errors import InputError, MertonError, UnknownNameError
from merton.perception.quality import METRICS
from merton.perception.quality.learned import ELSEWHERE, TRAINABLE, trainable
from merton.perception.quality.learned.prepared import prepare_all
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, Step, quiet
from merton.results.text import counted, one_line
from merton_studies.iqa import folds as folding
from merton_studies.iqa import metric_floors
from merton_studies.iqa.folds import Fold, Indicators, Measured, Prediction, Trained
from merton_studies.iqa.judged import JudgedImages
from merton_studies.iqa.metric_table import ALL_SPLITS, GROUPS, Benchmark, CoefficientRow, Column, columns, summarised
from merton_studies.iqa.values import MetricValues

REPEATS = 10
"""As in the paper (section 5.1)."""
PARTS, WEIGHTS, TRAINING, PREPARED = "parts", "weights", "training", "prepared"
"""Folders of the results: coefficients, trained weights, checkpoints, and what trainings need of the images."""
_ROW_S = 0.1
"""Time of a core for the coefficients of a row on a fold, for the progress."""


@dataclass(frozen=True)
class _Task:
    """A piece of work: a function of `folds`, its argument, and about how long a core works on it [s]."""

    function: Callable[[Any], Any]
    job: Measured | Trained
    cost_s: float


def chosen_metrics(names: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Metrics to measure, and metrics to train; by default all that need nothing that is not installed.

    A name that both registries have is trained: the metric of that name that comes with Merton is one such training.
    By default no network is trained that belongs to another environment (`ELSEWHERE`): that may take days.

    Raises:
        UnknownNameError: a name that neither registry has.
        MissingDependencyError: a metric that was named cannot be trained here.
    """
    if names is None:
        untrained = [name for name, metric in METRICS.items() if metric.group == "zero_shot"]
        measured = [name for name in untrained if METRICS[name].missing() is None]
        return measured, [name for name, metric in TRAINABLE.items() if metric.missing() is None]
    for name in names:
        if name not in METRICS and name not in TRAINABLE:
            raise UnknownNameError("metric", name, dict.fromkeys((*METRICS, *TRAINABLE)))
    wanted = list(dict.fromkeys(names))
    trained = [trainable(name).name for name in wanted if name in TRAINABLE]
    return [name for name in wanted if name not in TRAINABLE], trained


def benchmark(
    judged: JudgedImages,
    values: MetricValues | None,
    trained: Sequence[str] | Mapping[str, Sequence[str]],
    out: Path,
    splits: Sequence[str] = tuple(ALL_SPLITS),
    repeats: int = REPEATS,
    epochs: int | None = None,
    workers: int | None = None,
    step: Step = quiet,
    prepared: Path | None = None,
) -> Benchmark:
    """Test metrics, floors and ceiling on every split and repeat of a judged dataset.

    Args:
        judged: images and opinions.
        values: of zero-shot metrics; None for none.
        trained: metrics of `TRAINABLE`, trained anew for each repeat of each split; or split to such metrics.
        out: folder for the parts; parts of the same inputs are used again.
        splits: of `ALL_SPLITS`.
        repeats: of each split; leaving one subject out has one for each subject.
        epochs: of every training; None for each metric's own number.
        workers: processes; one for each usable core by default.
        step: shows the progress of the preparation of images, and of trainings and tests.
        prepared: folder for what trainings need of the images, which benchmarks may share; below `out` by default.

    Raises:
        UnknownNameError: no such split or metric.
        MissingDependencyError: a package for a training is not installed.
        InputError: no repeats, images that cannot be divided so, or another benchmark is at work in `out`.
        InfrastructureError: `out` cannot be written, or a worker was killed.
    """
    for name in splits:
        if name not in ALL_SPLITS:
            raise UnknownNameError("split", name, ALL_SPLITS)
    plan = trained if isinstance(trained, Mapping) else dict.fromkeys(splits, trained)
    metrics = [trainable(name).name for name in dict.fromkeys(name for names in plan.values() for name in names)]
    if repeats < 1:
        raise InputError(f"a benchmark needs at least one repeat, got {repeats}")
    table = columns(judged.opinions, judged.stage)
    every = [fold for name in ALL_SPLITS if name in splits for fold in folding.folds(judged, name, repeats)]
    with resumable_work(out, "merton iqa benchmark"):
        work = _Work(judged, table, out, prepared or out / PREPARED, epochs)
        for fold in every:
            work.add_known(fold, [*_zero_shot(judged, values, fold), *folding.floors(judged, fold)])
        for metric in metrics:
            for fold in every:
                if metric in plan.get(fold.split, ()):
                    work.add_training(fold, metric)
        with step("prepare the images") as on_progress:
            failures = work.prepare(on_progress)
        with step("train and test") as on_progress:
            failures += _done(work.tasks, workers, on_progress)
        fewer = _fewer(every, repeats)
        rows = work.rows([*(values.values if values else ()), *metrics])
    about = {
        "label": judged.stage,
        "images": len(judged.pairs),
        "references": len(np.unique(judged.opinions.reference_id)),
        "scenes": len(np.unique(judged.opinions.scene)),
        "subjects": list(judged.subjects) or list(judged.opinions.about.get("subjects", {}).get(judged.stage, [])),
        "repeats": repeats,
        "epochs": epochs,
        **judged.about,
        "metrics": dict(values.about["metrics"]) if values else {},
        "versions": {"merton": merton.__version__, "numpy": np.__version__, "scipy": scipy.__version__},
    }
    return Benchmark(
        judged.stage, table, rows, about, (*_remarks(judged, table, values, splits), *fewer), tuple(failures)
    )


def _zero_shot(judged: JudgedImages, values: MetricValues | None, fold: Fold) -> list[Prediction]:
    seen = judged.opinions
    images = (seen.reference_id.tolist(), seen.distortion.tolist(), seen.level.tolist())
    return [Prediction(name, values.of(name, *images), fold.targets) for name in values.values] if values else []


def _remarks(
    judged: JudgedImages, table: Sequence[Column], values: MetricValues | None, splits: Sequence[str]
) -> tuple[str, ...]:
    found = [*judged.remarks, *(f"{column.title}: {column.reason}." for column in table if column.reason)]
    if len(judged.subjects) < 2:
        known = "one subject" if judged.subjects else "the mean opinions alone"
        found.append(f"With {known} there is no ceiling, and no subject can be left out: give subjects.parquet.")
    if "type" in splits:
        found.append("Over types the scatter of repeats says more than the intervals, which know only of scenes.")
    for name, column in (values.values if values else {}).items():
        if infinite := int(np.isinf(column).sum()):
            found.append(f"{name} is infinite for {infinite} images, which count as the largest finite value in PLCC.")
        if missing := int(np.isnan(column).sum()):
            found.append(f"{name} has no value for {missing} images, which are left out of its row.")
    return tuple(found)


def _fewer(every: Sequence[Fold], repeats: int) -> Iterator[str]:
    """A sentence for each split that has fewer different test parts than repeats were asked for."""
    for name, count in Counter(fold.split for fold in every).items():
        if count < repeats and name != folding.SUBJECT:
            parts, repeated = counted(count, "different test part"), counted(count, "repeat")
            yield f"Over {name} only {parts} can be drawn, so it has {repeated}."


class _Work:
    """All parts of a benchmark: where each lies, by which key it is known, and what has to be done for it."""

    def __init__(
        self, judged: JudgedImages, table: tuple[Column, ...], out: Path, prepared: Path, epochs: int | None
    ) -> None:
        self._judged, self._table, self._out, self._prepared, self._epochs = judged, table, out, prepared, epochs
        self._keys: dict[tuple[str, str, int], str] = {}
        self.tasks: list[_Task] = []

    def add_known(self, fold: Fold, predictions: Sequence[Prediction]) -> None:
        """Rows whose predictions are there already."""
        wanted = []
        for prediction in predictions:
            key = folding.prediction_sha256(fold, prediction)
            part = self._note(fold, prediction.row, key)
            if folding.read_part(part, key) is None:
                wanted.append((part, key, prediction))
        if wanted:
            job = Measured(self._table, self._judged.opinions.scene, fold, tuple(wanted))
            self.tasks.append(_Task(folding.measure_fold, job, _ROW_S * len(wanted)))

    def add_training(self, fold: Fold, metric: str) -> None:
        """A metric to be trained."""
        judged = self._judged
        key = folding.training_sha256(fold, judged, metric, self._epochs)
        part = self._note(fold, metric, key)
        if folding.read_part(part, key) is None:
            name = f"{judged.stage}-{fold.split}-{fold.repeat}-{_file_name(metric)}"
            weights = self._out / WEIGHTS / f"{name}.npz"
            folder = self._out / TRAINING / f"{name}-{key[:12]}"
            places = (part, key, weights, folder, self._prepared)
            job = Trained(self._table, judged.opinions.scene, fold, metric, judged.pairs, *places, self._epochs)
            cost_s = TRAINABLE[metric].cost(len(fold.train), self._epochs)
            self.tasks.append(_Task(folding.train_fold, job, cost_s))

    def prepare(self, on_progress: OnProgress) -> list[str]:
        """Prepare all images for the metrics that are to be trained, image by image: each is decoded once.

        Returns why a metric cannot be trained; its trainings are dropped.
        """
        metrics = {task.job.metric: TRAINABLE[task.job.metric] for task in self.tasks if isinstance(task.job, Trained)}
        pairs, failures = self._judged.pairs, []
        for name in [name for name in metrics if name in ELSEWHERE]:  # before hours of the others' trainings
            try:
                metrics[name].prepare(pairs, self._prepared)
            except MertonError as error:
                failures.append(self._dropped(name, error))
        try:
            items = [item for pair in pairs for metric in metrics.values() for item in metric.items(pair)]
            prepare_all(items, self._prepared, on_progress)
        except InputError:  # of which metric?
            for name, metric in metrics.items():
                try:
                    metric.prepare(pairs, self._prepared, on_progress)
                except InputError as error:
                    failures.append(self._dropped(name, error))
        return failures

    def _dropped(self, metric: str, error: MertonError) -> str:
        """Leave all trainings of a metric out; the sentence says why."""
        self.tasks = [task for task in self.tasks if not isinstance(task.job, Trained) or task.job.metric != metric]
        return f"{metric}: {one_line(error, 300)}"

    def rows(self, metrics: Sequence[str]) -> tuple[CoefficientRow, ...]:
        """Rows of all metrics, floors and the ceiling under each split, without those whose training failed."""
        found: list[CoefficientRow] = []
        names = [*metrics, *metric_floors.FLOORS, metric_floors.CEILING]
        for split in ALL_SPLITS:
            for name in sorted(names, key=lambda name: list(GROUPS).index(_group(name))):
                repeats = [self._read(*place) for place in self._keys if place[:2] == (split, name)]
                if any(repeat is not None for repeat in repeats):  # of a failed one nothing is known
                    row = summarised(name, _group(name), split, [repeat or {} for repeat in repeats])
                    found.append(replace(row, start=self._start(split, name)))
        return tuple(found)

    def _start(self, split: str, row: str) -> str:
        """What the networks of a row began with: of all repeats the same, unless weights came in between."""
        parts = [self._part(*place) for place in self._keys if place[:2] == (split, row)]
        return " / ".join(dict.fromkeys(start for part in parts if (start := folding.read_start(part))))

    def _note(self, fold: Fold, row: str, key: str) -> Path:
        self._keys[fold.split, row, fold.repeat] = key
        return self._part(fold.split, row, fold.repeat)

    def _part(self, split: str, row: str, repeat: int) -> Path:
        return self._out / PARTS / self._judged.stage / split / _file_name(row) / f"{repeat}.json"

    def _read(self, split: str, row: str, repeat: int) -> Indicators | None:
        return folding.read_part(self._part(split, row, repeat), self._keys[split, row, repeat])


def _group(name: str) -> str:
    if name in metric_floors.FLOORS:
        return "floor"
    if name == metric_floors.CEILING:
        return "ceiling"
    if name in TRAINABLE:
        return "full_reference" if TRAINABLE[name].needs_reference else "no_reference"
    return "zero_shot"


def _file_name(row: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in row)


def _done(tasks: Sequence[_Task], workers: int | None, on_progress: OnProgress) -> list[str]:
    """Do all tasks, the longest training first, so that no core waits at the end; returns why some failed."""
    tasks = sorted(tasks, key=lambda task: (isinstance(task.job, Trained), -task.cost_s))
    left, failures = dict(enumerate(tasks)), []
    total_s = sum(task.cost_s for task in tasks)
    total = math.ceil(total_s)

    def tell() -> None:
        left_s = sum(task.cost_s * (1.0 - _share_done(task)) for task in left.values())
        on_progress(min(int(total_s - left_s), total) if left else total, total)

    for index, failure in carried_out(_do, [(task,) for task in tasks], workers, tell):
        del left[index]
        failures.append(failure)
        tell()
    return [reason for reason in failures if reason]


def _do(task: _Task) -> str:
    """Carry a task out; returns why it failed, empty if it did not."""
    return task.function(task.job) or ""


def _share_done(task: _Task) -> float:
    return folding.share_done(task.job.folder) if isinstance(task.job, Trained) else 0.0
