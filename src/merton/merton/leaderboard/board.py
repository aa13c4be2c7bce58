"""Boards under published rules: agents against columns, every cell with its n and 95 % interval, or why it is missing.

The fields have the names of `contents.ScoreBoard`, so that one template draws both; here agents are named, not
numbered, and a missing cell says why.

Intervals, the same for all of these boards: a cell's is Wilson's for its mean on a scale of 0..1. A score between 0 and
1 varies no more than a coin with the same mean, so it covers partial scores too, if anything too widely, and it is
sensible for few items and at both ends. That of a mean of cells comes from theirs by MOVER (Zou and Donner 2008): the
distances to the lower ends add in quadrature, and so do those to the upper ends; the cells' items are independent.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from merton.results.statistics import wilson
from merton.results.text import MISSING, printable

COLUMNS_AT_ONCE = 6
"""Columns that a terminal's line holds; a wider board is drawn in several blocks."""


@dataclass(frozen=True)
class PublishedCell:
    """What one agent has in one column.

    Attributes:
        score: 0..maximum of the board; None where it is missing.
        interval: 95 % of it.
        n: items it is made of.
        rank: its place in the column; equal scores share it; None where it is missing.
        missing: why there is no score; empty if there is one.
    """

    score: float | None
    interval: tuple[float, float] | None
    n: int
    rank: int | None = None
    missing: str = ""


@dataclass(frozen=True)
class PublishedRow:
    """An agent's line. Its place is that of its total; an agent that lacks a cell has neither and comes last."""

    agent: str
    total: PublishedCell
    cells: tuple[PublishedCell, ...]

    @property
    def rank(self) -> int | None:
        """The place by total; None without one."""
        return self.total.rank


@dataclass(frozen=True)
class PublishedBoard:
    """Agents against columns.

    Attributes:
        name: a word for addresses, such as "task-embodied-navigation".
        title: what it is called.
        note: how the total is made, one sentence.
        maximum: the highest score there is; the lowest is 0.
        columns: what the cells are about; a column nobody has a score in is shown and counts for nothing.
        rows: best first, those without a total last.
        warnings: what a reader must know, one sentence each.
    """

    name: str
    title: str
    note: str
    maximum: float
    columns: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    warnings: tuple[str, ...] = ()


def absent(reason: str, n: int = 0) -> PublishedCell:
    """A missing cell; `n`: how many items there are all the same."""
    return PublishedCell(None, None, n, missing=reason)


def share(points: float, n: int, maximum: float) -> PublishedCell:
    """The cell of `points` (0..n) out of n: maximum · points / n, with Wilson's interval."""
    low, high = wilson(points, n)
    return PublishedCell(maximum * points / n, (maximum * max(0.0, low), maximum * min(1.0, high)), n)


def mean_of(cells: Mapping[str, PublishedCell], maximum: float) -> PublishedCell:
    """The unweighted mean of cells by name, with its interval by MOVER; missing if one is, or if there are none."""
    lacking = [f"{name} ({cell.missing})" for name, cell in cells.items() if cell.score is None]
    n = sum(cell.n for cell in cells.values())
    if lacking or not cells:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        return absent(f"lacks {lacking[0]}{more}" if lacking else "nobody has items", n)
    scores, down, up = [], [], []
    for cell in cells.values():
        assert cell.score is not None
        assert cell.interval is not None
        scores.append(cell.score)
        down.append((cell.score - cell.interval[0]) ** 2)
        up.append((cell.interval[1] - cell.score) ** 2)
    score = math.fsum(scores) / len(scores)
    low = max(0.0, score - math.sqrt(math.fsum(down)) / len(scores))
    high = min(maximum, score + math.sqrt(math.fsum(up)) / len(scores))
    return PublishedCell(score, (low, high), n)


def ordered(rows: Sequence[PublishedRow]) -> tuple[PublishedRow, ...]:
    """The rows with their ranks: by total, then those without one, by name; in every column the missing come last."""
    totals = _ranked([row.total for row in rows])
    columns = [_ranked(column) for column in zip(*(row.cells for row in rows), strict=True)]
    rows = [
        replace(row, total=total, cells=tuple(column[index] for column in columns))
        for index, (row, total) in enumerate(zip(rows, totals, strict=True))
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.agent)))


def _ranked(cells: Sequence[PublishedCell]) -> list[PublishedCell]:
    # Rounded, so that two ways to the same mean share a place.
    scores = [None if cell.score is None else round(cell.score, 9) for cell in cells]
    there = [score for score in scores if score is not None]
    return [
        cell if score is None else replace(cell, rank=1 + sum(other > score for other in there))
        for cell, score in zip(cells, scores, strict=True)
    ]


def to_json(content: Mapping[str, Any]) -> bytes:
    """Plain values as JSON: sorted keys, no NaN, UTF-8, floats rounded to six decimals; same content, same bytes."""
    text = json.dumps(_rounded(content), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="replace") + b"\n"


def _rounded(node: Any) -> Any:
    if isinstance(node, float):
        return round(node, 6)
    if isinstance(node, Mapping):
        return {key: _rounded(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [_rounded(value) for value in node]
    return node


def render_text(board: PublishedBoard, width: int = 120) -> str:
    """The board as plain text for a terminal; columns nobody has are named below it instead of drawn."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False)
    console.print(Text(f"{board.title}\n{board.note}"))
    drawn = [i for i in range(len(board.columns)) if any(row.cells[i].n for row in board.rows)]
    for start in range(0, max(len(drawn), 1), COLUMNS_AT_ONCE):
        block = drawn[start : start + COLUMNS_AT_ONCE]
        table = Table(header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("#", justify="right")
        table.add_column("agent")
        for heading in ("total", *(printable(board.columns[i], 40) for i in block)):
            table.add_column(Text(heading), justify="right")
        for row in board.rows:
            rank = MISSING if row.rank is None else str(row.rank)
            cells = [row.total, *(row.cells[i] for i in block)]
            table.add_row(rank, Text(printable(row.agent, 32)), *(Text(_shown(cell)) for cell in cells))
        console.print(table)
    unseen = [column for i, column in enumerate(board.columns) if i not in drawn]
    if unseen:
        console.print(Text(f"Nobody has items of: {printable(', '.join(unseen), 1000)}."))
    for row in board.rows:
        if row.total.missing and drawn:
            console.print(Text(f"{printable(row.agent, 32)} has no total: {printable(row.total.missing, 300)}."))
    for warning in board.warnings:
        console.print(Text(f"! {printable(warning, 400)}"))
    return out.getvalue()


def _shown(cell: PublishedCell) -> str:
    """Score and n, and the interval below; a dash and n where the score is missing."""
    if cell.score is None or cell.interval is None:
        return f"{MISSING} n={cell.n}"
    return f"{cell.score:.2f} n={cell.n}\n{cell.interval[0]:.2f}..{cell.interval[1]:.2f}"
