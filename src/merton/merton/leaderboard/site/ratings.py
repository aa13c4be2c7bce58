"""The values of the pages on ratings and on history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from merton.leaderboard.site import figures
from merton.leaderboard.site.record_extras import Earlier, RecordExtras
from merton.leaderboard.site.view import View
from merton.leaderboard.snapshot.contents import AgentRow, Snapshot
from merton.pages.svg import SERIES_COLORS, series_slots
from merton.rating.diagnostics import HeldOut
from merton.rating.predictions import MASTERY, oracle
from merton.results.text import printable
from merton.statistics.intervals import Interval

COLUMNS = 12
"""Number of snapshots in the table of all agents, the latest."""


@dataclass(frozen=True)
class Distribution:
    """One method's ratings: their numbers, the histogram and its picture, and (p, rating) of the oracles."""

    name: str
    label: str
    cases: int
    agents: int
    bins: list[figures.Bin]
    oracles: list[tuple[float, float]]
    picture: Markup


def ratings_page(view: View) -> dict[str, Any]:
    """Distributions of both methods, both side by side, and pictures of the calibrations."""
    methods = []
    for name, label in (("likelihood", "likelihood"), ("agi_elo", "AGI-Elo")):
        agents, cases = view.rated(name)
        if agents or cases:
            methods.append(_distribution(name, label, agents, cases))
    return {
        "methods": methods,
        "both": [
            (index, agent) for index, agent in enumerate(view.snapshot.agents) if agent.likelihood and agent.agi_elo
        ],
        "calibrations": [
            _calibration(check.method, check.held_out) for check in view.snapshot.diagnostics if check.held_out
        ],
    }


def history_page(extras: RecordExtras, today: Snapshot) -> dict[str, Any]:
    """Ratings over the earlier snapshots and today's, the oldest first."""
    snapshots = (*extras.history, Earlier.of(extras.taken_utc, today))
    rows = [{agent.id: agent for agent in item.snapshot.agents} for item in snapshots]
    leaders = [agent.id for agent in today.agents if agent.rank is not None][:SERIES_COLORS]
    slots = series_slots(agent.id for agent in today.agents)
    tracks = [
        figures.Track(printable(name, 40), slots[name], tuple(_point(row.get(name)) for row in rows))
        for name in leaders
    ]
    current = {agent.id: index for index, agent in enumerate(today.agents)}
    start = max(len(snapshots) - COLUMNS, 0)
    gone = sorted({name for row in rows[start:] for name in row} - set(current))
    return {
        "snapshots": snapshots,
        "tracks": tracks,
        "picture": figures.history(tracks, len(snapshots), "Ratings over snapshots; the same as in the table below"),
        "columns": [(start + place + 1, item.taken_utc) for place, item in enumerate(snapshots[start:])],
        "skipped": start,
        "older": extras.older,
        "unreadable": extras.unreadable,
        "past": [(name, [row.get(name) for row in rows[start:]]) for name in (*current, *gone)],
        "today": current,
    }


def _point(agent: AgentRow | None) -> tuple[float, Interval | None] | None:
    standing = agent.standing if agent else None
    return (standing.mean, standing.interval) if standing else None


def _calibration(method: str, held_out: HeldOut) -> Markup:
    pairs = [(part.predicted, part.observed) for part in held_out.calibration]
    shown = "; ".join(f"predicted {predicted:.2f}, observed {observed:.2f}" for predicted, observed in pairs)
    return figures.calibration(pairs, f"Calibration of {method}: {shown}")


def _distribution(name: str, label: str, agents: Sequence[Any], cases: Sequence[Any]) -> Distribution:
    of_cases = [standing.mean for _, standing in cases]
    of_agents = [(printable(agent.id, 40), standing.mean) for agent, standing in agents]
    oracles = [(p, oracle(max(of_cases), p)) for p in MASTERY] if of_cases else []
    title = f"Ratings of {len(cases)} cases and {len(agents)} agents by {label}, the same as in the table below"
    return Distribution(
        name,
        label,
        len(cases),
        len(agents),
        figures.bins(of_cases, [rating for _, rating in of_agents]),
        oracles,
        figures.distribution(of_cases, of_agents, oracles, title),
    )
