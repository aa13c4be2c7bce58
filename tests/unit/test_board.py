"""The leaderboard: what it counts, what it leaves out, and who is last."""

from __future__ import annotations

import json
from typing import Any

import pytest

from merton.leaderboard.board import Board, as_dict, build, printable, render_text, wilson
from merton.rating.agi_elo import matches, rate
from merton.results.records import Outcome, TestCase, TrialRecord

SCORE_OF = {Outcome.SUCCESS: 100.0, Outcome.EMERGENCY_STOP: 0.0, Outcome.INVALID_ACTION: 0.0}


def trial(agent: str, level: int, outcome: Outcome, execution: float | None = None, **scores: Any) -> TrialRecord:
    name = "jpeg" if level else "reference"
    return TrialRecord(
        "e", agent, TestCase("pick", 0, name, level), outcome, execution=SCORE_OF.get(outcome, execution), **scores
    )


def board_of(*records: TrialRecord) -> Board:
    return build(records, rate(matches(records), seed=0))


def example() -> Board:
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
    servo = example().rows[0]
    assert (servo.rank, servo.agent, servo.n, servo.successes) == (1, "servo", 4, 2)
    assert servo.execution_reference == 100.0
    assert servo.execution_distorted == pytest.approx((100 + 80 + 0) / 3)
    assert servo.kept == pytest.approx(0.6)
    assert servo.execution_above_floor == pytest.approx((60 - 30) / (100 - 30))
    assert servo.decision == pytest.approx(0.7)  # the reference trial would flatter it
    assert servo.cognition == pytest.approx(0.8)
    assert (servo.emergency_stops, servo.invalid_actions, servo.infrastructure) == (1, 0, 1)


def test_the_floor_is_what_doing_nothing_earns() -> None:
    board = example()
    assert board.chance_floor == pytest.approx(30.0)
    assert next(row for row in board.rows if row.agent == "hold").execution_above_floor == pytest.approx(0.0)
    assert board_of(trial("servo", 1, Outcome.SUCCESS)).rows[0].execution_above_floor is None


def test_what_is_missing_is_shown_and_ranked_last() -> None:
    board = example()
    last = board.rows[-1]
    assert (last.agent, last.rank, last.rating, last.success, last.execution_distorted) == (
        "broken",
        None,
        None,
        None,
        None,
    )
    line = next(line for line in render_text(board).splitlines() if "broken" in line)
    assert line.count("–") >= 8
    assert "nan" not in line


def test_equal_ratings_share_a_rank() -> None:
    board = board_of(
        trial("a", 1, Outcome.FAILURE, 50.0),
        trial("b", 2, Outcome.FAILURE, 50.0),
        trial("c", 3, Outcome.EMERGENCY_STOP),
    )
    assert [(row.agent, row.rank) for row in board.rows] == [("a", 1), ("b", 1), ("c", 3)]


def test_wilson_interval() -> None:
    """Origin: Newcombe (1998), Table I: 81/263: .2553 to .3662; 15/148: .0624 to .1605; 0/20: 0 to .1611."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(20, 20)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


def test_no_trials_is_a_board_too() -> None:
    board = board_of()
    assert board.rows == ()
    assert "nothing could be rated" in render_text(board)


def test_names_cannot_write_to_the_terminal() -> None:
    board = board_of(trial("\x1b[31mred[/]\u202e[bold]", 1, Outcome.SUCCESS), trial("n" * 10_000, 1, Outcome.SUCCESS))
    text = render_text(board)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in text  # markup is shown, not obeyed
    assert max(map(len, text.splitlines())) <= 140
    assert printable("ok") == "ok"
    assert printable("x" * 81) == "x" * 79 + "…"


def test_the_board_is_json() -> None:
    plain = json.loads(json.dumps(as_dict(example()), allow_nan=False))
    assert plain["rows"][0]["rating"]["mean"] == pytest.approx(example().rows[0].rating.mean)  # type: ignore[union-attr]
