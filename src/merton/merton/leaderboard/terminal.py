"""Boards as plain text for a terminal."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from merton.leaderboard.board import Board, BoardCell
from merton.results.text import MISSING, formatted, printable

COLUMNS_AT_ONCE = 6
"""Columns of a board that fit into a line; a wider board is drawn in several blocks."""

LEAST_NAME = 16
"""Characters of a name that stand in one line even where that breaks lines of the columns beside it."""


def terminal_width() -> int:
    """Characters in a line of a board on this terminal, 100..160; 140 where there is none."""
    return max(100, min(160, shutil.get_terminal_size((140, 40)).columns))


def render_board(board: Board, width: int = 120) -> str:
    """A board under published rules as plain text; columns without any score are listed below the table."""
    filled = [index for index in range(len(board.columns)) if any(row.cells[index].n for row in board.rows)]
    empty = [column for index, column in enumerate(board.columns) if index not in filled]
    about = [key for key in ("type", "source") if any(getattr(row, key) for row in board.rows)]
    console, lines = plain_console(width)
    console.print(Text(f"{board.title}\n{board.note}"))
    for start in range(0, max(len(filled), 1), COLUMNS_AT_ONCE):
        block = filled[start : start + COLUMNS_AT_ONCE]
        headings = ("#", "agent", *about, "total", *(printable(board.columns[index], 40) for index in block))
        rows = [
            (
                whole(row.rank),
                printable(str(row.agent), 32),
                *(printable(getattr(row, key), 32) for key in about),
                *(_cell(cell, board.digits) for cell in (row.total, *(row.cells[index] for index in block))),
            )
            for row in board.rows
        ]
        console.print(table("", headings, rows))
    if empty:
        console.print(Text(f"Columns without any score: {printable(', '.join(empty), 1000)}."))
    for row in board.rows:
        if row.total.missing and filled:
            missing = printable(row.total.missing, 300)
            by = f" ({printable(row.source, 60)})" if row.source else ""
            console.print(Text(f"{printable(str(row.agent), 32)}{by} has no total: {missing}."))
    print_warnings(console, board.warnings)
    return lines.getvalue()


def plain_console(width: int) -> tuple[Console, io.StringIO]:
    """A console without colours, and the lines printed to it."""
    lines = io.StringIO()
    return Console(file=lines, width=width, color_system=None, force_terminal=False), lines


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of text, numbers to the right; every cell is safe to print."""
    table = Table(title=title, title_justify="left", header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        longest = max((len(row[headings.index(heading)]) for row in rows), default=0)
        if heading in ("agent", "type", "source"):
            # a name that is too long goes on in the next line: names may differ in their ends alone
            table.add_column(Text(heading), justify="left", overflow="fold", min_width=min(longest, LEAST_NAME))
        else:
            table.add_column(Text(heading), justify="right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def print_warnings(console: Console, warnings: Sequence[str]) -> None:
    """One line for each warning."""
    for warning in warnings:
        console.print(Text(f"! {printable(warning, 400)}"))


def _cell(cell: BoardCell, digits: int) -> str:
    """Score and n, and the interval below; a dash and n where the score is missing."""
    if cell.score is None or cell.interval is None:
        return f"{MISSING} n={cell.n}"
    return f"{cell.score:.{digits}f} n={cell.n}\n{cell.interval:.{digits}f}"


def whole(value: int | None) -> str:
    """A count or rank, a dash for None."""
    return formatted(value, "{}")
