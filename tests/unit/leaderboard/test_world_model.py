"""The board of world models as evaluators: a worked example, agreement, refused sheets."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from merton.cli import boards as published_commands
from merton.errors import InputError
from merton.leaderboard.published.world_model import (
    Annotation,
    Rules,
    evaluate,
    load_rules,
    read_ground_truth,
    read_sheet,
)
from merton.statistics.raters import pooled_kappa

PEOPLE = ("ann", "ben", "cem")


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


def together(team: str, task: str, marks: dict[str, tuple[int, ...]]) -> list[Annotation]:
    """All three score the same videos."""
    return [
        Annotation(team, task, video, person, score)
        for video, scores in marks.items()
        for person, score in zip(PEOPLE, scores, strict=True)
    ]


def worked(team: str = "team") -> list[Annotation]:
    return [
        *together(team, "task1", {"v1": (3, 3, 2), "v2": (2, 2, 2), "v3": (1, 0, 1)}),
        *(Annotation(team, "task2", f"v{3 - k}", PEOPLE[k], 3 - k) for k in range(3)),  # a video each: 3, 2, 1
        *(mark for k in range(3, 9) for mark in together(team, f"task{k}", {"v1": (3, 3, 3)})),
    ]


COUNTS = {"task1": 4, "task2": 3, **{f"task{k}": 1 for k in range(3, 9)}}


def test_the_rubric(rules: Rules) -> None:
    assert len(rules.tasks) == 8
    assert (rules.annotators, rules.videos_per_annotator, rules.maximum) == (3, 10, 3)


def test_worked_example(rules: Rules) -> None:
    # task1: means of the videos 8/3, 2, 2/3; the fourth real video has none: (8/3 + 2 + 2/3 + 0) / 4 = 4/3
    # task2: N3 = N2 = N1 = 1: (3 + 2 + 1) / 3 = 2, the rubric's formula as it stands
    # task3 .. task8: 3 each
    # final: (4/3 + 2 + 6 * 3) / 8 = 8/3
    found = evaluate(worked(), COUNTS, rules)
    (row,) = found.board.rows
    assert [cell.score for cell in row.cells] == pytest.approx([4 / 3, 2.0, *[3.0] * 6])
    assert row.total.score == pytest.approx(8 / 3)
    assert row.total.n == sum(COUNTS.values())
    assert found.board.warnings == ("team, task1: 1 of 4 videos have no score and count 0",)
    low, high = row.total.interval or (9.0, 9.0)
    assert 0 <= low < 8 / 3 < high <= 3
    # task1: 4/9 of the points, on four videos; Wilson, solved by hand:
    # (4/9 + 1.9208/4) / (1 + 3.8415/4) = 0.4717, half 1.96 / 1.9604 * sqrt(0.2469/4 + 3.8415/64) = 0.3488
    assert row.cells[0].interval == pytest.approx((3 * 0.1229, 3 * 0.8205), abs=0.002)


def test_order_and_names_play_no_part(rules: Rules) -> None:
    marks = [*worked("a"), *(mark for mark in worked("b") if (mark.task, mark.video) != ("task1", "v3"))]
    found = evaluate(marks, COUNTS, rules)
    shuffled = list(marks)
    random.Random(2).shuffle(shuffled)
    again = evaluate(shuffled, COUNTS, rules)
    assert again.board == found.board
    assert again.agreement == found.agreement
    swapped = [Annotation({"a": "b", "b": "a"}[m.team], m.task, m.video, m.annotator, m.score) for m in marks]
    assert [row.cells for row in evaluate(swapped, COUNTS, rules).board.rows] == [row.cells for row in found.board.rows]
    assert [row.agent for row in found.board.rows] == ["a", "b"]
    assert [row.agent for row in evaluate(swapped, COUNTS, rules).board.rows] == ["b", "a"]


def test_a_team_that_lacks_a_task_or_an_annotator_is_listed_last(rules: Rules) -> None:
    marks = [
        *together("plain", "task1", {"v1": (0, 0, 0)}),
        *(mark for k in range(2, 9) for mark in together("plain", f"task{k}", {"v1": (0, 0, 1)})),
        *(mark for mark in worked("seven") if mark.task != "task8"),
        *(mark for mark in worked("pair") if mark.annotator != "cem"),
    ]
    board = evaluate(marks, COUNTS, rules).board
    assert [(row.agent, row.rank) for row in board.rows] == [("plain", 1), ("pair", None), ("seven", None)]
    assert board.rows[2].total.missing == "lacks task8 (no annotations)"
    assert board.rows[1].cells[0].missing == "2 of 3 annotators"


def test_kappa_of_a_pair_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the judge")
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = rng.integers(0, 4, 30)
        b = np.clip(a + rng.integers(-1, 2, 30), 0, 3)
        scores = {("x", i): float(v) for i, v in enumerate(a)} | {("y", i): float(v) for i, v in enumerate(b)}
        assert pooled_kappa(scores).kappa.value == pytest.approx(metrics.cohen_kappa_score(a, b, weights="quadratic"))


def test_agreement_of_many() -> None:
    # x, y: differences 0 0 0 1, so observed 1; expected 14 + 9 - 2 * 6 * 5 / 4 = 8; kappa 1 - 1/8
    # x, z share two things, 0 0 and 1 3: observed 4; expected 1 + 9 - 2 * 1 * 3 / 2 = 7; together 1 - 5/15
    scores = {("x", i): float(v) for i, v in enumerate([0, 1, 2, 3])}
    scores |= {("y", i): float(v) for i, v in enumerate([0, 1, 2, 2])}
    found = pooled_kappa(scores).kappa
    assert found.value == pytest.approx(7 / 8)
    scores = {key: value for key, value in scores.items() if key[0] == "x" or key[1] in (0, 1, 2, 3)}
    with_z = pooled_kappa(scores | {("z", 0): 0.0, ("z", 1): 3.0, ("z", 9): 1.0})
    pairs = {(pair.first, pair.second): pair for pair in with_z.pairs}
    assert (pairs["x", "z"].kappa.n, pairs["x", "z"].kappa.value) == (2, pytest.approx(3 / 7))
    assert (with_z.kappa.n, with_z.kappa.left_out) == (4, 1)
    # y and z: 0 0 and 1 3 again
    assert with_z.kappa.value == pytest.approx(1 - (1 + 4 + 4) / (8 + 7 + 7))
    many = {(who, 10 * copy + item): score for (who, item), score in scores.items() for copy in range(25)}
    found = pooled_kappa(many).kappa
    assert (found.value, found.n) == (pytest.approx(7 / 8), 100)
    assert found.interval is not None
    assert found.interval[0] < 7 / 8 < found.interval[1]
    assert found.shown.startswith("0.88 [")


def test_agreement_that_cannot_be_known() -> None:
    assert pooled_kappa({("x", 1): 2.0, ("y", 2): 2.0}).pairs == ()
    same = pooled_kappa({(person, video): 3.0 for person in PEOPLE for video in range(4)})
    assert (same.kappa.value, same.kappa.interval, same.kappa.n) == (None, None, 4)
    full = pooled_kappa({(person, video): float(video) for person in PEOPLE for video in range(4)})
    assert (full.kappa.value, full.kappa.shown) == (pytest.approx(1.0), "1.00 no interval")


HEADER = "team,task,video,annotator,score\n"


def lines(videos: int = 1, people: tuple[str, ...] = PEOPLE) -> str:
    return "".join(f"t,task1,v{video},{person},2\n" for video in range(videos) for person in people)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "t,task1,v1,ann,4\n", "line 2: score is '4'; it must be a number from 0 to 3"),
        (HEADER + "t,task1,v1,ann,1.5\n", "line 2: score is 1.5; choose one of: 0 ("),
        (HEADER + "t,task1,v1,ann,nan\n", "score is nothing"),
        (HEADER + "t,task9,v1,ann,1\n", "line 2: unknown task 'task9'; did you mean 'task8'? choose one of: task1"),
        (HEADER + "t,lift,v1,ann,1\n", "task8 (the tasks of the table of real videos)"),
        (HEADER + lines() + "t,task1,v1,dan,1\n", "line 5: 't', task1: 'dan' is one annotator too many"),
        (HEADER + lines(11, ("ann",)), "line 12: 't', task1: video 'v10' is one too many for 'ann'"),
        (HEADER + lines() + "t,task1,v0,ann,2\n", "line 5: 't', task1: 'ann' scored video 'v0' before"),
        (HEADER + lines(10) + "t,task1,w1,dan,1\n", "too many"),
        (HEADER, "has no annotations"),
    ],
)
def test_bad_sheets_are_refused_with_line_and_choices(tmp_path: Path, rules: Rules, text: str, message: str) -> None:
    file = tmp_path / "sheet.csv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        evaluate(read_sheet(file, rules), dict.fromkeys(rules.tasks, 30), rules)
    assert message in str(error.value)
    assert "sheet.csv" in str(error.value)


def test_the_tasks_are_those_of_the_counts(rules: Rules) -> None:
    """Two tasks of a host in the order of its table: (3 + 0) / 2 and 2, so 1.75; the challenge has eight."""
    marks = [*together("a", "stack", {"v1": (3, 3, 3)}), *together("a", "clear the table", {"v1": (2, 2, 2)})]
    board = evaluate(marks, {"stack": 2, "clear the table": 1}, rules).board
    assert board.columns == ("stack", "clear the table")
    assert board.rows[0].total.score == pytest.approx(1.75)
    assert board.warnings == (
        "The board has 2 tasks, the challenge 8",
        "a, stack: 1 of 2 videos have no score and count 0",
    )
    known = evaluate(marks, {"stack": 2, "clear the table": 1}, rules, {("a", "stack"): 2, ("b", "stack"): 1}).board
    assert [row.cells[0].missing for row in known.rows] == [
        "1 of 2 submitted videos scored",
        "0 of 1 submitted videos scored",
    ]


def test_thirty_different_videos_of_a_task(rules: Rules) -> None:
    """Ten for each annotator, all different: N3 = 10, N2 = 10, N1 = 10 of 30, so (30 + 20 + 10) / 30 = 2."""
    marks = [Annotation("a", "t", f"v{10 * k + n}", PEOPLE[k], 3 - k) for k in range(3) for n in range(10)]
    (row,) = evaluate(marks, {"t": 30}, rules).board.rows
    assert (row.total.score, row.total.n) == (pytest.approx(2.0), 30)


def test_more_videos_than_real_ones_are_refused(rules: Rules) -> None:
    marks = [*worked(), *together("team", "task3", {"v2": (3, 3, 3)})]
    with pytest.raises(InputError, match="one more than the 1 real videos"):
        evaluate(marks, COUNTS, rules)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,videos\ntask1,10\n", "unknown task 'task2'; did you mean 'task1'?"),
        ("task,videos\n", "names no task; write a line of task,videos for each"),
        ("task,videos\ntask1,10\ntask1,10\n", "line 3: the task 'task1' stands twice"),
        ("task,videos\ntask1,0\n", "videos is '0'"),
        ("task,videos\ntask1,2.5\n", "whole number"),
        ("task,videos\ntask0,3\n", "unknown task 'task1'; did you mean 'task0'?"),
    ],
)
def test_bad_counts_are_refused(tmp_path: Path, rules: Rules, text: str, message: str) -> None:
    (tmp_path / "counts.csv").write_text(text)
    with pytest.raises(InputError) as error:
        evaluate(worked(), read_ground_truth(tmp_path / "counts.csv"), rules)
    assert message in str(error.value)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet, counts = tmp_path / "sheet.csv", tmp_path / "counts.csv"
    sheet.write_text(HEADER + "".join(f"{m.team},{m.task},{m.video},{m.annotator},{m.score}\n" for m in worked()))
    with pytest.raises(InputError, match="--ground-truth"):
        published_commands.world_model_command(sheet)
    counts.write_text("task,videos\n" + "".join(f"{task},{videos}\n" for task, videos in COUNTS.items()))
    published_commands.world_model_command(sheet, counts, tmp_path / "out.json")
    shown = capsys.readouterr().out
    assert "2.67 n=13" in shown
    # ann, ben, cem over nine videos: observed 1 + 1 + 2; expected 12.333 + 8.333 + 12.444; 1 - 4 / 33.111 = 0.879
    assert "Agreement of the annotators (kappa, quadratic weights): 0.88 [-0.88, 1.00], 9 videos, 3 pairs" in shown
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["boards"][0]["rows"][0]["total"]["score"] == pytest.approx(8 / 3, abs=1e-6)
    assert len(written["agreement"]["pairs"]) == 3
