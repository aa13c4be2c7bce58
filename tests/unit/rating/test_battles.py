"""Battles of two models: the table of an arena, its ties, and what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.leaderboard import app
from merton.errors import InputError
from merton.rating.battles import Battle, read_battles


def written(folder: Path, text: str, name: str = "battles.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_table_of_battles_is_read_as_arenas_write_it(tmp_path: Path) -> None:
    text = (
        ",Model_A,model_b,winner,tie,question_id,judge\n0,x,y,model_a,False,q1,j\n1,x,y,B,,q1,j\n"
        "2,y,x,x,0,q2,j\n3,x,y,,True,q3,j\n4,x,y,tie (bothbad),False,q3,j\n5,x,y,Tie,,,j\n"
    )
    file = written(tmp_path, text)
    assert read_battles(file) == [
        Battle("x", "y", "a", "q1"),
        Battle("x", "y", "b", "q1"),
        Battle("y", "x", "b", "q2"),
        Battle("x", "y", "tie", "q3"),
        Battle("x", "y", "both_bad", "q3"),
        Battle("x", "y", "tie", f"{file}, line 7"),
    ]
    lines = written(tmp_path, '{"model_a": "x", "model_b": "y", "winner": "model_b", "turn": 1}\n', "battles.jsonl")
    assert [one.choice for one in read_battles(lines)] == ["b"]


def test_the_list_of_battles_of_an_arena_is_read(tmp_path: Path) -> None:
    rows = [{"model_a": "x", "model_b": "y", "winner": "model_a", "turn": 1, "judge": math.nan}]
    file = written(tmp_path, json.dumps(rows), "battles.json")
    assert read_battles(file) == [Battle("x", "y", "a", f"{file}, entry 1")]


def test_prompts_that_differ_at_their_ends_are_two_scenes(tmp_path: Path) -> None:
    rows = [{"model_a": "x", "model_b": "y", "winner": "tie", "prompt": "p" * 250 + end} for end in ("1", "2", "2")]
    file = written(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "battles.jsonl")
    assert len({one.scene for one in read_battles(file)}) == 2


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("b.csv", "model_a,Model_A,model_b,winner\nx,z,y,model_a\n", "line 2: two columns differ in large and small"),
        ("b.jsonl", '{"model_a": "x", "Model_A": "z"}', "line 1: two columns differ in large and small"),
        ("b.json", '{"model_a": ["x"]}', "b.json is not a list of JSON objects"),
        ("b.xlsx", "PK", "b.xlsx: the name of a table must end in one of: .csv, .tsv, .jsonl, .parquet, .json"),
    ],
)
def test_other_tables_are_refused(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        read_battles(written(tmp_path, text, name))


def test_one_battle_is_one(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["battles", str(written(tmp_path, "model_a,model_b,winner\nx,y,tie\n"))])
    assert "1 battle about 1 question;" in result.output


def test_the_command_rates_them(tmp_path: Path) -> None:
    """Three wins to one: log-odds of the maximum are log 3, so 400 log10 3 = 190.8 points apart around 1500."""
    rows = "".join(f"strong,weak,{winner}\n" for winner in ("model_a", "model_a", "model_a", "model_b"))
    result = CliRunner().invoke(
        app, ["battles", str(written(tmp_path, f"model_a,model_b,winner\n{rows}")), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    half = 200 * math.log10(3)
    assert f"{1500 + half:.0f}" in result.output
    assert f"{1500 - half:.0f}" in result.output
    lines = (tmp_path / "out" / "ranking.csv").read_text().splitlines()
    assert lines[1].startswith(f"1,strong,{1500 + half:.3f}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "model,task,score\nx,t,1\n",
            "line 2: battles have the columns model_a, model_b, winner; this table has model",
        ),
        ("model_a,model_b,winner\nx,y,z\n", "line 2: the winner is 'z'; it must be model_a, model_b, tie"),
        ("model_a,model_b,winner\nx,y,\n", "line 2: the winner is ''"),
        ("model_a,model_b,winner\nx,x,tie\n", "line 2: model_a and model_b are both 'x'"),
        ("model_a,model_b,winner,tie\nx,y,model_a,perhaps\n", "line 2: tie is 'perhaps'; it must be true or false"),
        ("model_a,model_b,winner\n", "has no battles"),
    ],
)
def test_what_is_no_battle_is_refused_with_its_line(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        read_battles(written(tmp_path, text))
