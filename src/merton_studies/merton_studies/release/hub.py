"""A dataset folder for the Hugging Face hub: Parquet shards, a card, a Croissant file and hashes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import merton
from merton.errors import InfrastructureError, InputError
from merton.files import file_sha256, refuse_filled, write_file
from merton.progress import OnStep
from merton.results.csv_writer import write_csv
from merton.results.parquet import require_pyarrow
from merton_studies.release.answers import model_answers, opinions, people
from merton_studies.release.benchmark import benchmark
from merton_studies.release.card import CROISSANT, LEFT_OUT, README, SUMS, About, card
from merton_studies.release.croissant import croissant
from merton_studies.release.licences import Sources
from merton_studies.release.part import DatasetPart, LeftOut
from merton_studies.release.pictures import pictures
from merton_studies.release.record import record
from merton_studies.release.shards import SHARD_BYTES, Written, write_shards


@dataclass(frozen=True)
class Content:
    """Content to be published; at least one of its parts.

    Attributes:
        runs: folders, names, or `latest`.
        dataset: a folder of `merton dataset build`.
        annotations: folders of `merton annotate`, about the dataset.
        opinions: folders of `merton study opinions` or `merton annotate`; one at most.
        people: folders of `merton people export`.
        curated: a folder of `merton curate build`.
        boards: folders of `merton leaderboard build`, board.json files, or records.
        sources: licences of photographs.
    """

    runs: Sequence[Path] = ()
    dataset: Path | None = None
    annotations: Sequence[Path] = ()
    opinions: Sequence[Path] = ()
    people: Sequence[Path] = ()
    curated: Path | None = None
    boards: Sequence[str] = ()
    sources: Sources = field(default_factory=Sources)


@dataclass(frozen=True)
class Published:
    """A folder that was written: its tables, and what was left out."""

    tables: Sequence[Written]
    left_out: Sequence[LeftOut]


def export_hub(
    out: Path,
    content: Content,
    about: About,
    progress: OnStep = lambda text: None,
) -> Published:
    """Write a dataset folder, whole or not at all; the same content gives the same bytes.

    Pictures are read one after the other: as much as a row group is in memory, never a table.

    Args:
        out: the folder; new or empty.
        content: what is published.
        about: name, licence, authors, date.
        progress: called with a line of text at the start of each long step.

    Raises:
        InputError: there is nothing to publish, the folder is not empty or the current one, or something that is named
            does not exist, is damaged, or must not be passed on.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    require_pyarrow()
    if out.resolve() == Path.cwd():
        raise InputError(f"{str(out)!r} is the folder that you are in: name another one")
    refuse_filled(out)
    parts = _parts(content, about, progress)
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{out.name[:64]}.", dir=out.absolute().parent))
        try:
            draft.chmod(0o755)
            tables = _written(draft, parts, about, progress)
            os.replace(draft, out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise InfrastructureError(f"cannot write into {str(out)!r}: {error.strerror or error}") from None
    return Published(tables, [entry for part in parts for entry in part.left_out])


def _parts(content: Content, about: About, progress: OnStep) -> list[DatasetPart]:
    parts, shown = [], None
    if content.dataset:
        progress("reading the dataset")
        shown = pictures(content.dataset, about.licence, content.sources)
        parts.append(shown.part)
    if content.annotations:
        progress("reading annotations")
        parts.append(model_answers(content.annotations, shown))
    if content.opinions:
        parts.append(opinions(content.opinions, shown, with_models=not content.annotations))
    if content.people:
        parts.append(people(content.people))
    if content.runs or content.boards:
        parts.append(record(content.runs, content.boards, progress))
    if content.curated:
        progress("reading the benchmark")
        parts.append(benchmark(content.curated))
    if not parts:
        raise InputError(
            "nothing to export is named: give one or more of --run, --dataset, --opinions, --people, --curated, --board"
        )
    return parts


def _written(
    out: Path,
    parts: Sequence[DatasetPart],
    about: About,
    progress: OnStep,
) -> list[Written]:
    known = {"dataset": about.name, "licence": about.licence.spdx, "merton": merton.__version__}
    tables = []
    for part in parts:
        for table in part.tables:
            progress(f"writing {table.name}")
            found = write_shards(out, table, known | {"table": table.name}, SHARD_BYTES)
            if found.shards:
                tables.append(found)
            else:  # a table without rows has no file, and a hub knows no config without one
                (out / table.name).rmdir()
    if left_out := [entry for part in parts for entry in part.left_out]:
        write_csv(out / LEFT_OUT, ("table", "name", "reason"), [(one.table, one.name, one.reason) for one in left_out])
    write_file(out / README, card(about, parts, tables).encode("utf-8", "replace"))
    made = " ".join(sentence for part in parts for sentence in part.made)
    write_file(out / CROISSANT, croissant(about, made, tables).encode("utf-8", "replace"))
    files = sorted(path for path in out.rglob("*") if path.is_file())
    sums = "".join(f"{file_sha256(path)}  {path.relative_to(out).as_posix()}\n" for path in files)
    write_file(out / SUMS, sums.encode())
    return tables
