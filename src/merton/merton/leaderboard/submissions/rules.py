"""The rules of submissions: how they are accepted, refused, evaluated and withdrawn.

The rules follow Embodied Arena (one application per manufacturer and calendar month, a board that is refreshed every
two weeks); docs/use/submissions.md has ours for the cases that Embodied Arena leaves open. All times are UTC by the
clock of the machine that keeps the record, and a receipt is never earlier than the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from merton.errors import InputError, UnknownNameError
from merton.leaderboard.submissions import archive
from merton.leaderboard.submissions.datasets import check_items, datasets
from merton.leaderboard.submissions.entrance import (
    MODEL,
    Refusal,
    RefusedError,
    checked_reason,
    confusion,
    log_attempt,
    moment_of,
    moment_of_step,
    month_is_used,
    refused,
    text_of,
    use_of_month,
)
from merton.leaderboard.submissions.evaluation import (
    ACCEPTED,
    BY_THE_HOST,
    RECEIVED,
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
    manifest_bytes,
    read_submission,
)
from merton.leaderboard.submissions.receipts import Receipt, clock, current_window, next_window, receipt_of
from merton.results.database import Database
from merton.results.schema import (
    COUNTED_STATES,
    SUBMISSION_EXECUTIONS,
    SUBMISSION_SCORES,
    SUBMISSIONS,
)
from merton.results.text import one_line


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
            raise refused(database, "not yours", reason, manufacturer, digest, now)
        claimed = submission.manifest.manufacturer
        with database.reading() as connection:
            if _known(connection, submission, now or clock()) is None:
                check_items(submission, datasets(connection))
    except RefusedError:
        raise
    except InputError as error:
        kind: Refusal = "too large" if isinstance(error, archive.TooLargeError) else "invalid"
        raise refused(database, kind, str(error), claimed, digest, now) from None
    return _entered(database, submission, now)


def _entered(database: Database, submission: Submission, now: datetime | None) -> Receipt:
    """The decision and the insert, in one transaction."""
    manifest = submission.manifest
    maker = canonical(manifest.manufacturer)
    with database.transaction() as connection:
        moment = moment_of(connection, now)
        if known := _known(connection, submission, moment):
            again = f"the same archive as {known.id}, which was received on {known.received_utc}; nothing has changed"
            log_attempt(connection, moment, manifest.manufacturer, submission.archive_sha256, again)
            return replace(known, repeated=True)
        month = f"{moment:%Y-%m}"
        row = {
            "id": f"{month}-{sha256(maker.encode()).hexdigest()[:16]}",
            **{name: getattr(manifest, name) for name in ("agent", "version", "weights_sha256", "harness_version")},
            "manufacturer": maker,
            "dataset_sha256": manifest.dataset_sha256,
            "received_utc": text_of(moment),
            "month": month,
            "window": next_window(moment).isoformat(),
            "status": ACCEPTED,
            "archive_sha256": submission.archive_sha256,
            "manifest": manifest_bytes(manifest).decode(),
        }
        kind: Refusal = "invalid"
        reason = confusion(connection, manifest.manufacturer)
        if not reason and (used := use_of_month(connection, MODEL, maker, month)):
            kind, reason = "limit", month_is_used(manifest.manufacturer, used, moment)
        if not reason and not database.insert_new(connection, SUBMISSIONS, [row]):
            kind, reason = "limit", month_is_used(manifest.manufacturer, row["id"], moment)
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
            received = Step(text_of(moment), RECEIVED, "", due)
            add_step(connection, row["id"], received)
        log_attempt(connection, moment, manifest.manufacturer, submission.archive_sha256, reason)
    if reason:
        raise RefusedError(kind, reason, text_of(moment))
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
        moment = moment_of_step(connection, now)
        change = {"status": WITHDRAWN, "withdrawn_utc": text_of(moment)}
        connection.execute(sa.update(SUBMISSIONS).where(SUBMISSIONS.c.id == id).values(change))
        add_step(connection, id, Step(text_of(moment), WITHDRAWN, "", ""))
        return receipt_of({**row, **change}, steps(connection)[id], current_window(moment))


def evaluate(database: Database, id: str, status: str, reason: str = "", now: datetime | None = None) -> Receipt:
    """Add the host's word on a submission to the record; a refused one is on no board until the host says otherwise.

    Args:
        status: one of `BY_THE_HOST`.
        reason: shown to all; a refusal needs one, of at most `LONGEST_REASON` characters.

    Raises:
        InputError: an unknown status or submission, a withdrawn one, one that has the status, or no good reason.
    """
    if status not in BY_THE_HOST:
        raise UnknownNameError("status", status, BY_THE_HOST)
    reason = checked_reason(status, reason)
    with database.transaction() as connection:
        row, taken = _stored(connection, id), steps(connection).get(id, [])
        if row["status"] == WITHDRAWN:
            raise InputError(f"the submission {id} is withdrawn; its status does not change any more")
        if taken and taken[-1].status == status:
            raise InputError(f"the submission {id} is {status} already, since {taken[-1].at_utc}")
        moment = moment_of_step(connection, now)
        step = Step(text_of(moment), status, reason, "")
        add_step(connection, id, step)
        return receipt_of(row, [*taken, step], current_window(moment))


def _stored(connection: sa.Connection, id: str) -> dict[str, Any]:
    """The row of a submission; raises InputError if there is none."""
    row = connection.execute(sa.select(SUBMISSIONS).where(SUBMISSIONS.c.id == id)).mappings().one_or_none()
    if row is None:
        raise InputError(f"there is no submission {one_line(id)!r}; merton submission list shows those there are")
    return {**row}


def _known(connection: sa.Connection, submission: Submission, moment: datetime) -> Receipt | None:
    """The receipt of the same archive of the same manufacturer."""
    columns = SUBMISSIONS.c
    same = (columns.archive_sha256 == submission.archive_sha256) & columns.status.in_(COUNTED_STATES)
    same &= columns.manufacturer == canonical(submission.manifest.manufacturer)
    row = connection.execute(sa.select(SUBMISSIONS).where(same)).mappings().one_or_none()
    return None if row is None else receipt_of({**row}, steps(connection).get(row["id"], []), current_window(moment))


def _supersede(connection: sa.Connection, new: Mapping[str, Any]) -> None:
    """Mark the older submissions of the agent; they stay on the board until the window of the new one."""
    columns = SUBMISSIONS.c
    mine = (columns.manufacturer == new["manufacturer"]) & (columns.status == ACCEPTED) & (columns.id != new["id"])
    for id, agent in connection.execute(sa.select(columns.id, columns.agent).where(mine)).all():
        if canonical(agent) == canonical(new["agent"]):
            connection.execute(sa.update(SUBMISSIONS).where(columns.id == id).values(status="superseded"))
