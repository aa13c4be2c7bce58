"""A study as files: what the rest of Merton reads, every rating and answer, and the statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import merton
from merton.errors import InputError
from merton.files import file_sha256, write_file
from merton.perception.dataset.layout import MANIFEST
from merton.perception.dataset.origin import read_origin
from merton.results.csv_writer import write_csv
from merton_studies.people.item import Item
from merton_studies.people.ledger import Ledger
from merton_studies.people.project import Loaded
from merton_studies.people.protocol import Protocol
from merton_studies.people.rating import ItemRating
from merton_studies.people.ratings import ratings_of
from merton_studies.people.sources import items_sha256
from merton_studies.people.statistics import summary
from merton_studies.people.statistics_page import write_page

ANSWERS, RATINGS, STATISTICS, PAGE, ABOUT = (
    "answers.jsonl",
    "every_rating.csv",
    "statistics.json",
    "statistics.html",
    "export.json",
)
COLUMNS = ("item", "scene", "rater", "criterion", "value", "number", "kind", "seconds", "saved_utc")


def export_study(
    loaded: Loaded, items: Sequence[Item], protocol: Protocol, ledger: Ledger, out: Path, names: bool = False
) -> list[Path]:
    """Write all of a study into a new folder; the same answers give the same bytes.

    What the protocol exports; `every_rating.csv`; `answers.jsonl`, with those that were taken back; `statistics.json`
    and `statistics.html`; and `export.json` with the version, the seed, the project's definition and all hashes.

    Args:
        loaded: the project.
        items: of it.
        protocol: its rules.
        ledger: its record.
        out: the folder; it must not have files yet.
        names: True writes the names of people in place of pseudonyms, but for the statistics, which have these always.

    Returns:
        The files.

    Raises:
        InputError: the folder has files, or there is nothing to export.
        InfrastructureError: a file cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} has files already: choose a new folder for the export")
    answers, with_undone = ledger.answers(), ledger.answers(undone=True)
    if not answers:
        raise InputError(f"the study {loaded.project.name!r} has no answers yet: there is nothing to export")
    people = {rater.id: rater.name if names else rater.id for rater in ledger.raters()}
    found = summary(loaded.project, items, protocol, answers, loaded.sha256)
    out.mkdir(parents=True, exist_ok=True)
    files = list(protocol.export(items, answers, out, people))
    _write_ratings(out / RATINGS, ratings_of(items, protocol, answers), people)
    lines = [
        json.dumps(asdict(answer) | {"rater": people[answer.rater]}, ensure_ascii=False, sort_keys=True, default=dict)
        for answer in with_undone
    ]
    write_file(out / ANSWERS, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
    write_file(out / STATISTICS, found.as_json().encode("utf-8", "replace"))
    write_page(found, out / PAGE)
    files += [out / name for name in (RATINGS, ANSWERS, STATISTICS, PAGE)]
    about = {
        "merton": merton.__version__,
        "project": loaded.project.name,
        "definition_sha256": loaded.sha256,
        "items_sha256": items_sha256(items),
        "seed": loaded.project.seed,
        "answers": len(answers),
        "names": names,
        "sha256": {path.relative_to(out).as_posix(): file_sha256(path) for path in sorted(files)},
    }
    shown = loaded.project.items.dataset
    if shown is not None and (loaded.place(shown.folder) / MANIFEST).is_file():  # it may be gone by now
        about |= read_origin(loaded.place(shown.folder)).facts
    write_file(out / ABOUT, (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
    return [*files, out / ABOUT]


def _write_ratings(path: Path, ratings: Sequence[ItemRating], people: dict[str, str]) -> None:
    rows = ([people[one.rater] if column == "rater" else getattr(one, column) for column in COLUMNS] for one in ratings)
    write_csv(path, COLUMNS, rows)
