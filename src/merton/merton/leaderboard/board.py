"""The leaderboard of one run: who did how well, how sure that is, and what doing nothing would have earned."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from merton.rating.agi_elo import Rating, Ratings
from merton.results.records import Outcome, TrialRecord

FLOOR_AGENT = "hold"
"""The agent that does nothing; its score is the chance floor."""

MISSING = "–"
Z_95 = 1.959963984540054
"""Half-width of a 95 % interval in standard deviations."""


@dataclass(frozen=True)
class Row:
    """One agent's line. A value that could not be measured is None; "distorted" means levels 1 to 5.

    Attributes:
        rank: 1 for the highest rating, equal ratings share it; None if unrated.
        agent: id of the agent.
        rating: AGI-Elo rating with deviation and spread; None if unrated.
        n: trials that ended without an infrastructure fault; the denominator of `success`.
        successes: trials that did the task.
        success: share of successes, 0..1.
        success_interval: 95 % Wilson interval of `success`.
        execution_reference: mean execution score of undistorted trials, 0..100.
        execution_distorted: mean execution score of distorted trials, 0..100.
        execution_above_floor: (execution_distorted - floor) / (100 - floor): 0 is doing nothing, 1 is perfect.
        decision: mean decision score of distorted trials, 0..1.
        cognition: mean cognition score of distorted trials, 0..1.
        emergency_stops, invalid_actions, infrastructure: trials with that outcome.
    """

    rank: int | None
    agent: str
    rating: Rating | None
    n: int
    successes: int
    success: float | None
    success_interval: tuple[float, float] | None
    execution_reference: float | None
    execution_distorted: float | None
    execution_above_floor: float | None
    decision: float | None
    cognition: float | None
    emergency_stops: int
    invalid_actions: int
    infrastructure: int

    @property
    def kept(self) -> float | None:
        """Share of the undistorted execution score that is left under distortion; None if unknown."""
        if self.execution_distorted is None or not self.execution_reference:
            return None
        return self.execution_distorted / self.execution_reference


@dataclass(frozen=True)
class Board:
    """Rows by rating, unrated ones last; `chance_floor`: what the floor agent has under distortion, 0..100."""

    rows: tuple[Row, ...]
    chance_floor: float | None
    warnings: tuple[str, ...]


def build(records: Iterable[TrialRecord], ratings: Ratings) -> Board:
    """The board of a run from its records and the ratings made from them."""
    by_agent: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_agent.setdefault(record.agent, []).append(record)
    floor = mean(item.execution for item in _distorted(by_agent.get(FLOOR_AGENT, [])))
    order = sorted(by_agent, key=lambda agent: (-_rating_mean(ratings, agent), agent))
    rows = [_row(_rank(ratings, agent), agent, by_agent[agent], ratings.agents.get(agent), floor) for agent in order]
    return Board(tuple(rows), floor, ratings.warnings)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; None if there are none."""
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of a proportion, within 0..1; (0, 1) for n = 0 (Wilson 1927)."""
    if n == 0:
        return 0.0, 1.0
    share, shrink = successes / n, 1.0 + z * z / n
    center = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1.0 - share) / n + z * z / (4 * n * n))
    # At the ends the interval touches the bound exactly; floating point would miss it by an ulp.
    return (0.0 if successes == 0 else center - half), (1.0 if successes == n else center + half)


def printable(text: str, limit: int = 80) -> str:
    """Text that is safe to show: control and direction characters replaced, cut to `limit` characters."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[: limit + 1])
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def one_line(value: object, limit: int = 80) -> str:
    """Any value as printable text on one line, white space collapsed."""
    return printable(" ".join(str(value).split()), limit)


def render_text(board: Board, width: int = 140) -> str:
    """The board as plain text for a terminal `width` characters wide."""
    table = Table(title="Leaderboard", title_justify="left", header_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("#", justify="right")
    table.add_column("agent")
    for heading in (
        "rating ± RD",
        "spread",
        "n",
        "execution\nreference",
        "execution\ndistorted",
        "above\nfloor",
        "success %\n[95 %]",
        "decision",
        "cognition",
        "e-stops",
        "invalid",
        "infra-\nstructure",
    ):
        table.add_column(heading, justify="right")
    for row in board.rows:
        table.add_row(*(Text(cell) for cell in _cells(row)))
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, force_terminal=False)
    console.print(table)
    if board.chance_floor is not None:
        console.print(Text(f"Doing nothing ({FLOOR_AGENT}) scores {board.chance_floor:.1f} under distortion."))
    for warning in board.warnings:
        console.print(Text(f"! {printable(warning, 400)}"))
    return out.getvalue()


def as_dict(board: Board) -> dict[str, Any]:
    """The board as plain values for JSON."""
    return asdict(board)


def formatted(value: float | None, pattern: str = "{:.2f}") -> str:
    """The value in the pattern, or a dash if it is missing."""
    return MISSING if value is None else pattern.format(value)


def _distorted(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    return [record for record in records if not record.case.is_reference]


def _rating_mean(ratings: Ratings, agent: str) -> float:
    return ratings.agents[agent].mean if agent in ratings.agents else -math.inf


def _rank(ratings: Ratings, agent: str) -> int | None:
    if agent not in ratings.agents:
        return None
    return 1 + sum(other.mean > ratings.agents[agent].mean for other in ratings.agents.values())


def _row(
    rank: int | None, agent: str, records: Sequence[TrialRecord], rating: Rating | None, floor: float | None
) -> Row:
    counts = {outcome: sum(record.outcome is outcome for record in records) for outcome in Outcome}
    n, successes = len(records) - counts[Outcome.INFRASTRUCTURE], counts[Outcome.SUCCESS]
    distorted = _distorted(records)
    execution = mean(record.execution for record in distorted)
    above = None
    if execution is not None and floor is not None and floor < 100.0:
        above = (execution - floor) / (100.0 - floor)
    return Row(
        rank=rank,
        agent=agent,
        rating=rating,
        n=n,
        successes=successes,
        success=successes / n if n else None,
        success_interval=wilson(successes, n) if n else None,
        execution_reference=mean(record.execution for record in records if record.case.is_reference),
        execution_distorted=execution,
        execution_above_floor=above,
        decision=mean(record.decision for record in distorted),
        cognition=mean(record.cognition for record in distorted),
        emergency_stops=counts[Outcome.EMERGENCY_STOP],
        invalid_actions=counts[Outcome.INVALID_ACTION],
        infrastructure=counts[Outcome.INFRASTRUCTURE],
    )


def _cells(row: Row) -> list[str]:
    rating, interval = row.rating, row.success_interval
    return [
        MISSING if row.rank is None else str(row.rank),
        printable(row.agent, 32),
        MISSING if rating is None else f"{rating.mean:.0f} ± {rating.deviation:.0f}",
        MISSING if rating is None else f"{rating.spread:.1f}",
        str(row.n),
        formatted(row.execution_reference, "{:.1f}"),
        formatted(row.execution_distorted, "{:.1f}"),
        formatted(row.execution_above_floor),
        MISSING
        if row.success is None or interval is None
        else f"{100 * row.success:.0f} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]",
        formatted(row.decision),
        formatted(row.cognition),
        str(row.emergency_stops),
        str(row.invalid_actions),
        str(row.infrastructure),
    ]
