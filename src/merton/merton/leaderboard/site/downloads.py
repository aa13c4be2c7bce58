"""The site's files for programs and spreadsheets."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from merton.leaderboard.snapshot.contents import AgentRow, Snapshot
from merton.leaderboard.snapshot.store import to_json
from merton.results.csv_writer import write_rows
from merton.results.text import WITHHELD


@dataclass(frozen=True)
class Download:
    """A file as the downloads page lists it."""

    name: str
    size: int
    sha256: str
    note: str


def write_downloads(snapshot: Snapshot, folder: Path) -> list[Download]:
    """Write board.json, board.csv and matches.csv into a folder; OSError if that fails."""
    board: list[Sequence[object]] = [_HEADINGS, *(_line(agent) for agent in snapshot.agents)]
    files = (
        ("board.json", to_json(snapshot), "The whole snapshot, canonical: everything on these pages comes from it."),
        ("board.csv", _csv(board), "The overall board, one line per agent, its drop first."),
        ("matches.csv", _csv(_matches(snapshot)), "Every match: agent, case, score of the agent from 0 to 1."),
    )
    for name, content, _ in files:
        (folder / name).write_bytes(content)
    return [Download(name, len(content), hashlib.sha256(content).hexdigest(), note) for name, content, note in files]


_DROP = ("undistorted", "distorted", "points", "trials", "scenes")
_DROP_HEADINGS = ["success_undistorted", "success_distorted", "drop", "drop_trials", "drop_scenes"]
_PLAIN = (
    *("id", "version", "weights_sha256", "owner", "rank", "matches", "score", "trials", "successes"),
    *("execution_reference", "execution_distorted", "execution_above_floor", "decision", "cognition"),
    *(
        "emergency_stops",
        "invalid_actions",
        "infrastructure",
        "abstained",
        "missing",
        "submission",
        "scenes",
        "trial_scenes",
    ),
)
_HEADINGS = [
    "id",
    *_DROP_HEADINGS,
    *("drop_low", "drop_high", "no_drop"),
    *_PLAIN[1:],
    *("score_low", "score_high"),
    *("rank_best", "rank_worst"),
    *(f"likelihood_{part}" for part in ("rank", "rating", "low", "high", "flag")),
    *(f"agi_elo_{part}" for part in ("rank", "rating", "rd", "spread", "flag")),
]
_NO_RATING = (None,) * 5
_WITHHELD = (None, None, None, None, WITHHELD)


def _line(agent: AgentRow) -> list[object]:
    likelihood, elo = agent.likelihood, agent.agi_elo
    drop = agent.drop
    return [
        agent.id,
        *(getattr(drop, name) if drop else None for name in _DROP),
        *_ends(drop.interval if drop else None),
        agent.no_drop,
        *(getattr(agent, name) for name in _PLAIN[1:]),
        *_ends(agent.score_interval),
        *_ends(agent.rank_range),
        *(
            (likelihood.rank, likelihood.mean, *_ends(likelihood.interval), likelihood.flag)
            if likelihood
            else (_WITHHELD if agent.is_withheld else _NO_RATING)
        ),
        *((elo.rank, elo.mean, elo.deviation, elo.spread, elo.flag) if elo else _NO_RATING),
    ]


def _ends(interval: Sequence[object] | None) -> Sequence[object]:
    return interval or (None, None)


def _matches(snapshot: Snapshot) -> Iterator[Sequence[object]]:
    yield "agent", "case", "score"
    for agent, case, score in snapshot.matches:
        yield snapshot.agents[agent].id, snapshot.cases[case].id, score


def _csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    write_rows(text, rows)
    return text.getvalue().encode("utf-8", "replace")
