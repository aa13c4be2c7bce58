"""Boards as plain text for a terminal."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from merton.leaderboard.board import Board, BoardCell
from merton.results.records import FLOOR_AGENT
from merton.results.text import MISSING, formatted, printable

if TYPE_CHECKING:  # these modules load all of the ratings, which a command that only draws does not need
    from merton.leaderboard.snapshot.contents import AgentRow, Snapshot, Standing

NAME = 44
"""Characters of an agent's name beside its ratings."""

COLUMNS_AT_ONCE = 6
"""Columns of a board that fit into a line; a wider board is drawn in several blocks."""


def terminal_width() -> int:
    """Characters in a line of a board on this terminal, 100..160; 140 where there is none."""
    return max(100, min(160, shutil.get_terminal_size((140, 40)).columns))


def render_board(board: Board, width: int = 120) -> str:
    """A board under published rules as plain text; columns without any score are listed below the table."""
    filled = [index for index in range(len(board.columns)) if any(row.cells[index].n for row in board.rows)]
    empty = [column for index, column in enumerate(board.columns) if index not in filled]
    console, lines = _plain_console(width)
    console.print(Text(f"{board.title}\n{board.note}"))
    for start in range(0, max(len(filled), 1), COLUMNS_AT_ONCE):
        block = filled[start : start + COLUMNS_AT_ONCE]
        headings = ("#", "agent", "total", *(printable(board.columns[index], 40) for index in block))
        rows = [
            (
                _whole(row.rank),
                printable(str(row.agent), 32),
                *(_cell(cell, board.digits) for cell in (row.total, *(row.cells[index] for index in block))),
            )
            for row in board.rows
        ]
        console.print(_table("", headings, rows))
    if empty:
        console.print(Text(f"Columns without any score: {printable(', '.join(empty), 1000)}."))
    for row in board.rows:
        if row.total.missing and filled:
            missing = printable(row.total.missing, 300)
            console.print(Text(f"{printable(str(row.agent), 32)} has no total: {missing}."))
    _print_warnings(console, board.warnings)
    return lines.getvalue()


def render_snapshot(snapshot: Snapshot, width: int = 140) -> str:
    """The overall board of a snapshot as plain text: both ratings of every agent, and reasons to doubt them."""
    console, lines = _plain_console(width)
    console.print(_agent_table("Leaderboard", _COLUMNS, snapshot.agents))
    if any(row.trials or row.infrastructure for row in snapshot.agents):
        console.print(_agent_table("Trials", _TRIAL_COLUMNS, snapshot.agents))
    console.print(Text(snapshot.method))
    if snapshot.chance_floor is not None:
        console.print(Text(f"Doing nothing ({FLOOR_AGENT}) scores {snapshot.chance_floor:.1f} under distortion."))
    for line in disagreements(snapshot):
        console.print(Text(printable(line, 400)))
    if submitted := [printable(row.id, NAME) for row in snapshot.agents if row.submission]:
        console.print(Text("Measured by the manufacturers themselves:"))
        for line in _most(submitted, 12):
            console.print(Text(line))
    for row in snapshot.agents:
        if row.missing:
            console.print(Text(f"{printable(row.id, NAME)} is not rated. {row.missing}"))
    _print_warnings(console, snapshot.warnings)
    return lines.getvalue()


def disagreements(snapshot: Snapshot, most: int = 12) -> list[str]:
    """Neighbours that the shuffles of AGI-Elo swap, and agents that the two methods rank differently; `most` of each.

    Returns lines: a sentence for either, and below it the clearest examples, indented.
    """
    lines = []
    rated = sum(row.agi_elo is not None for row in snapshot.agents)
    if rated > 1:
        swaps = sorted(snapshot.swaps, key=lambda swap: -swap.share)
        lines.append(
            f"By AGI-Elo, {len(swaps)} of {rated - 1} pairs of neighbours change places in at least one of the "
            f"{snapshot.shuffles} orders of the matches{':' if swaps else '.'}"
        )
        examples = [
            f"{printable(swap.lower, NAME)} is before {printable(swap.upper, NAME)} in "
            f"{round(swap.share * snapshot.shuffles)} of {snapshot.shuffles}"
            for swap in swaps
        ]
        lines += _most(examples, most)
    moved = [
        (row, row.likelihood.rank, row.agi_elo.rank)
        for row in snapshot.agents
        if row.likelihood and row.agi_elo and row.likelihood.rank != row.agi_elo.rank
    ]
    if moved:
        moved.sort(key=lambda item: -abs(item[1] - item[2]))
        lines.append(f"The two methods place {len(moved)} of {rated} agents differently:")
        lines += _most(
            [f"{printable(row.id, NAME)}: {likely} by likelihood, {elo} by AGI-Elo" for row, likely, elo in moved], most
        )
    return lines


def _most(items: Sequence[str], most: int) -> list[str]:
    more = [f"  and {len(items) - most} more"] if len(items) > most else []
    return [f"  {item}" for item in items[:most]] + more


def _plain_console(width: int) -> tuple[Console, io.StringIO]:
    """A console without colours, and the lines printed to it."""
    lines = io.StringIO()
    return Console(file=lines, width=width, color_system=None, force_terminal=False), lines


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of text, numbers to the right; every cell is safe to print."""
    table = Table(title=title, title_justify="left", header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(Text(heading), justify="left" if heading == "agent" else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _print_warnings(console: Console, warnings: Sequence[str]) -> None:
    for warning in warnings:
        console.print(Text(f"! {printable(warning, 400)}"))


def _cell(cell: BoardCell, digits: int) -> str:
    """Score and n, and the interval below; a dash and n where the score is missing."""
    if cell.score is None or cell.interval is None:
        return f"{MISSING} n={cell.n}"
    low, high = cell.interval
    return f"{cell.score:.{digits}f} n={cell.n}\n{low:.{digits}f}..{high:.{digits}f}"


def _whole(value: int | None) -> str:
    return formatted(value, "{}")


Column = tuple[str, Callable[["AgentRow"], str]]
"""Heading, and the text of an agent's cell."""


def _agent_table(title: str, columns: Sequence[Column], agents: Sequence[AgentRow]) -> Table:
    headings = [heading for heading, _ in columns]
    return _table(title, headings, [[cell(agent) for _, cell in columns] for agent in agents])


def _likelihood(row: AgentRow) -> str:
    if row.likelihood is None or row.likelihood.flag:
        return _bound(row.likelihood)
    low, high = row.likelihood.interval
    return f"{row.likelihood.mean:.0f} [{low:.0f}, {high:.0f}]"


def _agi_elo(row: AgentRow) -> str:
    if row.agi_elo is None or row.agi_elo.flag:
        return _bound(row.agi_elo)
    return f"{row.agi_elo.mean:.0f} ± {row.agi_elo.deviation:.0f}"


def _bound(standing: Standing | None) -> str:
    return MISSING if standing is None else f"{standing.bound_sign} {standing.mean:.0f}"


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None or interval is None:
        return MISSING
    return f"{100 * value:.0f} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


def _rank(row: AgentRow) -> str:
    return _whole(row.rank)


def _name(row: AgentRow) -> str:
    return printable(row.id, NAME)


_COLUMNS: tuple[Column, ...] = (
    ("#", _rank),
    ("agent", _name),
    ("likelihood [95 %]", _likelihood),
    ("AGI-Elo ± RD", _agi_elo),
    ("# by it", lambda row: _whole(row.agi_elo.rank if row.agi_elo else None)),
    ("spread", lambda row: formatted(row.agi_elo.spread if row.agi_elo else None, "{:.1f}")),
    ("score % [95 %]", lambda row: _with_interval(row.score, row.score_interval)),
    ("matches", lambda row: str(row.matches)),
)
_TRIAL_COLUMNS: tuple[Column, ...] = (
    ("#", _rank),
    ("agent", _name),
    ("n", lambda row: str(row.trials)),
    ("success %\n[95 %]", lambda row: _with_interval(row.success, row.success_interval)),
    ("execution\nreference", lambda row: formatted(row.execution_reference, "{:.1f}")),
    ("execution\ndistorted", lambda row: formatted(row.execution_distorted, "{:.1f}")),
    ("above\nfloor", lambda row: formatted(row.execution_above_floor)),
    ("decision", lambda row: formatted(row.decision)),
    ("cognition", lambda row: formatted(row.cognition)),
    ("e-stops", lambda row: str(row.emergency_stops)),
    ("invalid", lambda row: str(row.invalid_actions)),
    ("infra-\nstructure", lambda row: str(row.infrastructure)),
)
