"""Images of a dataset: for quality the references among their distorted copies, for pairs two copies of a reference.

The images of one scene by several cameras are of one scene here too, as in annotations.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

from merton.errors import InputError, UnknownNameError
from merton.progress import OnProgress
from merton.seeding import generator
from merton_studies.people.item import Item
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Dataset
from merton_studies.people.sources.prepared import images_prepared

MOST_CONDITIONS = 20
"""Most conditions of pairs: 190 pairs of each reference."""
REFERENCE = "reference"


def items_of(loaded: Loaded, settings: Dataset, on_progress: OnProgress) -> list[Item]:
    """The items, by reference, distortion and level.

    Quality: each reference, hidden among `each` copies of its own draw. Pairs: `each` kinds of distortion at a level
    (conditions), drawn once for all references so that all are compared with each other, two at a time.

    Raises:
        InputError: no dataset, a domain it does not have, or fewer images than were asked for.
        MissingDependencyError: pyarrow is not installed.
    """
    from merton.perception.dataset import layout
    from merton.perception.dataset.tables import read_table

    folder = loaded.place(settings.folder)
    layout.refuse_unfinished(folder)
    references = {row["id"]: row for row in read_table(folder / layout.REFERENCE_TABLE)}
    chosen = _drawn_references(loaded, settings, references)
    scenes = {name: _scene(references[name]) for name in chosen}
    copies: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen}
    for row in read_table(folder / layout.MANIFEST):
        if row["reference_id"] in copies:
            copies[row["reference_id"]].append(row)
    if loaded.project.protocol == "pairs":
        return _pairs(loaded, settings, folder, copies, scenes, on_progress)
    rows = []
    for name in chosen:
        rows.append({"reference_id": name, "distortion": REFERENCE, "level": 0, "file": references[name]["file"]})
        rows += _drawn(copies[name], settings.each, "copies", loaded.project.seed, name)
    media = images_prepared([folder / row["file"] for row in rows], loaded.media, on_progress)
    return [
        Item(_id(row), scenes[row["reference_id"]], {"image": medium("image")}, facts=_facts(row))
        for row, medium in zip(rows, media, strict=True)
    ]


def _drawn_references(loaded: Loaded, settings: Dataset, references: dict[str, dict[str, Any]]) -> list[str]:
    domains = sorted({row["domain"] for row in references.values()})
    if settings.domain is not None and settings.domain not in domains:
        raise UnknownNameError("domain of the dataset", settings.domain, domains)
    names = sorted(name for name, row in references.items() if settings.domain in (None, row["domain"]))
    if settings.references is not None and settings.references > len(names):
        raise InputError(
            f"{loaded.path}: items.dataset.references is {settings.references}, but there are {len(names)}"
        )
    return [names[place] for place in _places(len(names), settings.references, "references", loaded.project.seed)]


def _drawn(rows: list[dict[str, Any]], count: int | None, *parts: object) -> list[dict[str, Any]]:
    return [rows[place] for place in _places(len(rows), count, *parts)]


def _places(length: int, count: int | None, *parts: object) -> list[int]:
    """`count` of the first `length` numbers, drawn without repetition, in rising order; all of them for None."""
    if count is None or count >= length:
        return list(range(length))
    return sorted(generator("people", *parts).choice(length, count, replace=False).tolist())


def _pairs(
    loaded: Loaded,
    settings: Dataset,
    folder: Path,
    copies: dict[str, list[dict[str, Any]]],
    scenes: dict[str, str],
    on_progress: OnProgress,
) -> list[Item]:
    of_reference = {name: {_condition(row): row for row in rows} for name, rows in copies.items()}
    common = sorted(set.intersection(*(set(rows) for rows in of_reference.values())))
    if settings.each is None or not 2 <= settings.each <= MOST_CONDITIONS:
        raise InputError(
            f"{loaded.path}: pairs of a dataset need items.dataset.each, from 2 to {MOST_CONDITIONS}: how many of its "
            "distortions at a level are compared"
        )
    if len(common) < settings.each:
        raise InputError(
            f"{loaded.path}: items.dataset.each is {settings.each}, but only {len(common)} distortions at a level are "
            "there of every reference"
        )
    conditions = [common[place] for place in _places(len(common), settings.each, "conditions", loaded.project.seed)]
    used = [(name, condition) for name in of_reference for condition in conditions]
    files = [folder / of_reference[name][condition]["file"] for name, condition in used]
    media = dict(zip(used, images_prepared(files, loaded.media, on_progress), strict=True))
    return [
        Item(
            f"{name}: {a} | {b}",
            scenes[name],
            {"a": media[name, a]("a"), "b": media[name, b]("b")},
            facts={"a": a, "b": b, "case": name},
        )
        for name in of_reference
        for a, b in combinations(conditions, 2)
    ]


def _condition(row: dict[str, Any]) -> str:
    return f"{row['distortion']}.{row['level']}"


def _id(row: dict[str, Any]) -> str:
    return f"{row['reference_id']}.{_condition(row)}"


def _facts(row: dict[str, Any]) -> dict[str, str]:
    reference = "" if row["distortion"] == REFERENCE else f"{row['reference_id']}.{REFERENCE}.0"
    named = {key: str(row[key]) for key in ("reference_id", "distortion", "level")}
    return {"image": _id(row), "reference": reference, **named}


def _scene(row: dict[str, Any]) -> str:
    from merton_studies.annotate.dataset import ReferenceImage
    from merton_studies.annotate.views import scene_of

    return scene_of(ReferenceImage.of_row(row))
