"""Rows of an Arena's boards: sources and types, capabilities in one benchmark, micro-F1, several tables; by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.leaderboard import app
from merton.errors import InputError
from merton.leaderboard.board import Board, BoardRow, plain_values
from merton.leaderboard.published.arena import ItemScore, boards
from merton.leaderboard.published.items import Counts, Entrant, Scores, fine, micro_f1_parts, read_items
from merton.leaderboard.published.tables import Tables
from merton.leaderboard.published.taxonomy import load_taxonomy
from merton.leaderboard.terminal import render_board

HEADER = "agent,benchmark,item,dimension,score,original,type,source\n"


def named(found: Sequence[Board], name: str) -> Board:
    return next(board for board in found if board.name == name)


def row(board: Board, agent: str, source: str = "") -> BoardRow:
    return next(row for row in board.rows if (row.agent, row.source) == (agent, source))


def cells(board: Board, agent: str) -> dict[str, float | None]:
    return dict(zip(board.columns, (cell.score for cell in row(board, agent).cells), strict=True))


def made(text: str, folder: Path) -> tuple[Board, ...]:
    (folder / "items.csv").write_text(text)
    taxonomy = load_taxonomy()
    return boards(read_items(folder / "items.csv", taxonomy), taxonomy)


def test_an_agent_of_two_sources_has_two_rows(tmp_path: Path) -> None:
    """Self-reported 1 of 1, by the host 0 of 1; another agent, by the host, 1 of 1 shares the first place."""
    found = made(
        HEADER + "a,ERQA,1,Object Type,1,,embodied,self-reported\n"
        "a,ERQA,1,Object Type,0,,embodied,evaluated by the host\n"
        "b,ERQA,1,Object Type,1,,general,evaluated by the host\n",
        tmp_path,
    )
    board = named(found, "benchmark-erqa")
    assert [(one.agent, one.type, one.source, one.rank, one.total.score) for one in board.rows] == [
        ("a", "embodied", "self-reported", 1, 100.0),
        ("b", "general", "evaluated by the host", 1, 100.0),
        ("a", "embodied", "evaluated by the host", 3, 0.0),
    ]
    assert plain_values(board)["rows"][0]["source"] == "self-reported"
    shown = render_board(board, 140)
    assert "evaluated by the host" in shown.replace("\n", " ") or "the host" in shown
    assert "embodied" in shown


def test_a_type_counts_for_all_rows_of_an_agent(tmp_path: Path) -> None:
    text = HEADER + "a,ERQA,1,Object Type,1,,,\na,ERQA,2,Object Type,1,,general,\n"
    assert row(named(made(text, tmp_path), "benchmark-erqa"), "a").type == "general"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            "a,ERQA,1,Object Type,1,,general,\na,ERQA,2,Object Type,1,,embodied,\n",
            r"line 3: 'a' is of type 'embodied' here and of type 'general' in .*items.csv, line 2; an agent has one",
        ),
        ("a,ERQA,1,Object Type,1,,robot,\n", "line 2: unknown type 'robot'; choose one of: embodied, general"),
        (
            "a,ERQA,1,Object Type,1,,,x\na,ERQA,1,Object Type,0,,,x\n",
            r"line 3: 'a' has item '1' of ERQA twice, first in .*line 2; leave one$",
        ),
        ("a,ERQA,1,Object Type,1,,,\na,ERQA,1,Object Type,0,,,\n", "leave one, or name their source"),
    ],
)
def test_two_types_and_doubles_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(HEADER + lines, tmp_path)


def test_capabilities_of_one_benchmark_by_hand(tmp_path: Path) -> None:
    """OpenEQA: type 1 of 2 = 50, property 1 of 1 = 100, state from two own dimensions (1 + 0 + 0) of 3 = 33.333,
    spatial reasoning 0 of 1. C of object perception = (50 + 100 + 33.333) / 3 = 61.111, C of embodied reasoning = 0,
    A = (50 + 100 + 33.333 + 0) / 4 = 45.833; on the board of its own dimensions A is the mean of five:
    (50 + 100 + 100 + 0 + 0) / 5 = 50. ERQA's question of type changes the pooled T alone: 2 of 3."""
    found = made(
        HEADER + "a,OpenEQA,1,Object Type,1,,,\na,OpenEQA,2,Object Type,0,,,\na,OpenEQA,3,Object Property,1,,,\n"
        "a,OpenEQA,4,Object State,1,clean,,\na,OpenEQA,5,Object State,0,open,,\na,OpenEQA,6,Object State,0,open,,\n"
        "a,OpenEQA,7,Spatial Reasoning,0,,,\na,ERQA,1,Object Type,1,,,\n",
        tmp_path,
    )
    board = named(found, "capabilities-openeqa")
    assert cells(board, "a") == {
        "Object Perception (core)": pytest.approx(550 / 9),
        "Spatial Perception (core)": None,
        "Embodied Knowledge (core)": None,
        "Embodied Reasoning (core)": 0.0,
        "Object Type": 50.0,
        "Object Property": 100.0,
        "Object State": pytest.approx(100 / 3),
        "Spatial Localization": None,
        "General Knowledge": None,
        "Spatial Reasoning": 0.0,
        "Knowledge Reasoning": None,
    }
    total = row(board, "a").total
    assert (total.score, total.n) == (pytest.approx(550 / 12), 7)
    assert board.warnings == (
        "total: a mean of 4 of 7; no agent was measured on Spatial Localization, General Knowledge, Knowledge "
        "Reasoning",
    )
    assert row(named(found, "benchmark-openeqa"), "a").total.score == pytest.approx(50.0)
    assert cells(named(found, "fine-dimensions"), "a")["Object Type"] == pytest.approx(200 / 3)


def counted(agent: str, item: str, *counts: int, dimension: str = "Task Reasoning") -> ItemScore:
    return ItemScore(agent, "PhyBlock", item, dimension, Counts(*counts).f1, counts=Counts(*counts))


def test_micro_f1_is_made_of_the_sums_of_a_dimension() -> None:
    """tp 3 + 0, fp 0 + 1, fn 1 + 3: micro-F1 = 6 / (6 + 1 + 4) = 6/11; the mean of the questions' F1 is 6/7 / 2 = 3/7.
    With a third question by exact match, right: c = 2 * 6/11 + 1, k = 3. ERQA, 0 of 1: T = (2 * 6/11 + 1 + 0) / 4."""
    first, second = counted("a", "1", 3, 0, 1), counted("a", "2", 0, 1, 3)
    taxonomy = load_taxonomy()

    def benchmark(items: Sequence[ItemScore], name: str = "benchmark-phyblock") -> float | None:
        return cells(named(boards(items, taxonomy), name), "a")["Task Reasoning"]

    assert (first.score + second.score) / 2 == pytest.approx(3 / 7)
    assert benchmark([first, second]) == pytest.approx(600 / 11)
    chosen = ItemScore("a", "PhyBlock", "3", "Task Reasoning", 1.0)
    assert benchmark([first, second, chosen]) == pytest.approx(100 * (12 / 11 + 1) / 3)
    other = ItemScore("a", "ERQA", "1", "Task Reasoning", 0.0)
    pooled = benchmark([first, second, chosen, other], "fine-dimensions")
    assert pooled == pytest.approx(100 * (12 / 11 + 1) / 4)
    assert benchmark([chosen, second, first]) == benchmark([first, second, chosen])
    assert benchmark([counted("a", "1", 0, 0, 0)]) == 100.0  # nothing to find, nothing said
    assert benchmark([first, counted("a", "2", 0, 0, 0)]) == pytest.approx(600 / 7)  # it adds nothing to the sums


def test_intervals_of_micro_f1_cover() -> None:
    """Plans of unequal length, each step found with 60 %, each wrong one said with 30 %: nominal 95 %, three less."""
    rng = np.random.default_rng(2)
    hits, truth = 0, 2 * 0.6 / (2 * 0.6 + 0.3 + 0.4)
    for _ in range(600):
        sizes = rng.integers(2, 12, 40)
        found = [(int(rng.binomial(size, 0.6)), int(rng.binomial(size, 0.3)), int(size)) for size in sizes]
        items = [counted("a", str(i), tp, fp, size - tp) for i, (tp, fp, size) in enumerate(found)]
        cell = Scores(items, TAXONOMY).cell(Entrant("a", ""), fine("Task Reasoning"))
        assert cell.interval is not None
        hits += cell.interval[0] <= 100 * truth <= cell.interval[1]
    assert hits / 600 > 0.92


TAXONOMY = load_taxonomy()


def test_parts_of_micro_f1_have_it_as_their_mean() -> None:
    rng = np.random.default_rng(0)
    counts = [Counts(*map(int, rng.integers(0, 5, 3))) for _ in range(50)]
    sums = np.sum(counts, axis=0)
    assert np.mean(micro_f1_parts(counts)) == pytest.approx(2 * sums[0] / (2 * sums[0] + sums[1] + sums[2]))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a,PhyBlock,1,Task Reasoning,.5,1,1,\n", "line 2: fn is nothing; tp, fp and fn stand together, whole numbers"),
        ("a,PhyBlock,1,Task Reasoning,.5,1,1.5,1\n", "line 2: fp is '1.5'"),
        ("a,PhyBlock,1,Task Reasoning,.5,1,-1,1\n", "line 2: fp is '-1'"),
        ("a,PhyBlock,1,Task Reasoning,.6,1,1,1\n", r"score is 0.6, but 2 tp / \(2 tp \+ fp \+ fn\) is 0.5"),
        (
            "a,PhyBlock,1,Task Reasoning,.5,1,1,1\nb,PhyBlock,1,Task Reasoning,.5,,,\n",
            r"line 3: item '1' of PhyBlock has no tp, fp and fn here and has them in .*line 2; a question is",
        ),
    ],
)
def test_counts_that_do_not_fit_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made("agent,benchmark,item,dimension,score,tp,fp,fn\n" + lines, tmp_path)


def test_the_command_takes_several_tables_and_a_taxonomy(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(
        "extends: embodied_arena\ntasks:\n  - name: Embodied Question Answering\n    benchmarks:\n"
        "      - {name: LabQA, metrics: [exact match], dimensions: [Object Type]}\n"
    )
    (tmp_path / "one.csv").write_text(HEADER + "a,LabQA,1,Object Type,1,,general,self-reported\n")
    (tmp_path / "two.csv").write_text(HEADER + "b,LabQA,1,Object Type,0,,embodied,evaluated by the host\n")
    tables = [str(tmp_path / "one.csv"), str(tmp_path / "two.csv")]
    command = ["arena", *tables, "--taxonomy", str(tmp_path / "lab.yaml"), "-o", str(tmp_path / "boards.json")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert f"Scores of 2 tables together: {', '.join(tables)}" in done.output
    written = {board["name"]: board for board in json.loads((tmp_path / "boards.json").read_text())["boards"]}
    assert [(one["agent"], one["type"]) for one in written["benchmark-labqa"]["rows"]] == [
        ("a", "general"),
        ("b", "embodied"),
    ]
    again = CliRunner().invoke(app, [*command[:2], *command[1:]])
    assert "one.csv, line 2: 'a' has item '1' of LabQA twice, first in" in str(again.exception)
    unknown = CliRunner().invoke(app, ["arena", tables[0]])
    assert "one.csv, line 2: unknown benchmark 'LabQA'" in str(unknown.exception)


def test_the_state_of_tables_changes_with_every_file(tmp_path: Path) -> None:
    items, base, taxonomy = (tmp_path / name for name in ("items.csv", "base.yaml", "lab.yaml"))
    items.write_text(HEADER)
    base.write_text("extends: embodied_arena\n")
    taxonomy.write_text("extends: base.yaml\n")
    tables = Tables((items,), taxonomy)
    states = [tables.state()]
    for file in (items, base, taxonomy):
        file.write_text(file.read_text() + "\n")
        states.append(tables.state())
    taxonomy.unlink()
    states.append(tables.state())
    assert len(set(states)) == len(states)
