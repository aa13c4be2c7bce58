"""Answers of models about the pictures, the opinions made of them, and the ratings of people."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from merton.errors import InputError
from merton.pages.words import flat
from merton.results.parquet import metadata, read_schema, require_pyarrow
from merton.results.tables import json_object, named_rows
from merton_studies.annotate.tables import ANNOTATIONS
from merton_studies.opinions.opinion_tables import OPINIONS, SUBJECTS
from merton_studies.opinions.whose import KINDS, is_imported, whose
from merton_studies.release.part import DatasetPart
from merton_studies.release.pictures import Pictures
from merton_studies.release.table import Field, Row, Table, arrow_fields, split_of

_ROWS = 4096
"""Rows of a table that are in memory at once."""
_PRIVATE = ("reason",)
"""Columns that stay here: messages of failures may name paths and servers."""

_IDENTITY = ("model", "revision", "adapter", "adapter_version", "prompt", "max_tokens")
"""Of a model's identity; its further settings stay here: they may name paths and servers."""

_SCORE = "against the answer to the reference, 0..1"
_SUM = "mean over models of the sum over the tasks of a picture, 0..5"
ABOUT = {
    "model": "name of the model",
    "reference": "the reference of the picture",
    "reference_id": "the reference of the picture",
    "scene": "the scene of the reference",
    "distortion": "name of the type; `reference` for the undistorted picture",
    "distortion_id": "number of the type, as in Embodied-IQA",
    "category": "family of the type",
    "level": "1 (weak) to 5 (strong); 0 for the undistorted picture",
    "task": "the instruction, or the question",
    "outcome": "answered, failed (the model's fault) or unanswered (another fault)",
    "answer": "text of a VLM",
    "truncated": "the answer ended at the length limit",
    "deltas": "actions of a policy: x, y, z [m], three rotations [rad], gripper (1 open, 0 closed), for each step",
    "step_s": "time of a step [s]",
    "frame": "the frame that the actions are in",
    "done": "the policy said that the task is done",
    "cognition": f"mean of bleu, rouge_l and cider, {_SCORE}",
    "bleu": _SCORE,
    "rouge_l": _SCORE,
    "cider": f"CIDEr / 10, {_SCORE}",
    "decision": f"mean of position, rotation and state, {_SCORE}",
    "position": _SCORE,
    "rotation": _SCORE,
    "state": f"of the gripper, {_SCORE}",
    "domain": "simulation or real",
    "perspective": "first_person or third_person",
    "object": "block, container, food, tool or living",
    "background": "table, kitchen, room, outdoors or plain",
    "jnd_cognition": "mild, medium or severe; empty without a score",
    "jnd_decision": "mild, medium or severe; empty without a score",
}
"""Column to its description; scores in opinions and sums of subjects are described by `_summed`."""


def model_answers(folders: Sequence[Path], shown: Pictures | None) -> DatasetPart:
    """Answers and actions of models, a row for each model, picture and task.

    Raises:
        InputError: no annotations, of another dataset than the one that is published, or two of one model.
    """
    if shown is None:
        raise InputError("annotations are about pictures: name their dataset with --dataset")
    part, fields, models = DatasetPart(), None, Counter[str]()
    for folder in folders:
        schema, about = _schema(folder / ANNOTATIONS, ("model", "reference"))
        _check_dataset(folder, "annotations", about, shown)
        models.update({row["model"] for row in _streamed(folder / ANNOTATIONS, ["model"])})
        part.provenance.append((f"annotations {folder.name} · merton", str(about.get("merton", ""))))
        part.provenance += _models(about)
        own = arrow_fields(schema, ABOUT, _PRIVATE)
        if fields not in (None, own):
            raise InputError(f"{folder} holds annotations of another version than {folders[0]}: annotate again")
        fields = own
    if twice := [name for name, times in models.items() if times > 1]:
        raise InputError(f"two folders of annotations have the model {twice[0]!r}: name one of them")
    columns = (Field("scene", "string", ABOUT["scene"]), *(fields or ()))
    part.tables.append(
        Table(
            "annotations",
            "What a model answered, or did, on a picture for a task.",
            columns,
            lambda: _annotated(folders, shown, columns),
        )
    )
    part.made.append(f"`merton annotate` asked {len(models)} models: {', '.join(sorted(models))}.")
    part.shares.append(("models", ", ".join(sorted(models))))
    part.limits += [
        "Scores of answers measure faithfulness to the answer on the undistorted picture, not whether it is right.",
        "Messages of failures are left out, because they may name paths and servers.",
        "Answers and opinions about pictures that are left out are still here.",
    ]
    return part


def _check_dataset(folder: Path, content: str, about: Mapping[str, Any], shown: Pictures) -> None:
    if about.get("dataset") != shown.manifest_sha256:
        raise InputError(f"{folder} holds {content} of another dataset than the one that is named with --dataset")


def _models(about: dict[str, Any]) -> list[tuple[str, str]]:
    """Versions of the models; of a checkpoint in a folder its last name, since the path is the machine's."""
    found = []
    for name, identity in sorted(about.get("models", {}).items()):
        plain = {key: identity[key] for key in _IDENTITY if identity.get(key)}
        if "model" in plain:
            plain["model"] = PurePath(plain["model"]).name if PurePath(plain["model"]).is_absolute() else plain["model"]
        found += flat(plain, f"model {name} · ")
    return found


def _annotated(folders: Sequence[Path], shown: Pictures, fields: Sequence[Field]) -> Iterator[tuple[str, Row]]:
    names = [one.name for one in fields if one.name != "scene"]
    for folder in folders:
        for row in _streamed(folder / ANNOTATIONS, names):
            scene = shown.scene_of[row["reference"]]
            yield split_of(scene), row | {"scene": scene}


def opinions(folders: Sequence[Path], shown: Pictures | None, with_models: bool = True) -> DatasetPart:
    """One score per picture of `merton study opinions` or `merton annotate`, and the sums of each model behind it.

    Args:
        folders: one.
        shown: the dataset that is published beside them, if any.
        with_models: versions of the models are named; not needed beside their annotations.

    Raises:
        InputError: a folder has none, or those of another dataset; or two folders have.
    """
    part = DatasetPart()
    if len(folders) > 1:
        raise InputError(
            f"opinions of {len(folders)} folders cannot be told apart: make one of them with `merton study opinions`"
        )
    for folder in folders:
        for name, title in ((OPINIONS, "The score of a picture."), (SUBJECTS, "The score of a picture by one model.")):
            if name == SUBJECTS and not (folder / name).is_file():
                continue
            schema, about = _schema(folder / name, ("scene",))
            fields = arrow_fields(schema, ABOUT | _summed(name))
            part.tables.append(Table(name.partition(".")[0], title, fields, _scened(folder / name, fields)))
        _, about = _schema(folder / OPINIONS, ("scene",))
        if shown:
            _check_dataset(folder, "opinions", about, shown)
        part.floors += [
            (f"{value} of {model} by chance, 0..5", f"{score:.3f}")
            for model, scores in sorted(about.pop("by_chance", {}).items())
            for value, score in sorted(scores.items())
        ]
        models = _models(about) if with_models else []
        part.provenance += models
        known = {name: value for name, value in about.items() if name not in ("chance", "models")}
        part.provenance += flat(known, "opinions · ")
        part.made.append(_made(about))
    return part


def _made(about: Mapping[str, Any]) -> str:
    """A sentence on whose opinions these are."""
    if not is_imported(about):
        return "`merton study opinions` made one score per picture: the mean over models of their sums."
    subjects = about.get("subjects", {})
    stage = max(KINDS, key=lambda one: len(subjects.get(one, ())))
    return f"`merton study import` took over the opinions, mapped to 0..5, of {whose(about, stage)}."


def _scened(path: Path, fields: Sequence[Field]) -> Any:
    def rows() -> Iterator[tuple[str, Row]]:
        for row in _streamed(path, [one.name for one in fields]):
            yield split_of(row["scene"]), row

    return rows


def _summed(name: str) -> dict[str, str]:
    values = ("cognition", "bleu", "rouge_l", "cider", "decision", "position", "rotation", "state")
    if name == SUBJECTS:
        return dict.fromkeys(values, "the model's sum over the tasks of a picture, 0..5; null where one is missing")
    found = dict.fromkeys(values, _SUM)
    found |= {f"{value}_sos": "standard deviation of that over models (n - 1)" for value in values}
    return found | {f"{value}_n": "models that have it" for value in values}


def _schema(path: Path, columns: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The schema of a Parquet file, and what Merton wrote into its metadata; raises InputError if it lacks a column."""
    schema = read_schema(path, columns)
    return schema, metadata(schema)


def _streamed(path: Path, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    with require_pyarrow().parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(_ROWS, columns=list(names)):
            yield from batch.to_pylist()


PEOPLE_FIELDS = (
    Field("item", "string", "what was rated"),
    Field("scene", "string", "its scene: the unit of every interval, and of the splits"),
    Field("rater", "string", "pseudonym of the person"),
    Field("criterion", "string", "what was asked"),
    Field("value", "string", "the rating: a number on the scale of the study, or a word"),
    Field("number", "int64", "place of the item among those of the rater, from 1"),
    Field("kind", "string", "design, repeat, gold, top_up, turn or review"),
    Field("seconds", "float64", "from showing to answering [s]"),
)


def people(folders: Sequence[Path]) -> DatasetPart:
    """Every rating in folders of `merton people export`, under pseudonyms, without the times of day.

    Raises:
        InputError: a folder is no such export.
    """
    part = DatasetPart()
    for folder in folders:
        about = json_object(folder / "export.json")
        path = folder / "every_rating.csv"
        if not path.is_file():
            raise InputError(f"{folder} is no export of `merton people export`: it has no {path.name}")
        names = ("merton", "project", "definition_sha256", "items_sha256", "seed", "answers")
        part.provenance += [(f"people · {folder.name} · {name}", str(about.get(name))) for name in names]
    tables = [folder / "every_rating.csv" for folder in folders]
    part.tables.append(Table("people", "What a person said of an item.", PEOPLE_FIELDS, lambda: _rated(tables)))
    part.made.append("People rated items on the pages of `merton people`, blind to models and distortions.")
    part.privacy.append(
        "Raters have pseudonyms, names are never published, and the times of day at which they answered are left out."
    )
    return part


def _rated(tables: Sequence[Path]) -> Iterator[tuple[str, Row]]:
    for path in tables:
        about = json_object(path.parent / "export.json")
        salt, named = str(about.get("definition_sha256")), about.get("names") is not False
        pseudonyms = _pseudonyms(path, salt) if named else {}
        prefix = f"{about.get('project')} " if len(tables) > 1 else ""
        for _, row in named_rows(path, (".csv",)):
            plain: dict[str, Any] = {one.name: row[one.name] for one in PEOPLE_FIELDS}
            plain |= {"number": int(row["number"]), "seconds": float(row["seconds"])}
            rater = str(row["rater"])
            plain["rater"] = prefix + pseudonyms.get(rater, rater)
            yield split_of(row["scene"]), plain


def _pseudonyms(path: Path, salt: str) -> dict[str, str]:
    """Person to R01, R02, ..., in an order that tells nothing of the names and is the same each time."""
    names = {str(row["rater"]) for _, row in named_rows(path, (".csv",))}
    ordered = sorted(names, key=lambda name: hashlib.sha256(f"{salt} {name}".encode()).digest())
    return {name: f"R{number:02d}" for number, name in enumerate(ordered, 1)}
