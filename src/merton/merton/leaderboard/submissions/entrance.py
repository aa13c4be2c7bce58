"""Rules of submissions and applications alike: the month, names that look alike, the log of attempts, the clock."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from typing import Literal

import sqlalchemy as sa

from merton.errors import InputError
from merton.leaderboard.submissions.evaluation import REFUSED
from merton.leaderboard.submissions.manifest import canonical, confusable_key
from merton.leaderboard.submissions.receipts import clock
from merton.results.database import Database
from merton.results.schema import (
    APPLICATION_EVENTS,
    APPLICATIONS,
    ATTEMPTS,
    COUNTED_STATES,
    SUBMISSION_EVENTS,
    SUBMISSIONS,
)
from merton.results.text import one_line, time_of

LONGEST_REASON = 400
MODEL, BENCHMARK = "model", "benchmark"
"""Kinds of applications. A submission is of a model, so it uses up the same month."""

Refusal = Literal["too large", "invalid", "not yours", "limit"]


class RefusedError(InputError):
    """A submission or an application was refused, and the attempt is in the record.

    Attributes:
        kind: "too large", "invalid", "not yours" (another manufacturer's) or "limit" (this month's is used up).
        received_utc: when, ISO 8601.
    """

    def __init__(self, kind: Refusal, reason: str, received_utc: str) -> None:
        super().__init__(reason)
        self.kind, self.received_utc = kind, received_utc


def refused(
    database: Database, kind: Refusal, reason: str, manufacturer: str, digest: str, now: datetime | None
) -> RefusedError:
    """The error to raise, once the attempt is in the record."""
    reason = one_line(reason, LONGEST_REASON)
    with database.transaction() as connection:
        moment = moment_of(connection, now)
        log_attempt(connection, moment, manufacturer, digest, reason)
    return RefusedError(kind, reason, text_of(moment))


def log_attempt(connection: sa.Connection, moment: datetime, manufacturer: str, digest: str, reason: str) -> None:
    """Add an attempt to the record; it was accepted if `reason` is empty. `digest`: SHA-256 of the file."""
    row = {"manufacturer": manufacturer, "archive_sha256": digest, "accepted": not reason, "reason": reason}
    connection.execute(sa.insert(ATTEMPTS).values(received_utc=text_of(moment), **row))


def moment_of(connection: sa.Connection, now: datetime | None) -> datetime:
    """The time of this machine (UTC), or of the last attempt if the clock was set back since."""
    last = connection.scalar(sa.select(ATTEMPTS.c.received_utc).order_by(ATTEMPTS.c.id.desc()).limit(1))
    moment = (now or clock()).astimezone(timezone.utc)
    return max(moment, time_of(last)) if last else moment


def moment_of_step(connection: sa.Connection, now: datetime | None, events: sa.Table = SUBMISSION_EVENTS) -> datetime:
    """The same for steps of evaluations, which are in order too; they do not delay receipts."""
    last = connection.scalar(sa.select(events.c.at_utc).order_by(events.c.id.desc()).limit(1))
    moment = moment_of(connection, now)
    return max(moment, time_of(last)) if last else moment


def text_of(moment: datetime) -> str:
    """ISO 8601, always with as many digits, so that texts sort by time."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}Z"


def has_applications(connection: sa.Connection) -> bool:
    """Whether the record has the tables of applications: one that is older gets them with the first."""
    return sa.inspect(connection).has_table(APPLICATION_EVENTS.name)


def use_of_month(connection: sa.Connection, kind: str, maker: str, month: str) -> str:
    """The id of what used up a manufacturer's month; "" if it is free.

    Args:
        kind: `MODEL`, for submissions too, or `BENCHMARK`.
        maker: `canonical` name.
        month: such as "2026-11".
    """
    found: str | None = None
    if kind == MODEL:
        columns = SUBMISSIONS.c
        used = (columns.manufacturer == maker) & (columns.month == month) & columns.status.in_(COUNTED_STATES)
        found = connection.scalar(sa.select(columns.id).where(used))
    if found is None and has_applications(connection):
        known = APPLICATIONS.c
        used = (known.manufacturer == maker) & (known.month == month) & (known.kind == kind)
        found = connection.scalar(sa.select(known.id).where(used))
    return found or ""


def month_is_used(name: str, used: str, moment: datetime) -> str:
    """The reason why a manufacturer's second one of a month is refused; `used`: id of the first."""
    return (
        f"{name!r} has submitted in {moment:%Y-%m} already ({used}); one a calendar month is "
        f"accepted, the next from {_next_month(moment)} on"
    )


def checked_reason(status: str, reason: str) -> str:
    """A host's reason on one line; raises InputError for a refusal without one, or one that cannot be shown."""
    reason = " ".join(reason.split())
    if status == REFUSED and not reason:
        raise InputError("a refusal needs a --reason, which the manufacturer reads")
    if len(reason) > LONGEST_REASON or reason != one_line(reason, LONGEST_REASON):
        raise InputError(f"the reason must be printable text of at most {LONGEST_REASON} characters")
    return reason


def confusion(connection: sa.Connection, name: str) -> str:
    """The reason why a name that looks like another manufacturer's is refused; empty if it is accepted.

    Two ASCII names that look alike, such as Lab 1 and Lab l, are accepted: only foreign letters suggest a forgery.
    """
    statement = sa.select(SUBMISSIONS.c.manifest).where(SUBMISSIONS.c.status.in_(COUNTED_STATES))
    documents = list(connection.scalars(statement.order_by(SUBMISSIONS.c.received_utc, SUBMISSIONS.c.id)))
    if has_applications(connection):
        documents += connection.scalars(sa.select(APPLICATIONS.c.content).order_by(APPLICATIONS.c.received_utc))
    names = [json.loads(document)["manufacturer"] for document in documents]
    known = {canonical(one): one for one in names}
    if canonical(name) in known:
        return ""
    for other in known.values():
        if confusable_key(other) == confusable_key(name) and not (name.isascii() and other.isascii()):
            return (
                f"the manufacturer {name!r} looks like {other!r}, which has submitted before, but is written in other "
                "characters; use the same if you are the same, else a name that can be told apart"
            )
    return ""


def _next_month(moment: datetime) -> date:
    return (moment.date().replace(day=1) + timedelta(days=31)).replace(day=1)
