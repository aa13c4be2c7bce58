"""The overall leaderboard: its columns, its order, and missing values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from merton.leaderboard.board import (
    Board,
    BoardRow,
    mean_cell,
    missing_cell,
    plain_values,
    ranked,
    share_cell,
    total_cell,
)
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.contents import Snapshot
from merton.leaderboard.snapshot.inputs import Inputs
from merton.leaderboard.snapshot.store import of_trials, to_json
from merton.leaderboard.snapshot.terminal import render_snapshot
from merton.results.records import ForeignScore, Outcome, TestCase, TrialRecord
from merton.results.text import distinct_names

SCORE_OF = {Outcome.SUCCESS: 100.0, Outcome.EMERGENCY_STOP: 0.0, Outcome.INVALID_ACTION: 0.0}


def trial(agent: str, level: int, outcome: Outcome, execution: float | None = None, **scores: Any) -> TrialRecord:
    name = "jpeg" if level else "reference"
    return TrialRecord(
        "e", agent, TestCase("pick", 0, name, level), outcome, execution=SCORE_OF.get(outcome, execution), **scores
    )


def board_of(*records: TrialRecord) -> Snapshot:
    return of_trials(records)


def example() -> Snapshot:
    return board_of(
        trial("servo", 0, Outcome.SUCCESS, decision=1.0, cognition=1.0),
        trial("servo", 1, Outcome.SUCCESS, decision=0.9, cognition=0.8),
        trial("servo", 2, Outcome.FAILURE, 80.0, decision=0.7),
        trial("servo", 3, Outcome.EMERGENCY_STOP, decision=0.5),
        trial("servo", 4, Outcome.INFRASTRUCTURE),
        trial("hold", 0, Outcome.FAILURE, 50.0),
        trial("hold", 1, Outcome.FAILURE, 50.0),
        trial("hold", 2, Outcome.FAILURE, 10.0),
        trial("broken", 1, Outcome.INFRASTRUCTURE),
    )


def test_a_row_by_hand() -> None:
    servo = example().agents[0]
    assert (servo.rank, servo.id, servo.trials, servo.successes) == (1, "servo", 4, 2)
    assert servo.execution_reference == 100.0
    assert servo.execution_distorted == pytest.approx((100 + 80 + 0) / 3)
    assert servo.share_under_distortion == pytest.approx(0.6)
    assert servo.execution_above_floor == pytest.approx((60 - 30) / (100 - 30))
    assert servo.decision == pytest.approx(0.7)  # the reference trial would flatter it
    assert servo.cognition == pytest.approx(0.8)
    assert (servo.emergency_stops, servo.invalid_actions, servo.infrastructure) == (1, 0, 1)


def test_the_floor_is_the_score_of_doing_nothing() -> None:
    board = example()
    assert board.chance_floor == pytest.approx(30.0)
    assert next(row for row in board.agents if row.id == "hold").execution_above_floor == pytest.approx(0.0)
    assert board_of(trial("servo", 1, Outcome.SUCCESS)).agents[0].execution_above_floor is None


def test_missing_values_are_shown_and_ranked_last() -> None:
    board = example()
    last = board.agents[-1]
    assert (last.id, last.rank, last.standing, last.success, last.score) == ("broken", None, None, None, None)
    assert "1 ended in an infrastructure fault" in last.missing
    text = render_snapshot(board, everything=True)
    assert "broken is not rated" in text
    first, rated, tried, by_metric = [line for line in text.splitlines() if "broken  " in line]
    assert "no scored trials" in first, "no cell of the drop is empty without a word"
    assert min(rated.count("–"), tried.count("–")) >= 4
    assert by_metric.split() == ["broken", "–", "–", "–"], "progress is not known, so there is no such column"
    assert "nan" not in rated + tried + by_metric


def test_equal_ratings_share_a_rank() -> None:
    board = board_of(
        trial("a", 1, Outcome.FAILURE, 50.0),
        trial("b", 2, Outcome.FAILURE, 50.0),
        trial("c", 3, Outcome.EMERGENCY_STOP),
        trial("c", 4, Outcome.EMERGENCY_STOP),
    )
    assert [(row.id, row.rank) for row in board.agents] == [("a", 1), ("b", 1), ("c", 3)]


def test_no_trials_is_a_board_too() -> None:
    board = board_of()
    assert board.agents == ()
    assert "nothing could be rated" in render_snapshot(board, everything=True)


def test_one_board_has_two_forms_in_files() -> None:
    """In a snapshot rows index its agents; a published board names them and has a rank and a reason in every cell."""
    cells = (share_cell([1, 1, 1, 0], 100.0), missing_cell("no items"))
    rows = [BoardRow("b", None, total_cell(dict(zip("xy", cells, strict=True)), 100.0), cells)]
    rows += [BoardRow("a", None, share_cell([1, 0], 100.0), (share_cell([1, 0], 100.0),) * 2)]
    board = Board("name", "Title", "A note.", ("x", "y"), ranked(rows), 100.0, ("a warning",))
    assert [(row.agent, row.rank) for row in board.rows] == [("a", 1), ("b", None)]
    assert [board.column_ranks(column) for column in (0, 1)] == [[2, 1], [1, None]]
    published = plain_values(board)
    assert published["warnings"] == ("a warning",)
    assert published["rows"][1]["total"]["missing"] == "lacks y (no items)"
    assert [row["cells"][0]["rank"] for row in published["rows"]] == [2, 1]
    in_snapshot = json.loads(to_json(replace(board_of(), boards=(board,))))["boards"][0]
    assert set(in_snapshot) == {"name", "title", "note", "columns", "rows"}
    assert set(in_snapshot["rows"][0]) == {"agent", "rank", "total", "cells"}
    assert set(in_snapshot["rows"][0]["total"]) == {"score", "interval", "n", "scenes"}


def test_a_mean_of_cells_is_missing_if_one_is() -> None:
    one, two = share_cell([1], 1.0), share_cell([0], 1.0)
    assert mean_cell((one, two), 1.0).score == 0.5
    assert mean_cell((one, missing_cell("why", 3)), 1.0, "no total") == missing_cell("no total", 4)
    assert mean_cell((), 1.0).score is None


def test_names_cannot_write_to_the_terminal() -> None:
    board = board_of(trial("\x1b[31mred[/]\u202e[bold]", 1, Outcome.SUCCESS), trial("n" * 10_000, 1, Outcome.SUCCESS))
    text = render_snapshot(board)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text  # markup is shown, not obeyed
    assert max(map(len, text.splitlines())) <= 140


def test_both_methods_stand_side_by_side() -> None:
    lines = render_snapshot(example(), everything=True).splitlines()
    heading = next(line for line in lines if "AGI-Elo (RD)" in line)
    assert "likelihood [95 %]" in heading
    servo = next(line for line in lines[lines.index(heading) :] if "servo" in line)
    assert "[" in servo
    assert "(RD " in servo
    only_wins = render_snapshot(
        board_of(*(trial(name, 1, Outcome(end)) for name, end in (("a", "success"), ("b", "emergency_stop")))),
        everything=True,
    )
    rows = [line for line in only_wins.splitlines() if not line.startswith("!")]
    for sign in "≥≤":
        assert sum(line.count(sign) for line in rows) == 3, "a bound is no estimate, by either method"
    alone = render_snapshot(board_of(trial("servo", 1, Outcome.SUCCESS)), everything=True)
    assert "There is no likelihood rating" in alone


def test_shortened_names_stay_different() -> None:
    model = "jinaai__jina-embeddings-v5-text-nano-clustering"
    ids = [model, model.replace("text", "omni"), "short", "a\x00b", "a\x01b", "x" * 500, "x" * 501]
    names = distinct_names(ids, 24)
    assert len(set(names.values())) == len(ids)
    assert all(len(name) <= 24 and name.isprintable() for name in names.values())
    assert names["short"] == "short"
    assert distinct_names([model], 60) == {model: model}
    assert distinct_names([model], 24)[model] == "jinaai__jina…-clustering"


def test_the_terminal_shows_ranges_of_ranks_and_whole_names() -> None:
    names = [f"jinaai__jina-embeddings-v5-text-{end}" for end in ("nano", "small")]
    better = (1, -1, 2, -1, 1, -2, 1, -1, 1)  # twelfths, case by case
    scores = [
        ForeignScore("m", name, f"{case}", (case + 2 + place * better[case]) / 12)
        for place, name in enumerate(names)
        for case in range(9)
    ]
    text = render_snapshot(compute(Inputs([], scores), "test", 3), 90)
    lines = text.splitlines()
    start = next(line for line in lines if "agent" in line).index("agent")
    column = "".join(line[start:].split("  ")[0] for line in lines)
    assert all(name in column for name in names)
    assert text.count("1 to 2") == 2
