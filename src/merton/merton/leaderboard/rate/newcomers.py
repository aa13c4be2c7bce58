"""Newcomers placed on a board whose ratings stay as they are (AGI-Elo, section 2.2: efficient placement)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from merton.errors import InputError
from merton.leaderboard.snapshot.compute import BothMethods
from merton.leaderboard.snapshot.contents import Standing
from merton.leaderboard.snapshot.ranges import newcomer_range
from merton.leaderboard.snapshot.rows import standings
from merton.rating import agi_elo, placing
from merton.rating.checking import MatchTable
from merton.rating.predictions import predicted_score
from merton.results.matrix import read_matrix
from merton.results.matrix_table import AGENT_COLUMNS, is_matrix
from merton.results.tables import file_bytes, name_in, number_in, read_cells, read_rows
from merton.statistics.intervals import Interval

COLUMNS = ("case", "score")
"""Of a file with one newcomer; its name is the file's without the ending."""


@dataclass(frozen=True)
class Placed:
    """A newcomer on a board.

    Attributes:
        id: its name.
        standing: its rating by likelihood among these agents and cases, and the place it gives; a bound where it won or
            lost everything.
        places: the best and the worst place that its scores allow (`ranges.newcomer_range`).
        of: agents on the board, itself among them.
        agi_elo: its rating by AGI-Elo, without an interval.
        matches: cases it has a score on.
        mean_score: on them, 0..1.
        predicted_there, predicted: mean score predicted on them, and on all rated cases; `predicted_interval`
            is that of the rating.
        hardest, predicted_hardest: the hardest case and the score predicted on it.
        by_case: rated case to the predicted score and its own, None where it has none.
    """

    id: str
    standing: Standing
    places: tuple[int, int]
    of: int
    agi_elo: agi_elo.Rating
    matches: int
    mean_score: float
    predicted_there: float
    predicted: float
    predicted_interval: Interval | None
    hardest: str
    predicted_hardest: float
    by_case: dict[str, tuple[float, float | None]]


def read_newcomers(path: Path) -> tuple[dict[str, list[tuple[str, float]]], tuple[str, ...]]:
    """Newcomer to its (case id, score in 0..1): of a table with the columns case and score, or of each matrix row.

    Also sentences on what was left out of a matrix.

    Raises:
        InputError: the file is neither, or a score is not in 0..1; with the line.
    """
    if path.suffix.lower() in (".csv", ".tsv"):
        header = next(read_cells(path.name, file_bytes(path)))[1]
        if {column.lower() for column in header} == set(COLUMNS):
            rows = read_rows(path, COLUMNS)
            own = [(name_in(at, row, "case"), number_in(at, row, "score", 0.0, 1.0)) for at, row in rows]
            return {path.stem: own}, ()
        if not is_matrix(header):
            raise InputError(
                f"{path.name}, line 1: a newcomer is a table with the columns case and score, or the row of a response "
                f"matrix, whose agents are in a column called {' or '.join(AGENT_COLUMNS)}; this one has "
                f"{', '.join(map(repr, header))[:200]}"
            )
    matrix = read_matrix(path)
    found: dict[str, list[tuple[str, float]]] = {agent.id: [] for agent in matrix.agents}
    for agent, case, score in matrix.cells:
        found[agent].append((case, score))
    return found, matrix.remarks


def place(
    id: str, results: list[tuple[str, float]], rated: BothMethods, table: MatchTable, scene_of: Mapping[str, str]
) -> Placed:
    """The place of a newcomer on a board.

    Args:
        id: its name.
        results: (case id, score in 0..1).
        rated: of the board; no rating of it changes.
        table: the matches of the board.
        scene_of: case id to scene.

    Raises:
        InputError: the agent is on the board, there is no likelihood rating, or as `rating.placing.place`.
    """
    fitted = rated.likelihood
    if fitted is None:
        reason = rated.refusal[0] if rated.refusal else "nothing has been rated"
        raise InputError(f"a newcomer is placed by likelihood: {reason}")
    if id in fitted.agents:
        raise InputError(f"agent {id!r} is on the board already: its own scores made the ratings of the cases")
    found = placing.place(results, fitted, scene_of)
    board = standings({**fitted.agents, id: found})
    scores = dict(results)
    predicted = {case: predicted_score(found.mean, rating.mean) for case, rating in fitted.cases.items()}
    hardest = min(fitted.cases, key=lambda case: (-fitted.cases[case].mean, case))
    return Placed(
        id,
        board[id],
        newcomer_range(results, table, board, id),
        len(board),
        agi_elo.place(results, rated.agi_elo, agi_elo.SEED, agi_elo.SHUFFLES),
        len(results),
        float(np.mean(list(scores.values()))),
        float(np.mean([predicted[case] for case in scores])),
        float(np.mean(list(predicted.values()))),
        found.interval and Interval(*(_mean_predicted(end, rated) for end in found.interval)),
        hardest,
        predicted[hardest],
        {case: (value, scores.get(case)) for case, value in predicted.items()},
    )


def _mean_predicted(rating: float, rated: BothMethods) -> float:
    assert rated.likelihood is not None
    return float(np.mean([predicted_score(rating, case.mean) for case in rated.likelihood.cases.values()]))
