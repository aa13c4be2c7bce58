"""The SQL of the ledger: joins, the beginning of a project, the removal of a rater who withdraws."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa

from merton.errors import InputError, UnknownNameError
from merton.results.schema import PEOPLE_ANSWERS, PEOPLE_PROJECTS, PEOPLE_RATERS, PEOPLE_SLOTS, PEOPLE_UNDOS

RATER = tuple(PEOPLE_RATERS.c[name] for name in ("id", "name", "role", "token_sha256", "registered_utc"))
"""Columns of a `merton_studies.people.ledger.Rater`."""
SLOT = tuple(PEOPLE_SLOTS.c[name] for name in ("rater", "number", "item", "kind", "issued_utc"))
"""Columns of a `merton_studies.people.ledger.Slot`."""


def of_answer(answers: sa.Table) -> sa.ColumnElement[bool]:
    """The condition that the undo belongs to the answer."""
    return (PEOPLE_UNDOS.c.project == answers.c.project) & (PEOPLE_UNDOS.c.answer == answers.c.id)


def of_slot(answers: sa.Table) -> sa.ColumnElement[bool]:
    """The condition that the answer belongs to the slot."""
    return sa.and_(*(PEOPLE_SLOTS.c[name] == answers.c[name] for name in ("project", "rater", "number")))


def by_rater(table: sa.Table) -> tuple[sa.ColumnElement[Any], ...]:
    """The order by rater and number: E01, R01, R99, R100."""
    return sa.func.length(table.c.rater), table.c.rater, table.c.number


STANDING = (
    sa.select(PEOPLE_ANSWERS.c.id)
    .where(of_slot(PEOPLE_ANSWERS), ~sa.exists().where(of_answer(PEOPLE_ANSWERS)))
    .correlate(PEOPLE_SLOTS)
    .scalar_subquery()
    .label("standing")
)
"""The id of the answer to a slot that stands; NULL without one."""


def where(table: sa.Table, *names: str) -> sa.ColumnElement[bool]:
    """The condition that the columns have the values that are given at execution, by their names."""
    return sa.and_(*(table.c[name] == sa.bindparam(name) for name in names))


# Statements that are made once: to make one takes SQLAlchemy longer than SQLite takes to execute it.
_NAME = sa.select(PEOPLE_RATERS.c.name).where(where(PEOPLE_RATERS, "project", "id"))
RATERS = (
    sa.select(*RATER)
    .where(where(PEOPLE_RATERS, "project"), PEOPLE_RATERS.c.name.is_not(None))
    .order_by(PEOPLE_RATERS.c.position)
)
STORED_SLOT = sa.select(PEOPLE_SLOTS.c.item, PEOPLE_SLOTS.c.kind).where(
    where(PEOPLE_SLOTS, "project", "rater", "number")
)
SLOT_TO_ANSWER = STORED_SLOT.add_columns(STANDING)
STORED_ANSWER = sa.select(PEOPLE_ANSWERS.c.rater, PEOPLE_ANSWERS.c.number, PEOPLE_ANSWERS.c.answer).where(
    where(PEOPLE_ANSWERS, "project", "id")
)
ADD_SLOTS, ADD_ANSWER, ADD_UNDO = sa.insert(PEOPLE_SLOTS), sa.insert(PEOPLE_ANSWERS), sa.insert(PEOPLE_UNDOS)


def begin(connection: sa.Connection, project: str, definition: str | None, where: str) -> None:
    """Store the definition of a project; see `merton_studies.people.ledger.Ledger`. `where` is for messages."""
    same = PEOPLE_PROJECTS.c.name == project
    stored = connection.execute(sa.select(PEOPLE_PROJECTS.c.definition).where(same)).scalar_one_or_none()
    if stored is None and definition is None:
        known = connection.execute(sa.select(PEOPLE_PROJECTS.c.name)).scalars().all()
        raise UnknownNameError(f"project in {where}", project, known)
    if stored is None:
        row = {"name": project, "definition": definition, "created_utc": now()}
        connection.execute(sa.insert(PEOPLE_PROJECTS), row)
    elif definition is not None and stored != definition:
        answered = sa.select(PEOPLE_ANSWERS.c.id).where(PEOPLE_ANSWERS.c.project == project).limit(1)
        if connection.execute(answered).first() is not None:
            raise InputError(
                f"{where} has answers of another project {project!r}: give this one a name of its own, or undo the "
                "changes of its file"
            )
        connection.execute(sa.delete(PEOPLE_SLOTS).where(PEOPLE_SLOTS.c.project == project))
        connection.execute(sa.update(PEOPLE_PROJECTS).where(same).values(definition=definition))


def is_here(connection: sa.Connection, project: str, rater: str) -> bool:
    """Whether the project has a rater of this pseudonym who did not withdraw."""
    return connection.execute(_NAME, {"project": project, "id": rater}).scalar_one_or_none() is not None


def remove(connection: sa.Connection, project: str, rater: str) -> int:
    """Remove a rater's name, slots and answers; returns the number of answers.

    Raises:
        UnknownNameError: there is no such rater.
    """
    if not is_here(connection, project, rater):
        here = (PEOPLE_RATERS.c.project == project) & PEOPLE_RATERS.c.name.is_not(None)
        known = connection.execute(sa.select(PEOPLE_RATERS.c.id).where(here).order_by(PEOPLE_RATERS.c.position))
        raise UnknownNameError(f"rater of {project!r}", rater, known.scalars().all())
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")  # else the text stays in the file until it is reused
    theirs = (PEOPLE_ANSWERS.c.project == project) & (PEOPLE_ANSWERS.c.rater == rater)
    undone = PEOPLE_UNDOS.c.answer.in_(sa.select(PEOPLE_ANSWERS.c.id).where(theirs))
    connection.execute(sa.delete(PEOPLE_UNDOS).where(PEOPLE_UNDOS.c.project == project, undone))
    removed = connection.execute(sa.delete(PEOPLE_ANSWERS).where(theirs)).rowcount
    slots = (PEOPLE_SLOTS.c.project == project) & (PEOPLE_SLOTS.c.rater == rater)
    connection.execute(sa.delete(PEOPLE_SLOTS).where(slots))
    person = (PEOPLE_RATERS.c.project == project) & (PEOPLE_RATERS.c.id == rater)
    nothing = {"name": None, "token_sha256": None, "withdrawn_utc": now()}
    connection.execute(sa.update(PEOPLE_RATERS).where(person).values(**nothing))
    return removed


def now() -> str:
    """The time, UTC, in ISO 8601 with milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
