"""Snapshots as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from merton.leaderboard.snapshot.by_metric import metric_table
from merton.leaderboard.terminal import plain_console, print_warnings, table, whole
from merton.pages.words import interval_words
from merton.results.metrics import DEFAULT_METRIC
from merton.results.records import FLOOR_AGENT
from merton.results.text import MISSING, WITHHELD, counted, distinct_names, formatted, places, printable
from merton.statistics.intervals import Interval, unsigned_zero

if TYPE_CHECKING:  # these modules load all of the ratings, which a command that only draws does not need
    from merton.leaderboard.snapshot.contents import AgentRow, MetricMean, Snapshot, Standing

NAME = 44
"""Characters of an agent's name beside its ratings, the least; a longer one loses its middle."""


def render_snapshot(snapshot: Snapshot, width: int = 140, everything: bool = False) -> str:
    """The board of a snapshot as plain text: one table, and how many remarks there are.

    Args:
        width: characters of a line.
        everything: also the details of each agent, both ratings, every metric, and the remarks themselves.
    """
    console, drawn = plain_console(width)
    names = _names(snapshot)
    console.print(_agent_table(_title(snapshot), _columns(snapshot), snapshot.agents, names))
    print_warnings(console, [row.refused for row in snapshot.agents if row.refused])
    remarks = _remarks(snapshot)
    if not everything:
        beside = f"{counted(len(remarks), 'remark')} and more tables" if remarks else "More tables"
        console.print(Text(f"{beside}: --all"))
        return drawn.getvalue()
    console.print(_agent_table("Ratings by both methods, and scores over all cases", _RATINGS, snapshot.agents, names))
    if snapshot.has_trials:
        columns = [column for column in _TRIAL_COLUMNS if _is_told(column, snapshot.agents)]
        console.print(_agent_table("All trials, undistorted and distorted", columns, snapshot.agents, names))
    if (by_metric := metric_table(snapshot.agents)).columns:
        headings = ["agent", *(name.replace("_", " ") for name in by_metric.columns)]
        lines = [[names[row.id], *(_metric_cell(item) for item in row.metrics)] for row in by_metric.rows]
        console.print(table("By every metric, all trials: mean % [95 %] (place)", headings, lines))
        for line in by_metric.remarks:
            console.print(Text(line))
    console.print(Text(snapshot.method))
    if snapshot.chance_floor is not None:
        console.print(Text(f"Doing nothing ({FLOOR_AGENT}) scores {snapshot.chance_floor:.1f} under distortion."))
    for line in disagreements(snapshot):
        console.print(Text(printable(line, 400)))
    if submitted := [names[row.id] for row in snapshot.agents if row.submission]:
        console.print(Text("Measured by the manufacturers themselves:"))
        for line in _most(submitted, 12):
            console.print(Text(line))
    print_warnings(console, remarks)
    console.print(Text(f"inputs {snapshot.inputs_sha256}"))
    return drawn.getvalue()


def _is_told(column: Column, agents: Sequence[AgentRow]) -> bool:
    """Whether a column of trials is shown: one of a stage that nothing was measured of, or of abstentions without one,
    is not."""
    heading, cell = column
    if heading in _STAGES:
        return any(cell(row) != MISSING for row in agents)
    return heading != _ABSTAINED or any(row.abstained for row in agents)


def _title(snapshot: Snapshot) -> str:
    """The heading, with what the agents are rated by unless that is the default."""
    if not snapshot.has_trials and snapshot.sources:
        return f"Leaderboard by {snapshot.rated_by}"
    return "Leaderboard" if snapshot.metric == DEFAULT_METRIC else f"Leaderboard by {snapshot.metric.replace('_', ' ')}"


def _remarks(snapshot: Snapshot) -> list[str]:
    """Reasons to doubt the board, and why agents are not rated, a sentence each."""
    names = _names(snapshot)
    return [
        *snapshot.warnings,
        *(f"{names[row.id]} is not rated. {row.missing}" for row in snapshot.agents if row.missing),
    ]


def disagreements(snapshot: Snapshot, most: int = 12) -> list[str]:
    """Neighbours that the shuffles of AGI-Elo swap, and agents that the two methods rank differently; `most` of each.

    Returns lines: a sentence for either, and below it the clearest examples, indented.
    """
    lines, names = [], _names(snapshot)
    rated = sum(row.agi_elo is not None for row in snapshot.agents)
    if rated > 1:
        swaps = sorted(snapshot.swaps, key=lambda swap: -swap.share)
        lines.append(
            f"By AGI-Elo, {len(swaps)} of {rated - 1} pairs of neighbours change places in at least one of the "
            f"{snapshot.shuffles} orders of the matches{':' if swaps else '.'}"
        )
        examples = [
            f"{names[swap.lower]} is before {names[swap.upper]} in "
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
            [f"{names[row.id]}: {likely} by likelihood, {elo} by AGI-Elo" for row, likely, elo in moved], most
        )
    return lines


def _most(items: Sequence[str], most: int) -> list[str]:
    more = [f"  and {len(items) - most} more"] if len(items) > most else []
    return [f"  {item}" for item in items[:most]] + more


Column = tuple[str, Callable[["AgentRow"], str]]
"""Heading, and the text of an agent's cell."""


def _names(snapshot: Snapshot) -> dict[str, str]:
    return distinct_names((row.id for row in snapshot.agents), NAME)


def _agent_table(title: str, columns: Sequence[Column], agents: Sequence[AgentRow], names: Mapping[str, str]) -> Table:
    """The table of these columns, in which the names stand behind the rank."""
    (rank, rank_of), *others = columns
    headings = [rank, "agent", *(heading for heading, _ in others)]
    rows = [[rank_of(agent), _marked(agent, names), *(cell(agent) for _, cell in others)] for agent in agents]
    return table(title, headings, rows)


def _marked(row: AgentRow, names: Mapping[str, str]) -> str:
    """The name, and a mark of the agent that does nothing and of those that their manufacturers measured."""
    return f"{names[row.id]}{' (floor)' if row.is_floor else ' (self-reported)' if row.submission else ''}"


def _metric_cell(item: MetricMean) -> str:
    if item.mean is None or item.interval is None:
        return MISSING
    return f"{100 * item.mean:.1f} {interval_words(item.interval, 0, 100)} ({item.rank})"


def _likelihood(row: AgentRow) -> str:
    if row.is_withheld:
        return WITHHELD
    if row.likelihood is None or row.likelihood.flag:
        return _bound(row.likelihood)
    return f"{row.likelihood.mean:.0f} {interval_words(row.likelihood.interval, 0)}"


def _agi_elo(row: AgentRow) -> str:
    if row.agi_elo is None or row.agi_elo.flag:
        return _bound(row.agi_elo)
    return f"{row.agi_elo.mean:.0f} (RD {row.agi_elo.deviation:.0f})"


def _bound(standing: Standing | None) -> str:
    return MISSING if standing is None else f"{standing.bound_sign} {standing.mean:.0f}"


def _with_interval(value: float | None, ends: Interval | None) -> str:
    return MISSING if value is None or ends is None else f"{100 * value:.0f} {interval_words(ends, 0, 100)}"


def _rank(row: AgentRow) -> str:
    return whole(row.rank)


def _range(row: AgentRow) -> str:
    return places(row.rank_range)


def _rating(row: AgentRow) -> str:
    """The rating that gives the rank; AGI-Elo has no interval."""
    if row.likelihood or row.is_withheld:
        return _likelihood(row)
    return _agi_elo(row)


def _success(row: AgentRow) -> str:
    """Success in percent, undistorted and distorted; a dash where an agent has no pair of trials."""
    if row.drop is None:
        return MISSING
    return f"{100 * row.drop.undistorted:.0f} -> {100 * row.drop.distorted:.0f}"


def _drop(row: AgentRow) -> str:
    """The drop in points of 100 with its interval, or why there is none."""
    if row.drop is None:
        return row.no_drop
    return f"{unsigned_zero(f'{100 * row.drop.points:.0f}')} {interval_words(row.drop.interval, 0, 100)}"


def _columns(snapshot: Snapshot) -> tuple[Column, ...]:
    """Those of the board, without the drop or the mean score where they would say nothing."""
    drop: tuple[Column, ...] = (
        ("success %\nundistorted -> distorted", _success),
        ("drop, points\n[95 %]", _drop),
    )
    score: Column = ("score % [95 %]", lambda row: _with_interval(row.score, row.score_interval))
    has_likelihood = any(row.likelihood or row.is_withheld for row in snapshot.agents)
    return (
        ("#", _rank),
        ("range", _range),
        *(drop if snapshot.shows_drop else ()),
        *([score] if snapshot.shows_score else []),
        ("rating\n[95 %]" if has_likelihood else "AGI-Elo\n(RD)", _rating),
        ("n", lambda row: str(row.matches)),
        ("scenes", lambda row: whole(row.scenes or None)),
    )


_RATINGS: tuple[Column, ...] = (
    ("#", _rank),
    ("likelihood [95 %]", _likelihood),
    ("AGI-Elo (RD)", _agi_elo),
    ("score % [95 %]", lambda row: _with_interval(row.score, row.score_interval)),
    ("n", lambda row: str(row.matches)),
)
_STAGES = ("execution\nreference", "execution\ndistorted", "deci-\nsion", "cogni-\ntion")
_ABSTAINED = "ab-\nstained"
_TRIAL_COLUMNS: tuple[Column, ...] = (
    ("#", _rank),
    ("n", lambda row: str(row.trials)),
    ("scenes", lambda row: str(row.trial_scenes)),
    ("all trials,\nsuccess %\n[95 %]", lambda row: _with_interval(row.success, row.success_interval)),
    (_STAGES[0], lambda row: formatted(row.execution_reference, "{:.1f}")),
    (_STAGES[1], lambda row: formatted(row.execution_distorted, "{:.1f}")),
    (_STAGES[2], lambda row: formatted(row.decision)),
    (_STAGES[3], lambda row: formatted(row.cognition)),
    ("e-\nstops", lambda row: str(row.emergency_stops)),
    ("in-\nvalid", lambda row: str(row.invalid_actions)),
    ("faults", lambda row: str(row.infrastructure)),
    (_ABSTAINED, lambda row: str(row.abstained)),
)
