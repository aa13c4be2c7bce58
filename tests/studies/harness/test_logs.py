"""Predictions from the logs of other programs: matched to questions, counted where they do not fit, never guessed."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from unguarded import Unguarded

from merton.errors import InputError
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.harness.evaluation import evaluate
from merton_studies.harness.log_files import LMMS_EVAL, PLAIN, VLMEVALKIT, read_log
from merton_studies.harness.logs import logged

QUESTIONS: tuple[dict[str, Any], ...] = (
    {"id": "near/1", "text": "Which is nearer?", "answer_kind": "choice", "choices": ("cup", "jar"), "answer": "jar"},
    {"id": "near/2", "text": "Is it open?", "answer_kind": "yes_no", "answer": "yes"},
    {"id": "near/3", "text": "Which is red?", "answer_kind": "choice", "choices": ("lid", "peg"), "answer": "lid"},
    {"id": "many/1", "text": "How many cups?", "answer_kind": "number", "answer": "3"},
    {"id": "many/2", "text": "How many lids?", "answer_kind": "number", "answer": "2"},
)


def pool() -> Pool:
    questions = [Question.model_validate({**one, "source": one["id"].split("/")[0]}) for one in QUESTIONS]
    return Pool.of(questions, [BenchmarkSource(name="near"), BenchmarkSource(name="many")])


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def vlmevalkit(path: Path, *rows: str) -> Path:
    """The columns of vlmeval/inference.py: those of the data set, and the prediction behind them."""
    path.write_text("index\tquestion\tA\tB\tanswer\tprediction\n" + "".join(row + "\n" for row in rows))
    return path


def sample(doc_id: int, target: str, said: Any, **more: Any) -> dict[str, Any]:
    """A line as `save_results_samples` of lmms_eval/loggers/evaluation_tracker.py writes it."""
    return {"doc_id": doc_id, "target": target, "filtered_resps": said, "doc_hash": "0", "input": "-", **more}


def test_the_samples_of_lmms_eval_are_read(tmp_path: Path) -> None:
    file = lines(
        tmp_path / "x_samples_many.jsonl",
        sample(1, "3", ["There are 3."]),
        sample(2, "2", [["<think>two or four</think>4"]]),
    )
    assert read_log(file)[0] == LMMS_EVAL
    (answerer,) = logged([f"qwen=many:{file}"], pool())
    assert answerer.texts == {"many/1": "There are 3.", "many/2": "<think>two or four</think>4"}
    found = evaluate(pool(), [answerer], tmp_path / "out", sandbox=Unguarded())
    rows = {row.question.id: row for row in found.rows}
    assert rows["many/1"].score == 1.0
    assert (rows["many/2"].prediction, rows["many/2"].score) == ("4", 0.0), "the final answer of the raw text"
    assert rows["near/1"].score is None, "no prediction is no wrong answer"
    assert rows["near/1"].unasked == "no prediction in x_samples_many.jsonl"
    assert found.scores.overall["qwen"].n == 2
    assert found.cost["answerers"]["qwen"]["seconds"] is None
    assert (found.calls, found.cost["answerers"]["qwen"]["prompts"]) == (0, 0)


def test_an_id_of_the_document_counts_before_its_place(tmp_path: Path) -> None:
    doc = {"question_id": "2", "question": "how many  LIDS?"}
    file = lines(tmp_path / "x.jsonl", sample(0, "2", [], resps=[["2"]], doc=doc))
    (answerer,) = logged([f"qwen=many:{file}"], pool())
    assert answerer.texts == {"many/2": "2"}


def test_the_file_of_vlmevalkit_is_read(tmp_path: Path) -> None:
    file = vlmevalkit(
        tmp_path / "qwen_near.tsv",
        "1\tWhich is nearer?\tcup\tjar\tB\t(B) jar",
        "2\tIs it open?\t\t\tyes\tFailed to obtain answer via API.",
        "9\tWhich is blue?\tcup\tjar\tA\tA",
    )
    assert read_log(file)[0] == VLMEVALKIT
    (answerer,) = logged([f"qwen={file}"], pool())
    assert answerer.texts == {"near/1": "(B) jar"}, "the text tells near/1 from many/1"
    assert answerer.reasons["near/2"] == "the log says: Failed to obtain answer via API."
    assert answerer.told == (
        f"qwen: 1 row of qwen_near.tsv about no question of the benchmark, such as '9' ({file}, line 4)",
        "qwen: 3 questions without a prediction, such as many/1",
    )


def test_a_row_with_other_choices_is_about_no_question(tmp_path: Path) -> None:
    file = vlmevalkit(
        tmp_path / "turned.tsv",
        "1\tWhich is nearer?\tjar\tcup\tA\tA",
        "3\tWhich is red?\tlid\tpeg\tA\tA",
    )
    (answerer,) = logged([f"qwen=near:{file}"], pool())
    assert answerer.texts == {"near/3": "A"}, "the letter A is another choice there"


def write_sheet(path: Path, rows: Sequence[Sequence[str | int]]) -> None:
    """A workbook as openpyxl writes one: texts inline, numbers as they are."""

    def cell(column: int, row: int, value: str | int) -> str:
        place = f'r="{chr(65 + column)}{row}"'
        if isinstance(value, int):
            return f"<c {place}><v>{value}</v></c>"
        return f'<c {place} t="inlineStr"><is><t>{value}</t></is></c>' if value else ""

    lines_of = (
        f'<row r="{number}">{"".join(cell(column, number, value) for column, value in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(path, "w") as book:
        sheet = f'<worksheet xmlns="{space}"><sheetData>{"".join(lines_of)}</sheetData></worksheet>'
        book.writestr("xl/worksheets/sheet1.xml", sheet)


def test_the_workbook_of_vlmevalkit_is_read(tmp_path: Path) -> None:
    header = ("index", "question", "A", "B", "answer", "prediction")
    write_sheet(
        tmp_path / "qwen.xlsx",
        [header, (1, "Which is nearer?", "cup", "jar", "B", "B"), (2, "Is it open?", "", "", "yes", "Yes.")],
    )
    (answerer,) = logged([f"qwen={tmp_path / 'qwen.xlsx'}"], pool())
    assert answerer.texts == {"near/1": "B", "near/2": "Yes."}
    (tmp_path / "broken.xlsx").write_bytes(b"no zip")
    with pytest.raises(InputError, match=r"^broken.xlsx is no readable .xlsx file"):
        logged([f"qwen={tmp_path / 'broken.xlsx'}"], pool())


def test_a_plain_table_is_read_and_files_of_one_name_are_joined(tmp_path: Path) -> None:
    first = tmp_path / "a.csv"
    first.write_text("id,prediction\nnear/1,jar\nmany/2,\n")
    second = lines(tmp_path / "b.jsonl", {"id": "many/1", "prediction": 3})
    assert read_log(first)[0] == PLAIN
    (answerer,) = logged([f"qwen={first}", f"qwen={second}"], pool())
    assert answerer.texts == {"near/1": "jar", "many/1": "3"}
    assert answerer.reasons["many/2"] == "its prediction in the log is blank"
    assert answerer.reasons["near/2"] == "no prediction in a.csv, b.jsonl"


def test_predictions_that_differ_are_none(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,prediction\nnear/1,jar\nnear/1,cup\nnear/2,yes\nnear/2,yes\n")
    (answerer,) = logged([f"qwen={file}"], pool())
    assert answerer.texts == {"near/2": "yes"}
    assert answerer.reasons["near/1"] == f"the log has 2 predictions that differ: {file}, line 2; {file}, line 3"
    assert answerer.told[0] == (
        f"qwen: 2 questions with several predictions, such as near/1 ({file}, line 2; {file}, line 3); 1 of them "
        "differ and are unanswered"
    )


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        (
            "a.csv",
            "id,said\nnear/1,jar\n",
            "is no file of predictions: it has id, said; it needs prediction and one of",
        ),
        ("a.csv", "id,prediction\n,jar\n", "line 2: id is empty"),
        ("a.csv", "id,prediction\n", "has no rows"),
        (
            "a.csv",
            "id,prediction\nnear/9,x\n",
            "none of its 1 row is about a question of the benchmark; the first is abo",
        ),
        ("a.csv", "id,prediction\n1,3\n", "'1' is a question of several benchmarks: many, near; name the one"),
        ("a.txt", "id,prediction\n", "the name of a table must end in one of: .csv"),
        (
            "a.jsonl",
            '{"doc_id": 1, "target": "9", "filtered_resps": ["3"], "doc": {"question": "How many cups?"}}\n',
            "9",
        ),
    ],
    ids=["no prediction", "no id", "no rows", "other ids", "two benchmarks", "no table", "other right answer"],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, name: str, content: str, fault: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError) as caught:
        logged([f"qwen={tmp_path / name}"], pool())
    assert fault in str(caught.value)


def test_a_file_whose_right_answers_are_others_counts_other_questions(tmp_path: Path) -> None:
    file = lines(tmp_path / "x.jsonl", sample(1, "2", ["2"]), sample(2, "3", ["3"]))
    with pytest.raises(
        InputError, match="the right answer is '2' there and another in the benchmark, as in 2 of 2 rows"
    ):
        logged([f"qwen=many:{file}"], pool())


def test_a_log_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="write NAME=FILE, or NAME=BENCHMARK:FILE"):
        logged(["qwen.csv"], pool())
