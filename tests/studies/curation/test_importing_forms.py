"""Tables of questions as they are found: blanks, missing values, nested columns, pictures in cells, any bytes."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_importing import LABS, lines, png, read

from merton.errors import InputError
from merton.perception.images import encode_image
from merton_studies.curation.importing.answers import answers_in, open_answer
from merton_studies.curation.importing.choices import choices_in
from merton_studies.curation.importing.importers import FORMS, import_pool
from merton_studies.curation.question import Question

Row = dict[str, Any]


def table(folder: Path, rows: list[Row], name: str = "bench.csv", separator: str = ",") -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (folder / name).write_text(text.getvalue(), encoding="utf-8")
    return folder / name


def parquet(folder: Path, rows: list[Row]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), folder / "bench.parquet")
    return folder / "bench.parquet"


def told(found: Question) -> tuple[tuple[str, ...], str]:
    return found.choices, found.answer


def remarks(form: str, path: Path, out: Path) -> str:
    return " ".join(import_pool(form, path, out, LABS).remarks)


BLANKS: list[tuple[Row, Row]] = [
    ({"A": "x", "B": "", "C": "y", "D": "z"}, {"A": "p", "B": "q", "C": "", "D": ""}),
    ({"choices": ["x", "", "y", "z"]}, {"choices": ["p", "q", None, None]}),
    ({"choices": {"A": "x", "B": None, "C": "y", "D": "z"}}, {"choices": {"A": "p", "B": "q", "C": None, "D": None}}),
    (
        {"choice_a": "x", "choice_b": " ", "choice_c": "y", "choice_d": "z"},
        {"choice_a": "p", "choice_b": "q", "choice_c": "", "choice_d": ""},
    ),
]


@pytest.mark.parametrize(("first", "second"), BLANKS)
@pytest.mark.parametrize(("keys", "wrong"), [(("C", "B"), "B"), ((2, 1), 1)])
def test_blank_choices_keep_the_letters_and_places_of_the_others(
    first: Row, second: Row, keys: tuple[Any, Any], wrong: Any, tmp_path: Path
) -> None:
    rows = [{"question": "What?", **first, "answer": keys[0]}, {"question": "And?", **second, "answer": keys[1]}]
    found = [told(one) for one in read("parquet", parquet(tmp_path, rows), tmp_path)]
    assert found == [(("x", "y", "z"), "y"), (("p", "q"), "q")]
    rows[0]["answer"], rows[1]["answer"] = wrong, {"B": "A", 1: 0}[wrong]  # the blank one; 0: not counted from 1
    with pytest.raises(InputError, match=rf"row 1: the answer '{wrong}' is none of the choices 'x', 'y', 'z'"):
        import_pool("parquet", parquet(tmp_path, rows), tmp_path / "other", LABS)


def test_blank_columns_of_csv_keep_their_letters(tmp_path: Path) -> None:
    rows = [{"question": "What?", "A": "x", "B": "", "C": "y", "D": "z", "answer": "C"}]
    (found,) = read("csv", table(tmp_path, rows), tmp_path)
    assert told(found) == (("x", "y", "z"), "y")


def test_nan_is_a_missing_value_in_every_table(tmp_path: Path) -> None:
    """As a float in a column of numbers, in a list, as text that polars or numpy wrote; never a choice or an answer."""
    rows = [
        {"question": "How many?", "A": 1.0, "B": 2.0, "C": math.nan, "answer": "B", "category": "nan"},
        {"question": "And now?", "A": 3.0, "B": 4.0, "C": 5.0, "answer": "C", "category": "counting"},
    ]
    first, second = read("parquet", parquet(tmp_path, rows), tmp_path)
    assert (told(first), told(second)) == ((("1", "2"), "2"), (("3", "4", "5"), "5"))
    assert (first.dimension, second.dimension) == ("", "counting")
    text = [{**row, "C": "NaN" if math.isnan(row["C"]) else "5"} for row in rows]
    (tmp_path / "csv").mkdir()
    assert [told(one) for one in read("csv", table(tmp_path / "csv", text), tmp_path / "csv")] == [
        (("1.0", "2.0"), "2.0"),
        (("3.0", "4.0", "5"), "5"),
    ]
    open_ones = [{"question": "How far?", "answer": 1.5}, {"question": "How high?", "answer": math.nan}]
    (tmp_path / "open").mkdir()
    far, high = read("parquet", parquet(tmp_path / "open", open_ones), tmp_path / "open")
    assert (far.answer, high.answer) == ("1.5", "")
    listed = [{"question": "Which?", "choices": [1.0, math.nan, 3.0], "answer": "C"}]
    (tmp_path / "list").mkdir()
    assert told(read("parquet", parquet(tmp_path / "list", listed), tmp_path / "list")[0]) == (("1", "3"), "3")


HUB = [
    # ARC, CommonsenseQA
    ({"choices": {"text": ["left", "right"], "label": ["A", "B"]}, "answerKey": "B"}, (("left", "right"), "right")),
    ({"choices": {"text": ["left", "right"], "label": ["1", "2"]}, "answerKey": "1"}, (("left", "right"), "left")),
    ({"choices": [{"label": "A", "text": "left"}, {"label": "B", "text": "right"}], "answer": "B"},
     (("left", "right"), "right")),
    # OK-VQA and TextVQA, SQuAD, TriviaQA
    ({"answers": [{"answer": "a mug", "answer_id": 1}, {"answer": "a cup", "answer_id": 2},
                  {"answer": "a cup", "answer_id": 3}]}, ((), "a cup")),
    ({"answers": {"text": ["a cup"], "answer_start": [3]}}, ((), "a cup")),
    ({"answer": {"value": "a cup", "aliases": ["cup"]}}, ((), "a cup")),
    ({"choice_a": "left", "choice_b": "right", "answer": "B"}, (("left", "right"), "right")),
    ({"option_a": "left", "option_b": "right", "answer": "b"}, (("left", "right"), "right")),
    ({"Option A": "left", "Option B": "right", "answer": "left"}, (("left", "right"), "left")),
    ({"a": "left", "b": "right", "answer": "B"}, (("left", "right"), "right")),
    ({"option1": "left", "option2": "right", "answer": 1}, (("left", "right"), "left")),
    ({"ending0": "left", "ending1": "right", "label": 1}, (("left", "right"), "right")),
    # SIQA, MedMCQA, PIQA, HellaSwag
    ({"answerA": "left", "answerB": "right", "answerC": "up", "label": "3"}, (("left", "right", "up"), "up")),
    ({"opa": "left", "opb": "right", "opc": "up", "cop": 0}, (("left", "right", "up"), "left")),
    ({"sol1": "left", "sol2": "right", "label": 0}, (("left", "right"), "left")),
    ({"endings": ["left", "right"], "label": "1"}, (("left", "right"), "right")),
    ({"choices": {"Yes": "oui", "No": "non"}, "answer": 0}, (("oui", "non"), "oui")),
    ({"choices": {"B": "right", "A": "left"}, "answer": 0}, (("left", "right"), "left")),
    ({"choices": {str(at): f"c{at}" for at in (10, *range(1, 10))}, "answer": "10"},
     (tuple(f"c{at}" for at in range(1, 11)), "c10")),
    ({"answer": {"value": "a cup", "aliases": "cup"}}, ((), "a cup")),
]  # fmt: skip


@pytest.mark.parametrize(("row", "right"), HUB)
def test_nested_and_numbered_forms_of_the_hub_are_read(row: Row, right: Any, tmp_path: Path) -> None:
    (found,) = read("parquet", parquet(tmp_path, [{"question": "Where?", **row}]), tmp_path)
    assert told(found) == right
    assert found.meta == {}
    flat = {name: json.dumps(cell) if isinstance(cell, list | dict) else cell for name, cell in row.items()}
    (tmp_path / "csv").mkdir()
    (same,) = read("csv", table(tmp_path / "csv", [{"question": "Where?", **flat}]), tmp_path / "csv")
    assert told(same) == right


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"answer": {"region": {"x": 1}}}, "row 1, column 'answer': the answer is nested: .*--column answer=NAME"),
        ({"answer": "A", "choices": [["left"], ["right"]]}, "row 1, column 'choices': the choices are nested"),
        ({"answer": ["A", "B"], "choices": ["left", "right"]}, "row 1, column 'answer': names 2 right choices"),
        ({"question": [{"from": "human", "value": "?"}], "answer": "x"}, "row 1: the column 'question' is nested"),
        ({"choices": {"text": ["l", "r"], "label": ["A", "A"]}, "answer": "A"}, "as many different ones"),
        ({"choices": {"text": "foo", "label": "A"}, "answer": "A"}, "row 1, column 'choices': the choices are nested"),
        ({"choices": "{1: 'x', '1': 'y'}", "answer": "A"}, "row 1, column 'choices': the choices are nested"),
        ({"answer": "{'answer': nan}"}, "row 1, column 'answer': the answer is nested"),
        ({"answer": {"value": "cup", "aliases": {"x": 1}}}, "row 1, column 'answer': the answer is nested"),
    ],
)
def test_other_nested_values_are_refused_with_their_column(row: Row, fault: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=fault):
        read("parquet", parquet(tmp_path, [{"question": "Where?", **row}]), tmp_path)


def test_columns_that_are_no_choices_are_named(tmp_path: Path) -> None:
    """They were kept as meta without a word, and the question became an open one."""
    for number, row in enumerate(({"distractor1": "x", "distractor2": "y"}, {"a": "x", "b": "y", "d": "z"})):
        file = parquet(tmp_path, [{"question": "Where?", **row, "correct_answer": "z"}])
        said = remarks("parquet", file, tmp_path / str(number))
        assert f"Kept as meta, not shown to models: {', '.join(row)}." in said


def test_lists_as_numpy_writes_them_are_read(tmp_path: Path) -> None:
    """str(numpy.array(["left", "it's", "up"])), as pandas writes a column of arrays to CSV; Python joins such texts."""
    cells = [str(np.array(["left", "it's", "up"])), "['left'\n \"it's\" 'up']"]
    rows: list[Row] = [{"question": f"{at}?", "choices": cell, "answer": "B"} for at, cell in enumerate(cells)]
    found = read("csv", table(tmp_path, rows), tmp_path)
    assert [told(one) for one in found] == [(("left", "it's", "up"), "it's")] * 2
    rows = [{"question": "Which?", "answer": "['left' 'right']"}]
    (either,) = import_pool("csv", table(tmp_path, rows), tmp_path / "open", LABS).pool.questions
    assert (either.answer, either.also) == ("left", ("right",))
    with pytest.raises(InputError, match="x: the choices are no list but"):
        choices_in("['left' 'right', 'up']", "x")


def test_a_blank_choice_with_its_letter_is_none(tmp_path: Path) -> None:
    for second in ("B. ", "B.", "(B)"):
        row = {"question": "What?", "choices": ["A. x", second, "C. y"], "answer": "C"}
        assert told(read("parquet", parquet(tmp_path, [row]), tmp_path / second)[0]) == (("x", "y"), "y")
    assert choices_in(["A.", "B."], "x").texts == ("A.", "B."), "letters in a picture"


@pytest.mark.parametrize(
    ("choices", "answers", "sentence"),
    [
        (["x", "", "z"], (1,), "by places from 1. No answer is beyond the last choice if they count from 0"),
        (["x", "", "z"], (1, 3), "by places from 1."),
        (["x", "y", ""], (2,), "by places from 1."),
        ({"1": "x", "2": "y"}, ("1",), "by labels. The answers are read as the numbers of the choices, and could"),
        ({"1": "x", "2": "y"}, ("1", "2"), "by labels."),
        ({"0": "x", "1": "y"}, ("1", "1"), "by labels."),
    ],
)
def test_answers_that_could_count_otherwise_are_told(
    choices: Any, answers: tuple[Any, ...], sentence: str, tmp_path: Path
) -> None:
    rows = [{"question": f"{at}?", "choices": choices, "answer": answer} for at, answer in enumerate(answers)]
    said = remarks("parquet", parquet(tmp_path, rows), tmp_path / "pool")
    assert said.endswith(sentence) if sentence.endswith(".") else sentence in said


def test_coordinates_are_no_choices(tmp_path: Path) -> None:
    rows = [{"question": "Where?", "answer": "here", "x": "1", "y": "2"}]
    (found,) = read("parquet", parquet(tmp_path, rows), tmp_path)
    assert (found.choices, found.meta) == ((), {"x": "1", "y": "2"})


def test_categories_of_pandas_are_texts(tmp_path: Path) -> None:
    rows = pa.table({"question": ["Where?"], "answer": pa.array(["here"]).dictionary_encode()})
    pq.write_table(rows, tmp_path / "bench.parquet")
    assert read("parquet", tmp_path / "bench.parquet", tmp_path)[0].answer == "here"


def test_truth_values_are_yes_and_no(tmp_path: Path) -> None:
    rows: list[Row] = [{"question": "Open?", "answer": True}, {"question": "Shut?", "answer": False}]
    assert [one.answer for one in read("parquet", parquet(tmp_path, rows), tmp_path)] == ["yes", "no"]
    assert [open_answer(text) for text in ("True", "false", "1,200", "-12,345.5")] == [
        ("yes_no", "yes"),
        ("yes_no", "no"),
        ("number", "1200"),
        ("number", "-12345.5"),
    ]
    assert open_answer("1,2")[0] == "free_text"
    for row in rows:
        row["choices"] = ["No", "Yes"]
    (tmp_path / "of choices").mkdir()
    found = read("parquet", parquet(tmp_path / "of choices", rows), tmp_path / "of choices")
    assert [one.answer for one in found] == ["Yes", "No"]


def test_places_are_counted_from_0_or_from_1_and_it_is_said(tmp_path: Path) -> None:
    rows = [{"question": f"{at}?", "choices": ["x", "y", "z"], "answer": at} for at in (1, 2, 3)]
    assert [one.answer for one in read("parquet", parquet(tmp_path, rows), tmp_path)] == ["x", "y", "z"]
    assert "by places from 1." in remarks("parquet", tmp_path / "bench.parquet", tmp_path / "a")
    either = remarks("parquet", parquet(tmp_path, rows[:2]), tmp_path / "b")
    assert "by places from 0. No answer is 0, so they could as well count from 1" in either
    surely = remarks("parquet", parquet(tmp_path, [{**rows[0], "answer": 0}, rows[1]]), tmp_path / "c")
    assert "by places from 0." in surely
    assert "count from 1" not in surely


def test_pictures_in_base64_are_read_from_a_tsv_of_vlmevalkit(tmp_path: Path) -> None:
    """index, image, question, A, B, answer: a picture in base64, several as a list, or the index of another row."""
    noise = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    large = base64.b64encode(encode_image(noise)).decode()
    assert len(large) > 131_072, "the limit of Python's csv"
    small = base64.b64encode(png(7)).decode()
    row = {"question": "Which?", "A": "cup", "B": "jar", "answer": "B"}
    cells = (large, "0", str([small, large]), f"data:image/png;base64,{small}")
    file = table(tmp_path, [{"index": at, "image": cell, **row} for at, cell in enumerate(cells)], "b.tsv", "\t")
    pool = import_pool("csv", file, tmp_path / "pool", LABS).pool
    pictures = {one.id: pool.images(one) for one in pool.questions}
    assert [[image.shape[0] for image in pictures[f"labs/{at}"]] for at in range(4)] == [[256], [256], [4, 256], [4]]
    assert (pictures["labs/1"][0] == noise).all()


def test_a_row_shares_the_pictures_of_another_column_by_column(tmp_path: Path) -> None:
    """Row 1 names row 0 in both columns, and row 2 names row 1, which has no picture of its own."""
    first, second = (base64.b64encode(png(value)).decode() for value in (7, 8))
    row = {"question": "Which?", "A": "cup", "B": "jar", "answer": "B"}
    cells = ((first, second), ("0", "0"), ("1", "1"), ("", "2"))
    rows = [{"index": at, "image_1": one, "image_2": two, **row} for at, (one, two) in enumerate(cells)]
    pool = import_pool("csv", table(tmp_path, rows), tmp_path / "pool", LABS).pool
    shown = [[int(image[0, 0, 0]) for image in pool.images(one)] for one in pool.questions]
    assert shown == [[7, 8], [7, 8], [7, 8], [8]]


def test_kinds_of_pictures_in_base64(tmp_path: Path) -> None:
    """JPEG 2000 is read, as from a file; a GIF is refused with the kinds that are read, and is no missing file."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    gif = base64.b64encode(b"GIF89a\1\0\1\0\x80\0\0" + bytes(60)).decode()
    row = {"question": "Which?", "answer": "it", "image": base64.b64encode(encode_image(noise, ".jp2")).decode()}
    (found,) = read("csv", table(tmp_path, [row]), tmp_path)
    assert found.media[0].path.endswith(".jp2")
    with pytest.raises(InputError, match="line 2: the picture is not an intact image of a kind that is read: PNG, JPE"):
        import_pool("csv", table(tmp_path, [{**row, "image": gif}]), tmp_path / "other", LABS)


def test_a_fault_in_a_long_cell_never_prints_it(tmp_path: Path) -> None:
    row = {"question": "Which?", "A": "cup", "B": "jar", "answer": "B"}
    long = "x" * 1_200_000
    for name, cell in (("image", long), ("answer", long), ("index", long), ("image", long + "!"), ("A", long)):
        rows = [{"index": "", "image": "", **row, name: cell}] * (2 if name == "index" else 1)
        rows[0] = {**rows[0], **({"answer": "C"} if name == "A" else {})}
        with pytest.raises(InputError) as caught:
            import_pool("csv", table(tmp_path, rows), tmp_path / "pool", LABS)
        assert len(str(caught.value)) < 500, name


def test_other_separators_marks_and_an_index_of_pandas(tmp_path: Path) -> None:
    rows = [{"": 0, "question": "A; B?", "A": "1,5", "B": "2", "answer": "B"}]
    for separator, encoding in ((";", "utf-8-sig"), ("\t", "utf-16"), (",", "utf-8")):
        file = table(tmp_path, rows, separator=separator)
        file.write_bytes(file.read_text().encode(encoding))
        (found,) = import_pool("csv", file, tmp_path / encoding, LABS).pool.questions
        assert (found.text, *told(found)) == ("A; B?", ("1,5", "2"), "2")
    own = lines(tmp_path / "own.jsonl", [{"id": "a", "text": "x\u2028y", "answer_kind": "free_text"}])
    own.write_bytes(b"\xef\xbb\xbf" + own.read_text().replace("\\u2028", "\u2028").encode())
    assert import_pool("jsonl", own, tmp_path / "own", LABS).pool.questions[0].text == "x\u2028y"


def test_a_missing_answer_of_a_published_file_is_no_word(tmp_path: Path) -> None:
    """null and NaN were the right answers "None" and "nan"."""
    rows: list[Row] = [
        {"question_id": 0, "question": "What?", "answer": None, "category": None, "extra_answers": [None, "a cup"]},
        {"question_id": 1, "question": "And?", "answer": math.nan, "episode_history": None},
    ]
    (tmp_path / "eqa.json").write_text(json.dumps(rows))
    for number, file in enumerate((tmp_path / "eqa.json", lines(tmp_path / "eqa.jsonl", rows))):
        first, second = import_pool("openeqa", file, tmp_path / str(number)).pool.questions
        assert (first.answer, first.also, first.dimension, first.scene) == ("a cup", (), "", "")
        assert (first.id, second.id, second.answer) == ("OpenEQA/0", "OpenEQA/1", "")
    asked = lines(
        tmp_path / "sqa.jsonl", [{"question_id": 0, "question": "What?", "answer": [None], "situation": None}]
    )
    (only,) = import_pool("sqa3d", asked, tmp_path / "sqa").pool.questions
    assert (only.answer, only.situation) == ("", "")


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["A", "B", "x", "y", "nan", "[1, 2]", "{'a': 1}", '["x", "y"]', "data:image/png;base64,AA==", "\0"]
    ),
)
NAMES = st.sampled_from(
    ["question", "answer", "answers", "choices", "options", "A", "B", "C", "choice_a", "choice_b", "image", "id",
     "scene", "category", "extra_answers", "frames", "unit", "", "x"]
)  # fmt: skip
NESTED = st.recursive(CELLS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(NAMES, NESTED, max_size=6), min_size=1, max_size=3), st.binary(max_size=60))
def test_any_table_is_read_or_refused_in_a_sentence(tmp_path: Path, rows: list[Row], content: bytes) -> None:
    for number, row in enumerate(rows):
        row.setdefault("question", f"What {number}?")
        row.setdefault("answer", "A")
    names = list(dict.fromkeys(name for row in rows for name in row))
    whole = [{name: row.get(name) for name in names} for row in rows]
    files = {"csv": table(tmp_path, whole), "parquet": tmp_path / "bench.parquet"}
    (tmp_path / "raw.csv").write_bytes(b"question,answer,A,B\n" + content)
    (tmp_path / "any.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "raw.jsonl").write_bytes(b'{"id": "1", "text": "x", "answer_kind": "free_text"}\n{' + content)
    try:
        pq.write_table(pa.Table.from_pylist(whole), files["parquet"])
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        del files["parquet"]
    tried = [*files.items(), ("csv", tmp_path / "raw.csv")]
    tried += [(form, tmp_path / name) for form in ("jsonl", "openeqa", "sqa3d") for name in ("any.jsonl", "raw.jsonl")]
    for form, path in tried:
        assert form in FORMS
        said = ""
        try:
            import_pool(form, path, tmp_path / "pool", None if form in ("openeqa", "sqa3d") else LABS)
        except InputError as refused:
            said = str(refused)
        assert len(said) < 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["filename", "splits", "_type", "names", "x"]), inner, max_size=3)
    ),
)


def saved(folder: Path, **files: Any) -> Path:
    """A folder of `Dataset.save_to_disk` with a question, and these values in place of its files of JSON."""
    folder.mkdir(exist_ok=True)
    for name in ("state", "dataset_info", "dataset_dict"):
        (folder / f"{name}.json").unlink(missing_ok=True)
    rows = pa.table({"question": ["What?"], "answer": [1]})
    with pa.OSFile(str(folder / "data.arrow"), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows)
    for name, value in {"state": {"_data_files": [{"filename": "data.arrow"}]}, **files}.items():
        (folder / f"{name}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    return folder


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        ({"state": '{"a":' * 100_000 + "1" + "}" * 100_000}, "state.json is nested too deep to be read"),
        ({"state": '{"a": '}, "state.json is not JSON"),
        ({"state": []}, "state.json is not a JSON object"),
        ({"state": {"_data_files": None}}, "state.json names no files"),
        ({"state": {"_data_files": [{"filename": 3}, 4]}}, "state.json names no files"),
        ({"dataset_dict": {"splits": [1, 2]}}, "dataset_dict.json does not name its splits in a list of texts"),
        ({"dataset_dict": {"splits": []}}, "dataset_dict.json does not name its splits in a list of texts"),
        ({"dataset_dict": {"splits": "train"}}, "dataset_dict.json does not name its splits in a list of texts"),
    ],
)
def test_a_saved_data_set_with_a_broken_description_is_refused(files: Row, fault: str, tmp_path: Path) -> None:
    assert [one.answer for one in read("datasets", saved(tmp_path / "whole"), tmp_path)] == ["1"]
    with pytest.raises(InputError, match=fault):
        read("datasets", saved(tmp_path / "broken", **files), tmp_path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["state", "dataset_info", "dataset_dict"]),
    JSON | st.dictionaries(st.sampled_from(["_data_files", "splits", "features", "_indices_data_files"]), JSON),
)
def test_any_saved_data_set_is_read_or_refused_in_a_sentence(tmp_path: Path, name: str, value: Any) -> None:
    said = ""
    try:
        import_pool("datasets", saved(tmp_path / "data", **{name: value}), tmp_path / "pool", LABS)
    except InputError as refused:
        said = str(refused)
    assert len(said) < 1000


def test_one_alias_is_a_text_and_not_its_letters() -> None:
    assert answers_in({"value": "cup", "aliases": "abc"}, "x") == ["cup", "abc"]
    assert answers_in({"value": "cup", "aliases": 5}, "x") == ["cup", "5"]


def test_choices_of_a_cell_are_none_or_a_list(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="x: the choices are no list but 3"):
        choices_in(3, "x")
    assert not choices_in("", "x")
    assert not choices_in([], "x")


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        *(({"answer": 10**400}, "more than 300 digits"), ({"also": [10**400]}, "more than 300 digits")),
        ({"answer": "9" * 5000 + " m", "answer_kind": "free_text"}, "more than 300 digits"),
        ({"answer": ["red", "crimson"], "answer_kind": "free_text"}, r'got the list \["red", "crimson"\]'),
        ({"answer": [], "answer_kind": "free_text"}, r"got the list \[\]"),
        ({"also": [["red"], "x"], "answer": "x", "answer_kind": "free_text"}, r'got the list \["red"\]'),
        ({"choices": [["a"], ["b"]], "answer": "a", "answer_kind": "choice"}, r'got the list \["a"\]'),
        ({"choices": [["a", "b"], "c"], "answer": "c", "answer_kind": "choice"}, r'got the list \["a", "b"\]'),
    ],
)
def test_a_value_that_is_no_answer_is_refused(changed: Row, fault: str, tmp_path: Path) -> None:
    row = {"id": "a", "text": "How far?", "answer_kind": "number", "answer": 3, **changed}
    with pytest.raises(InputError, match=fault) as refused:
        read("jsonl", lines(tmp_path / "own.jsonl", [row]), tmp_path)
    assert "own.jsonl" in str(refused.value)


def test_an_integer_of_thousands_of_digits_is_refused_with_its_line(tmp_path: Path) -> None:
    row = '{"id": "a", "text": "t", "answer_kind": "number", "answer": %s}\n'
    (tmp_path / "own.jsonl").write_text(row % ("9" * 5000), encoding="utf-8")
    with pytest.raises(InputError, match=r"own\.jsonl"):
        read("jsonl", tmp_path / "own.jsonl", tmp_path)


@pytest.mark.parametrize(("value", "answer"), [(True, "True"), (False, "False"), ("False", "False")])
def test_true_of_json_is_the_choice_that_says_so(value: bool | str, answer: str, tmp_path: Path) -> None:
    row = {"id": "a", "text": "t", "answer_kind": "choice", "choices": ["False", "True"], "answer": value}
    assert told(read("jsonl", lines(tmp_path / "own.jsonl", [row]), tmp_path)[0]) == (
        ("False", "True"),
        answer,
    )
