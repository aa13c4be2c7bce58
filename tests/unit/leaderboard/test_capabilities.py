"""The board of models by capability, from the scores of single questions."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.leaderboard.capabilities import QuestionScore, capability_board, question_scores
from merton.statistics.means import mean_interval


def rows(agent: str, scores: list[float | None], scenes: int = 3) -> list[QuestionScore]:
    """Four questions of "Space" to each of "Number", in so many scenes."""
    return [
        QuestionScore(agent, f"q{at}", "Number" if at % 5 == 0 else "Space", f"scene {at % scenes}", score)
        for at, score in enumerate(scores)
    ]


def folder(path: Path, scores: list[QuestionScore]) -> Path:
    path.mkdir()
    names = ("answerer", "id", "dimension", "scene", "score")
    values = [(one.agent, one.item, one.dimension, one.scene, one.score) for one in scores]
    columns = dict(zip(names, map(list, zip(*values, strict=True)), strict=True))
    pq.write_table(pa.table({**columns, "prediction": [""] * len(scores)}), path / "predictions.parquet")
    return path


def test_each_dimension_counts_the_same_and_scenes_are_the_unit() -> None:
    board = capability_board([*rows("good", [1.0] * 8 + [0.0] * 2), *rows("bad", [1.0] + [0.0] * 9)])
    assert board.columns == ("Number", "Space")
    assert [row.agent for row in board.rows] == ["good", "bad"]
    good, bad = board.rows
    assert [cell.score for cell in good.cells] == [100.0, 75.0]
    assert (good.total.score, bad.total.score) == (87.5, 25.0)
    space = [one for one in rows("good", [1.0] * 8 + [0.0] * 2) if one.dimension == "Space"]
    low, high = mean_interval([one.score for one in space], [one.scene for one in space])
    assert good.cells[1].interval == (100 * low, 100 * high)
    assert (good.cells[1].n, good.cells[1].scenes) == (8, 3)


def test_a_model_that_lacks_a_question_has_no_total() -> None:
    board = capability_board([*rows("whole", [1.0] * 10), *rows("part", [1.0] * 9 + [None])])
    part = board.rows[1]
    assert part.agent == "part"
    assert part.cells[1].missing == "1 of 8 questions missing"
    assert part.total.score is None
    assert part.total.missing == "lacks Space (1 of 8 questions missing)"


def test_evaluations_are_joined_and_the_command_shows_the_board(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", rows("first", [1.0] * 10))
    other = folder(tmp_path / "other", rows("second", [0.0] * 10))
    out = tmp_path / "board.json"
    told = CliRunner().invoke(app, ["leaderboard", "capabilities", str(one), str(other), "--out", str(out)])
    assert told.exit_code == 0, told.output
    assert "100.00 n=10" in told.output
    (board,) = json.loads(out.read_text())["boards"]
    assert [row["agent"] for row in board["rows"]] == ["first", "second"]


def test_what_cannot_be_one_board_is_refused(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", rows("first", [1.0] * 10))
    with pytest.raises(InputError, match="'first' has the question 'q0' twice"):
        question_scores([one, one])
    other = folder(tmp_path / "other", [QuestionScore("second", "q0", "Space", "s", 1.0)])
    with pytest.raises(InputError, match="'q0' is of 'Space' here and of 'Number'"):
        question_scores([one, other])
    with pytest.raises(InputError, match=r"has the score 2\.0 for 'q0'"):
        question_scores([folder(tmp_path / "wrong", [QuestionScore("x", "q0", "Space", "s", 2.0)])])
    with pytest.raises(InputError, match="cannot read"):
        question_scores([tmp_path])
