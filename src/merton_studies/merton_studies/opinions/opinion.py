"""One score per image, the mean opinion of models (Embodied-IQA 3.3 to 3.5): sums over tasks, means over subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from merton.errors import InputError, UnknownNameError
from merton.results.parquet import metadata, read_columns, require_pyarrow
from merton.results.text import one_line
from merton.study.outputs import DIMENSIONS
from merton_studies.opinions.opinion_tables import (
    OPINIONS,
    SCORE_COLUMNS,
    SUBJECTS,
    TASKS,
    VALUES,
    Floats,
    Images,
    Integers,
    Opinions,
    SubjectSums,
    Texts,
    numbered_images,
    read_images,
    read_opinions,
    read_subjects,
    write_opinions,
    write_subjects,
)
from merton_studies.opinions.sensitivity import by_cell

__all__ = [
    "LABELS",
    "OPINIONS",
    "SUBJECTS",
    "TASKS",
    "VALUES",
    "Images",
    "Opinions",
    "SubjectSums",
    "leave_one_out",
    "opinions",
    "read_images",
    "read_opinions",
    "read_subjects",
    "subject_sums",
    "write_opinions",
    "write_subjects",
]

LABELS = ("mean", "zscore")
"""Values of which an opinion is the mean: sums, or each subject's standardised sums."""


def subject_sums(scores: Iterable[Any], tasks: int | Mapping[str, int] = TASKS) -> SubjectSums:
    """The sums over tasks of every model on every image.

    Args:
        scores: tables of scores: paths of Parquet files, or Arrow tables, with the columns of `models.ScoreTable`;
            each model in one of them.
        tasks: how many tasks an image must have; or reference to how many it has, 1 to 5: then a sum of fewer than
            five is scaled to five, so that the sums of all references lie in 0..5 (ours: the paper has five).

    Raises:
        InputError: no such table, a column is missing, a score is empty, NaN or outside 0..1, or a score of a model
            is there twice.
        MissingDependencyError: pyarrow is not installed.
    """
    table, about = _joined(scores)
    (models, model), (scenes, scene), (images, image), (task_names, task), (dimensions, dimension) = (
        _codes(table.column(name)) for name in SCORE_COLUMNS[:5]
    )
    level, score = (table.column(name).to_numpy() for name in SCORE_COLUMNS[5:])
    levels = int(level.max(initial=0)) + 1
    code = image() * levels + level
    scene_of = np.full(len(images) * levels, -1)
    scene_of[code] = scene()
    first = np.flatnonzero(scene_of >= 0)
    place_of = np.cumsum(scene_of >= 0) - 1
    references, distortions = _split(images[first // levels])
    shown = numbered_images(references, distortions, first % levels)[1]
    wanted = np.array([tasks if isinstance(tasks, int) else tasks.get(one, TASKS) for one in references.tolist()])
    which, values = dimension(), {}
    for name in VALUES:
        rows = (
            np.flatnonzero(which == np.flatnonzero(dimensions == name)) if name in dimensions else np.zeros(0, np.intp)
        )
        keys = (model(rows) * len(first) + place_of[code[rows]]) * len(task_names) + task(rows)
        try:
            sums = _sums(keys, score[rows], len(task_names), np.tile(wanted, len(models)))
        except _TwiceError as error:
            twice = one_line(models[error.key // len(task_names) // len(first)])
            raise InputError(f"a score of {twice!r} is there twice: each model must be in one table only") from None
        scale = 1.0 if isinstance(tasks, int) else TASKS / np.maximum(wanted, 1)
        values[name] = (sums.reshape(len(models), len(first)) * scale)[:, shown]
    columns = (scenes[scene_of[first]][shown], references[shown], distortions[shown], (first % levels)[shown])
    return SubjectSums(models, *columns, values, tasks if isinstance(tasks, int) else TASKS, about)


def opinions(
    sums: SubjectSums,
    images: Images,
    label: str = "mean",
    subjects: Sequence[str] | None = None,
    least_subjects: int | None = None,
) -> Opinions:
    """The mean opinion of subjects on every distorted image.

    Args:
        sums: of the subjects.
        images: the images to score.
        label: "mean", or "zscore": each subject's sums are standardised by its mean and standard deviation over
            `images` first, as in ITU-R BT.500, so that a subject that scatters more does not weigh more.
        subjects: their names; all by default.
        least_subjects: an image scored by fewer has no score; by default as the sums' `about` says, else all that have
            any score of that value.

    Raises:
        UnknownNameError: an unknown label or subject.
        InputError: no subject, none of the images has sums, a number of subjects below 1, or with "zscore" a subject
            that gives every image the same sum.
    """
    if label not in LABELS:
        raise UnknownNameError("label", label, LABELS)
    least_subjects = sums.about.get("least_subjects") if least_subjects is None else least_subjects
    if least_subjects is not None and least_subjects < 1:
        raise InputError(f"an opinion needs at least one subject, got {least_subjects}")
    chosen = _chosen(sums, subjects)
    images = images.where(np.lexsort((images.level, images.distortion_id, images.reference_id)))
    place = _places(sums, images)
    columns: dict[str, Floats] = {}
    spreads, counts, least = {}, {}, {}
    for name in VALUES:
        matrix = np.where(place >= 0, sums.values[name][np.ix_(chosen, np.maximum(place, 0))], np.nan)
        known = ~np.isnan(matrix).all(axis=1)
        matrix = matrix[known]
        if label == "zscore":
            matrix = _standardised(matrix, name, sums.models[chosen][known])
        counts[name] = np.asarray((~np.isnan(matrix)).sum(axis=0), np.int64)
        least[name] = len(matrix) if least_subjects is None else least_subjects
        columns[name], spreads[name] = _mean_and_spread(matrix, counts[name], max(least[name], 1))
    names = {stage: [one for one in sums.subjects(stage) if one in sums.models[chosen]] for stage in DIMENSIONS}
    about = {
        **sums.about,
        "label": label,
        "tasks": sums.tasks,
        "subjects": names,
        "chance": _mean_chance(sums, names),
        "by_chance": sums.about.get("chance", {}),
        "least_subjects": {stage: least[stage] for stage in DIMENSIONS},
        "jnd": "by_cell",
    }
    classes = {f"jnd_{stage}": by_cell(columns[stage], images.distortion_id, images.level) for stage in DIMENSIONS}
    keys = {field.name: getattr(images, field.name) for field in fields(images)}
    scene = _scenes(sums, images)
    return Opinions(scene=scene, sos=spreads, n=counts, about=about, **keys, **columns, **classes)  # type: ignore[arg-type]


def leave_one_out(
    sums: SubjectSums, images: Images, stage: str, label: str = "mean"
) -> Iterator[tuple[str, Opinions, Opinions]]:
    """For every subject of a stage: its name, the opinions of all others, and its own.

    Whether a metric that was fitted to the others predicts a model that is not among its subjects.

    Raises InputError for fewer than two subjects of the stage.
    """
    names = sums.subjects(stage)
    if len(names) < 2:
        raise InputError(f"leaving one subject out needs at least two of {stage}; there is {len(names)}")
    for name in names:
        others = [other for other in names if other != name]
        yield name, opinions(sums, images, label, others), opinions(sums, images, label, [name])


def _joined(scores: Iterable[Any]) -> tuple[Any, dict[str, Any]]:
    """All tables of scores as one, the texts dictionary-encoded, and the facts about them."""
    arrow = require_pyarrow()
    texts = SCORE_COLUMNS[:5]
    tables = [
        read_columns(Path(item), SCORE_COLUMNS, texts) if isinstance(item, str | Path) else item.select(SCORE_COLUMNS)
        for item in scores
    ]
    if not tables:
        raise InputError("at least one table of scores is needed")
    schema = arrow.schema(
        [(name, arrow.dictionary(arrow.int32(), arrow.string())) for name in texts]
        + [("level", arrow.int64()), ("score", arrow.float64())]
    )
    about: dict[str, Any] = {}
    models: dict[str, Any] = {}
    for table in tables:
        facts = metadata(table.schema)
        if facts.get("dataset") != about.get("dataset", facts.get("dataset")):
            raise InputError("the scores are of different datasets: each model must be run on the same one")
        models |= facts.pop("models", {})
        about |= facts
    if models:
        about["models"] = models
    table = arrow.concat_tables([one.replace_schema_metadata(None).cast(schema) for one in tables])
    table = table.unify_dictionaries().combine_chunks()
    for column in SCORE_COLUMNS:
        if table.column(column).null_count:
            raise InputError(f"the column {column!r} of the scores is empty in {table.column(column).null_count} rows")
    score, level = (table.column(name).to_numpy() for name in ("score", "level"))
    wrong = ~((score >= 0) & (score <= 1))
    if wrong.any():
        raise InputError(
            f"scores must be in 0 .. 1 (CIDEr divided by 10), got {score[wrong][0]:g} in {wrong.sum()} rows"
        )
    if not len(score) or level.min() < 0:
        raise InputError("the scores are empty" if not len(score) else f"a level must be 0 .. 5, got {level.min()}")
    return table, about


class _TwiceError(Exception):
    """A key is there twice."""

    def __init__(self, key: int) -> None:
        self.key = key


def _sums(keys: Integers, score: Floats, tasks_met: int, wanted: Integers) -> Floats:
    """(n,) the sum of the scores of a place, key // tasks_met, that has `wanted` (n,) tasks; NaN for the others."""
    order = np.argsort(keys)  # of every sum too, so that the order of rows plays no part
    keys, score = keys[order], score[order]
    twice = np.flatnonzero(np.diff(keys) == 0)
    if len(twice):
        raise _TwiceError(int(keys[twice[0]]))
    keys //= tasks_met
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    found = np.full(len(wanted), np.nan)
    if len(starts):
        whole = np.diff(starts, append=len(keys)) == wanted[keys[starts]]
        found[keys[starts][whole]] = np.add.reduceat(score, starts)[whole]
    return found


def _codes(column: Any) -> tuple[Texts, Callable[..., Integers]]:
    """The different texts of a dictionary-encoded column, sorted, and a function from rows to their numbers."""
    chunk = column.chunk(0)
    names, rank = np.unique(np.array(chunk.dictionary.to_pylist(), np.str_), return_inverse=True)
    numbers = chunk.indices.to_numpy()

    def codes(rows: Any = slice(None)) -> Integers:
        return np.asarray(rank[numbers[rows]], np.int64)

    return names, codes


def _split(images: Texts) -> tuple[Texts, Texts]:
    """References and distortions of images "<reference>.<distortion>"."""
    parts = [name.rpartition(".") for name in images.tolist()]
    return np.array([part[0] for part in parts], np.str_), np.array([part[2] for part in parts], np.str_)


def _chosen(sums: SubjectSums, subjects: Sequence[str] | None) -> Integers:
    """Rows of the subjects."""
    names = sums.models.tolist()
    for name in subjects or ():
        if name not in names:
            raise UnknownNameError("subject", name, names)
    rows = [row for row, name in enumerate(names) if subjects is None or name in subjects]
    if not rows:
        raise InputError("an opinion needs at least one subject")
    return np.array(rows, np.int64)


def _places(sums: SubjectSums, images: Images) -> Integers:
    """Of every image its column in the sums, -1 where it has none."""
    keys = zip(sums.reference_id.tolist(), sums.distortion.tolist(), sums.level.tolist(), strict=True)
    column_of = {key: column for column, key in enumerate(keys)}
    wanted = zip(images.reference_id.tolist(), images.distortion.tolist(), images.level.tolist(), strict=True)
    place = np.array([column_of.get(key, -1) for key in wanted], np.int64)
    if (place < 0).all():
        is_here = not set(sums.reference_id.tolist()).isdisjoint(images.reference_id.tolist())
        reason = "only undistorted ones have" if is_here else "the scores are of another dataset"
        raise InputError(f"none of the distorted images has a score: {reason}")
    return place


def _scenes(sums: SubjectSums, images: Images) -> Texts:
    """The scene of every image; of one without scores that of its reference's other images, else the reference."""
    scene_of = dict(zip(sums.reference_id.tolist(), sums.scene.tolist(), strict=True))
    return np.array([scene_of.get(name, name) for name in images.reference_id.tolist()], np.str_)


def _mean_chance(sums: SubjectSums, names: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Stage to the mean of its subjects' scores by chance, if that of each is known."""
    known = sums.about.get("chance", {})
    return {
        stage: float(np.mean([known[name][stage] for name in subjects]))
        for stage, subjects in names.items()
        if subjects and all(stage in known.get(name, {}) for name in subjects)
    }


def _standardised(matrix: Floats, name: str, subjects: Texts) -> Floats:
    """Rows of (subjects, images) with mean 0 and standard deviation 1; NaN stays."""
    mean, spread = np.nanmean(matrix, axis=1, keepdims=True), np.nanstd(matrix, axis=1, keepdims=True)
    constant = np.flatnonzero(spread[:, 0] < 1e-12)
    if len(constant):
        raise InputError(
            f"{subjects[constant[0]]} has the same {name} on every image, so it has no z-score: leave it out"
        )
    return np.asarray((matrix - mean) / spread)


def _mean_and_spread(matrix: Floats, n: Integers, least: int) -> tuple[Floats, Floats]:
    """Of (subjects, images): the mean where `least` subjects are known, and the standard deviation of at least two."""
    known = ~np.isnan(matrix)
    total = np.where(known, matrix, 0.0).sum(axis=0)
    mean = np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0)
    squares = (np.where(known, matrix - mean, 0.0) ** 2).sum(axis=0)
    variance = np.divide(squares, n - 1, out=np.full(len(n), np.nan), where=n > 1)
    return np.where(n >= least, mean, np.nan), np.sqrt(variance)
