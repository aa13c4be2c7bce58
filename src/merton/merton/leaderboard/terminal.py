"""The leaderboard as text for a terminal."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from merton.results.text import MISSING, formatted, printable

if TYPE_CHECKING:  # what a board shows needs all of the ratings; a command that only draws does not
    from merton.leaderboard.snapshot.contents import AgentRow, Snapshot, Standing

FLOOR_AGENT = "hold"
"""The agent that does nothing; its score is the chance floor."""

NAME = 44
"""Characters of an agent's name on a terminal."""


def terminal_width() -> int:
    """Characters in a line of a board on this terminal, 100..160; 140 where there is none."""
    return max(100, min(160, shutil.get_terminal_size((140, 40)).columns))


def render_text(snapshot: Snapshot, width: int = 140) -> str:
    """The board as plain text for a terminal `width` characters wide: both ratings, and where they are not sure."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False)
    console.print(_table("Leaderboard", _COLUMNS, snapshot.agents))
    if any(row.trials or row.infrastructure for row in snapshot.agents):
        console.print(_table("Trials", _TRIAL_COLUMNS, snapshot.agents))
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
    for warning in snapshot.warnings:
        console.print(Text(f"! {printable(warning, 400)}"))
    return out.getvalue()


def disagreements(snapshot: Snapshot, most: int = 12) -> list[str]:
    """Which neighbours the shuffles of AGI-Elo swap, and whom the two methods place differently; `most` of each.

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
        lines += _most(
            [
                f"{printable(swap.lower, NAME)} is before {printable(swap.upper, NAME)} in "
                f"{round(swap.share * snapshot.shuffles)} of {snapshot.shuffles}"
                for swap in swaps
            ],
            most,
        )
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


def _table(title: str, columns: Sequence[Column], rows: Sequence[AgentRow]) -> Table:
    table = Table(title=title, title_justify="left", header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading, _ in columns:
        table.add_column(heading, justify="left" if heading == "agent" else "right")
    for row in rows:
        table.add_row(*(Text(cell(row)) for _, cell in columns))
    return table


def _likelihood(row: AgentRow) -> str:
    if row.likelihood is None:
        return MISSING
    if row.likelihood.flag:
        return f"{bound_sign(row.likelihood)} {row.likelihood.mean:.0f}"
    low, high = row.likelihood.interval
    return f"{row.likelihood.mean:.0f} [{low:.0f}, {high:.0f}]"


def _agi_elo(row: AgentRow) -> str:
    if row.agi_elo is None:
        return MISSING
    if row.agi_elo.flag:
        return f"{bound_sign(row.agi_elo)} {row.agi_elo.mean:.0f}"
    return f"{row.agi_elo.mean:.0f} ± {row.agi_elo.deviation:.0f}"


def bound_sign(standing: Standing) -> str:
    """The sign before a rating that is a bound: at least so much after only wins, at most after only losses."""
    return "≥" if standing.flag == "only wins" else "≤"


def _with_interval(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None or interval is None:
        return MISSING
    return f"{100 * value:.0f} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


def _rank(row: AgentRow) -> str:
    return MISSING if row.rank is None else str(row.rank)


def _name(row: AgentRow) -> str:
    return printable(row.id, NAME)


Column = tuple[str, Callable[["AgentRow"], str]]
"""Heading, and an agent's cell."""

_COLUMNS: tuple[Column, ...] = (
    ("#", _rank),
    ("agent", _name),
    ("likelihood [95 %]", _likelihood),
    ("AGI-Elo ± RD", _agi_elo),
    ("# by it", lambda row: MISSING if row.agi_elo is None else str(row.agi_elo.rank)),
    ("spread", lambda row: MISSING if row.agi_elo is None else formatted(row.agi_elo.spread, "{:.1f}")),
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
