"""The scores of the host's evaluations, question by question: rows of the Arena's tables of items."""

from __future__ import annotations

from typing import NamedTuple

from merton.results.database import Database


class EvaluatedItem(NamedTuple):
    """A row of a table of items (`merton.leaderboard.published.arena.ItemScore`)."""

    agent: str
    benchmark: str
    item: str
    dimension: str
    score: float
    original: str
    source: str
    type: str


def evaluated_items(database: Database) -> list[EvaluatedItem]:
    """The rows of all applications that the host evaluated; no record holds any yet."""
    return []
