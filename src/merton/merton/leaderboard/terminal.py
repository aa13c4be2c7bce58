"""The leaderboard as text, and what every board and report shows numbers with: means, intervals, safe names."""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scipy.special import stdtrit

if TYPE_CHECKING:  # what a board shows needs all of the ratings; a command that only draws does not
    from merton.leaderboard.snapshot.contents import AgentRow, Snapshot, Standing

FLOOR_AGENT = "hold"
"""The agent that does nothing; its score is the chance floor."""

MISSING = "–"
NAME = 44
"""Characters of an agent's name on a terminal."""

Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard deviations."""


def terminal_width() -> int:
    """Characters in a line of a board on this terminal, 100..160; 140 where there is none."""
    return max(100, min(160, shutil.get_terminal_size((140, 40)).columns))


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; None if there are none."""
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def wilson(successes: float, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a proportion, within 0..1; (0, 1) for n = 0 (Wilson 1927)."""
    if n == 0:
        return 0.0, 1.0
    share, shrink = successes / n, 1.0 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    # At the ends the interval touches the bound exactly; floating point would miss it by an ulp.
    return (0.0 if successes == 0 else center - half), (1.0 if successes == n else center + half)


def mean_interval(scores: ArrayLike, groups: ArrayLike) -> tuple[float, float]:
    """95 % interval of a mean of scores in 0..1, within 0..1.

    Student's over groups, such as test cases: scores of one case are alike, so a case that was met twice counts once.
    Where no spread can be seen (one group, or equal scores) it is Wilson's: a coin scatters more than any other score
    of the same mean, so it is wide rather than of no width at all (ours).

    Args:
        scores: (n,) in 0..1, n >= 1.
        groups: (n,) integers.
    """
    score, group = np.asarray(scores, float), np.asarray(groups)
    _, index, counts = np.unique(group, return_inverse=True, return_counts=True)
    means = np.sort(np.bincount(index, weights=score) / counts)
    center, n = float(np.mean(score)), len(means)
    if means[-1] - means[0] < 1e-9:
        return wilson(center * n, n)
    half = float(stdtrit(n - 1, 0.975) * means.std(ddof=1) / math.sqrt(n))
    return max(center - half, 0.0), min(center + half, 1.0)


def printable(text: str, limit: int = 80) -> str:
    """Text that is safe to show: control and direction characters replaced, cut to `limit` characters."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def one_line(value: object, limit: int = 80) -> str:
    """Any value as printable text on one line, white space collapsed."""
    return printable(" ".join(str(value).split()), limit)


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


def formatted(value: float | None, pattern: str = "{:.2f}") -> str:
    """The value in the pattern, or a dash if it is missing."""
    return MISSING if value is None else pattern.format(value)


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
