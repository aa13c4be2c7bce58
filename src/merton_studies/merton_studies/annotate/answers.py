"""Answers of VLMs and actions of VLAs that were collected elsewhere, scored exactly as those of `merton annotate`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton import __version__
from merton.cognition.models.base import sendable
from merton.errors import InputError, InvalidActionError, UnknownNameError
from merton.files import file_sha256, locked_folder
from merton.perception.dataset import layout
from merton.perception.dataset.origin import read_origin
from merton.results.tables import plain_number
from merton.results.text import one_line
from merton.world.action import DIMENSIONS, checked_chunk
from merton_studies.annotate.cache import CachedResponse
from merton_studies.annotate.dataset import DatasetImage, read_dataset
from merton_studies.annotate.foreign import IMAGE_PARTS, Image, ImageFinder, rows_of, text_in
from merton_studies.annotate.run import Summary, Tally, refuse_without_tasks, write_run_opinions
from merton_studies.annotate.tables import ANSWERED, FAILED, UNANSWERED, ModelResult, Tables
from merton_studies.annotate.work import AnnotationRow

PARTS = {
    "model": "name of the VLM or VLA; without this column the name of the file",
    **IMAGE_PARTS,
    "task": "the instruction as the dataset has it, or its number, from 1",
    "answer": "text of a VLM, as it gave it",
    "deltas": "action of a VLA: one step as 7 numbers, or a list of steps; m, rad, gripper 0 (closed) to 1",
    "frame": "of the deltas, base_link or tcp; needed for more than one step",
    "step_s": "time of a step; no score depends on it",
    "done": "whether the VLA took the task to be finished",
    "truncated": "whether the answer was cut off at its limit of tokens",
    "outcome": "answered, failed or unanswered; failed where there is neither answer nor deltas",
    "reason": "of a failure",
}
"""Part of a row to its meaning; a column of this name, or the one named for it, holds it."""
OUTCOMES = (ANSWERED, FAILED, UNANSWERED)
MISSING = "no table has this row"
"""The reason of a row that nobody collected."""
_YES = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}


@dataclass
class _Collected:
    """All rows of a model: responses and reasons by key; where each row stands; whether it is a policy, if known."""

    tables: dict[str, str] = field(default_factory=dict)
    responses: dict[str, CachedResponse] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    is_policy: bool | None = None


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    Attributes:
        summary: as of a run; no request was made.
        models: names, in the order of the tables.
        remarks: sentences that a user should read: columns that were not used, and why there are no opinions.
    """

    summary: Summary
    models: tuple[str, ...]
    remarks: tuple[str, ...]


def import_answers(
    dataset: Path, tables: Sequence[Path], out: Path, columns: Mapping[str, str] | None = None
) -> Imported:
    """Score answers and actions from tables, and write what `annotate` writes.

    A row that no table has is `unanswered`; an answer without a word, a refusal, and an action that is not finite are
    failures of the model, and have no score.

    Args:
        dataset: a folder that `merton dataset build` has finished.
        tables: .csv, .tsv, .jsonl or .parquet; a model may be in several.
        out: folder for the tables of scores; those of an earlier run are replaced.
        columns: part of `PARTS` to the column that holds it, where that is called otherwise.

    Raises:
        InputError: no such table or column, a row of no image or task of the dataset, one that stands twice, both an
            answer and an action, or deltas of another shape; with the line. Or another run is writing into `out`.
        MissingDependencyError: pyarrow is not installed.
        InfrastructureError: a table cannot be written.
    """
    finder, images = ImageFinder(dataset), read_dataset(dataset)
    refuse_without_tasks(dataset, images)
    tasks = {image.reference.id: image.reference.tasks for image in images}
    found: dict[str, _Collected] = {}
    remarks = []
    for table in tables:
        rows, unused = rows_of(table, PARTS, columns or {})
        if not {"answer", "deltas"} & set().union(*(cells for _, cells in rows)):
            raise InputError(f"{table}: no column holds answers or deltas; name it: --column answer=NAME")
        if unused:
            remarks.append(f"{table}: columns that are not used: {', '.join(one_line(name, 40) for name in unused)}")
        sha256 = file_sha256(table)
        for where, cells in rows:
            name = text_in(cells, "model") or table.stem
            collected = found.setdefault(name, _Collected())
            collected.tables[table.name] = sha256
            image = finder.find(where, cells)
            _add(collected, name, where, cells, _key(image, _task(where, cells, tasks[image[0]])))
    about = {
        "dataset": hashlib.sha256((dataset / layout.MANIFEST).read_bytes()).hexdigest(),
        **read_origin(dataset).facts,
        "merton": __version__,
        "models": {
            name: {"kind": "vla" if one.is_policy else "vlm", "imported": one.tables} for name, one in found.items()
        },
    }
    wanted = [
        AnnotationRow(image, task, _key(_image(image), task)) for image in images for task in image.reference.tasks
    ]
    tally = Tally(dict.fromkeys(found, 0.0), len(wanted), None)
    with locked_folder(out, "merton annotate"), Tables(out, about) as written:
        for name, one in found.items():
            reasons = {row.key: one.reasons.get(row.key, MISSING) for row in wanted if row.key not in one.responses}
            result = ModelResult(name, bool(one.is_policy), wanted, one.responses, reasons, frozenset())
            tally.begin(name, [row.key for row in wanted], frozenset())
            written.add(result)
            tally.end(result)
    if reason := write_run_opinions(out, dataset):
        remarks.append(f"no opinions are written: {reason}")
    return Imported(tally.summary(), tuple(found), tuple(remarks))


def _add(collected: _Collected, name: str, where: str, cells: Mapping[str, Any], key: str) -> None:
    """Add the response in a row, or the reason why there is none."""
    if key in collected.places:
        raise InputError(f"{where}: {one_line(name, 40)} has this picture and task already, in {collected.places[key]}")
    collected.places[key] = where
    outcome = text_in(cells, "outcome")
    if outcome and outcome not in OUTCOMES:
        raise InputError(f"{where}: {UnknownNameError('outcome', outcome, OUTCOMES)}")
    if outcome == UNANSWERED:
        collected.reasons[key] = text_in(cells, "reason") or "the table says no more"
        return
    value: dict[str, Any]
    answer, deltas = cells.get("answer"), cells.get("deltas")
    has_answer, has_deltas = text_in(cells, "answer") != "", deltas is not None and deltas != ""
    if outcome == FAILED:
        value = {"failed": text_in(cells, "reason") or "the table says no more"}
        if text_in(cells, "truncated"):
            value["truncated"] = _flag(where, cells, "truncated")
    elif has_answer or has_deltas:
        if has_answer and has_deltas:
            raise InputError(f"{where}: has both an answer and deltas; a model has one of them")
        if collected.is_policy not in (None, has_deltas):
            kinds = ("deltas", "answers") if has_deltas else ("an answer", "deltas")
            raise InputError(f"{where}: {one_line(name, 40)} has {kinds[0]} here and {kinds[1]} in other rows")
        collected.is_policy = has_deltas
        value = _action(where, name, cells) if has_deltas else _answer(where, str(answer), cells)
    else:
        value = {"failed": "the table has no answer and no action in this row"}
    collected.responses[key] = CachedResponse(json.dumps(value, separators=(",", ":")), float("nan"))


def _answer(where: str, text: str, cells: Mapping[str, Any]) -> dict[str, Any]:
    return {"text": sendable(text), "truncated": _flag(where, cells, "truncated")}


def _action(where: str, name: str, cells: Mapping[str, Any]) -> dict[str, Any]:
    """The value of an action, or of a failure of the model whose numbers are no action."""
    steps = _steps(where, cells["deltas"])
    frame = text_in(cells, "frame")
    if not frame and len(steps) > 1:
        raise InputError(f"{where}: an action of {len(steps)} steps needs its frame: base_link or tcp")
    step_s = plain_number(cells.get("step_s")) if text_in(cells, "step_s") else 1.0
    if step_s is None:
        raise InputError(f"{where}: step_s is {one_line(cells['step_s'], 40)!r}; it must be a number of seconds")
    try:
        chunk = checked_chunk(steps, step_s, frame=frame or "base_link", model=name, done=_flag(where, cells, "done"))
    except InvalidActionError as error:
        return {"failed": str(error)}
    return {"deltas": chunk.deltas.tolist(), "step_s": chunk.step_s, "frame": chunk.frame, "done": chunk.done}


def _steps(where: str, cell: Any) -> list[list[float]]:
    """The steps of an action: JSON in a text; 7 numbers alone are one step, and null is NaN."""
    try:
        steps = json.loads(cell) if isinstance(cell, str) else cell
    except ValueError:
        steps = None
    if isinstance(steps, list) and len(steps) == DIMENSIONS and not any(isinstance(one, list) for one in steps):
        steps = [steps]
    if not isinstance(steps, list) or not all(_is_step(step) for step in steps):
        raise InputError(
            f"{where}: deltas is {one_line(cell, 40)!r}; it must be {DIMENSIONS} numbers, such as "
            f"[0.01, 0, 0, 0, 0, 0, 1], or a list of such steps"
        )
    return steps


def _is_step(step: Any) -> bool:
    return (
        isinstance(step, list)
        and len(step) == DIMENSIONS
        and all(one is None or (isinstance(one, int | float) and not isinstance(one, bool)) for one in step)
    )


def _flag(where: str, cells: Mapping[str, Any], part: str) -> bool:
    cell = text_in(cells, part).lower()
    if cell not in _YES:
        raise InputError(f"{where}: {part} is {one_line(cell, 40)!r}; it must be true or false")
    return _YES[cell]


def _task(where: str, cells: Mapping[str, Any], there: Sequence[str]) -> str:
    """The task of a row, one of those of its reference."""
    said = text_in(cells, "task")
    if said in there:
        return said
    if not said and len(there) == 1:
        return there[0]
    number = plain_number(said)
    if number is not None and number.is_integer() and 1 <= number <= len(there):
        return there[int(number) - 1]
    listed = "; ".join(f"{place} {one_line(task, 60)}" for place, task in enumerate(there, 1))
    raise InputError(f"{where}: task is {one_line(said, 60)!r}; this picture has: {listed or 'none'}")


def _image(shown: DatasetImage) -> Image:
    return shown.reference.id, shown.distortion, shown.level


def _key(image: Image, task: str) -> str:
    return "\x1f".join([*map(str, image), task])
