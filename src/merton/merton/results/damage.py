"""Damage of an SQLite file, which SQLite itself notices only where a statement meets it.

Found by SQLite's own check of every page, row and index: 5 ms a megabyte (0.6 ms for a run of 600 trials, 60 ms for
100,000), a fiftieth of reading them. Not found: a few flipped bits within a value that is still a possible one.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from merton.results.text import one_line

ADVICE = "restore it from a copy; every trial of a run is also in the run's trials/<id>/trial.json"
LONGEST_FAULT = 120
"""Characters of a fault that are shown."""


def damage(connection: sa.Connection) -> str:
    """Damaged parts of an SQLite database, and the tables that are whole; empty if all of it is.

    Raises:
        DBAPIError: not even the list of tables can be read.
    """
    if not (fault := _fault(connection, "1")):
        return ""
    tables = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").scalars()
    faults = {table: _fault(connection, f"'{table}'") for table in tables.all()}
    damaged, whole = (
        ", ".join(table for table, found in faults.items() if bool(found) is bad) for bad in (True, False)
    )
    return f"{fault}; damaged tables: {damaged or 'none'}; whole: {whole or 'none'}"


def _fault(connection: sa.Connection, scope: str) -> str:
    """The first fault in a table, or in the whole file if the scope is "1"; empty if there is none."""
    try:
        answer = str(connection.exec_driver_sql(f"PRAGMA integrity_check({scope})").scalars().first())
    except DBAPIError as error:
        answer = str(error.orig)
    return "" if answer == "ok" else one_line(answer.removeprefix("*** in database main ***\n"), LONGEST_FAULT)
