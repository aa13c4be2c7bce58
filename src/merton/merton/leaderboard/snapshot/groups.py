"""Boards beside the ratings: mean scores of agents on groups of cases, with n, intervals and visible gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from merton.leaderboard.board import Board, BoardCell, BoardRow, group_cell, missing_cell, ranked
from merton.leaderboard.snapshot.contents import CaseRow
from merton.rating.checking import Floats, Integers, MatchTable
from merton.results.metrics import DEFAULT_METRIC
from merton.statistics.means import mean_interval

_NOTE = "The total is the mean of the columns, each of the same weight; without one of them there is no total."


def group_boards(
    table: MatchTable, cases: Iterable[CaseRow], agents: Sequence[str], metric: str = DEFAULT_METRIC
) -> tuple[Board, ...]:
    """Boards by task, distortion and level of Merton's cases, by source of imported ones; empty ones are left out.

    Args:
        table: the matches.
        cases: rows of all cases of the table.
        agents: all ids; `BoardRow.agent` is an index into them.
        metric: of the matches, for the titles.
    """
    row_of = {case.id: case for case in cases}
    scores = metric.replace("_", " ").capitalize()
    met = [row_of[case] for case in table.case_ids]

    def labels(column: Callable[[CaseRow], str], is_foreign: bool = False) -> list[str | None]:
        return [column(case) if (case.level is None) == is_foreign else None for case in met]

    found = (
        _board("task", f"{scores} by task", labels(lambda case: case.task), table, agents),
        _board("distortion", f"{scores} by distortion", labels(lambda case: case.distortion), table, agents),
        _board("level", f"{scores} by distortion level", labels(lambda case: f"level {case.level}"), table, agents),
        _board("source", "Imported scores by source", labels(lambda case: case.source, True), table, agents),
    )
    return tuple(board for board in found if board.columns)


def _board(name: str, title: str, labels: Sequence[str | None], table: MatchTable, agents: Sequence[str]) -> Board:
    """The board whose columns are the labels; `labels` has one for each case of the table, None for no column."""
    columns = sorted({label for label in labels if label is not None})
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
        inside = column >= 0
        rows.append(BoardRow(agent, None, _total(table, cells, cases[inside], scores[inside], column[inside]), cells))
    index = {agent: place for place, agent in enumerate(agents)}
    return Board(
        name, title, _NOTE, tuple(columns), tuple(replace(row, agent=index[str(row.agent)]) for row in ranked(rows))
    )


def _cell(table: MatchTable, cases: Integers, scores: Floats) -> BoardCell:
    return group_cell(scores, table.scenes[cases], table.scene_count(cases))


def _total(
    table: MatchTable, cells: Sequence[BoardCell], cases: Integers, scores: Floats, columns: Integers
) -> BoardCell:
    """The mean of an agent's cells; a scene has scores in several columns, so their errors are not independent."""
    means = [cell.score for cell in cells if cell.score is not None]
    if len(means) < len(cells):
        return missing_cell("", len(scores))
    interval = mean_interval(scores, table.scenes[cases], columns)
    return BoardCell(math.fsum(means) / len(means), interval, len(scores), scenes=table.scene_count(cases))
