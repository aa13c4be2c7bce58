"""Boards beside the ratings: mean scores of agents on groups of cases, with n, intervals and visible gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from merton.leaderboard.board import Board, BoardCell, BoardRow, group_cell, missing_cell, ranked
from merton.leaderboard.snapshot.contents import CaseRow
from merton.rating.checking import Floats, Integers, MatchTable
from merton.results.metrics import DEFAULT_METRIC
from merton.statistics.means import mean_interval

TRIAL_BOARDS = ("task", "distortion", "level")
"""Boards of Merton's own cases; their totals are one number of an agent."""

UNDISTORTED = "undistorted"
"""The column of undistorted trials beside those of distortions and levels."""

_MEAN_OF_COLUMNS = (
    "The total is the mean of the columns, each of the same weight; without one of them there is no total."
)
_MEAN_OF_DISTORTED = (
    "The total is the mean of all distorted trials, the same on the boards by task, distortion and level; without one "
    "of the columns there is no total."
)
_MEAN_OF_UNDISTORTED = "The total is the mean of all undistorted trials: none is distorted."


def group_boards(
    table: MatchTable, cases: Iterable[CaseRow], agents: Sequence[str], metric: str = DEFAULT_METRIC
) -> tuple[Board, ...]:
    """Boards by task, distortion and level of Merton's cases, by source of imported ones; empty ones are left out.

    By task they are of distorted trials; the other two have the undistorted ones in a column of their own. Where no
    trial is distorted, all are of the undistorted ones.

    Args:
        table: the matches.
        cases: rows of all cases of the table.
        agents: all ids; `BoardRow.agent` is an index into them.
        metric: of the matches, for the titles.
    """
    row_of = {case.id: case for case in cases}
    scores = metric.replace("_", " ").capitalize()
    met = [row_of[case] for case in table.case_ids]
    is_distorted = np.array([bool(case.level) for case in met], dtype=bool)
    if is_distorted.any():
        counts, note = is_distorted, _MEAN_OF_DISTORTED
    else:
        counts, note = np.array([case.level is not None for case in met], dtype=bool), _MEAN_OF_UNDISTORTED

    def labels(column: Callable[[CaseRow], str]) -> list[str | None]:
        return [None if case.level is None else column(case) if case.level else UNDISTORTED for case in met]

    of_task: list[str | None] = [case.task if counted else None for case, counted in zip(met, counts, strict=True)]
    sources = [case.source if case.level is None else None for case in met]
    every = np.ones(len(met), dtype=bool)
    kinds, levels = labels(lambda case: case.distortion), labels(lambda case: f"level {case.level}")
    found = (
        _board("task", f"{scores} by task", note, of_task, table, agents, counts),
        _board("distortion", f"{scores} by distortion", note, kinds, table, agents, counts),
        _board("level", f"{scores} by distortion level", note, levels, table, agents, counts),
        _board("source", "Imported scores by source", _MEAN_OF_COLUMNS, sources, table, agents, every),
    )
    return tuple(board for board in found if board.columns)


def _board(
    name: str,
    title: str,
    note: str,
    labels: Sequence[str | None],
    table: MatchTable,
    agents: Sequence[str],
    counts: NDArray[np.bool_],
) -> Board:
    """The board whose columns are the labels.

    Args:
        note: what the total is.
        labels: one for each case of the table, None for no column.
        counts: (cases,) whether a case counts in the total.
    """
    columns = sorted({label for label in labels if label is not None}, key=lambda label: (label != UNDISTORTED, label))
    place = {label: index for index, label in enumerate(columns)}
    column_of = np.array([-1 if label is None else place[label] for label in labels], dtype=np.int64)
    ends = np.searchsorted(table.agents, np.arange(len(table.agent_ids) + 1))
    rows = []
    for agent, first, last in zip(table.agent_ids, ends[:-1], ends[1:], strict=True):
        cases, scores = table.cases[first:last], table.scores[first:last]
        column = column_of[cases]
        if (column < 0).all():
            continue
        cells = tuple(_cell(table, cases[column == index], scores[column == index]) for index in range(len(columns)))
        inside = (column >= 0) & counts[cases]
        if name in TRIAL_BOARDS:
            is_whole = all(cell.score is not None for cell in cells)
            total = _cell(table, cases[inside], scores[inside]) if is_whole else missing_cell("", int(inside.sum()))
        else:
            total = _mean_of_columns(table, cells, cases[inside], scores[inside], column[inside])
        rows.append(BoardRow(agent, None, total, cells))
    index = {agent: place for place, agent in enumerate(agents)}
    return Board(
        name, title, note, tuple(columns), tuple(replace(row, agent=index[str(row.agent)]) for row in ranked(rows))
    )


def _cell(table: MatchTable, cases: Integers, scores: Floats) -> BoardCell:
    return group_cell(scores, table.scenes[cases], table.scene_count(cases))


def _mean_of_columns(
    table: MatchTable, cells: Sequence[BoardCell], cases: Integers, scores: Floats, columns: Integers
) -> BoardCell:
    """The mean of an agent's cells; a scene has scores in several columns, so their errors are not independent."""
    means = [cell.score for cell in cells if cell.score is not None]
    if len(means) < len(cells):
        return missing_cell("", len(scores))
    interval = mean_interval(scores, table.scenes[cases], columns)
    return BoardCell(math.fsum(means) / len(means), interval, len(scores), scenes=table.scene_count(cases))
