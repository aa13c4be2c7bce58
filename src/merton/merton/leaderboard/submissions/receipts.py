"""Submissions as the record holds them: receipts, attempts, and the submissions that a board counts.

A board takes in new submissions in windows of `WINDOW_DAYS`; all times are UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any

import sqlalchemy as sa

from merton.leaderboard.submissions.evaluation import OPEN, RECEIVED, REFUSED, WITHDRAWN, Step, evaluation, steps
from merton.leaderboard.submissions.manifest import canonical
from merton.results.schema import ATTEMPTS, COUNTED_STATES, SUBMISSION_EXECUTIONS, SUBMISSION_SCORES, SUBMISSIONS

FIRST_WINDOW = date(2024, 1, 1)
"""A Monday. From here on the board takes in new submissions every `WINDOW_DAYS`, at 00:00 UTC."""
WINDOW_DAYS = 14


@dataclass(frozen=True)
class Receipt:
    """A submission that was accepted.

    Attributes:
        id: such as "2026-11-0f3a9c5b27d1e864".
        manufacturer, agent, version: as the manifest spells them.
        weights_sha256, harness_version, dataset_sha256: as in the manifest.
        received_utc: ISO 8601 with microseconds, ending in Z.
        month: the calendar month it uses up, such as "2026-11".
        window: day from whose 00:00 UTC on it is on the board, such as "2026-11-30".
        status: "accepted", "withdrawn" or "superseded" by a newer one of the same agent.
        archive_sha256: of the .zip.
        due: day until whose end the host evaluates it, such as "2026-12-01".
        evaluation: "received", "evaluating", "scored", "refused" or "withdrawn".
        reason: the host's, for its last word on the evaluation; "" if there is none.
        repeated: the same archive was sent before; this is the receipt of that time.
        format: of the submission; one of format 1 states execution in place of success.
    """

    id: str
    manufacturer: str
    agent: str
    version: str
    weights_sha256: str
    harness_version: str
    dataset_sha256: str
    received_utc: str
    month: str
    window: str
    status: str
    archive_sha256: str
    due: str
    evaluation: str = RECEIVED
    reason: str = ""
    repeated: bool = False
    format: int = 1

    @property
    def agent_id(self) -> str:
        """The agent's id on the board; no two submissions can spell the same one for different agents."""
        return f"{self.agent} {self.version} ({self.manufacturer})"

    @property
    def standing(self) -> str:
        """Its status, or "refused" if the host refused it."""
        return REFUSED if self.evaluation == REFUSED else self.status

    def is_overdue(self, today: date) -> bool:
        """Whether it is not evaluated yet and its due day is over; `today` is UTC."""
        return self.evaluation in OPEN and self.due < today.isoformat()


@dataclass(frozen=True)
class Attempt:
    """An attempt to submit; `reason` is empty if it was accepted, `manufacturer` if the archive could not be read."""

    received_utc: str
    manufacturer: str
    archive_sha256: str
    accepted: bool
    reason: str


@dataclass(frozen=True)
class BoardEntry:
    """A submission that is on the board.

    Attributes:
        scores: (item, success or score, 0..1), by item; of format 1 and trials it is execution / 100.
        executions: (item, execution / 100), by item, beside successes; empty if it states none.
    """

    receipt: Receipt
    scores: tuple[tuple[str, float], ...]
    executions: tuple[tuple[str, float], ...] = ()

    def of_trials(self, metric: str) -> tuple[tuple[str, float], ...]:
        """What it states of trials by a metric: success or execution; empty by another, and where it states none."""
        states_success = self.receipt.format > 1
        if metric == "success":
            return self.scores if states_success else ()
        if metric == "execution":
            return self.executions if states_success else self.scores
        return ()


def submissions(connection: sa.Connection, now: datetime | None = None) -> list[Receipt]:
    """Every submission that was ever accepted, withdrawn ones too, in the order of arrival, as it is at a moment."""
    statement = sa.select(SUBMISSIONS).where(SUBMISSIONS.c.status.in_(COUNTED_STATES))
    rows = connection.execute(statement.order_by(SUBMISSIONS.c.received_utc, SUBMISSIONS.c.id)).mappings()
    taken, window = steps(connection), current_window(now or clock())
    return [receipt_of({**row}, taken.get(row["id"], ()), window) for row in rows]


def attempts(connection: sa.Connection) -> list[Attempt]:
    """Every attempt to submit, in order."""
    columns = [ATTEMPTS.c[name] for name in Attempt.__dataclass_fields__]
    return [Attempt(*row) for row in connection.execute(sa.select(*columns).order_by(ATTEMPTS.c.id))]


def on_board(connection: sa.Connection, now: datetime | None = None) -> list[BoardEntry]:
    """The submissions that count at a moment, by agent id; the same for every moment of one window.

    Of each agent of a manufacturer it is the newest whose window has begun, unless that is withdrawn or the host
    refused it. An older one does not return: otherwise a manufacturer could keep the better of two by withdrawing the
    other.
    """
    now = now or clock()
    window = current_window(now).isoformat()
    newest: dict[tuple[str, str], Receipt] = {}
    for receipt in submissions(connection, now):
        if receipt.window <= window:
            newest[canonical(receipt.manufacturer), canonical(receipt.agent)] = receipt
    shown = {receipt.id: receipt for receipt in newest.values() if receipt.standing not in (WITHDRAWN, REFUSED)}
    scores = _scores(connection, SUBMISSION_SCORES, shown)
    has_executions = bool(shown) and sa.inspect(connection).has_table(SUBMISSION_EXECUTIONS.name)
    executions = _scores(connection, SUBMISSION_EXECUTIONS, shown) if has_executions else {}
    entries = [
        BoardEntry(receipt, tuple(sorted(scores[id])), tuple(sorted(executions.get(id, ()))))
        for id, receipt in shown.items()
    ]
    return sorted(entries, key=lambda entry: entry.receipt.agent_id)


def _scores(connection: sa.Connection, table: sa.Table, shown: Iterable[str]) -> dict[str, list[tuple[str, float]]]:
    """Id to (item, score) of these submissions; those of many years need not be read."""
    found: dict[str, list[tuple[str, float]]] = {id: [] for id in shown}
    statement = sa.select(table.c.submission, table.c.item, table.c.score).where(table.c.submission.in_(found))
    for id, item, score in connection.execute(statement):
        found[id].append((item, score))
    return found


def next_window(moment: datetime) -> date:
    """The day on which a submission received at `moment` (UTC) appears on the board: when the next window begins."""
    return current_window(moment) + timedelta(days=WINDOW_DAYS)


def current_window(moment: datetime) -> date:
    """The day on which the window began that `moment` (UTC) is in."""
    return FIRST_WINDOW + timedelta(days=(moment.date() - FIRST_WINDOW).days // WINDOW_DAYS * WINDOW_DAYS)


def clock() -> datetime:
    """The time of this machine, UTC."""
    return datetime.now(timezone.utc)


def receipt_of(row: Mapping[str, Any], taken: Sequence[Step], window: date) -> Receipt:
    """The receipt of a row of the table of submissions with its steps, in the window that began on a day."""
    # Not parsed as `Manifest`: a submission that was accepted under older rules must still be shown.
    manifest = json.loads(row["manifest"])
    fields = {name: row[name] for name in Receipt.__dataclass_fields__ if name in row and name != "manufacturer"}
    fields |= {"manufacturer": manifest["manufacturer"], "format": manifest["format"]}
    return Receipt(**{**fields, **evaluation(row, taken, window)})
