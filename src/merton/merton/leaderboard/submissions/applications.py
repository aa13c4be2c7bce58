"""Applications as the record holds them: received by the rules of submissions, evaluated or accepted, every step kept.

One application of each kind is accepted per manufacturer and calendar month (Embodied Arena: one evaluation
application a month); a submission of scores is one of a model, and uses up the same month (ours). All times are UTC.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date, datetime
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from merton.errors import InputError, UnknownNameError
from merton.leaderboard.submissions.application import (
    BenchmarkApplication,
    ModelApplication,
    application_json,
    application_of,
    parse_application,
)
from merton.leaderboard.submissions.entrance import (
    BENCHMARK,
    MODEL,
    Refusal,
    RefusedError,
    checked_reason,
    confusion,
    has_applications,
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
    EVALUATING,
    RECEIVED,
    REFUSED,
    SCORED,
    WITHDRAWN,
    due_day,
    load_rules,
)
from merton.leaderboard.submissions.manifest import canonical, checked_manufacturer
from merton.results.database import Database
from merton.results.schema import APPLICATION_EVENTS, APPLICATIONS, ARENA_ITEMS
from merton.results.text import one_line

NOT_EVALUATED = "not evaluated"
"""An evaluation ended without scores, for a reason that is kept; the host can begin again."""
OPEN = (RECEIVED, EVALUATING, NOT_EVALUATED)
"""Statuses of an application that is not done, and overdue after its due day."""
BY_THE_HOST = {MODEL: (REFUSED,), BENCHMARK: (EVALUATING, ACCEPTED, REFUSED)}
"""Statuses that the host gives by hand; a model is scored by its evaluation alone."""
PREFIXES = (f"{MODEL}-", f"{BENCHMARK}-")
"""Ids of applications begin with one of these; those of submissions with the year."""
LONGEST_NOTE = 1000


@dataclass(frozen=True)
class Step:
    """A step of an application.

    Attributes:
        at_utc: ISO 8601 with microseconds, ending in Z.
        status: from then on.
        note: what was done, or why not.
        calls: of the API, of this and all earlier steps.
        cost: of these, in the currency of the application's price.
        due: day, such as "2026-12-01", of the first step; "" of others.
    """

    at_utc: str
    status: str
    note: str
    calls: int = 0
    cost: float = 0.0
    due: str = ""


@dataclass(frozen=True)
class Received:
    """An application that was accepted, with its steps in order.

    Attributes:
        id: such as "model-2026-11-0f3a9c5b27d1e864".
        kind: "model" or "benchmark".
        content: as it was sent.
        received_utc: ISO 8601 with microseconds, ending in Z.
        month: the calendar month it uses up, such as "2026-11".
        sha256: of the file.
        repeated: the same file was sent before; this is what the record holds since then.
    """

    id: str
    kind: str
    content: ModelApplication | BenchmarkApplication
    received_utc: str
    month: str
    sha256: str
    steps: tuple[Step, ...]
    repeated: bool = False

    @property
    def shown_name(self) -> str:
        """The agent's id, or the benchmark's name with its manufacturer."""
        if isinstance(self.content, ModelApplication):
            return self.content.agent_id
        return f"{self.content.name} ({self.content.manufacturer})"

    @property
    def status(self) -> str:
        """That of the last step."""
        return self.steps[-1].status

    @property
    def note(self) -> str:
        """That of the last step."""
        return self.steps[-1].note

    @property
    def due(self) -> str:
        """The day until whose end (UTC) it is to be evaluated."""
        return self.steps[0].due

    @property
    def receipt(self) -> ApplicationReceipt:
        """The parts that all may see."""
        one = self.content
        kind, address = (one.type, one.api_url) if isinstance(one, ModelApplication) else ("", None)
        last = self.steps[-1]
        note = last.note.replace(address.rstrip("/"), "its API") if address else last.note
        return ApplicationReceipt(
            self.id,
            self.kind,
            self.content.manufacturer,
            self.shown_name,
            kind,
            self.received_utc,
            self.due,
            last.status,
            note,
            last.calls,
            last.cost,
            self.repeated,
        )

    def is_overdue(self, today: date) -> bool:
        """Whether it is not done and its due day is over; `today` is UTC."""
        return self.status in OPEN and self.due < today.isoformat()


@dataclass(frozen=True)
class ApplicationReceipt:
    """An application as all may see it: without contact, address and prices.

    Attributes:
        id: such as "model-2026-11-0f3a9c5b27d1e864".
        kind: "model" or "benchmark".
        manufacturer: who applied.
        name: the agent's id on the boards, or the benchmark's name with its manufacturer.
        type: of a model, "general" or "embodied"; "" of a benchmark.
        received_utc: ISO 8601 with microseconds, ending in Z.
        due: day until whose end the host evaluates it, such as "2026-12-01".
        status: received, evaluating, not evaluated, scored, accepted, refused or withdrawn.
        note: what the last step did, or why not.
        calls: of its API in the evaluation.
        cost: of these, in the currency of its price.
        repeated: the same file was sent before; this is what became of it.
    """

    id: str
    kind: str
    manufacturer: str
    name: str
    type: str
    received_utc: str
    due: str
    status: str
    note: str
    calls: int
    cost: float
    repeated: bool = False


def is_application(id: str) -> bool:
    """Whether an id is one of an application, not of a submission."""
    return id.startswith(PREFIXES)


def apply(
    database: Database, data: bytes, name: str, manufacturer: str | None = None, now: datetime | None = None
) -> Received:
    """Accept or refuse an application; either way the attempt is in the record afterwards.

    Args:
        database: the record.
        data: the application, YAML or (if `name` ends in .json) JSON.
        name: of the file, for messages.
        manufacturer: the sender, if it is known; the application must name the same.
        now: the server's clock; for tests.

    Raises:
        RefusedError: it is invalid, or there is one this month.
        InfrastructureError: the disk or the database fails; nothing was stored.
    """
    if manufacturer is not None:
        checked_manufacturer(manufacturer)
    digest, claimed = sha256(data).hexdigest(), manufacturer or ""
    try:
        content = parse_application(data, name)
    except InputError as error:
        raise refused(database, "invalid", str(error), claimed, digest, now) from None
    if manufacturer is not None and canonical(manufacturer) != canonical(content.manufacturer):
        reason = f"the application is of {content.manufacturer!r}, the sender is {manufacturer!r}"
        raise refused(database, "not yours", reason, manufacturer, digest, now)
    return _entered(database, content, digest, now)


def _entered(database: Database, content: Any, digest: str, now: datetime | None) -> Received:
    """The decision and the insert, in one transaction."""
    maker = canonical(content.manufacturer)
    with database.transaction() as connection:
        for table in (APPLICATIONS, APPLICATION_EVENTS, ARENA_ITEMS):  # a record may be older than these
            table.create(connection, checkfirst=True)
        moment = moment_of(connection, now)
        same = (APPLICATIONS.c.sha256 == digest) & (APPLICATIONS.c.manufacturer == maker)
        if known := connection.scalar(sa.select(APPLICATIONS.c.id).where(same)):
            found = _stored(connection, known)
            again = f"the same file as {known}, which was received on {found.received_utc}; nothing has changed"
            log_attempt(connection, moment, content.manufacturer, digest, again)
            return replace(found, repeated=True)
        month = f"{moment:%Y-%m}"
        kind: Refusal = "invalid"
        reason = confusion(connection, content.manufacturer)
        if not reason and (used := use_of_month(connection, content.kind, maker, month)):
            kind, reason = "limit", month_is_used(content.manufacturer, used, moment)
        id = f"{content.kind}-{month}-{sha256(maker.encode()).hexdigest()[:16]}"
        if not reason:
            row = {"id": id, "kind": content.kind, "manufacturer": maker, "month": month, "sha256": digest}
            row |= {"received_utc": text_of(moment), "content": application_json(content)}
            connection.execute(sa.insert(APPLICATIONS).values(row))
            due = due_day(moment, load_rules().evaluation_working_days).isoformat()
            _add(connection, id, Step(text_of(moment), RECEIVED, "", due=due))
        log_attempt(connection, moment, content.manufacturer, digest, reason)
        if not reason:
            return _stored(connection, id)
    raise RefusedError(kind, reason, text_of(moment))


def applications(connection: sa.Connection) -> list[Received]:
    """Every application that was ever accepted, withdrawn ones too, in the order of arrival."""
    if not has_applications(connection):
        return []
    taken = _steps(connection)
    rows = connection.execute(sa.select(APPLICATIONS).order_by(APPLICATIONS.c.received_utc, APPLICATIONS.c.id))
    return [_received(dict(row), taken[row["id"]]) for row in rows.mappings()]


def application(connection: sa.Connection, id: str) -> Received:
    """The application with an id; raises InputError if there is none."""
    if not has_applications(connection):
        raise _unknown(id)
    return _stored(connection, id)


def add_step(
    database: Database,
    id: str,
    status: str,
    note: str,
    calls: int = 0,
    cost: float = 0.0,
    now: datetime | None = None,
) -> Received:
    """Add a step to the record; earlier ones stay as they are. Control characters in `note` become blanks.

    Raises:
        InputError: there is no such application, or it is withdrawn.
    """
    with database.transaction() as connection:
        return step_in(connection, id, status, note, calls, cost, now)


def step_in(
    connection: sa.Connection,
    id: str,
    status: str,
    note: str,
    calls: int = 0,
    cost: float = 0.0,
    now: datetime | None = None,
) -> Received:
    """As `add_step`, in a transaction that does more."""
    found = application(connection, id)
    if found.status == WITHDRAWN:
        raise InputError(f"the application {id} is withdrawn; its status does not change any more")
    moment = moment_of_step(connection, now, APPLICATION_EVENTS)
    step = Step(text_of(moment), status, one_line(note, LONGEST_NOTE), calls, cost)
    _add(connection, id, step)
    return replace(found, steps=(*found.steps, step))


def decide(database: Database, id: str, status: str, reason: str = "", now: datetime | None = None) -> Received:
    """Add the host's word on an application to the record.

    Args:
        status: one of `BY_THE_HOST` of its kind.
        reason: shown to all; a refusal needs one, of at most `LONGEST_REASON` characters.

    Raises:
        InputError: an unknown status or application, a withdrawn one, one that has the status, or no good reason.
    """
    reason = checked_reason(status, reason)
    with database.transaction() as connection:
        found = application(connection, id)
        if found.kind == MODEL and status in (EVALUATING, SCORED):
            raise InputError(f"{id} is a model, which `merton leaderboard evaluate` evaluates and scores")
        if status not in BY_THE_HOST[found.kind]:
            raise UnknownNameError("status", status, BY_THE_HOST[found.kind])
        if found.status == status:
            raise InputError(f"the application {id} is {status} already, since {found.steps[-1].at_utc}")
        last = found.steps[-1]
        return step_in(connection, id, status, reason, last.calls, last.cost, now)


def withdraw(database: Database, id: str, now: datetime | None = None) -> Received:
    """Take an application back, and its rows off the boards. It stays in the list, and its month stays used up.

    Raises:
        InputError: there is no such application, or it is withdrawn already.
    """
    return add_step(database, id, WITHDRAWN, "", now=now)


def _stored(connection: sa.Connection, id: str) -> Received:
    row = connection.execute(sa.select(APPLICATIONS).where(APPLICATIONS.c.id == id)).mappings().one_or_none()
    if row is None:
        raise _unknown(id)
    return _received(dict(row), _steps(connection, id)[id])


def _unknown(id: str) -> InputError:
    return InputError(f"there is no application {one_line(id)!r}; merton submission list shows those there are")


def _received(row: dict[str, Any], taken: list[Step]) -> Received:
    content = application_of(row["content"])
    return Received(row["id"], row["kind"], content, row["received_utc"], row["month"], row["sha256"], tuple(taken))


def _steps(connection: sa.Connection, id: str | None = None) -> dict[str, list[Step]]:
    columns = [APPLICATION_EVENTS.c[name] for name in ("application", *Step.__dataclass_fields__)]
    statement = sa.select(*columns).order_by(APPLICATION_EVENTS.c.id)
    if id is not None:
        statement = statement.where(APPLICATION_EVENTS.c.application == id)
    found: defaultdict[str, list[Step]] = defaultdict(list)
    for name, *step in connection.execute(statement):
        found[name].append(Step(*step))
    return found


def _add(connection: sa.Connection, id: str, step: Step) -> None:
    connection.execute(sa.insert(APPLICATION_EVENTS).values(application=id, **vars(step)))
