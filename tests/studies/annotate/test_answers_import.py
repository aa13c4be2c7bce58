"""Answers and actions that were collected elsewhere: scored as those of a run, row for row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from miniature_dataset import write_miniature
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.perception.dataset.tables import read_table
from merton.results.csv_writer import write_csv
from merton_studies.annotate.answers import MISSING, import_answers
from merton_studies.annotate.tables import ANNOTATIONS, SCORES
from merton_studies.opinions.opinion import OPINIONS, SUBJECTS, read_opinions, read_subjects

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

TASKS = ["Push the red cube to the left", "Pick up the red cube", "Move the cup", "Place the cup here", "Pour it out"]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pictures of each of two scenes, two types at all levels."""
    return write_miniature(tmp_path_factory.mktemp("import") / "data", scenes=2, tasks=TASKS)


def asked(dataset: Path) -> list[Row]:
    """A row for every picture and task of the dataset, as it may be collected."""
    images = [(row["id"], "reference", 0, row["file"]) for row in read_table(dataset / "references.parquet")]
    images += [
        (row["reference_id"], row["distortion"], row["level"], row["file"])
        for row in read_table(dataset / "manifest.parquet")
    ]
    names = ("reference", "distortion", "level", "file")
    return [{**dict(zip(names, image, strict=True)), "task": task} for image in images for task in TASKS]


def said(row: Row) -> str:
    """A made-up answer: its words go with the level."""
    words = f"Grasp {row['reference']} and {row['task'].lower()} slowly with the hand".split()
    return " ".join(words[: len(words) - row["level"]])


def moved(row: Row) -> list[list[float]]:
    """A made-up action of two steps, which turns and closes more at higher levels."""
    step = [0.01 * row["level"], 0.02, -0.01, 0.1, 0.05 * row["level"], 0.0, 1.0 - 0.1 * row["level"]]
    return [step, step]


def collected(dataset: Path) -> list[Row]:
    """Answers of "vlm" and actions of "vla" to everything."""
    rows = asked(dataset)
    found: list[Row] = [{"model": "vlm", **row, "answer": said(row), "deltas": None, "frame": ""} for row in rows]
    found += [{"model": "vla", **row, "answer": None, "deltas": moved(row), "frame": "base_link"} for row in rows]
    return found


def lines(file: Path, rows: list[Row]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def as_csv(file: Path, rows: list[Row]) -> Path:
    names = list(rows[0])
    cells = [[json.dumps(row[name]) if isinstance(row[name], list) else row[name] for name in names] for row in rows]
    return write_csv(file, names, cells)


def contents(folder: Path) -> dict[str, list[Row]]:
    return {name: read_table(folder / name) for name in (ANNOTATIONS, SCORES, SUBJECTS, OPINIONS)}


@pytest.fixture(scope="module")
def imported(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    found = import_answers(dataset, [lines(folder / "all.jsonl", collected(dataset))], folder / "out")
    assert found.models == ("vlm", "vla")
    assert (found.summary.failed, found.summary.unanswered) == (0, 0)
    assert found.remarks == (f"{folder / 'all.jsonl'}: columns that are not used: file",)
    return folder / "out"


@pytest.mark.parametrize("form", ["annotations", "csv", "parquet"])
def test_every_form_gives_the_same_tables(dataset: Path, imported: Path, tmp_path: Path, form: str) -> None:
    """The table of a run, too: its answers, exported and imported, have the same scores and opinions."""
    if form == "annotations":
        tables = [imported / ANNOTATIONS]
    elif form == "csv":
        tables = [as_csv(tmp_path / "all.csv", collected(dataset))]
    else:
        rows = [{**row, "deltas": row["deltas"] and row["deltas"]} for row in collected(dataset)]
        parquet.write_table(arrow.Table.from_pylist(rows[::-1]), tmp_path / "turned.parquet")
        tables = [tmp_path / "turned.parquet"]
    import_answers(dataset, tables, tmp_path / "out")
    first, second = contents(imported), contents(tmp_path / "out")
    if form == "parquet":  # the last model comes first

        def key(row: Row) -> tuple[str, ...]:
            return tuple(
                str(row.get(name))
                for name in ("model", "image", "reference", "distortion", "level", "task", "dimension")
            )

        first, second = ({name: sorted(rows, key=key) for name, rows in each.items()} for each in (first, second))
    assert second == first


def test_scores_follow_from_the_answers(imported: Path) -> None:
    """By hand: an action of level k differs from its reference's by two steps of k cm along x, and .1 k in state."""
    found = read_table(imported / ANNOTATIONS)
    row = next(row for row in found if row["model"] == "vla" and row["level"] == 3)
    assert row["state"] == pytest.approx(1 - 0.3)
    references = [row for row in found if row["level"] == 0]
    assert {row["cognition"] for row in references if row["model"] == "vlm"} == {1.0}
    assert {row["decision"] for row in references if row["model"] == "vla"} == {1.0}
    opinions = read_opinions(imported / OPINIONS)
    assert opinions.about["subjects"] == {"cognition": ["vlm"], "decision": ["vla"]}
    levels = [opinions.cognition[opinions.level == level].mean() for level in (1, 3, 5)]
    assert levels == sorted(levels, reverse=True)
    assert opinions.state[opinions.level == 2] == pytest.approx(5 * 0.8)
    assert read_subjects(imported / SUBJECTS).models.tolist() == ["vla", "vlm"]


def test_outcomes_are_kept_apart(dataset: Path, tmp_path: Path) -> None:
    """An empty answer and NaN are failures, a row that is not there is unanswered, and none has a score."""
    rows = collected(dataset)
    half = len(rows) // 2
    rows[100]["answer"] = " "
    rows[101]["answer"] = "I cannot see the image."
    rows[half + 100]["deltas"] = [[float("nan")] * 7]
    rows[half + 101]["deltas"] = [[0, 0, 0, 0, 0, 0, 2]]
    rows[half + 102] |= {"deltas": None, "outcome": "failed", "reason": "the policy gave up"}
    gone = rows.pop(103)
    result = import_answers(dataset, [lines(tmp_path / "some.jsonl", rows)], tmp_path / "out")
    assert (result.summary.failed, result.summary.unanswered) == (5, 1)
    assert result.summary.reasons == (f"vlm: {MISSING}",)
    found = {
        (row["model"], row["reference"], row["distortion"], row["level"], row["task"]): row
        for row in read_table(tmp_path / "out" / ANNOTATIONS)
    }

    def of(row: Row) -> Row:
        return found[row.get("model", "vlm"), row["reference"], row["distortion"], row["level"], row["task"]]

    assert of(gone)["outcome"] == "unanswered"
    expected = {
        100: "no answer",
        101: "I cannot see",
        half + 99: "not finite",
        half + 100: "gripper",
        half + 101: "the policy gave up",
    }
    for place, words in expected.items():  # one row is gone
        row = of(rows[place])
        assert (row["outcome"], row["cognition"], row["decision"]) == ("failed", None, None)
        assert words in row["reason"]
    image = f"{gone['reference']}.{gone['distortion']}"
    scored = {(row["model"], row["image"], row["level"], row["task"]) for row in read_table(tmp_path / "out" / SCORES)}
    assert ("vlm", image, gone["level"], gone["task"]) not in scored
    opinions = read_opinions(tmp_path / "out" / OPINIONS)
    assert np.isnan(opinions.cognition).sum() >= 1, "a sum without a task is missing, never smaller"


def test_pictures_by_file_tasks_by_number_and_a_model_by_its_table(dataset: Path, tmp_path: Path) -> None:
    rows = [
        {"Picture": Path(row["file"]).name if row["level"] == 0 else f"elsewhere/{row['file']}", "Output": said(row),
         "task": TASKS.index(row["task"]) + 1}
        for row in asked(dataset)
    ]  # fmt: skip
    table = as_csv(tmp_path / "seer.csv", rows)
    columns = ["--column", "image=Picture", "--column", "answer=Output"]
    arguments = ["annotate", str(dataset), "--answers", str(table), *columns, "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "330 rows of one model: 465 answered" in result.stdout or "330 rows of 1 model" in result.stdout
    assert {row["model"] for row in read_table(tmp_path / "out" / ANNOTATIONS)} == {"seer"}
    assert (tmp_path / "out" / "models.html").is_file()
    assert CliRunner().invoke(app, [*arguments, "--column", "colour=x"]).exit_code != 0


def test_half_of_the_answers_is_told_by_the_exit_code(dataset: Path, tmp_path: Path) -> None:
    table = lines(tmp_path / "half.jsonl", [row for row in collected(dataset) if row["level"] in (0, 1)][:20])
    result = CliRunner().invoke(
        app, ["annotate", str(dataset), "--answers", str(table), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 3
    assert MISSING in result.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reference": "r9"}, "line 1: reference 'r9' is not in"),
        ({"distortion": "rain"}, "line 1: unknown distortion of 'test_00_side' 'rain'"),
        ({"level": 4}, "line 1: level is 4; 'test_00_side' under reference has: 0"),
        ({"task": "Sing"}, "line 1: task is 'Sing'; this picture has: 1 Push the red cube"),
        ({"deltas": [0.0] * 7}, "line 1: has both an answer and deltas"),
        ({"answer": "", "deltas": [0.0] * 6}, "line 1: deltas is"),
        ({"answer": "", "deltas": [[0.0] * 7] * 2}, "line 1: an action of 2 steps needs its frame"),
        ({"outcome": "fine"}, "line 1: unknown outcome 'fine'"),
        ({"answer": None, "deltas": [0.0] * 7}, "line 2: vlm has an answer here and deltas in other rows"),
    ],
    ids=["reference", "type", "level", "task", "both", "shape", "frame", "outcome", "mixed"],
)
def test_a_wrong_row_is_named_by_its_line(dataset: Path, tmp_path: Path, change: Row, words: str) -> None:
    rows = collected(dataset)[:2]
    rows[0] |= change
    with pytest.raises(InputError) as error:
        import_answers(dataset, [lines(tmp_path / "wrong.jsonl", rows)], tmp_path / "out")
    assert words in str(error.value)


def test_a_row_that_stands_twice_is_refused(dataset: Path, tmp_path: Path) -> None:
    row = collected(dataset)[0]
    with pytest.raises(InputError, match=r"line 1: vlm has this picture and task already, in .*one.jsonl, line 1"):
        import_answers(dataset, [lines(tmp_path / f"{name}.jsonl", [row]) for name in ("one", "two")], tmp_path / "out")


def test_answers_about_undistorted_pictures_alone_are_of_this_dataset(dataset: Path, tmp_path: Path) -> None:
    rows = [row for row in collected(dataset) if row["level"] == 0]
    remarks = import_answers(dataset, [lines(tmp_path / "few.jsonl", rows)], tmp_path / "out").remarks
    assert remarks[-1] == (
        "no opinions are written: none of the distorted images has a score: only undistorted ones have"
    )
