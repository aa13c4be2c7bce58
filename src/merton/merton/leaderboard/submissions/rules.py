"""Submissions: who may send what and how often, and which of it is on the board.

The rules follow Embodied Arena (one application per manufacturer and calendar month, a board that is refreshed every
two weeks); what it leaves open is decided here and told in docs/submissions.md. All times are UTC by the clock of the
machine that keeps the record, and a receipt is never earlier than one before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from hashlib import sha256
from typing import Any, Literal

import sqlalchemy as sa

from merton.errors import InputError
from merton.leaderboard.submissions import archive
from merton.leaderboard.submissions.manifest import (
    Submission,
    canonical,
    checked_manufacturer,
    dataset_sha256,
    look,
    manifest_bytes,
    read_submission,
)
from merton.results.database import Database
from merton.results.schema import ATTEMPTS, CASES, COUNTED_STATES, SUBMISSION_SCORES, SUBMISSIONS, TRIALS
from merton.results.text import one_line

FIRST_WINDOW = date(2024, 1, 1)
"""A Monday; the board takes in what has come every `WINDOW_DAYS` from here on, at 00:00 UTC."""
WINDOW_DAYS = 14
LONGEST_REASON = 400

Refusal = Literal["too large", "invalid", "not yours", "limit"]


class RefusedError(InputError):
    """A submission was refused, and the attempt is in the record.

    Attributes:
        kind: "too large", "invalid", "not yours" (another manufacturer's) or "limit" (this month's is used up).
        received_utc: when, ISO 8601.
    """

    def __init__(self, kind: Refusal, reason: str, received_utc: str) -> None:
        super().__init__(reason)
        self.kind, self.received_utc = kind, received_utc


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
        archive_sha256: of what was sent.
        repeated: the same archive was sent before; this is the receipt of then.
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
    repeated: bool = False

    @property
    def agent_id(self) -> str:
        """The agent's id on the board; no two submissions can spell the same one for different agents."""
        return f"{self.agent} {self.version} ({self.manufacturer})"


@dataclass(frozen=True)
class Attempt:
    """Somebody who tried to submit; `reason` is empty if it was accepted, `manufacturer` if nobody could tell."""

    received_utc: str
    manufacturer: str
    archive_sha256: str
    accepted: bool
    reason: str


@dataclass(frozen=True)
class Entry:
    """A submission that is on the board, with its scores: (item, score 0..1), by item."""

    receipt: Receipt
    scores: tuple[tuple[str, float], ...]


def submit(
    database: Database, source: archive.Source, manufacturer: str | None = None, now: datetime | None = None
) -> Receipt:
    """Take a submission in, or refuse it; either way the attempt is in the record afterwards.

    One submission per manufacturer and calendar month is accepted; the limit is decided by a unique index in the
    transaction that inserts it. The same archive sent again gives the receipt of the first time and uses nothing up.

    Args:
        database: the record.
        source: a directory, an archive, or an open file of one.
        manufacturer: who sends it, if that is known; the manifest must say the same.
        now: the server's clock; for tests.

    Raises:
        RefusedError: it is not as it should be, or there is one this month.
        InfrastructureError: the disk or the database fails; nothing was taken in.
    """
    if manufacturer is not None:
        checked_manufacturer(manufacturer)
    claimed, digest = manufacturer or "", ""
    try:
        data = archive.fetch(source)
        digest = sha256(data).hexdigest()
        submission = read_submission(archive.unpack(data))
        if manufacturer is not None and canonical(manufacturer) != canonical(submission.manifest.manufacturer):
            reason = f"the manifest is of {submission.manifest.manufacturer!r}, the sender is {manufacturer!r}"
            raise _refused(database, "not yours", reason, manufacturer, digest, now)
        claimed = submission.manifest.manufacturer
        with database.reading() as connection:
            if _known(connection, submission) is None:
                check_items(submission, datasets(connection))
    except RefusedError:
        raise
    except InputError as error:
        kind: Refusal = "too large" if isinstance(error, archive.TooLargeError) else "invalid"
        raise _refused(database, kind, str(error), claimed, digest, now) from None
    return _entered(database, submission, now)


def _entered(database: Database, submission: Submission, now: datetime | None) -> Receipt:
    """The decision and the insert, in one transaction."""
    manifest = submission.manifest
    maker = canonical(manifest.manufacturer)
    with database.transaction() as connection:
        moment = _moment(connection, now)
        if known := _known(connection, submission):
            again = f"the same archive as {known.id}, which was received on {known.received_utc}; nothing has changed"
            _log(connection, moment, maker, submission.archive_sha256, again)
            return replace(known, repeated=True)
        month = f"{moment:%Y-%m}"
        row = {
            "id": f"{month}-{sha256(maker.encode()).hexdigest()[:16]}",
            **{name: getattr(manifest, name) for name in ("agent", "version", "weights_sha256", "harness_version")},
            "manufacturer": maker,
            "dataset_sha256": manifest.dataset_sha256,
            "received_utc": _text(moment),
            "month": month,
            "window": next_window(moment).isoformat(),
            "status": "accepted",
            "archive_sha256": submission.archive_sha256,
            "manifest": manifest_bytes(manifest).decode(),
        }
        kind: Refusal = "invalid"
        reason = _mistakable(connection, manifest.manufacturer)
        if not reason and not database.insert_new(connection, SUBMISSIONS, [row]):
            kind = "limit"
            reason = (
                f"{manifest.manufacturer!r} has submitted in {month} already ({row['id']}); one a calendar month is "
                f"accepted, the next from {_next_month(moment)} on"
            )
        if not reason:
            _supersede(connection, row)
            scores = [
                {"submission": row["id"], "item": item, "score": score} for item, score in submission.scores.items()
            ]
            database.insert_new(connection, SUBMISSION_SCORES, scores)
        _log(connection, moment, maker, submission.archive_sha256, reason)
    if reason:
        raise RefusedError(kind, reason, _text(moment))
    return _receipt(row)


def withdraw(database: Database, id: str, now: datetime | None = None) -> Receipt:
    """Take a submission off the board. It stays in the record and in the list, and its month stays used up.

    Raises:
        InputError: there is no such submission, or it is withdrawn already.
    """
    with database.transaction() as connection:
        row = connection.execute(sa.select(SUBMISSIONS).where(SUBMISSIONS.c.id == id)).mappings().one_or_none()
        if row is None:
            raise InputError(f"there is no submission {one_line(id)!r}; merton leaderboard list shows those there are")
        if row["status"] == "withdrawn":
            raise InputError(f"the submission {id} is withdrawn already")
        change = {"status": "withdrawn", "withdrawn_utc": _text(_moment(connection, now))}
        connection.execute(sa.update(SUBMISSIONS).where(SUBMISSIONS.c.id == id).values(change))
    return _receipt({**row, **change})


def submissions(connection: sa.Connection) -> list[Receipt]:
    """Everything that was ever accepted, whatever became of it, in the order it came."""
    statement = sa.select(SUBMISSIONS).where(SUBMISSIONS.c.status.in_(COUNTED_STATES))
    rows = connection.execute(statement.order_by(SUBMISSIONS.c.received_utc, SUBMISSIONS.c.id)).mappings()
    return [_receipt({**row}) for row in rows]


def attempts(connection: sa.Connection) -> list[Attempt]:
    """Everybody who tried, in order."""
    columns = [ATTEMPTS.c[name] for name in Attempt.__dataclass_fields__]
    return [Attempt(*row) for row in connection.execute(sa.select(*columns).order_by(ATTEMPTS.c.id))]


def on_board(connection: sa.Connection, now: datetime | None = None) -> list[Entry]:
    """The submissions that count at a moment, by agent id; the same for every moment of one window.

    Of each agent of a manufacturer the newest whose window has come, unless that is withdrawn: an older one does not
    come back, or withdrawing would be a way to keep the better of two.
    """
    window = current_window(now or _clock()).isoformat()
    newest: dict[tuple[str, str], Receipt] = {}
    for receipt in submissions(connection):
        if receipt.window <= window:
            newest[canonical(receipt.manufacturer), canonical(receipt.agent)] = receipt
    shown = {receipt.id: receipt for receipt in newest.values() if receipt.status != "withdrawn"}
    scores: dict[str, list[tuple[str, float]]] = {id: [] for id in shown}
    columns = SUBMISSION_SCORES.c
    of_these = columns.submission.in_(shown)  # the scores of many years' submissions need not be read
    statement = sa.select(columns.submission, columns.item, columns.score).where(of_these)
    for id, item, score in connection.execute(statement):
        scores[id].append((item, score))
    entries = [Entry(receipt, tuple(sorted(scores[id]))) for id, receipt in shown.items()]
    return sorted(entries, key=lambda entry: entry.receipt.agent_id)


def datasets(connection: sa.Connection) -> dict[str, tuple[str, frozenset[str]]]:
    """What can be submitted to: hash to (name, items); of several with the same items the last by name."""
    return {dataset_sha256(items): (name, items) for name, items in sorted(dataset_items(connection).items())}


def dataset_items(connection: sa.Connection) -> dict[str, frozenset[str]]:
    """The items of every dataset by its name: each experiment's test cases are one, each imported matrix's another."""
    found: dict[str, set[str]] = {}
    for name, item in connection.execute(sa.select(TRIALS.c.experiment, TRIALS.c.case).distinct()):
        found.setdefault(name, set()).add(item)
    for name, item in connection.execute(sa.select(CASES.c.source, CASES.c.id).where(CASES.c.source != "")):
        found.setdefault(name, set()).add(item)
    return {name: frozenset(items) for name, items in found.items()}


def check_items(submission: Submission, known: Mapping[str, tuple[str, frozenset[str]]]) -> str:
    """The name of the dataset a submission is for; raises InputError unless it scores each of its items."""
    manifest = submission.manifest
    if manifest.dataset_sha256 not in known:
        choices = "; ".join(f"{one_line(name)} {digest}" for digest, (name, _) in sorted(known.items())[:3])
        raise InputError(
            f"dataset_sha256 {manifest.dataset_sha256} is of no dataset in this record; it has "
            f"{len(known)}{': ' if known else ''}{choices}"
        )
    name, items = known[manifest.dataset_sha256]
    for item, where in submission.places.items():
        if item not in items:
            raise InputError(f"{where}: {one_line(item)!r} is no item of {one_line(name)}")
    if missing := sorted(items - submission.scores.keys()):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        last = list(submission.places.values())[-1]
        raise InputError(f"{last}: the table ends without the score of {missing[0]!r}{more}")
    return name


def next_window(moment: datetime) -> date:
    """The day on which something received at `moment` (UTC) comes onto the board: the next window, never this one."""
    return current_window(moment) + timedelta(days=WINDOW_DAYS)


def current_window(moment: datetime) -> date:
    """The day on which the window began that `moment` (UTC) is in."""
    return FIRST_WINDOW + timedelta(days=(moment.date() - FIRST_WINDOW).days // WINDOW_DAYS * WINDOW_DAYS)


def _refused(
    database: Database, kind: Refusal, reason: str, manufacturer: str, digest: str, now: datetime | None
) -> RefusedError:
    """The error to raise, once the attempt is in the record."""
    reason = one_line(reason, LONGEST_REASON)
    with database.transaction() as connection:
        moment = _moment(connection, now)
        _log(connection, moment, canonical(manufacturer), digest, reason)
    return RefusedError(kind, reason, _text(moment))


def _log(connection: sa.Connection, moment: datetime, manufacturer: str, digest: str, reason: str) -> None:
    row = {"manufacturer": manufacturer, "archive_sha256": digest, "accepted": not reason, "reason": reason}
    connection.execute(sa.insert(ATTEMPTS).values(received_utc=_text(moment), **row))


def _moment(connection: sa.Connection, now: datetime | None) -> datetime:
    """The server's time, or that of the last attempt if the clock was set back since."""
    last = connection.scalar(sa.select(ATTEMPTS.c.received_utc).order_by(ATTEMPTS.c.id.desc()).limit(1))
    moment = (now or _clock()).astimezone(timezone.utc)
    return max(moment, datetime.fromisoformat(last.replace("Z", "+00:00"))) if last else moment


def _clock() -> datetime:
    return datetime.now(timezone.utc)


def _text(moment: datetime) -> str:
    """Always as many digits, so that texts sort as moments do."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}Z"


def _next_month(moment: datetime) -> date:
    return (moment.date().replace(day=1) + timedelta(days=31)).replace(day=1)


def _known(connection: sa.Connection, submission: Submission) -> Receipt | None:
    """The receipt of the same archive of the same manufacturer."""
    columns = SUBMISSIONS.c
    same = (columns.archive_sha256 == submission.archive_sha256) & columns.status.in_(COUNTED_STATES)
    same &= columns.manufacturer == canonical(submission.manifest.manufacturer)
    row = connection.execute(sa.select(SUBMISSIONS).where(same)).mappings().one_or_none()
    return None if row is None else _receipt({**row})


def _mistakable(connection: sa.Connection, name: str) -> str:
    """Why a name cannot be taken that looks like another manufacturer's; empty if it can.

    Plain ASCII names may look alike, as Lab 1 and Lab l do: their owners did not look for strange letters.
    """
    taken = {canonical(receipt.manufacturer): receipt.manufacturer for receipt in submissions(connection)}
    if canonical(name) in taken:
        return ""
    for other in taken.values():
        if look(other) == look(name) and not (name.isascii() and other.isascii()):
            return (
                f"the manufacturer {name!r} looks like {other!r}, which has submitted before, but is written in other "
                "characters; use the same if you are the same, else a name that can be told apart"
            )
    return ""


def _supersede(connection: sa.Connection, new: Mapping[str, Any]) -> None:
    """Mark the older submissions of the agent; they stay on the board until the window of the new one."""
    columns = SUBMISSIONS.c
    mine = (columns.manufacturer == new["manufacturer"]) & (columns.status == "accepted") & (columns.id != new["id"])
    for id, agent in connection.execute(sa.select(columns.id, columns.agent).where(mine)).all():
        if canonical(agent) == canonical(new["agent"]):
            connection.execute(sa.update(SUBMISSIONS).where(columns.id == id).values(status="superseded"))


def _receipt(row: Mapping[str, Any]) -> Receipt:
    # Not by `Manifest`: what was accepted under the rules of its day must not take the board down when they change.
    spelt = json.loads(row["manifest"])["manufacturer"]
    fields = {name: row[name] for name in Receipt.__dataclass_fields__ if name in row and name != "manufacturer"}
    return Receipt(manufacturer=spelt, **fields)
