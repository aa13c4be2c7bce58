"""Run every model on every image of a dataset, cache every response, and write the tables."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from merton import __version__
from merton.cognition.models.base import ModelEntry
from merton.decision.models.base import PolicyEntry
from merton.errors import InfrastructureError, InputError
from merton.files import locked_folder
from merton.perception.dataset import layout
from merton.perception.dataset.origin import read_origin
from merton.pool import Pool
from merton.results.parquet import require_pyarrow
from merton_studies.annotate.cache import Cache, CachedResponse
from merton_studies.annotate.dataset import DatasetImage, read_dataset
from merton_studies.annotate.identity import entry_of, identity, refuse_unsuitable
from merton_studies.annotate.opinions import read_annotations, write_opinions
from merton_studies.annotate.prompting import run_job
from merton_studies.annotate.tables import ModelResult, Tables, value_of
from merton_studies.annotate.work import AnnotationRow, Job, Reply, rows_and_jobs
from merton_studies.opinions.opinion import OPINIONS, SUBJECTS

ROUNDS = 3
"""Most attempts for a request. A round goes through all missing ones in order, so that a server has time to recover;
from the second round on, each request is a separate call, so that a failing one fails alone."""
BATCH = 8
"""Images of a job, with all their tasks."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    Attributes:
        model: the current model.
        done, total: requests, of all models.
        requested: done requests that were not in the cache.
        cost: of those, by the catalogue's prices.
        cost_left: of the remaining requests, if none of them is in the cache.
    """

    model: str
    done: int
    total: int
    requested: int
    cost: float
    cost_left: float


@dataclass(frozen=True)
class Summary:
    """The result of a run.

    Attributes:
        rows: of the final table.
        requested: answered requests of this run; one that two rows share counts once.
        cached: requests that were in the cache.
        failed: rows whose model failed.
        cut_off: rows whose answer was cut off at its limit of tokens; those without any answer before the cut failed.
        unanswered: rows without an outcome of the model.
        reasons: up to five different reasons of unanswered rows.
        useless: a sentence for each model that failed in every row, with its first reason.
        cost: of the requests made.
    """

    rows: int
    requested: int
    cached: int
    failed: int
    cut_off: int
    unanswered: int
    reasons: tuple[str, ...]
    cost: float
    useless: tuple[str, ...] = ()


def annotate(
    dataset: Path,
    models: Sequence[str],
    out: Path,
    *,
    cache: Path,
    pool: Pool,
    batch: int = BATCH,
    max_tokens: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Answers, actions and scores of some models on a dataset.

    After a kill, call it again: cached requests are not repeated, and the tables are the same.

    Args:
        dataset: a folder that `merton dataset build` has finished.
        models: names of the catalogue, VLMs and VLAs, in the order of the tables.
        out: folder for the tables; those of an earlier run are replaced.
        cache: file of responses; any number of runs may share it.
        pool: of `merton.pool.open_pool`; each worker has its own copy of the model, and reads images and checkpoints by
            their paths on this machine. Only this process opens the cache.
        batch: images of a job.
        max_tokens: least limit of a VLM's answer in tokens, in place of the catalogue's; None for that one.
        on_progress: called after every job.

    Raises:
        UnknownNameError: a name that is not in the catalogue.
        InputError: no dataset or no models, a model that is named twice or needs more than a still image, or another
            run is writing into `out`.
        MissingDependencyError: pyarrow, or a package that a model's adapter needs, is not installed.
        InfrastructureError: cache or tables cannot be read or written.
    """
    require_pyarrow()
    if batch < 1:
        raise InputError(f"a batch needs at least one image, got {batch}")
    entries = _entries(models, max_tokens)
    identities = [identity(entry, entry.build()) for entry in entries]
    images = read_dataset(dataset)
    refuse_without_tasks(dataset, images)
    about = {
        "dataset": hashlib.sha256((dataset / layout.MANIFEST).read_bytes()).hexdigest(),
        **read_origin(dataset).facts,
        "merton": __version__,
        "models": dict(zip(models, identities, strict=True)),
    }
    tasks = sum(len(image.reference.tasks) for image in images)
    tally = Tally({entry.name: entry.cost_per_1000 / 1000 for entry in entries}, tasks, on_progress)
    with locked_folder(out, "merton annotate"), Cache(cache) as responses, Tables(out, about) as tables:
        for entry, model_identity in zip(entries, identities, strict=True):
            rows, jobs = rows_and_jobs(entry, model_identity, images, batch)
            tables.add(_run_model(entry, rows, jobs, responses, pool, tally))
    write_run_opinions(out, dataset)
    return tally.summary()


def refuse_without_tasks(dataset: Path, images: Sequence[DatasetImage]) -> None:
    """Raise InputError for a dataset none of whose images has a task."""
    if not any(image.reference.tasks for image in images):
        raise InputError(
            f"{str(dataset)!r} has no tasks, so there is nothing to ask: write tags.yaml beside the images of a build, "
            "or tasks into the table of an import, and make it again (docs/use/dataset.md)"
        )


def write_run_opinions(out: Path, dataset: Path) -> str:
    """Write opinions and sums of the models of a run; those of an earlier run are removed if there are no scores.

    Returns why there are none, such as that no model has a score of every task of an image; "" if there are.
    """
    try:
        write_opinions(read_annotations([out], dataset), out)
    except InputError as error:
        for name in (OPINIONS, SUBJECTS):
            (out / name).unlink(missing_ok=True)
        return str(error)
    return ""


def _entries(models: Sequence[str], max_tokens: int | None) -> list[ModelEntry | PolicyEntry]:
    """The catalogue's entries of the models, VLMs with a least limit; raises as `annotate` does."""
    if not models:
        raise InputError("at least one model is needed")
    if len(set(models)) < len(models):
        raise InputError(f"every model must be named once, got: {', '.join(models)}")
    entries = [entry_of(name) for name in models]
    for entry in entries:
        refuse_unsuitable(entry)
    return [entry.limited(max_tokens) if isinstance(entry, ModelEntry) else entry for entry in entries]


def _run_model(
    entry: ModelEntry | PolicyEntry,
    rows: Sequence[AnnotationRow],
    jobs: Sequence[Job],
    cache: Cache,
    pool: Pool,
    tally: Tally,
) -> ModelResult:
    """Run all requests of a model that are not in the cache."""
    keys = [row.key for row in rows]
    known = cache.find(list(dict.fromkeys(keys)))
    hits = frozenset(known)
    tally.begin(entry.name, keys, hits)
    reasons: dict[str, str] = {}
    left = _without(jobs, hits)
    for _ in range(ROUNDS):
        permanent: set[str] = set()
        for replies in _replies(pool, left):
            responses = [
                (reply.key, CachedResponse(reply.response, reply.latency_s)) for reply in replies if reply.response
            ]
            cache.add(responses)
            known.update(responses)
            reasons.update({reply.key: reply.error for reply in replies if not reply.response})
            permanent |= {reply.key for reply in replies if reply.permanent}
            tally.add([key for key, _ in responses])
        left = _without(left, known.keys() | permanent, one_by_one=True)
        if not left:
            break
    result = ModelResult(entry.name, isinstance(entry, PolicyEntry), rows, known, reasons, hits)
    tally.end(result)
    return result


def _replies(pool: Pool, jobs: Sequence[Job]) -> Iterator[list[Reply]]:
    """A reply to every request of every job, a job at a time, in the order of completion.

    Those of a job that workers died of have no response.
    """
    futures = {pool.submit(run_job, job, pool.count): job for job in jobs}
    for future in as_completed(futures):
        job = futures.pop(future)
        try:
            yield future.result()
        except InfrastructureError as error:
            yield [Reply(key, None, error=str(error)) for key in job.keys]


def _without(jobs: Sequence[Job], keys: Collection[str], one_by_one: bool = False) -> list[Job]:
    """The jobs without the requests of these keys; jobs without any requests are left out."""
    left = []
    for job in jobs:
        items = []
        for item in job.items:
            if requests := tuple(request for request in item.requests if request.key not in keys):
                items.append(replace(item, requests=requests))
        if items:
            left.append(Job(job.entry, tuple(items), one_by_one))
    return left


class Tally:
    """Counts for progress and summary, with the price of a request by model; every model has the same `rows`."""

    def __init__(self, prices: Mapping[str, float], rows: int, on_progress: Callable[[Progress], None] | None) -> None:
        self._prices, self._on_progress = prices, on_progress
        self._total, self._left = rows * len(prices), dict.fromkeys(prices, rows)
        self._requested = dict.fromkeys(prices, 0)
        self._model = ""
        self._copies: Counter[str] = Counter()
        self._cached = self._failed = self._cut_off = self._unanswered = 0
        self._reasons: dict[str, None] = {}
        self._useless: list[str] = []

    def begin(self, model: str, keys: Sequence[str], hits: frozenset[str]) -> None:
        """Start with a model; `hits` are those of its keys that are in the cache."""
        self._model, self._copies = model, Counter(keys)
        self._cached += len(hits)
        self._finish(hits)

    def add(self, keys: Sequence[str]) -> None:
        self._requested[self._model] += len(keys)
        self._finish(keys)

    def end(self, result: ModelResult) -> None:
        failures = []
        for row in result.rows:
            value = value_of(result.responses.get(row.key))
            if value is not None and "failed" in value:
                failures.append(str(value["failed"]))
            self._cut_off += value is not None and bool(value.get("truncated"))
            if value is None:
                self._unanswered += 1
                self._reasons.setdefault(f"{result.model}: {result.reasons.get(row.key, 'it was not asked')}")

        self._failed += len(failures)
        if failures and len(failures) == len(result.rows):
            self._useless.append(f"{result.model} failed in every one of {len(failures)} rows: {failures[0]}")

    def summary(self) -> Summary:
        requested, reasons = sum(self._requested.values()), tuple(self._reasons)[:5]
        cost = self._priced(self._requested)
        counts = self._total, requested, self._cached, self._failed, self._cut_off, self._unanswered
        return Summary(*counts, reasons, cost, tuple(self._useless))

    def _finish(self, keys: Iterable[str]) -> None:
        self._left[self._model] -= sum(self._copies[key] for key in keys)
        if self._on_progress:
            done, requested = self._total - sum(self._left.values()), sum(self._requested.values())
            costs = self._priced(self._requested), self._priced(self._left)
            self._on_progress(Progress(self._model, done, self._total, requested, *costs))

    def _priced(self, counts: Mapping[str, int]) -> float:
        return sum(count * self._prices[model] for model, count in counts.items())
