"""Snapshots: a leaderboard computed from the record alone, as bytes that can be computed again from the same record.

`contents` has its fields, `compute` its computation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NoReturn

import sqlalchemy as sa
from pydantic import TypeAdapter

from merton.config import validated
from merton.errors import InfrastructureError, InputError
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.submissions import receipts
from merton.progress import OnStep
from merton.results.matrix import ResponseMatrix
from merton.results.metrics import DEFAULT_METRIC, checked_metric
from merton.results.records import AgentRecord, ExperimentRecord, ForeignScore, TrialRecord
from merton.results.schema import SCHEMA_VERSION, SNAPSHOTS
from merton.results.store import ResultStore

DEFAULT_NAME = "leaderboard"

_ADAPTER: TypeAdapter[Snapshot] = TypeAdapter(Snapshot)


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot that is stored in the record, without its content, which `load` reads.

    Attributes:
        id: counts up.
        taken_utc: when it was stored, ISO 8601.
        inputs_sha256: of the inputs it was computed from.
        sha256: of its bytes, `to_json`.
    """

    id: int
    taken_utc: str
    name: str
    inputs_sha256: str
    sha256: str


def take(
    store: ResultStore,
    name: str | None = None,
    progress: OnStep = lambda text: None,
    window: str | None = None,
    checks: bool = True,
    metric: str = DEFAULT_METRIC,
) -> Snapshot:
    """The snapshot of all that is in the record: trials of every experiment, imported scores, agents, submissions.

    It is read in one transaction, so a result that is written meanwhile is in it as a whole or not at all.

    Args:
        name: of the snapshot; if None `DEFAULT_NAME`, with the metric behind it unless that is the default.
        window: a day, ISO 8601, whose submissions are on the board (`submissions.receipts`); today if None;
            "" for none. It makes no difference to a record without submissions.
        checks: also test the methods on held-out matches, which takes as long as the rating itself.
        metric: of `merton.results.metrics`, by which trials are rated, and submissions that state it; the warnings name
            those that do not.
        progress: called with a line of text at the start of each long step.

    Raises:
        UnknownNameError: no such metric.
        InputError: a score in the record is NaN or outside 0..1, or the metric needs trials that are not there.
        InfrastructureError: the record cannot be read.
    """
    name = name or (DEFAULT_NAME if checked_metric(metric) == DEFAULT_METRIC else f"{DEFAULT_NAME}-{metric}")
    progress("reading the record")
    return compute(inputs_of(store, window, metric), name, SCHEMA_VERSION, checks, progress)


def inputs_of(store: ResultStore, window: str | None = None, metric: str = DEFAULT_METRIC) -> Inputs:
    """All that a snapshot of the record is computed from, read in one transaction; arguments and errors as `take`."""
    checked_metric(metric)
    with store.database.reading():
        trials, scores = store.records(), store.scores()
        entries, shown = _submissions(store, window)
        items, foreign = {trial.case.id for trial in trials}, {item.case for item in scores}
        submitted = _stated(entries, items, metric) + _stated(entries, foreign, None)
        on_board = {item.agent for item in submitted}
        receipts_shown = [entry.receipt for entry in entries if entry.receipt.agent_id in on_board]
        agents = [
            AgentRecord(item.agent_id, item.version, item.weights_sha256, item.manufacturer) for item in receipts_shown
        ]
        agents += [agent for agent in store.agents() if agent.id not in on_board]
        return Inputs(
            trials,
            scores,
            agents,
            submitted,
            shown,
            metric,
            _stated(entries, items, DEFAULT_METRIC),
            tuple(entry.receipt.agent_id for entry in entries if entry.receipt.agent_id not in on_board),
            store.import_metrics(),
            _of_worlds(store, {trial.experiment for trial in trials}),
        )


def _of_worlds(store: ResultStore, rated: Collection[str]) -> list[ExperimentRecord]:
    """The experiments whose trials are rated, if one of them names its world."""
    found = [experiment for experiment in store.experiment_records() if experiment.id in rated]
    return found if any(experiment.world for experiment in found) else []


def inputs_of_matrix(matrix: ResponseMatrix) -> Inputs:
    """The same of a response matrix."""
    scores = [ForeignScore(matrix.source, *cell) for cell in matrix.cells]
    return Inputs((), scores, matrix.agents, imported_by={matrix.source: matrix.metric} if matrix.metric else {})


def of_trials(trials: Sequence[TrialRecord], name: str = DEFAULT_NAME) -> Snapshot:
    """The snapshot of these trials alone, without the tests of the methods: for a run's report and board."""
    return compute(Inputs(trials), name, SCHEMA_VERSION, checks=False)


def of_matrix(matrix: ResponseMatrix, name: str | None = None, progress: OnStep = lambda text: None) -> Snapshot:
    """The snapshot of a response matrix, the same as that of a record into which only this matrix was imported."""
    return compute(inputs_of_matrix(matrix), name or DEFAULT_NAME, SCHEMA_VERSION, True, progress)


def to_json(snapshot: Snapshot) -> bytes:
    """The snapshot as canonical JSON: sorted keys, no white space, UTF-8, no NaN; equal snapshots give equal bytes."""
    plain: Any = _ADAPTER.dump_python(snapshot)
    for case in plain["cases"]:
        if not case["group"]:  # else boards without groups would have other bytes than before there were any
            del case["group"]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def from_json(data: bytes | str, name: str = "this") -> Snapshot:
    """The snapshot in `data`; InputError, of `name`, if it is torn, holds NaN, or is not a snapshot of this version."""
    what = f"{name} is not a snapshot of a leaderboard"
    try:
        json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what}: {error}") from None
    return validated(_ADAPTER, data, what)


def store_snapshot(store: ResultStore, snapshot: Snapshot) -> bool:
    """Append the snapshot to the record; False if the newest of this name has the same bytes, so that it was not.

    Raises:
        InfrastructureError: the disk or the server refuses; the older snapshots are unchanged.
    """
    content = to_json(snapshot)
    digest = hashlib.sha256(content).hexdigest()
    newest = (
        sa.select(SNAPSHOTS.c.sha256).where(SNAPSHOTS.c.name == snapshot.name).order_by(SNAPSHOTS.c.id.desc()).limit(1)
    )
    with store.database.transaction() as connection:
        if connection.scalar(newest) == digest:
            return False
        connection.execute(
            sa.insert(SNAPSHOTS).values(
                taken_utc=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                name=snapshot.name,
                inputs_sha256=snapshot.inputs_sha256,
                sha256=digest,
                content=content.decode(),
            )
        )
    return True


def snapshots(store: ResultStore) -> list[StoredSnapshot]:
    """The stored snapshots, oldest first."""
    columns = [column for column in SNAPSHOTS.c if column.name != "content"]
    with store.database.reading() as connection:
        rows = connection.execute(sa.select(*columns).order_by(SNAPSHOTS.c.id)).mappings().all()
    return [StoredSnapshot(**row) for row in rows]


def load(store: ResultStore, id: int) -> Snapshot:
    """The stored snapshot of that id.

    Raises:
        InputError: there is none.
        InfrastructureError: it is damaged.
    """
    with store.database.reading() as connection:
        row = connection.execute(sa.select(SNAPSHOTS).where(SNAPSHOTS.c.id == id)).mappings().one_or_none()
    if row is None:
        raise InputError(f"there is no snapshot {id} in {store.database.where}")
    content = row["content"].encode()
    if hashlib.sha256(content).hexdigest() != row["sha256"]:
        raise InfrastructureError(f"snapshot {id} in {store.database.where} is damaged: its hash is another")
    return from_json(content)


def latest(store: ResultStore, metric: str = DEFAULT_METRIC) -> Snapshot | None:
    """The newest stored snapshot by a metric that is intact and of this version, to show if none can be taken now."""
    for stored in reversed(snapshots(store)):
        try:
            found = load(store, stored.id)
        except (InfrastructureError, InputError):
            continue
        if found.metric == metric:
            return found
    return None


def verify(store: ResultStore, data: bytes, progress: OnStep = lambda text: None) -> tuple[str, ...]:
    """Compute the snapshot in `data` again from the record and compare the bytes.

    Returns:
        The differences, a sentence each; empty if every byte is the same.

    Raises:
        InputError: `data` is not a snapshot.
    """
    claimed = from_json(data)
    found = take(store, claimed.name, progress, claimed.window, metric=claimed.metric)
    if to_json(found) == data:
        return ()
    differences = []
    if found.inputs_sha256 != claimed.inputs_sha256:
        differences.append(
            f"the record holds other content than the snapshot was taken from: {found.inputs_sha256[:12]} against "
            f"{claimed.inputs_sha256[:12]}"
        )
    if found.merton_version != claimed.merton_version:
        differences.append(f"Merton {claimed.merton_version} took it, this is {found.merton_version}")
    ours, theirs = _ADAPTER.dump_python(found), _ADAPTER.dump_python(claimed)
    names = [name for name in ours if ours[name] != theirs[name] and name not in ("inputs_sha256", "merton_version")]
    if names:
        differences.append(f"these parts differ: {', '.join(names)}")
    return tuple(differences) or ("the content is the same, but the bytes are not in their canonical form",)


def _submissions(store: ResultStore, window: str | None) -> tuple[list[receipts.BoardEntry], str]:
    """The submissions on the board in a window, and its first day; "" if there never were any."""
    with store.database.reading() as connection:
        if window == "" or not receipts.submissions(connection):
            return [], ""
        day = _midnight(window) if window else datetime.now(timezone.utc)
        return receipts.on_board(connection, day), receipts.current_window(day).isoformat()


def _stated(entries: Sequence[receipts.BoardEntry], items: Collection[str], metric: str | None) -> list[ForeignScore]:
    """The scores that submissions state by a metric of these items; without one those of an imported matrix."""
    return [
        ForeignScore(entry.receipt.id, entry.receipt.agent_id, item, score)
        for entry in entries
        for item, score in (entry.scores if metric is None else entry.of_trials(metric))
        if item in items
    ]


def _midnight(day: str) -> datetime:
    try:
        return datetime.fromisoformat(day).replace(tzinfo=timezone.utc)
    except ValueError:
        raise InputError(f"the window of a snapshot must be a day such as 2026-11-30, got {day!r}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")
