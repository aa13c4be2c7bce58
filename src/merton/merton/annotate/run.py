"""Ask every model about every image of a dataset, keep every answer, and write the tables."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from merton import __version__
from merton.annotate.cache import Cache, Cached
from merton.annotate.dataset import read_dataset
from merton.annotate.engines import Engine
from merton.annotate.identity import entry_of, identity, refuse_unsuitable
from merton.annotate.tables import Annotated, Tables
from merton.annotate.work import Job, Row, rows_and_jobs
from merton.cognition.models.base import ModelEntry
from merton.decision.models.base import PolicyEntry
from merton.errors import InputError
from merton.files import locked_folder
from merton.perception.dataset import layout
from merton.perception.dataset.tables import require_pyarrow

ROUNDS = 3
"""How often something is asked for at most. A round goes through all that is missing, in order, so that a server has
time to come back; from the second on, requests are asked one at a time, so that one does not take others with it."""
BATCH = 8
"""Images a worker is given at a time, with all their tasks."""


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        model: whose turn it is.
        done, total: requests, of all models.
        asked: how many of the done ones this run has asked for; the rest was in the cache.
        cost: of what was asked, as the catalogue prices it.
        cost_left: of what is left, if none of it is in the cache.
    """

    model: str
    done: int
    total: int
    asked: int
    cost: float
    cost_left: float


@dataclass(frozen=True)
class Summary:
    """What came of a run.

    Attributes:
        rows: of the final table.
        asked: requests that this run had answered; what two rows share counts once.
        cached: requests that were in the cache.
        failed: rows whose model failed.
        unanswered: rows for which something else did.
        reasons: the first few different reasons for that.
        cost: of what was asked.
    """

    rows: int
    asked: int
    cached: int
    failed: int
    unanswered: int
    reasons: tuple[str, ...]
    cost: float


def annotate(
    dataset: Path,
    models: Sequence[str],
    out: Path,
    *,
    cache: Path,
    engine: Engine,
    batch: int = BATCH,
    on_progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Answers, actions and scores of some models on a dataset.

    After a kill, call it again: what is in the cache is not asked again, and the tables come out the same.

    Args:
        dataset: a folder that `merton dataset build` has finished.
        models: names of the catalogue, VLMs and VLAs, in the order of the tables.
        out: folder for the tables; those of an earlier run are replaced.
        cache: file of responses, shared by as many runs as you like.
        engine: who works.
        batch: images a worker is given at a time.
        on_progress: told after every job.

    Raises:
        UnknownNameError: a name that is not in the catalogue.
        InputError: no dataset or no models, a model that is named twice or cannot be served with a still image, or
            another run that writes into `out`.
        MissingDependencyError: pyarrow, or what a model's adapter is made of, is not installed.
        InfrastructureError: cache or tables cannot be read or written.
    """
    require_pyarrow()
    if not models:
        raise InputError("at least one model is needed")
    if len(set(models)) < len(models):
        raise InputError(f"every model must be named once, got: {', '.join(models)}")
    if batch < 1:
        raise InputError(f"a batch needs at least one image, got {batch}")
    entries = [entry_of(name) for name in models]
    for entry in entries:
        refuse_unsuitable(entry)
    identities = [identity(entry, entry.build()) for entry in entries]
    shown = read_dataset(dataset)
    about = {
        "dataset": hashlib.sha256((dataset / layout.MANIFEST).read_bytes()).hexdigest(),
        "merton": __version__,
        "models": dict(zip(models, identities, strict=True)),
    }
    tasks = sum(len(one.reference.tasks) for one in shown)
    tally = _Tally({entry.name: entry.cost_per_1000 / 1000 for entry in entries}, tasks, on_progress)
    with locked_folder(out, "merton annotate"), Cache(cache) as responses, engine, Tables(out, about) as tables:
        for entry, who in zip(entries, identities, strict=True):
            rows, jobs = rows_and_jobs(entry, who, shown, batch)
            tables.add(_annotated(entry, rows, jobs, responses, engine, tally))
    return tally.summary()


def _annotated(
    entry: ModelEntry | PolicyEntry,
    rows: Sequence[Row],
    jobs: Sequence[Job],
    cache: Cache,
    engine: Engine,
    tally: _Tally,
) -> Annotated:
    """Have all of a model's requests answered that are not in the cache."""
    keys = [row.key for row in rows]
    known = cache.find(list(dict.fromkeys(keys)))
    hits = frozenset(known)
    tally.begin(entry.name, keys, hits)
    reasons: dict[str, str] = {}
    left = _without(jobs, hits)
    for _ in range(ROUNDS):
        hopeless: set[str] = set()
        for replies in engine.run(left):
            got = [(reply.key, Cached(reply.response, reply.latency_s)) for reply in replies if reply.response]
            cache.add(got)
            known.update(got)
            reasons.update({reply.key: reply.error for reply in replies if not reply.response})
            hopeless |= {reply.key for reply in replies if reply.hopeless}
            tally.add([key for key, _ in got])
        left = _without(left, known.keys() | hopeless, one_by_one=True)
        if not left:
            break
    annotated = Annotated(entry.name, isinstance(entry, PolicyEntry), rows, known, reasons, hits)
    tally.end(annotated)
    return annotated


def _without(jobs: Sequence[Job], keys: Collection[str], one_by_one: bool = False) -> list[Job]:
    """The jobs without the requests of these keys, and without those of which nothing is left."""
    left = []
    for job in jobs:
        pictures = []
        for picture in job.pictures:
            requests = tuple(request for request in picture.requests if request.key not in keys)
            if requests:
                pictures.append(type(picture)(picture.file, picture.pixels, picture.taken_by, requests))
        if pictures:
            left.append(Job(job.entry, tuple(pictures), one_by_one))
    return left


class _Tally:
    """Counts for progress and summary.

    Args:
        prices: model to what a request costs.
        rows: of each model.
        on_progress: told whenever something is done.
    """

    def __init__(self, prices: Mapping[str, float], rows: int, on_progress: Callable[[Progress], None] | None) -> None:
        self._prices, self._on_progress = prices, on_progress
        self._total, self._left = rows * len(prices), dict.fromkeys(prices, rows)
        self._asked = dict.fromkeys(prices, 0)
        self._model = ""
        self._copies: Counter[str] = Counter()
        self._cached = self._failed = self._unanswered = 0
        self._reasons: dict[str, None] = {}

    def begin(self, model: str, keys: Sequence[str], hits: frozenset[str]) -> None:
        """A model's turn: its rows' keys, and those that are known."""
        self._model, self._copies = model, Counter(keys)
        self._cached += len(hits)
        self._finish(hits)

    def add(self, keys: Sequence[str]) -> None:
        """Requests that were answered."""
        self._asked[self._model] += len(keys)
        self._finish(keys)

    def end(self, annotated: Annotated) -> None:
        """A model's turn is over."""
        for row in annotated.rows:
            cached = annotated.responses.get(row.key)
            self._failed += cached is not None and cached.response.startswith('{"failed"')
            if cached is None:
                self._unanswered += 1
                self._reasons.setdefault(f"{annotated.model}: {annotated.reasons.get(row.key, 'it was not asked')}")

    def summary(self) -> Summary:
        """Of the whole run."""
        asked, reasons = sum(self._asked.values()), tuple(self._reasons)[:5]
        cost = self._priced(self._asked)
        return Summary(self._total, asked, self._cached, self._failed, self._unanswered, reasons, cost)

    def _finish(self, keys: Iterable[str]) -> None:
        self._left[self._model] -= sum(self._copies[key] for key in keys)
        if self._on_progress:
            done, asked = self._total - sum(self._left.values()), sum(self._asked.values())
            costs = self._priced(self._asked), self._priced(self._left)
            self._on_progress(Progress(self._model, done, self._total, asked, *costs))

    def _priced(self, counts: Mapping[str, int]) -> float:
        return sum(count * self._prices[model] for model, count in counts.items())
