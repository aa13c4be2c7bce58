"""From an older schema to today's, in one transaction, so that a kill leaves the old record or the new one."""

from __future__ import annotations

import sqlalchemy as sa

from merton.errors import InputError
from merton.results.schema import METADATA, SCHEMA_VERSION

EMPTY = 0
"""The version of a database that has no tables of ours."""


def version(connection: sa.Connection) -> int:
    """The schema version of a database; `EMPTY` if it is no record."""
    if connection.dialect.name == "sqlite":
        return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    # Not by to_regclass: its answer may date from before this transaction waited for the lock to write.
    if not sa.inspect(connection).has_table("schema_version"):
        return EMPTY
    rows = connection.execute(sa.text("SELECT * FROM schema_version")).all()
    if len(rows) != 1 or len(rows[0]) != 1 or not isinstance(rows[0][0], int):  # a foreign table may have the same name
        raise InputError("the database is not a result store: its table schema_version belongs to another program")
    return rows[0][0]


def set_version(connection: sa.Connection) -> None:
    """Store that the database has today's tables."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
    connection.exec_driver_sql("DELETE FROM schema_version")
    connection.exec_driver_sql(f"INSERT INTO schema_version VALUES ({SCHEMA_VERSION})")


def check_known(found: int, where: str) -> None:
    """Raise InputError if this Merton cannot read a record of that version."""
    if not EMPTY <= found <= SCHEMA_VERSION:
        raise InputError(
            f"the result store {where} has schema version {found}, made by a newer Merton; this one reads versions 1 "
            f"to {SCHEMA_VERSION}"
        )


def migrate(connection: sa.Connection, where: str) -> None:
    """Bring the tables to `SCHEMA_VERSION`; nothing happens if another process has just done it.

    Raises:
        InputError: the database is of a newer Merton, or an SQLite file of another program.
    """
    found = version(connection)
    if found == SCHEMA_VERSION:
        return
    check_known(found, where)
    if found == EMPTY:
        if connection.dialect.name == "sqlite":  # Merton's own files always have their version
            raise InputError(f"{where} is not a result store: its schema version is {EMPTY}")
        if foreign := sorted(set(METADATA.tables) & set(sa.inspect(connection).get_table_names())):
            raise InputError(
                f"{where} has tables of another program, such as {foreign[0]}; give the record a database or a schema "
                "of its own"
            )
        METADATA.create_all(connection)
    else:
        _from_version_1(connection)
    set_version(connection)


def _from_version_1(connection: sa.Connection) -> None:
    """Version 1 was one SQLite table, with the test case written out in every trial."""
    connection.exec_driver_sql("ALTER TABLE trials RENAME TO trials_of_version_1")
    METADATA.create_all(connection)
    case = "task || '.' || seed || '.' || distortion || '.' || level"
    for statement in (
        "INSERT INTO experiments (id) SELECT DISTINCT experiment FROM trials_of_version_1",
        "INSERT INTO agents (id) SELECT DISTINCT agent FROM trials_of_version_1",
        "INSERT INTO cases (id, source, task, seed, distortion, level)"
        f" SELECT DISTINCT {case}, '', task, seed, distortion, level FROM trials_of_version_1",
        "INSERT INTO trials SELECT experiment, id, agent, " + case + ", outcome, cognition, decision, execution, "
        "distance_m, steps, simulated_s, wall_s, error_code, error_message FROM trials_of_version_1",
        "DROP TABLE trials_of_version_1",
    ):
        connection.exec_driver_sql(statement)
