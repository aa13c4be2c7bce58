"""The version of the tables in a database: a record of another version than today's and the last is refused."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from merton.errors import InputError
from merton.results.schema import ADDED, METADATA, SCHEMA_VERSION, VERSION_BEFORE

EMPTY = 0
"""The version of a database that has no tables of ours."""


def version(connection: sa.Connection) -> int:
    """The schema version of a database; `EMPTY` if it is not a record."""
    if connection.dialect.name == "sqlite":
        return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    # Not by to_regclass: its answer may date from before this transaction waited for the lock to write.
    if not sa.inspect(connection).has_table("schema_version"):
        return EMPTY
    rows = connection.execute(sa.text("SELECT * FROM schema_version")).all()
    if len(rows) != 1 or len(rows[0]) != 1 or not isinstance(rows[0][0], int):  # a foreign table may have the same name
        raise InputError("the database is not a result store: its table schema_version belongs to another program")
    return rows[0][0]


def create(connection: sa.Connection, where: str) -> None:
    """Make the tables in an empty database and store their version; nothing happens where they are.

    Raises:
        InputError: the database has tables of another program.
    """
    if version(connection) != EMPTY:
        return
    if foreign := sorted(set(METADATA.tables) & set(sa.inspect(connection).get_table_names())):
        raise InputError(
            f"{where} has tables of another program, such as {foreign[0]}; give the record a database or a schema "
            "of its own"
        )
    METADATA.create_all(connection)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("CREATE TABLE schema_version (version integer NOT NULL)")
    _mark(connection, "INSERT INTO schema_version VALUES ({})")


def _mark(connection: sa.Connection, statement: str) -> None:
    """Store today's version: in SQLite as its pragma, in PostgreSQL by the statement."""
    pragma = "PRAGMA user_version = {}"
    connection.exec_driver_sql((pragma if connection.dialect.name == "sqlite" else statement).format(SCHEMA_VERSION))


def upgrade(connection: sa.Connection) -> None:
    """Give the tables of a record of the version before the columns of today's; all of its rows stay as they are."""
    if version(connection) != VERSION_BEFORE:
        return
    for column in ADDED:
        definition = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
        connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}")
    _mark(connection, "UPDATE schema_version SET version = {}")


def lacking(connection: sa.Connection) -> tuple[sa.Column[Any], ...]:
    """The columns that a record has not: those of `ADDED` in one of the version before."""
    return ADDED if version(connection) == VERSION_BEFORE else ()


def readable(connection: sa.Connection, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    """A column of the tables; its default in its place where the record has not got it."""
    if not any(column is other for other in lacking(connection)):
        return column
    return sa.literal(None if column.nullable else "").label(column.name)


def check(connection: sa.Connection, where: str) -> None:
    """Raise InputError unless the database has the tables of this Merton, or of the version before."""
    present = version(connection)
    if present == EMPTY:
        raise InputError(
            f"{where} is not a result store: its schema version is {EMPTY}"
            if connection.dialect.name == "sqlite"
            else f"there is no result store at {where}"
        )
    if present not in (SCHEMA_VERSION, VERSION_BEFORE):
        raise InputError(
            f"the result store {where} has schema version {present}, made by another Merton; this one reads version "
            f"{VERSION_BEFORE} and {SCHEMA_VERSION} alone"
        )
