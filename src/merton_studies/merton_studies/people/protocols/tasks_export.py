"""The files of the protocol tasks: the dataset's tags, the history of answers, the agreement of subjects and expert.

`tags.yaml` has the accepted images, as `merton dataset build --references FOLDER --tasks tags.yaml` takes them; there
is one for each folder of images, below the same folder of the export. `history.parquet` has a row for each task, flag
and decision that stands, see `HISTORY`. `tasks.json` is `summary`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import merton
from merton.config import dumps
from merton.files import write_file
from merton.perception.dataset.tags import CATEGORIES, TASKS_PER_IMAGE
from merton.results.parquet import parquet_bytes, require_pyarrow
from merton.statistics.concordance import kendall_w
from merton.statistics.means import mean_interval
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocols.tasks_chain import Chain, chain

HISTORY = {
    "image": "string",
    "scene": "string",
    "step": "int32",
    "event": "string",
    "by": "string",
    "written_place": "int8",
    "final_place": "int8",
    "text": "string",
    "previous": "string",
    "reason": "string",
    **dict.fromkeys(CATEGORIES, "string"),
    "seconds": "float64",
    "saved_utc": "string",
}
"""Column to Arrow type. `step`: of the image's answers, from 1. `event`: task, flag, accept, back or remove; an
accepted image has a row for each of its five tasks, one that was sent back a row for each task to be written again.
Places count from 1, the easiest. `previous`: the text that stood at the written place before."""

Said = Mapping[str, Sequence[Answer]]
"""Id of an item to its answers in the order in which they were saved."""


def export(items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]) -> list[Path]:
    """Write all files; raises MissingDependencyError without pyarrow. Without an accepted image there is no tags.yaml.

    Args:
        items, answers, out, names: as of `Protocol.export`.

    Returns:
        The files.
    """
    said = said_of(items, answers)
    files = []
    for folder, tags in _tags(items, said).items():
        path = out / folder / "tags.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, dumps(tags).encode())
        files.append(path)
    rows = [row for item in items for row in _history(item, said[item.id], names)]
    write_file(out / "history.parquet", _parquet(rows))
    found = summary(items, answers)
    found["places"] = {names.get(rater, rater): counts for rater, counts in found["places"].items()}
    write_file(out / "tasks.json", (json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode())
    return [*files, out / "history.parquet", out / "tasks.json"]


def said_of(items: Sequence[Item], answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """Id of each item to its answers in the order in which they were saved."""
    said: dict[str, list[Answer]] = {item.id: [] for item in items}
    for answer in sorted(answers, key=lambda answer: answer.saved_utc):
        said[answer.item].append(answer)
    return said


def summary(items: Sequence[Item], answers: Iterable[Answer]) -> dict[str, Any]:
    """Statistics of the subjects and of the expert.

    Returns:
        `images`, `accepted`, `removed`, `waiting_for_expert`, `waiting_for_subjects`: counts; `flags`: how often each
        was given;
        `kendall_w`: mean over the accepted images with five tasks of subjects of Kendall's W between the order written
        and the expert's; `edited`: share of the subjects' tasks in accepted images whose text the expert changed: both
        with a 95 % interval clustered by scene; `places`: rater to the number of tasks at each place, easiest first.
    """
    said = said_of(items, answers)
    states = {item.id: chain(said[item.id]) for item in items}
    scenes = {item.id: item.scene for item in items}
    concordance: list[tuple[str, float]] = []
    edited: list[tuple[str, float]] = []
    for name, state in states.items():
        if state.end is None or state.end.answer["decision"] != "accept":
            continue
        final = state.end.answer["tasks"]
        places = [task["place"] for task in final]
        if None not in places:
            concordance.append((scenes[name], kendall_w([places, range(TASKS_PER_IMAGE)]) or 0.0))
        edited += [
            (scenes[name], float(task["text"] != state.tasks[task["place"]].text))
            for task in final
            if task["place"] is not None
        ]
    ends = Counter(state.end.answer["decision"] for state in states.values() if state.end is not None)
    open_ = [state for state in states.values() if state.end is None]
    return {
        "merton_version": merton.__version__,
        "images": len(items),
        "accepted": ends["accept"],
        "removed": ends["remove"],
        "waiting_for_expert": sum(not state.open for state in open_),
        "waiting_for_subjects": sum(bool(state.open) for state in open_),
        "flags": dict(Counter(a.answer["flag"] for own in said.values() for a in own if a.answer.get("flag"))),
        "kendall_w": _mean(concordance),
        "edited": _mean(edited),
        "places": _places(states.values()),
    }


def _mean(values: Sequence[tuple[str, float]]) -> dict[str, Any]:
    """The mean of (scene, value) with its interval; without one, the images that it still needs, in words."""
    if not values:
        return {
            "value": None,
            "interval": None,
            "n": 0,
            "scenes": 0,
            "missing": "not enough yet: 1 accepted image more",
        }
    scenes, numbers = zip(*values, strict=True)
    many = len(set(scenes))
    return {
        "value": round(sum(numbers) / len(numbers), 6),
        "interval": [round(end, 6) for end in mean_interval(numbers, scenes)] if many > 1 else None,
        "n": len(numbers),
        "scenes": many,
        "missing": "" if many > 1 else "an interval needs 1 accepted image of another scene more",
    }


def _places(states: Iterable[Chain]) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for state in states:
        for place, task in state.tasks.items():
            counts.setdefault(task.answer.rater, [0] * TASKS_PER_IMAGE)[place] += 1
    return dict(sorted(counts.items()))


def _tags(items: Sequence[Item], said: Said) -> dict[str, dict[str, Any]]:
    """Folder of images to the content of its tag file."""
    folders: dict[str, dict[str, Any]] = {}
    for item in items:
        end = chain(said[item.id]).end
        if end is None or end.answer["decision"] != "accept":
            continue
        file = PurePosixPath(item.facts["file"])
        tasks = [task["text"] for task in end.answer["tasks"]]
        tags = {name: end.answer["tags"][name] for name in CATEGORIES}
        folders.setdefault(str(file.parent), {})[file.name] = {**tags, "tasks": tasks}
    return folders


def _history(item: Item, said: Sequence[Answer], names: Mapping[str, str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for step, answer in enumerate(said, 1):
        about = {
            **dict.fromkeys(HISTORY),
            "image": item.facts["file"],
            "scene": item.scene,
            "step": step,
            "by": names.get(answer.rater, answer.rater),
            "reason": answer.answer["reason"],
            **(answer.answer["tags"] or {}),
            "seconds": answer.seconds,
            "saved_utc": answer.saved_utc,
        }
        before, after = chain(said[: step - 1]), chain(said[:step])
        changes = _decision(answer, before, after) if answer.kind == "review" else _turn(answer, before)
        rows += [about | change for change in changes]
    return rows


def _turn(answer: Answer, before: Chain) -> list[dict[str, Any]]:
    place = before.open[0] if before.open else None
    at = {"written_place": None if place is None else place + 1}
    if answer.answer["flag"] is not None:
        return [{"event": "flag", "text": answer.answer["flag"], **at}]
    return [{"event": "task", "text": answer.answer["task"], "previous": _text(before, place), **at}]


def _decision(answer: Answer, before: Chain, after: Chain) -> list[dict[str, Any]]:
    decision = answer.answer["decision"]
    if decision == "remove":
        return [{"event": "remove"}]
    if decision == "back":
        return [{"event": "back", "written_place": at + 1, "previous": _text(before, at)} for at in after.open]
    return [
        {
            "event": "accept",
            "written_place": None if task["place"] is None else task["place"] + 1,
            "final_place": number,
            "text": task["text"],
            "previous": _text(before, task["place"]),
        }
        for number, task in enumerate(answer.answer["tasks"], 1)
    ]


def _text(state: Chain, place: int | None) -> str | None:
    return None if place is None else state.texts.get(place)


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    arrow = require_pyarrow()
    about = json.dumps({"merton_version": merton.__version__, "table": "history"}, sort_keys=True)
    schema = arrow.schema(list(HISTORY.items()), metadata={"merton": about})
    return parquet_bytes(arrow.Table.from_pylist(list(rows), schema=schema))
