"""The board: agents against columns, every cell a score with its n and 95 % interval, or missing.

Boards of a snapshot and boards under published rules are the same `Board`. Ranks come from `ranked`, totals from
`mean_cell`; terminal, pages and files show a board without computing anything.

The interval of a mean of cells is `total_interval`; the cells' items are independent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from merton.results.text import count_of
from merton.statistics.intervals import Interval
from merton.statistics.means import DIGITS, Scatter, mean_interval, mean_scatter, ranks, total_interval

NotInSnapshots = Field(exclude=True)
"""Marks a field that the JSON of a snapshot does not hold."""

NOT_MEASURED = "no agent was measured here"
"""The reason why a cell of a column without any score is missing."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class BoardCell:
    """A mean of `n` scores.

    Attributes:
        score: 0..maximum of the board; None if it is missing.
        interval: 95 % interval of `score`.
        n: number of scores in the mean.
        scatter: of `score` / maximum; None if it is missing or was read from a file.
        scenes: number of different scenes among them; 0 where the case is the unit.
        missing: why there is no score, on boards under published rules; empty on those of a snapshot, where a cell can
            be missing for one reason only: the agent met no such case.
    """

    score: float | None
    interval: Interval | None
    n: int
    missing: Annotated[str, NotInSnapshots] = ""
    scatter: Annotated[Scatter | None, NotInSnapshots] = field(default=None, compare=False, repr=False)
    scenes: int = 0

    @property
    def size(self) -> str:
        """Its n, and the number of its scenes."""
        return count_of(self.n, self.scenes)


@dataclass(frozen=True)
class BoardRow:
    """An agent's line on a board; a total needs every cell, so an agent that lacks one has none and comes last.

    Attributes:
        agent: index into `Snapshot.agents`; a name on boards under published rules.
        rank: by `total`; equal totals share it; None without a total, and before `ranked`.
        total: 0..maximum, as the board's note says; n counts all scores of the cells.
        cells: one for each of the board's columns.
        type: of the agent, such as "general" or "embodied"; empty if it is not stated, and on boards of a snapshot.
        source: who measured the scores, such as "self-reported"; empty as `type`. An agent has a row for each source.
    """

    agent: int | str
    rank: int | None
    total: BoardCell
    cells: tuple[BoardCell, ...]
    type: Annotated[str, NotInSnapshots] = ""
    source: Annotated[str, NotInSnapshots] = ""


@dataclass(frozen=True)
class Board:
    """Agents against columns.

    Attributes:
        name: a word for addresses, such as "task".
        title: heading of the board.
        note: rule of its total, one sentence.
        columns: headings of the cells; a column without any score is shown and is not part of a total.
        rows: best first, those without a total last.
        maximum: the highest score there is; the lowest is 0.
        warnings: caveats for the reader, one sentence each.
    """

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    maximum: Annotated[float, NotInSnapshots] = 1.0
    warnings: Annotated[tuple[str, ...], NotInSnapshots] = ()

    @property
    def digits(self) -> int:
        """Decimals of a score where it is shown."""
        return 3 if self.maximum <= 1.0 else 2

    @property
    def has_scores(self) -> bool:
        """Whether any agent has a score in any cell."""
        return any(cell.n for row in self.rows for cell in row.cells)

    def column_ranks(self, column: int) -> list[int | None]:
        """The rank of every row by its cell in one column; None where that is missing."""
        return ranks(row.cells[column].score for row in self.rows)


def missing_cell(reason: str, n: int = 0) -> BoardCell:
    """A missing cell, although the agent may have `n` of its scores."""
    return BoardCell(None, None, n, reason)


def share_cell(scores: Sequence[float], maximum: float) -> BoardCell:
    """The cell of scores in 0..1 of different items, at least one: maximum times their mean, with `mean_interval`."""
    interval = mean_interval(scores, range(len(scores)))
    share = min(math.fsum(scores) / len(scores), 1.0)
    return BoardCell(
        maximum * share, interval.scaled(maximum), len(scores), scatter=mean_scatter(scores, range(len(scores)))
    )


def mean_cell(cells: Collection[BoardCell], maximum: float, missing: str = "") -> BoardCell:
    """The unweighted mean of cells, with its interval; missing, for the reason given, if one of them is."""
    n = sum(cell.n for cell in cells)
    scored = [(cell.score, cell.scatter) for cell in cells if cell.score is not None and cell.scatter is not None]
    if not scored or len(scored) < len(cells):
        return missing_cell(missing, n)
    score = math.fsum(score for score, _ in scored) / len(scored)
    share = min(score / maximum, 1.0)
    interval, scatter = total_interval(share, [part for _, part in scored], n)
    return BoardCell(score, interval.scaled(maximum), n, scatter=scatter)


def total_cell(cells: Mapping[str, BoardCell], maximum: float) -> BoardCell:
    """The `mean_cell` of cells by column; if it is missing, its reason names the first cell that the agent lacks."""
    lacking = [f"{name} ({cell.missing})" for name, cell in cells.items() if cell.score is None]
    more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return mean_cell(cells.values(), maximum, f"lacks {lacking[0]}{more}" if lacking else NOT_MEASURED)


def ranked(rows: Sequence[BoardRow]) -> tuple[BoardRow, ...]:
    """The rows with their ranks by total, best first; those without a total come last, equal ones by name."""
    places = ranks(row.total.score for row in rows)
    found = [replace(row, rank=rank) for row, rank in zip(rows, places, strict=True)]
    return tuple(sorted(found, key=lambda row: (row.rank is None, row.rank or 0, row.agent, row.source)))


def group_cell(scores: ArrayLike, clusters: ArrayLike, scenes: int = 0) -> BoardCell:
    """The mean of scores in 0..1 with its interval, clustered by `clusters`, such as scenes; missing without any."""
    values = np.asarray(scores, float).tolist()
    if not values:
        return missing_cell("")
    return BoardCell(math.fsum(values) / len(values), mean_interval(values, clusters), len(values), scenes=scenes)


def plain_values(board: Board) -> dict[str, Any]:
    """A board under published rules as plain values for JSON: every cell with its rank in its column."""

    def cell(item: BoardCell, rank: int | None) -> dict[str, Any]:
        return {"score": item.score, "interval": item.interval, "n": item.n, "rank": rank, "missing": item.missing}

    columns = [board.column_ranks(column) for column in range(len(board.columns))]
    rows = [
        {
            "agent": row.agent,
            "type": row.type,
            "source": row.source,
            "total": cell(row.total, row.rank),
            "cells": [cell(item, column[place]) for item, column in zip(row.cells, columns, strict=True)],
        }
        for place, row in enumerate(board.rows)
    ]
    return {**{item.name: getattr(board, item.name) for item in fields(board)}, "rows": rows}


def to_json(content: Mapping[str, Any]) -> bytes:
    """Plain values as JSON: sorted keys, no NaN, UTF-8, floats `rounded`; same content, same bytes."""
    text = json.dumps(rounded(content), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="replace") + b"\n"


def rounded(value: Value) -> Value:
    """The value with every float in it rounded to `DIGITS`; -0.0 becomes 0.0."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0  # type: ignore[return-value]
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, (tuple, list)):
        parts = [rounded(item) for item in value]
        return Interval(*parts) if isinstance(value, Interval) else type(value)(parts)  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{item.name: rounded(getattr(value, item.name)) for item in fields(value)})
    return value
