"""The work of annotation: requests with their keys, in the order in which they are made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.cognition.models.base import ModelEntry, question_for
from merton.decision.models.base import PolicyEntry
from merton.seeding import derive_seed
from merton_studies.annotate.dataset import DatasetImage
from merton_studies.annotate.views import camera_of, description


@dataclass(frozen=True)
class Request:
    """One question or instruction about one image, with the noise seed (0 for a VLM) and the key of its response."""

    key: str
    text: str
    seed: int


@dataclass(frozen=True)
class WorkItem:
    """One image and its requests; `taken_by` is a camera of the cell, "" for a VLM."""

    file: Path
    pixels: str
    taken_by: str
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Job:
    """The unit of work of a worker, with the whole entry, so that a worker needs no catalogue.

    Attributes:
        one_by_one: whether each request is a separate call of the model, so that a failing one fails alone.
    """

    entry: ModelEntry | PolicyEntry
    items: tuple[WorkItem, ...]
    one_by_one: bool = False

    @property
    def id(self) -> str:
        """Its model and first image, for messages."""
        return f"{self.entry.name} at {self.items[0].file.name}"

    @property
    def keys(self) -> list[str]:
        return [request.key for item in self.items for request in item.requests]


@dataclass(frozen=True)
class Reply:
    """The result of a request.

    Attributes:
        key: of the request.
        response: JSON (see `merton_studies.annotate.prompting`); None if the request failed without an outcome of the
            model.
        latency_s: its duration; in a batch, the batch's duration divided by its size.
        error: why there is no response.
        permanent: whether a retry would fail, too.
    """

    key: str
    response: str | None
    latency_s: float = 0.0
    error: str = ""
    permanent: bool = False


@dataclass(frozen=True)
class AnnotationRow:
    """One row of the final table: an image, a task, and the key of the response."""

    shown: DatasetImage
    task: str
    key: str


def rows_and_jobs(
    entry: ModelEntry | PolicyEntry, identity: dict[str, Any], shown: Sequence[DatasetImage], batch: int
) -> tuple[list[AnnotationRow], list[Job]]:
    """All rows of a model in the order of the table, and the jobs, `batch` images each, that answer them.

    The tasks of an image are consecutive, so that they can share its encoding. A request that occurs twice (two
    distortions may give the same pixels) is in the jobs once. The jobs do not depend on the contents of the cache, so
    that after a kill the batches are the same.
    """
    model = json.dumps(identity, sort_keys=True)
    rows: list[AnnotationRow] = []
    items: list[WorkItem] = []
    keys: set[str] = set()
    views: dict[tuple[str, tuple[int, int]], str] = {}
    for one in shown:
        taken_by = camera_of(one.reference) if isinstance(entry, PolicyEntry) else ""
        if (taken_by, one.size_px) not in views:
            values = description(taken_by, entry.cameras, one.size_px) if isinstance(entry, PolicyEntry) else {}
            views[taken_by, one.size_px] = json.dumps(values, sort_keys=True)
        requests = []
        for task in one.reference.tasks:
            text, seed = _text_and_seed(entry, one, task)
            key = _key(model, views[taken_by, one.size_px], one.pixels, text, str(seed))
            rows.append(AnnotationRow(one, task, key))
            if key not in keys:
                keys.add(key)
                requests.append(Request(key, text, seed))
        if requests:
            items.append(WorkItem(one.file, one.pixels, taken_by, tuple(requests)))
    jobs = [Job(entry, tuple(items[start : start + batch])) for start in range(0, len(items), batch)]
    return rows, jobs


def _text_and_seed(entry: ModelEntry | PolicyEntry, shown: DatasetImage, task: str) -> tuple[str, int]:
    """Question or instruction, and the noise seed: the same for a reference and its copies, under any name."""
    if isinstance(entry, ModelEntry):
        return question_for(task[:1].lower() + task[1:]), 0
    return task, derive_seed("annotate", shown.reference.pixels, task)


def _key(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
