"""What is asked of whom: requests with their keys, in the order in which they are asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.annotate.dataset import Shown
from merton.annotate.views import camera_of, described
from merton.cognition.models.base import ModelEntry, question_for
from merton.decision.models.base import PolicyEntry
from merton.seeding import derive_seed


@dataclass(frozen=True)
class Request:
    """One question or instruction about one image, with the noise seed (0 for a VLM) and the key of its response."""

    key: str
    text: str
    seed: int


@dataclass(frozen=True)
class Picture:
    """One image and what is asked about it; `taken_by` is a camera of the cell, "" for a VLM."""

    file: Path
    pixels: str
    taken_by: str
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Job:
    """What a worker is given at a time; it holds all it needs, so that a worker needs no catalogue.

    Attributes:
        entry: the model.
        pictures: a few images with their requests.
        one_by_one: ask one request at a time, so that one that fails does not take others with it.
    """

    entry: ModelEntry | PolicyEntry
    pictures: tuple[Picture, ...]
    one_by_one: bool = False

    @property
    def keys(self) -> list[str]:
        """The keys of all requests."""
        return [request.key for picture in self.pictures for request in picture.requests]


@dataclass(frozen=True)
class Reply:
    """What came of a request.

    Attributes:
        key: of the request.
        response: JSON (see `asking`), or None if there is none: then nothing is known of the model's answer.
        latency_s: time it took [s]; in a batch, the batch's time divided by its size.
        error: why there is no response.
        hopeless: asking again would not help.
    """

    key: str
    response: str | None
    latency_s: float = 0.0
    error: str = ""
    hopeless: bool = False


@dataclass(frozen=True)
class Row:
    """One row of the final table: an image, a task, and the key of the response."""

    shown: Shown
    task: str
    key: str


def rows_and_jobs(
    entry: ModelEntry | PolicyEntry, identity: dict[str, Any], shown: Sequence[Shown], batch: int
) -> tuple[list[Row], list[Job]]:
    """All rows of a model in the order of the table, and the jobs, `batch` images each, that answer them.

    The tasks of an image stand together, so that they can share its encoding. A request that occurs twice (two
    distortions may give the same pixels) is in the jobs once. The jobs do not depend on what is known already, so that
    after a kill the same questions are asked together again.
    """
    model = json.dumps(identity, sort_keys=True)
    rows: list[Row] = []
    pictures: list[Picture] = []
    seen: set[str] = set()
    views: dict[tuple[str, tuple[int, int]], str] = {}
    for one in shown:
        taken_by = camera_of(one.reference) if isinstance(entry, PolicyEntry) else ""
        if (taken_by, one.size_px) not in views:
            values = described(taken_by, entry.cameras, one.size_px) if isinstance(entry, PolicyEntry) else {}
            views[taken_by, one.size_px] = json.dumps(values, sort_keys=True)
        requests = []
        for task in one.reference.tasks:
            text, seed = _asked(entry, one, task)
            key = _key(model, views[taken_by, one.size_px], one.pixels, text, str(seed))
            rows.append(Row(one, task, key))
            if key not in seen:
                seen.add(key)
                requests.append(Request(key, text, seed))
        if requests:
            pictures.append(Picture(one.file, one.pixels, taken_by, tuple(requests)))
    jobs = [Job(entry, tuple(pictures[start : start + batch])) for start in range(0, len(pictures), batch)]
    return rows, jobs


def _asked(entry: ModelEntry | PolicyEntry, shown: Shown, task: str) -> tuple[str, int]:
    """Question or instruction, and the noise seed: the same for a reference and its copies, whatever their names."""
    if isinstance(entry, ModelEntry):
        return question_for(task[:1].lower() + task[1:]), 0
    return task, derive_seed("annotate", shown.reference.pixels, task)


def _key(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
