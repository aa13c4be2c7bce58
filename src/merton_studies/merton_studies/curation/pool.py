"""A pool of questions on disk: one folder, the form of every benchmark that goes in or comes out.

    pool.yaml           form, sources, how it was made, and the hash of the table
    questions.parquet   a row for each `Question`, in the order of their ids
    media/              the pictures

A curated benchmark is such a folder too, with more files beside these, so that each tool opens both.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from merton.config import Model, dumps, load, validated
from merton.errors import InputError
from merton.files import write_file
from merton.perception.images import read_image
from merton.results.parquet import parquet_bytes, parquet_file, require_pyarrow
from merton.world.observation import Image
from merton_studies.curation.question import BenchmarkSource, Medium, Question

ABOUT, TABLE, MEDIA = "pool.yaml", "questions.parquet", "media"
_TEXTS = ("choices", "also")
_AS_JSON = ("media", "meta")


class About(Model):
    """The file pool.yaml.

    Attributes:
        form: of the folder.
        sources: the benchmarks whose questions are inside.
        made: how the pool was made: versions, seeds, settings, hashes of inputs.
        questions: how many.
        sha256: of questions.parquet.
    """

    form: Literal["merton pool 1"] = "merton pool 1"
    sources: tuple[BenchmarkSource, ...]
    made: dict[str, Any]
    questions: int
    sha256: str


@dataclass(frozen=True)
class Pool:
    """Questions in the order of their ids, and where they come from.

    Attributes:
        questions: with unique ids.
        sources: name to benchmark; has the source of each question.
        folder: the media's paths are relative to it; None for a pool without pictures that was never written.
        made: as in `About`.
    """

    questions: tuple[Question, ...]
    sources: Mapping[str, BenchmarkSource]
    folder: Path | None = None
    made: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, questions: Iterable[Question], sources: Iterable[BenchmarkSource], folder: Path | None = None, **made: Any
    ) -> Pool:
        """A pool of some questions; raises InputError for two with one id, or one whose source is unknown."""
        ordered = tuple(sorted(questions, key=lambda question: question.id))
        known = {source.name: source for source in sources}
        twice = [name for name, times in Counter(question.id for question in ordered).items() if times > 1]
        if twice:
            raise InputError(f"two questions have the id {twice[0]!r}")
        for question in ordered:
            if question.source not in known:
                raise InputError(
                    f"question {question.id!r} is of the source {question.source!r}, which is not described; "
                    f"described: {', '.join(known) or 'none'}"
                )
        return cls(ordered, known, folder, made)

    def subset(self, ids: Iterable[str]) -> Pool:
        """The questions with these ids; raises InputError for an id that is not here."""
        wanted = set(ids)
        kept = tuple(question for question in self.questions if question.id in wanted)
        if len(kept) < len(wanted):
            raise InputError(f"no question {sorted(wanted - {question.id for question in kept})[0]!r} in the pool")
        names = {question.source for question in kept}
        return Pool(kept, {name: self.sources[name] for name in self.sources if name in names}, self.folder, self.made)

    def images(self, question: Question) -> list[Image]:
        """The pictures of a question, (height, width, 3) uint8 RGB; raises InputError for a missing or changed file."""
        return [self.image(medium) for medium in question.media]

    def image(self, medium: Medium) -> Image:
        """One picture, (height, width, 3) uint8 RGB; raises InputError for a missing or changed file."""
        file = media_file(self.folder, medium.path)
        if hashlib.sha256(file.read_bytes()).hexdigest() != medium.sha256:
            raise InputError(f"{file} has changed since the pool was made")
        return np.asarray(read_image(file))


def media_file(folder: Path | None, path: str) -> Path:
    """The file of a medium; raises InputError if it is missing or outside the pool's folder."""
    if folder is None:
        raise InputError("this pool has no folder, so no pictures")
    file = folder / path
    if not file.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"the picture {path!r} lies outside the pool")
    if not file.is_file():
        raise InputError(f"the picture {file} is missing")
    return file


def write_pool(pool: Pool, out: Path) -> None:
    """Write pool.yaml and questions.parquet into a folder whose media are there already; same pool, same bytes.

    Raises:
        InputError: a picture is missing.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    for question in pool.questions:
        for medium in question.media:
            media_file(out, medium.path)
    out.mkdir(parents=True, exist_ok=True)
    content = _parquet(pool.questions)
    about = About(
        sources=tuple(pool.sources.values()),
        made=dict(pool.made),
        questions=len(pool.questions),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    write_file(out / TABLE, content)
    write_file(out / ABOUT, dumps(about.model_dump(mode="json")).encode())


def read_pool(folder: Path) -> Pool:
    """The pool in a folder.

    Raises:
        InputError: no pool, a table that has changed since it was written, or a row that is no question.
        MissingDependencyError: pyarrow is not installed.
    """
    if not (folder / ABOUT).is_file():
        raise InputError(f"{folder} is no pool of questions: it has no {ABOUT}")
    about = load(folder / ABOUT, About)
    try:
        content = (folder / TABLE).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {folder / TABLE}: {error.strerror or error}") from None
    if hashlib.sha256(content).hexdigest() != about.sha256:
        raise InputError(f"{folder / TABLE} has changed since the pool was written: its hash is not that of {ABOUT}")
    rows = parquet_file(content).read().to_pylist()
    questions = [_question(row, f"{folder / TABLE}, row {number}") for number, row in enumerate(rows, 1)]
    return Pool.of(questions, about.sources, folder, **about.made)


def refuse_other(known: Pool, made: Mapping[str, Any]) -> None:
    """Raises InputError if the pool in a folder, in which one is to be made, was made otherwise."""
    if _as_json(known.made) != _as_json(made):
        raise InputError(f"{str(known.folder)!r} holds another pool; choose another folder")


def _as_json(made: Mapping[str, Any]) -> str:
    return json.dumps(dict(made), sort_keys=True)


def _question(row: dict[str, Any], where: str) -> Question:
    values = {**row, **{name: json.loads(row[name]) for name in _AS_JSON}}
    return validated(Question, json.dumps(values), where)


def _parquet(questions: Sequence[Question]) -> bytes:
    pyarrow = require_pyarrow()
    texts = pyarrow.list_(pyarrow.string())
    kinds = {name: pyarrow.string() for name in Question.model_fields}
    kinds |= dict.fromkeys(_TEXTS, texts) | {"video": pyarrow.bool_()}
    rows = [question.model_dump(mode="json") for question in questions]
    for row in rows:
        row |= {name: json.dumps(row[name], sort_keys=True) for name in _AS_JSON}
    table = pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(list(kinds.items())))
    return parquet_bytes(table)
