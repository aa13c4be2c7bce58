"""The table "By every metric": its columns, and what it says about places and about doing nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from merton.results.metrics import METRICS
from merton.results.records import FLOOR_AGENT
from merton.results.text import printable

if TYPE_CHECKING:  # it loads all of the ratings, which a command that only draws does not need
    from merton.leaderboard.snapshot.contents import AgentRow

SUBJECT, PAPERS = "success", "execution"
"""The metric that boards lead with, and the paper's, whose places are compared."""

MOVES_SHOWN = 12

_ABSENCES = {
    "progress": "that of some failures is not known, because a person or another program judged them or the record is "
    "an old one",
    "execution": "no trial was measured against a run that did its task",
    "above_floor": f"it needs distorted trials of {FLOOR_AGENT} in every task",
}
"""Metric that a record may not allow, to the reason."""


@dataclass(frozen=True)
class MetricTable:
    """Every agent's mean score by every metric that the record allows.

    Attributes:
        columns: the metrics; empty if no agent has a trial.
        rows: the agents that have trials, in the order given; `AgentRow.metrics` has one item a column.
        remarks: sentences: how places change, what doing nothing earns, and why a metric is left out.
    """

    columns: tuple[str, ...]
    rows: tuple[AgentRow, ...]
    remarks: tuple[str, ...]


def metric_table(agents: Sequence[AgentRow]) -> MetricTable:
    """The table of these agents."""
    rows = tuple(row for row in agents if row.metrics)
    columns = tuple(item.metric for item in rows[0].metrics) if rows else ()
    if not columns:
        return MetricTable((), (), ())
    remarks = list(_moves(rows))
    remarks += [_idle(row) for row in rows if row.id == FLOOR_AGENT]
    remarks += [f"No {_words(name)}: {_ABSENCES[name]}." for name in METRICS if name not in columns]
    return MetricTable(columns, rows, tuple(remarks))


def _moves(rows: Sequence[AgentRow]) -> Iterator[str]:
    """Changes of places from the paper's score to success, if several agents have both."""
    places = []
    for row in rows:
        rank = {item.metric: item.rank for item in row.metrics}
        if rank[SUBJECT] is not None and rank.get(PAPERS) is not None:
            places.append((row, rank[SUBJECT], rank[PAPERS]))
    if len(places) < 2:
        return
    moved = [item for item in places if item[1] != item[2]]
    if not moved:
        everyone = "Both agents" if len(places) == 2 else f"All {len(places)} agents"
        yield f"{everyone} have the same place by {SUBJECT} as by {PAPERS}, the paper's score."
        return
    start = f"{len(moved)} of {len(places)} agents {'has' if len(moved) == 1 else 'have'} another place"
    shown = "; ".join(f"{printable(row.id, 40)} {ours}, not {papers}" for row, ours, papers in moved[:MOVES_SHOWN])
    more = f"; and {len(moved) - MOVES_SHOWN} more" if len(moved) > MOVES_SHOWN else ""
    yield f"{start} by {SUBJECT} than by {PAPERS}, the paper's score: {shown}{more}."


def _idle(row: AgentRow) -> str:
    earned = [
        f"{_words(item.metric)} {100 * item.mean:.1f} % (place {item.rank})"
        for item in row.metrics
        if item.mean is not None
    ]
    return f"Doing nothing ({FLOOR_AGENT}) earns {', '.join(earned) or 'no score'}."


def _words(metric: str) -> str:
    return metric.replace("_", " ")
