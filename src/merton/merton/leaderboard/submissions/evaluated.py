"""The scores of the host's evaluations, question by question: rows of the Arena's tables of items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from merton.leaderboard.submissions.application import ModelApplication
from merton.leaderboard.submissions.applications import applications
from merton.leaderboard.submissions.evaluation import REFUSED, SCORED, WITHDRAWN
from merton.leaderboard.submissions.manifest import canonical
from merton.results.database import Database
from merton.results.schema import ARENA_ITEMS

BY_THE_HOST = "evaluated by the host"
"""Source of such a row, beside "self-reported"."""
COLUMNS = ("agent", "benchmark", "item", "dimension", "score", "original", "source", "type")
"""Of a table of items with the source of each row, and the type of its agent."""


class EvaluatedItem(NamedTuple):
    """A row of a table of items (`merton.leaderboard.published.arena.ItemScore`).

    Attributes:
        agent: id, such as "model 1.0 (Lab)"; see `Application.agent_id`.
        benchmark, item, dimension, original: as in such a table.
        score: 0..1.
        source: `BY_THE_HOST`.
        type: "general" or "embodied".
    """

    agent: str
    benchmark: str
    item: str
    dimension: str
    score: float
    original: str
    source: str
    type: str


def evaluated_items(database: Database) -> list[EvaluatedItem]:
    """The rows of all applications that the host evaluated, by agent, benchmark and item; none of an empty record.

    Of each model of a manufacturer they are those of the newest application that was ever scored, unless that is
    withdrawn or refused; as with submissions, an older one does not return.
    """
    with database.reading() as connection:
        newest: dict[tuple[str, str], Any] = {}
        for one in applications(connection):
            if isinstance(one.content, ModelApplication) and any(step.status == SCORED for step in one.steps):
                newest[canonical(one.content.manufacturer), canonical(one.content.name)] = one
        shown = [one for one in newest.values() if one.status not in (WITHDRAWN, REFUSED)]
        return sorted(row for one in shown for row in _rows(connection, one.id, one.content))


def items_of(connection: sa.Connection, id: str, content: ModelApplication) -> list[EvaluatedItem]:
    """The rows of one application, by benchmark and item."""
    return sorted(_rows(connection, id, content))


def keep_items(connection: sa.Connection, id: str, benchmark: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Put the scores of a benchmark into the record, in place of earlier ones of the same application.

    Args:
        rows: `item`, `dimension`, `original` and `score` each.
    """
    ARENA_ITEMS.create(connection, checkfirst=True)
    of_benchmark = (ARENA_ITEMS.c.application == id) & (ARENA_ITEMS.c.benchmark == benchmark)
    connection.execute(sa.delete(ARENA_ITEMS).where(of_benchmark))
    new = [{"application": id, "benchmark": benchmark, **row} for row in rows]
    if new:
        connection.execute(sa.insert(ARENA_ITEMS), new)


def _rows(connection: sa.Connection, id: str, content: ModelApplication) -> Sequence[EvaluatedItem]:
    if not sa.inspect(connection).has_table(ARENA_ITEMS.name):
        return []
    columns = [ARENA_ITEMS.c[name] for name in COLUMNS[1:6]]
    found = connection.execute(sa.select(*columns).where(ARENA_ITEMS.c.application == id))
    return [
        EvaluatedItem(content.agent_id, benchmark, item, dimension, score, original, BY_THE_HOST, content.type)
        for benchmark, item, dimension, score, original in found
    ]
