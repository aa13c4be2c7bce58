"""Boards beside the ratings: mean scores of agents on groups of cases, with n, intervals and visible gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from merton.leaderboard.snapshot.contents import BoardCell, BoardRow, CaseRow, ScoreBoard
from merton.rating.checking import Match
from merton.results.statistics import mean, mean_interval

NOTHING = BoardCell(None, None, 0)

_NOTE = "The total is the mean of the columns, each of the same weight; without one of them there is no total."

Entry = tuple[str, str, str, float]
"""Agent, column, case, score in 0..1."""


def build(matches: Sequence[Match], cases: Iterable[CaseRow], agents: Sequence[str]) -> tuple[ScoreBoard, ...]:
    """Boards by task, distortion and level of Merton's cases, by source of imported ones; empty ones are left out.

    Args:
        matches: (agent, case, score).
        cases: what is known of each case of the matches.
        agents: ids in the order that the rows' indices count.
    """
    known = {case.id: case for case in cases}

    def board(name: str, title: str, column: Callable[[CaseRow], str], foreign: bool = False) -> ScoreBoard:
        entries = [
            (agent, column(known[case]), case, score)
            for agent, case, score in matches
            if (known[case].level is None) == foreign
        ]
        return _board(name, title, entries, agents)

    found = (
        board("task", "Execution by task", lambda case: case.task),
        board("distortion", "Execution by distortion", lambda case: case.distortion),
        board("level", "Execution by distortion level", lambda case: f"level {case.level}"),
        board("source", "Imported scores by source", lambda case: case.source, foreign=True),
    )
    return tuple(item for item in found if item.columns)


def _board(name: str, title: str, entries: Iterable[Entry], agents: Sequence[str]) -> ScoreBoard:
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for agent, column, case, score in entries:
        groups.setdefault((agent, column), []).append((case, score))
    columns = tuple(sorted({column for _, column in groups}))
    there = {agent for agent, _ in groups}
    rows = []
    for index, agent in enumerate(agents):
        if agent in there:
            cells = tuple(_cell(groups.get((agent, column), [])) for column in columns)
            rows.append((index, _total(cells), cells))
    totals = [round(total.score, 6) for _, total, _ in rows if total.score is not None]

    def rank(score: float | None) -> int | None:
        return None if score is None else 1 + sum(other > round(score, 6) for other in totals)

    ranked = [BoardRow(index, rank(total.score), total, cells) for index, total, cells in rows]
    ranked.sort(key=lambda row: (row.rank is None, row.rank, agents[row.agent]))
    return ScoreBoard(name, title, _NOTE, columns, tuple(ranked))


def _cell(scores: Sequence[tuple[str, float]]) -> BoardCell:
    if not scores:
        return NOTHING
    ordered = sorted(scores)
    number = {case: place for place, case in enumerate(dict.fromkeys(case for case, _ in ordered))}
    interval = mean_interval([score for _, score in ordered], [number[case] for case, _ in ordered])
    return BoardCell(mean(score for _, score in ordered), interval, len(ordered))


def _total(cells: Sequence[BoardCell]) -> BoardCell:
    """The mean of the cells; its half-widths are theirs as for independent means. Nothing if one is missing."""
    n = sum(cell.n for cell in cells)
    total = mean(cell.score for cell in cells)
    if total is None or any(cell.score is None for cell in cells):
        return BoardCell(None, None, n)
    below = math.hypot(*(cell.score - cell.interval[0] for cell in cells if cell.interval and cell.score is not None))
    above = math.hypot(*(cell.interval[1] - cell.score for cell in cells if cell.interval and cell.score is not None))
    return BoardCell(total, (max(total - below / len(cells), 0.0), min(total + above / len(cells), 1.0)), n)
