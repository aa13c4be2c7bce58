"""Rows that no Merton writes, in an SQLite file: it may hold any value in any column, also against the column's type.

A record comes from another laboratory, or was changed by hand with its checks switched off; it is checked whole when
it is opened, by what `merton.results.schema` says of each column, so that no reader meets such a row. PostgreSQL holds
to types and checks itself. Takes 3 us a trial, a quarter of reading them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import sqlalchemy as sa

from merton.results.schema import CASES, DOCUMENTS, MADE_LATER, METADATA, TRIALS
from merton.results.schema_version import lacking as lacking_columns
from merton.results.text import one_line

LONGEST_TEXT = 1_000_000
"""Characters of a text that is not a document. Ours: a name has at most 200, an error one sentence."""

_LARGEST = "1.7976931348623157e308"
_KINDS = {
    sa.Double: ("NOT ({0} < '')", "a number"),
    sa.Integer: ("typeof({0}) <> 'integer' AND {0} IS NOT NULL", "a whole number"),
    sa.Boolean: ("typeof({0}) <> 'integer' AND {0} IS NOT NULL", "0 or 1"),
    sa.Text: ("NOT ({0} >= '' AND {0} < x'')", "text"),
}
"""Of each type: when a value is of another one (in SQLite every number is below every text, and that below every blob;
this takes a fifth of the time of typeof), and what it should be."""
_LEAST = {(TRIALS.name, name) for name in ("distance_m", "simulated_s", "wall_s", "steps", "error_code")} | {
    (CASES.name, name) for name in ("seed", "level")
}
"""Columns of numbers that are 0 or more, and have no check of the tables."""


def impossible_row(connection: sa.Connection) -> str:
    """Fault and key of the first row that no Merton writes; empty if there is none."""
    lacking = MADE_LATER - {*sa.inspect(connection).get_table_names()}
    columns_lacking = lacking_columns(connection)
    for table in (table for table in METADATA.sorted_tables if table.name not in lacking):
        faults = list(_faults(table, columns_lacking))
        found = " ".join(f"WHEN {condition} THEN {number}" for number, (condition, _) in enumerate(faults))
        keys = [column.name for column in table.primary_key]
        shown = ", ".join(f"quote(substr({_name(key)}, 1, 60))" for key in keys)
        row = connection.exec_driver_sql(
            f"SELECT CASE {found} END AS fault, {shown} FROM {table.name} WHERE fault IS NOT NULL LIMIT 1"
        ).first()
        if row is not None:
            which = ", ".join(f"{key} {one_line(value, 60)}" for key, value in zip(keys, row[1:], strict=True))
            return f"in the table {table.name} {faults[row[0]][1]} (the row {which})"
        grouped = ", ".join(_name(key) for key in keys)
        twice = f"SELECT 1 FROM {table.name} GROUP BY {grouped} HAVING count(*) > 1 LIMIT 1"
        if connection.exec_driver_sql(twice).first():
            return f"in the table {table.name} two rows have the same {' and '.join(keys)}"
    return ""


def _faults(table: sa.Table, lacking: Collection[sa.Column[object]] = ()) -> Iterator[tuple[str, str]]:
    """Conditions of SQL that no row may meet, each with what is wrong then; none on columns that are not there."""
    for column in (column for column in table.c if not any(column is other for other in lacking)):
        yield from _of_column(table, column)
    for check in sorted(
        (one for one in table.constraints if isinstance(one, sa.CheckConstraint)), key=lambda one: str(one.name)
    ):
        yield f"NOT ({check.sqltext})", f"the check {check.name} does not hold"
    for foreign in table.foreign_key_constraints:
        pairs = [(element.parent.name, element.column.name) for element in foreign.elements]
        same = " AND ".join(f"other.{_name(theirs)} = {table.name}.{_name(own)}" for own, theirs in pairs)
        names = " and ".join(own for own, _ in pairs)
        yield (
            f"NOT EXISTS (SELECT 1 FROM {foreign.referred_table.name} AS other WHERE {same})",
            f"{names} is not in the table {foreign.referred_table.name}",
        )


def _of_column(table: sa.Table, column: sa.Column[object]) -> Iterator[tuple[str, str]]:
    name, kind = _name(column.name), next(kind for kind in _KINDS if isinstance(column.type, kind))
    if not column.nullable:
        yield f"{name} IS NULL", f"{column.name} is missing"
    is_other, wanted = _KINDS[kind]
    yield is_other.format(name), f"{column.name} is not {wanted}"
    if kind is sa.Text and (table.name, column.name) not in DOCUMENTS:
        yield f"length({name}) > {LONGEST_TEXT}", f"{column.name} has more than {LONGEST_TEXT} characters"
    if kind is sa.Double:
        yield f"abs({name}) > {_LARGEST}", f"{column.name} is not finite"
    if (table.name, column.name) in _LEAST:
        yield f"{name} < 0", f"{column.name} is below 0"
    if column.computed is not None:
        yield f"{name} IS NOT ({column.computed.sqltext})", f"{column.name} does not follow from the rest of its row"


def _name(column: str) -> str:
    return f'"{column}"'
