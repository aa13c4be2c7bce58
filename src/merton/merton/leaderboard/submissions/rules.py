"""The rules of submissions: how they are accepted, refused, evaluated and withdrawn.

The rules follow Embodied Arena (one application per manufacturer and calendar month, a board that is refreshed every
two weeks); docs/use/submissions.md has ours for the cases that Embodied Arena leaves open. All times are UTC by the
clock of the machine that keeps the record, and a receipt is never earlier than the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from hashlib import sha256
from typing import Any, Literal

import sqlalchemy as sa

from merton.errors import InputError, UnknownNameError
from merton.leaderboard.submissions import archive
from merton.leaderboard.submissions.datasets import check_items, datasets
from merton.leaderboard.submissions.evaluation import (
    ACCEPTED,
    BY_THE_HOST,
    RECEIVED,
    REFUSED,
    WITHDRAWN,
    Step,
    add_step,
    due_day,
    load_rules,
    steps,
)
from merton.leaderboard.submissions.manifest import (
    Submission,
    canonical,
    checked_manufacturer,
    confusable_key,
    manifest_bytes,
    read_submission,
)
from merton.leaderboard.submissions.receipts import Receipt, clock, current_window, next_window, receipt_of, submissions
from merton.results.database import Database
from merton.results.schema import (
    ATTEMPTS,
    COUNTED_STATES,
    SUBMISSION_EVENTS,
    SUBMISSION_EXECUTIONS,
    SUBMISSION_SCORES,
    SUBMISSIONS,
)
from merton.results.text import one_line, time_of

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


def submit(
    database: Database, source: archive.Source, manufacturer: str | None = None, now: datetime | None = None
) -> Receipt:
    """Accept or refuse a submission; either way the attempt is in the record afterwards.

    One submission per manufacturer and calendar month is accepted; the limit is decided by a unique index in the
    transaction that inserts it. The same archive again gives the receipt of the first time and does not count again.

    Args:
        database: the record.
        source: a .zip, a folder, or an open .zip.
        manufacturer: the sender, if known; the manifest must name the same.
        now: the server's clock; for tests.

    Raises:
        RefusedError: it is invalid, or there is one this month.
        InfrastructureError: the disk or the database fails; nothing was stored.
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
            if _known(connection, submission, now or clock()) is None:
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
        if known := _known(connection, submission, moment):
            again = f"the same archive as {known.id}, which was received on {known.received_utc}; nothing has changed"
            _log(connection, moment, manifest.manufacturer, submission.archive_sha256, again)
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
            "status": ACCEPTED,
            "archive_sha256": submission.archive_sha256,
            "manifest": manifest_bytes(manifest).decode(),
        }
        kind: Refusal = "invalid"
        reason = _confusion(connection, manifest.manufacturer)
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
            if submission.table.executions:
                SUBMISSION_EXECUTIONS.create(connection, checkfirst=True)  # a record may be older than the table
                executions = submission.table.executions.items()
                beside = [{"submission": row["id"], "item": item, "score": score} for item, score in executions]
                database.insert_new(connection, SUBMISSION_EXECUTIONS, beside)
            due = due_day(moment, load_rules().evaluation_working_days).isoformat()
            received = Step(_text(moment), RECEIVED, "", due)
            add_step(connection, row["id"], received)
        _log(connection, moment, manifest.manufacturer, submission.archive_sha256, reason)
    if reason:
        raise RefusedError(kind, reason, _text(moment))
    return receipt_of(row, [received], current_window(moment))


def withdraw(database: Database, id: str, now: datetime | None = None) -> Receipt:
    """Take a submission off the board. It stays in the record and in the list, and its month stays used up.

    Raises:
        InputError: there is no such submission, or it is withdrawn already.
    """
    with database.transaction() as connection:
        row = _stored(connection, id)
        if row["status"] == WITHDRAWN:
            raise InputError(f"the submission {id} is withdrawn already")
        moment = _moment_of_step(connection, now)
        change = {"status": WITHDRAWN, "withdrawn_utc": _text(moment)}
        connection.execute(sa.update(SUBMISSIONS).where(SUBMISSIONS.c.id == id).values(change))
        add_step(connection, id, Step(_text(moment), WITHDRAWN, "", ""))
        return receipt_of({**row, **change}, steps(connection)[id], current_window(moment))


def evaluate(database: Database, id: str, status: str, reason: str = "", now: datetime | None = None) -> Receipt:
    """Add the host's word on a submission to the record; a refused one is on no board until the host says otherwise.

    Args:
        status: one of `BY_THE_HOST`.
        reason: shown to all; a refusal needs one, of at most `LONGEST_REASON` characters.

    Raises:
        InputError: an unknown status or submission, a withdrawn one, one that has the status, or no good reason.
    """
    reason = " ".join(reason.split())
    if status not in BY_THE_HOST:
        raise UnknownNameError("status", status, BY_THE_HOST)
    if status == REFUSED and not reason:
        raise InputError("a refusal needs a --reason, which the manufacturer reads")
    if len(reason) > LONGEST_REASON or reason != one_line(reason, LONGEST_REASON):
        raise InputError(f"the reason must be printable text of at most {LONGEST_REASON} characters")
    with database.transaction() as connection:
        row, taken = _stored(connection, id), steps(connection).get(id, [])
        if row["status"] == WITHDRAWN:
            raise InputError(f"the submission {id} is withdrawn; its status does not change any more")
        if taken and taken[-1].status == status:
            raise InputError(f"the submission {id} is {status} already, since {taken[-1].at_utc}")
        moment = _moment_of_step(connection, now)
        step = Step(_text(moment), status, reason, "")
        add_step(connection, id, step)
        return receipt_of(row, [*taken, step], current_window(moment))


def _stored(connection: sa.Connection, id: str) -> dict[str, Any]:
    """The row of a submission; raises InputError if there is none."""
    row = connection.execute(sa.select(SUBMISSIONS).where(SUBMISSIONS.c.id == id)).mappings().one_or_none()
    if row is None:
        raise InputError(f"there is no submission {one_line(id)!r}; merton submission list shows those there are")
    return {**row}


def _refused(
    database: Database, kind: Refusal, reason: str, manufacturer: str, digest: str, now: datetime | None
) -> RefusedError:
    """The error to raise, once the attempt is in the record."""
    reason = one_line(reason, LONGEST_REASON)
    with database.transaction() as connection:
        moment = _moment(connection, now)
        _log(connection, moment, manufacturer, digest, reason)
    return RefusedError(kind, reason, _text(moment))


def _log(connection: sa.Connection, moment: datetime, manufacturer: str, digest: str, reason: str) -> None:
    row = {"manufacturer": manufacturer, "archive_sha256": digest, "accepted": not reason, "reason": reason}
    connection.execute(sa.insert(ATTEMPTS).values(received_utc=_text(moment), **row))


def _moment(connection: sa.Connection, now: datetime | None) -> datetime:
    """The time of this machine, or of the last attempt if the clock was set back since."""
    last = connection.scalar(sa.select(ATTEMPTS.c.received_utc).order_by(ATTEMPTS.c.id.desc()).limit(1))
    moment = (now or clock()).astimezone(timezone.utc)
    return max(moment, time_of(last)) if last else moment


def _moment_of_step(connection: sa.Connection, now: datetime | None) -> datetime:
    """The same for steps of evaluations, which are in order too; they do not delay receipts."""
    last = connection.scalar(sa.select(SUBMISSION_EVENTS.c.at_utc).order_by(SUBMISSION_EVENTS.c.id.desc()).limit(1))
    moment = _moment(connection, now)
    return max(moment, time_of(last)) if last else moment


def _text(moment: datetime) -> str:
    """ISO 8601, always with as many digits, so that texts sort by time."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}Z"


def _next_month(moment: datetime) -> date:
    return (moment.date().replace(day=1) + timedelta(days=31)).replace(day=1)


def _known(connection: sa.Connection, submission: Submission, moment: datetime) -> Receipt | None:
    """The receipt of the same archive of the same manufacturer."""
    columns = SUBMISSIONS.c
    same = (columns.archive_sha256 == submission.archive_sha256) & columns.status.in_(COUNTED_STATES)
    same &= columns.manufacturer == canonical(submission.manifest.manufacturer)
    row = connection.execute(sa.select(SUBMISSIONS).where(same)).mappings().one_or_none()
    return None if row is None else receipt_of({**row}, steps(connection).get(row["id"], []), current_window(moment))


def _confusion(connection: sa.Connection, name: str) -> str:
    """The reason why a name that looks like another manufacturer's is refused; empty if it is accepted.

    Two ASCII names that look alike, such as Lab 1 and Lab l, are accepted: only foreign letters suggest a forgery.
    """
    known = {canonical(receipt.manufacturer): receipt.manufacturer for receipt in submissions(connection)}
    if canonical(name) in known:
        return ""
    for other in known.values():
        if confusable_key(other) == confusable_key(name) and not (name.isascii() and other.isascii()):
            return (
                f"the manufacturer {name!r} looks like {other!r}, which has submitted before, but is written in other "
                "characters; use the same if you are the same, else a name that can be told apart"
            )
    return ""


def _supersede(connection: sa.Connection, new: Mapping[str, Any]) -> None:
    """Mark the older submissions of the agent; they stay on the board until the window of the new one."""
    columns = SUBMISSIONS.c
    mine = (columns.manufacturer == new["manufacturer"]) & (columns.status == ACCEPTED) & (columns.id != new["id"])
    for id, agent in connection.execute(sa.select(columns.id, columns.agent).where(mine)).all():
        if canonical(agent) == canonical(new["agent"]):
            connection.execute(sa.update(SUBMISSIONS).where(columns.id == id).values(status="superseded"))
