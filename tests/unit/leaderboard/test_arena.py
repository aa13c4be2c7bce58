"""Boards by the rules of Embodied Arena: worked examples, published rows, invariants, refused tables."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from merton.cli import boards as published_commands
from merton.cli import leaderboard as commands
from merton.errors import InputError
from merton.leaderboard.board import NOT_MEASURED, Board, BoardRow, missing_cell, share_cell, total_cell
from merton.leaderboard.published import arena
from merton.leaderboard.published.arena import ItemScore, boards, read_items
from merton.leaderboard.published.taxonomy import Benchmark, Task, Taxonomy, load_taxonomy
from merton.leaderboard.terminal import render_board
from merton.results.matrix import import_matrix, read_matrix
from merton.results.store import ResultStore


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return load_taxonomy()


def items(agent: str, benchmark: str, dimension: str, scores: Sequence[float], original: str = "") -> list[ItemScore]:
    """One question a score."""
    name = original or dimension
    return [ItemScore(agent, benchmark, f"{name} {i}", dimension, s, original) for i, s in enumerate(scores)]


def worked(agent: str = "a") -> list[ItemScore]:
    """The worked example: two planning benchmarks that share a dimension, of very unequal size."""
    return [
        *items(agent, "EB-ALFRED", "Basic Planning", [1, 1, 1, 0]),
        *items(agent, "EB-ALFRED", "Visual Reference Planning", [1, 0]),
        *items(agent, "EB-ALFRED", "Spatial Reference Planning", [1]),
        *items(agent, "ET-Plan-Bench", "Spatial Reference Planning", [1, 1, 0, 0, 0, 0, 0, 0]),
        *items(agent, "ET-Plan-Bench", "Temporal Reference Planning", [1, 0.5, 0]),
    ]


def named(found: Sequence[Board], name: str) -> Board:
    return next(board for board in found if board.name == name)


def row(board: Board, agent: str) -> BoardRow:
    return next(row for row in board.rows if row.agent == agent)


def scores(board: Board, agent: str = "a") -> dict[str, float]:
    """The agent's scores by column, missing ones left out."""
    cells = zip(board.columns, row(board, agent).cells, strict=True)
    return {column: cell.score for column, cell in cells if cell.score is not None}


def test_the_taxonomy_is_that_of_the_paper(taxonomy: Taxonomy) -> None:
    """arXiv 2509.15273, abstract: 7 core capabilities, 25 fine dimensions, 22 benchmarks in three domains."""
    assert len(taxonomy.capabilities) == 7
    assert len(taxonomy.dimensions) == 25
    assert len(taxonomy.benchmarks) == 22
    assert [len(task.benchmarks) for task in taxonomy.tasks] == [14, 5, 3]


def test_worked_example_of_a_task_board(taxonomy: Taxonomy) -> None:
    # EB-ALFRED: S = 3/4 = 75, 1/2 = 50, 1/1 = 100; A = (75 + 50 + 100) / 3 = 75
    # ET-Plan-Bench: S = 2/8 = 25, 1.5/3 = 50; A = (25 + 50) / 2 = 37.5
    # B = (75 + 37.5) / 2 = 56.25, from 4 + 2 + 1 + 8 + 3 = 18 questions
    found = boards(worked(), taxonomy)
    board = named(found, "task-embodied-task-planning")
    assert scores(board) == pytest.approx({"EB-ALFRED": 75.0, "ET-Plan-Bench": 37.5})
    assert row(board, "a").total.score == pytest.approx(56.25)
    assert row(board, "a").total.n == 18
    assert scores(named(found, "benchmark-et-plan-bench")) == pytest.approx(
        {"Spatial Reference Planning": 25.0, "Temporal Reference Planning": 50.0}
    )


def test_worked_example_of_a_capability_board(taxonomy: Taxonomy) -> None:
    # Spatial Reference Planning: (1 + 2) / (1 + 8) = 33.333 (micro); the mean of the benchmarks, 62.5, would be macro
    # all: (75 + 50 + 33.333 + 50) / 4 = 52.083, and so is the one core capability they belong to
    found = boards(worked(), taxonomy)
    fine, core = named(found, "fine-dimensions"), named(found, "core-capabilities")
    assert scores(fine) == pytest.approx(
        {
            "Basic Planning": 75.0,
            "Visual Reference Planning": 50.0,
            "Spatial Reference Planning": 100 / 3,
            "Temporal Reference Planning": 50.0,
        }
    )
    assert row(fine, "a").total.score == pytest.approx(52.0833333)
    assert scores(core) == pytest.approx({"Embodied Task Planning": 52.0833333})
    assert core.warnings == (
        "Embodied Task Planning: a mean of 4 of 5; no agent was measured on Knowledge Reference Planning",
    )


def test_original_dimensions_count_for_tasks_and_add_up_for_capabilities(taxonomy: Taxonomy) -> None:
    """EB-ALFRED has Base and Long Horizon questions of the same fine dimension: k adds up, as the rules' note says."""
    found = boards(
        [
            *items("a", "EB-ALFRED", "Basic Planning", [1, 1, 1, 1], "Base"),
            *items("a", "EB-ALFRED", "Basic Planning", [0, 0], "Long Horizon"),
        ],
        taxonomy,
    )
    # task: (100 + 0) / 2 = 50; capability: 4 / 6 = 66.667
    assert row(named(found, "benchmark-eb-alfred"), "a").total.score == pytest.approx(50.0)
    assert scores(named(found, "fine-dimensions")) == pytest.approx({"Basic Planning": 200 / 3})


# VSI-Bench, in the order of its eight question types (object count, absolute distance, object size, room size, relative
# distance, relative direction, route plan, appearance order), with the printed total, as reported from Table 3 of the
# SpatialStack paper. Printed to one decimal, so a mean is off by .05 at most.
def test_order_and_names_play_no_part(taxonomy: Taxonomy) -> None:
    rng = np.random.default_rng(5)
    entries = []
    for agent in ("a", "b", "c"):
        for benchmark in ("ERQA", "MineAnyBuild"):
            for dimension in ("Spatial Reasoning", "Knowledge Reasoning"):
                entries += items(agent, benchmark, dimension, rng.random(7).tolist())
    found = boards(entries, taxonomy)
    shuffled = list(entries)
    random.Random(1).shuffle(shuffled)
    assert boards(shuffled, taxonomy) == found

    other = {"a": "b", "b": "c", "c": "a"}
    renamed = [ItemScore(other[e.agent], e.benchmark, e.item, e.dimension, e.score) for e in entries]
    for before, after in zip(found, boards(renamed, taxonomy), strict=True):
        for entry in before.rows:
            assert row(after, other[entry.agent]).cells == entry.cells
            assert row(after, other[entry.agent]).total == entry.total


def test_a_benchmark_without_items_is_shown_and_changes_nothing(taxonomy: Taxonomy) -> None:
    first, *rest = taxonomy.tasks[::-1]
    new = Benchmark(
        name="New-Bench", metrics=("success rate",), dimensions=("Basic Planning", "Object Type"), source="ours"
    )
    larger = Taxonomy(
        metrics=taxonomy.metrics,
        capabilities=taxonomy.capabilities,
        tasks=(*rest[::-1], Task(name=first.name, benchmarks=(*first.benchmarks, new))),
    )
    entries = [*worked("a"), *worked("b")[:-1]]
    before, after = boards(entries, taxonomy), boards(entries, larger)
    old_board, new_board = (named(found, "task-embodied-task-planning") for found in (before, after))
    assert new_board.columns == (*old_board.columns, "New-Bench")
    for old, entry in zip(old_board.rows, new_board.rows, strict=True):
        assert entry.total == old.total
        assert entry.cells[:-1] == old.cells
        assert entry.cells[-1] == missing_cell(NOT_MEASURED)
    assert "New-Bench" in new_board.warnings[0]
    for name in ("core-capabilities", "fine-dimensions"):
        assert named(before, name) == named(after, name)


def test_an_agent_that_lacks_a_question_has_no_mean_and_is_listed_last(taxonomy: Taxonomy) -> None:
    entries = [
        *worked("modest"),
        *[entry for entry in worked("picky") if entry.score == 1],  # answers only the questions it can
        *items("guest", "HM3D", "Object Navigation", [1]),
    ]
    board = named(boards(entries, taxonomy), "task-embodied-task-planning")
    assert [entry.agent for entry in board.rows] == ["modest", "guest", "picky"]
    assert [entry.rank for entry in board.rows] == [1, None, None]
    picky = row(board, "picky")
    assert picky.total.score is None
    assert picky.total.missing.startswith("lacks EB-ALFRED (lacks Basic Planning (1 of 4 items missing) and 1 more)")
    column = board.columns.index("EB-ALFRED")
    assert board.column_ranks(column) == [1, None, None]
    assert row(board, "guest").cells[column].missing == "no items"


def test_equal_agents_share_a_place(taxonomy: Taxonomy) -> None:
    board = named(boards([*worked("a"), *worked("b")], taxonomy), "core-capabilities")
    assert [entry.rank for entry in board.rows] == [1, 1]


def test_intervals_are_wilsons_and_their_variances_add() -> None:
    # Wilson for 3 of 4: 0.3006 .. 0.9544 (Newcombe's tables); for 1 of 2: 0.0945 .. 0.9055
    first, second = share_cell([1, 1, 1, 0], 100.0), share_cell([1, 0], 100.0)
    assert first.interval == pytest.approx((30.06, 95.44), abs=0.01)
    assert second.interval == pytest.approx((9.45, 90.55), abs=0.01)
    # variances .25 / 4 and .5 / 2 with 3 and 1 degrees of freedom: the mean's is .3125 / 4, with .3125^2 /
    # (.0625^2 / 3 + .25^2) = 1.531 degrees; Student's 5.851; in coins of 6 times .625 and .375: z = 8.275
    mean = total_cell({"first": first, "second": second}, 100.0)
    assert mean.interval == pytest.approx((3.18, 98.83), abs=0.02)
    assert mean.n == 6


@pytest.mark.parametrize("kind", ["coin", "partial"])
def test_intervals_of_means_cover(kind: str) -> None:
    """Three dimensions of unequal size; nominal 95 %, two more or less."""
    rng = np.random.default_rng(11)
    shares, sizes = np.array([0.9, 0.5, 0.2]), (8, 20, 50)
    hits = 0
    for _ in range(1500):
        cells = {}
        for name, (p, n) in enumerate(zip(shares, sizes, strict=True)):
            drawn = rng.random(n) < p if kind == "coin" else rng.beta(2 * p, 2 * (1 - p), n)
            cells[str(name)] = share_cell(drawn.tolist(), 1.0)
        low, high = total_cell(cells, 1.0).interval or (1.0, 0.0)
        hits += low <= shares.mean() <= high
    assert 0.93 < hits / 1500 < 0.97


HEADER = "agent,benchmark,item,dimension,score\n"
GOOD = "a,ERQA,q1,Task Reasoning,1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (HEADER, "has no scores"),
        ("agent,benchmark,item,score\na,ERQA,q1,1\n", "line 2: column 'dimension' is missing"),
        ("agent,benchmark,item,dimension,score,mood\na,ERQA,q1,Task Reasoning,1,x\n", "unknown column 'mood'"),
        ("agent,agent,item,dimension,score\n", "line 1: columns 1 and 2 are both called 'agent'"),
        (HEADER + GOOD + "a,ERQA,q2,Task Reasoning\n", "line 3: has 4 cells"),
        (HEADER + GOOD + "a,ERQA,q2,Task Reasoning,nan\n", "line 3: score is nothing; it must be a number from 0 to 1"),
        (HEADER + "a,ERQA,q2,Task Reasoning,inf\n", "score is 'inf'"),
        (HEADER + "a,ERQA,q2,Task Reasoning,0_1\n", "score is '0_1'"),
        (HEADER + "a,ERQA,q2,Task Reasoning,\n", "score is nothing"),
        (HEADER + "a,ERQA,q2,Task Reasoning,-0.01\n", "score is '-0.01'"),
        (HEADER + "a,Scan2Cap,q2,Spatial Relationship,7.3\n", "CIDEr-D of the question divided by 10"),
        (
            HEADER + "a,ERGA,q1,Task Reasoning,1\n",
            "line 2: unknown benchmark 'ERGA'; did you mean 'ERQA'? there are 21 others",
        ),
        (HEADER + "a,ERQA,q1,Object Count,1\n", "ERQA does not cover the dimension 'Object Count'; choose one of: Obj"),
        (HEADER + GOOD + GOOD, "line 3: 'a' has item 'q1' of ERQA twice, first in"),
        (HEADER + GOOD + "b,ERQA,q1,Object Type,1\n", "a question has one"),
        (HEADER + ",ERQA,q1,Task Reasoning,1\n", "agent is empty"),
        (HEADER + "x" * 10_000 + ",ERQA,q1,Task Reasoning,1\n", "agent has 10000 characters; at most 200"),
        (HEADER + '"a,ERQA,q1,Task Reasoning,1\n', "is no CSV"),
    ],
)
def test_bad_tables_are_refused_with_line_and_choices(
    tmp_path: Path, taxonomy: Taxonomy, text: str, message: str
) -> None:
    file = tmp_path / "items.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        boards(read_items(file, taxonomy), taxonomy)
    assert message in str(error.value)
    assert "items.csv" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"agent": "a", "benchmark": "ERQA", "item": "q", "dimension": "Task Reasoning", "score": NaN}',
            "score is nothing",
        ),
        ('{"agent": "a", "agent": "b"}', "a key stands twice"),
        ("[" * 100_000, "line 1: is not JSON"),
        ("[1]", "must be an object"),
        ('{"agent": 5, "benchmark": "ERQA", "item": "q", "dimension": "Task Reasoning", "score": 1}', "agent is empty"),
        ('{"agent": "a", "benchmark": "ERQA", "item": "q", "dimension": "Task Reasoning", "score": true}', "True"),
    ],
)
def test_bad_json_lines_are_refused(tmp_path: Path, taxonomy: Taxonomy, line: str, message: str) -> None:
    file = tmp_path / "items.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 1") as error:
        read_items(file, taxonomy)
    assert message in str(error.value)


def test_other_files_are_refused(tmp_path: Path, taxonomy: Taxonomy) -> None:
    (tmp_path / "items.txt").write_text(HEADER)
    with pytest.raises(InputError, match=r"must end in one of: \.csv, \.tsv, \.jsonl, \.parquet"):
        read_items(tmp_path / "items.txt", taxonomy)
    with pytest.raises(InputError, match="No such file"):
        read_items(tmp_path / "nothing.csv", taxonomy)
    (tmp_path / "items.csv").write_bytes(b"\xff\xfd")
    with pytest.raises(InputError, match="not UTF-8"):
        read_items(tmp_path / "items.csv", taxonomy)


def test_the_three_formats_give_the_same_items(tmp_path: Path, taxonomy: Taxonomy) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    rows = [
        {"agent": e.agent, "benchmark": e.benchmark, "item": e.item, "dimension": e.dimension, "score": float(e.score)}
        for e in worked()
    ]
    with (tmp_path / "items.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, arena.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "items.parquet")
    for name in ("items.csv", "items.jsonl", "items.parquet"):
        assert read_items(tmp_path / name, taxonomy) == worked()
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "items.parquet").read_bytes()[:-20])
    with pytest.raises(InputError, match="no Parquet table"):
        read_items(tmp_path / "torn.parquet", taxonomy)


def test_the_command_shows_boards_and_writes_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "items.csv"
    body = [f"{e.agent},{e.benchmark},{e.item},{e.dimension},{e.score}\n" for e in [*worked("a"), *worked("b")[3:]]]
    file.write_text(HEADER + "".join(body))
    published_commands.arena_command([file], out=tmp_path / "one.json")
    shown = capsys.readouterr().out
    assert "56.25 n=18" in shown
    assert "Columns without any score: EB-Habitat." in shown
    assert "b has no total: lacks EB-ALFRED" in shown
    file.write_text(HEADER + "".join(reversed(body)))
    published_commands.arena_command([file], out=tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    written = json.loads((tmp_path / "one.json").read_text())["boards"]
    assert written[2]["rows"][0]["total"]["score"] == 56.25
    with pytest.raises(InputError, match="cannot write"):
        published_commands.arena_command([file], out=tmp_path / "no such folder" / "one.json")


def test_the_boards_are_among_the_pages_of_a_record(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text("agent,one,two\na,0.5,0.75\nb,0.25,0.5\n")
    with ResultStore(tmp_path / "record.sqlite") as store:
        import_matrix(store, read_matrix(tmp_path / "matrix.csv"))
    items = [f"{e.agent},{e.benchmark},{e.item},{e.dimension},{e.score}\n" for e in worked("visitor")]
    (tmp_path / "items.csv").write_text(HEADER + "".join(items))
    (tmp_path / "sheet.csv").write_text("team,task,video,annotator,score\nred,task1,v,x,3\n")
    (tmp_path / "counts.csv").write_text("task,videos\n" + "".join(f"task{k},1\n" for k in range(1, 9)))
    files = {"arena": [tmp_path / "items.csv"], "world_model": tmp_path / "sheet.csv"}
    with pytest.raises(InputError, match="--ground-truth"):
        commands.build(str(tmp_path / "record.sqlite"), tmp_path / "site", **files)
    commands.build(str(tmp_path / "record.sqlite"), tmp_path / "site", **files, ground_truth=tmp_path / "counts.csv")
    pages = tmp_path / "site" / "boards"
    assert "visitor" in (pages / "published-core-capabilities.html").read_text()
    assert "red" in (pages / "published-world-model.html").read_text()
    assert not (pages / "published-benchmark-r2r.html").exists()  # it has no items


def test_names_are_safe_on_a_terminal(taxonomy: Taxonomy) -> None:
    text = render_board(named(boards(worked("\x1b[31m\u202eevil"), taxonomy), "core-capabilities"))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_total_that_is_less_certain_than_its_columns_is_explained(taxonomy: Taxonomy) -> None:
    """Two questions each: Student's quantile of their two degrees of freedom is 4.30, a coin's 1.96."""
    few = [
        item
        for name in ("Basic Planning", "Visual Reference Planning")
        for item in items("a", "EB-ALFRED", name, [1, 0])
    ]
    board = named(boards(few, taxonomy), "benchmark-eb-alfred")
    widths = [cell.interval[1] - cell.interval[0] for cell in row(board, "a").cells if cell.interval]
    total = row(board, "a").total.interval
    assert total is not None
    assert total[1] - total[0] > max(widths)
    (warning,) = (one for one in board.warnings if "wider" in one)
    assert warning.startswith("total: of 1 agent its interval is wider than those of the columns")
    assert warning in " ".join(render_board(board, 400).split())
    many = [
        item
        for name in ("Basic Planning", "Visual Reference Planning")
        for item in items("a", "EB-ALFRED", name, [1, 0] * 10)
    ]
    assert not [one for one in named(boards(many, taxonomy), "benchmark-eb-alfred").warnings if "wider" in one]
