"""Readers of published benchmarks: each layout in small, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton_studies.curation.importing.answers import open_answer, open_answers
from merton_studies.curation.importing.choices import choices_in, choices_of, form_of
from merton_studies.curation.importing.importers import import_pool, join
from merton_studies.curation.pool import read_pool
from merton_studies.curation.question import BenchmarkSource, Question

Row = dict[str, Any]
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
LABS = BenchmarkSource(name="labs", licence="MIT")


def png(value: int) -> bytes:
    return cv2.imencode(".png", np.full((4, 6, 3), value, np.uint8))[1].tobytes()


def picture(value: int) -> Row:
    return {"bytes": png(value), "path": f"{value}.png"}


def parquet(folder: Path, rows: list[Row], name: str = "test-00000-of-00001.parquet", **types: Any) -> Path:
    folder.mkdir(exist_ok=True)
    table = pa.table({key: pa.array([row.get(key) for row in rows], types.get(key)) for key in rows[0]})
    pq.write_table(table, folder / name)
    return folder / name


def lines(file: Path, rows: list[Row]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def read(form: str, path: Path, tmp_path: Path, **options: Any) -> tuple[Question, ...]:
    import_pool(form, path, tmp_path / "pool", LABS, **options)
    return read_pool(tmp_path / "pool").questions


MMBENCH = [
    {"question_id": 7, "question": "Which?", "options": ["a cup", "a jar"], "answer": "B", "image": picture(1)},
    {"question_id": 8, "question": "And here?", "options": ["red", "blue"], "answer": "A", "image": picture(2)},
]


def test_parquet_of_lmms_eval_with_letters(tmp_path: Path) -> None:
    rows = [{**row, "category": "color", "source": "web", "boxes": [{"x": 1}]} for row in MMBENCH]
    file = parquet(tmp_path / "data", rows, image=IMAGE)
    first, second = read("parquet", tmp_path, tmp_path)
    assert (first.id, first.source, first.text, first.answer_kind) == ("labs/7", "labs", "Which?", "choice")
    assert (first.choices, first.answer, first.dimension) == (("a cup", "a jar"), "a jar", "color")
    assert first.meta == {"source": "web"}
    assert second.answer == "red"
    pool = read_pool(tmp_path / "pool")
    assert [pool.images(one)[0][0, 0, 0] for one in pool.questions] == [1, 2]
    assert pool.made["remarks"][1:] == (
        "The answers name the choices by letters.",
        "Kept as meta, not shown to models: source.",
        "Left out, because nested: boxes.",
    )
    assert file.name in pool.made["inputs"]


def test_parquet_whose_answers_are_places_and_whose_pictures_are_many(tmp_path: Path) -> None:
    rows = [
        {"idx": "a", "prompt": "Nearer?", "answer_options": ["1", "0"], "answer": 1, "image_1": picture(1)},
        {"idx": "b", "prompt": "Lower?", "answer_options": ["x", "y"], "answer": 0, "image_1": picture(2)},
    ]
    rows = [{**row, "image_2": image} for row, image in zip(rows, [None, picture(3)], strict=True)]
    parquet(tmp_path, rows, image_1=IMAGE, image_2=IMAGE)
    first, second = read("parquet", tmp_path, tmp_path)
    assert (first.answer, len(first.media)) == ("0", 1)
    assert (second.answer, len(second.media), second.video) == ("x", 2, False)


def test_splits_of_a_folder_are_named(tmp_path: Path) -> None:
    parquet(tmp_path, MMBENCH[:1], "test-00000-of-00001.parquet", image=IMAGE)
    parquet(tmp_path, MMBENCH[1:], "validation-00000-of-00001.parquet", image=IMAGE)
    with pytest.raises(InputError, match="several splits: name one by --split: test, validation"):
        read("parquet", tmp_path, tmp_path)
    assert [one.id for one in read("parquet", tmp_path, tmp_path, split="validation")] == ["labs/8"]


def save_to_disk(folder: Path, rows: list[Row]) -> Path:
    """The layout of `datasets` 4: Arrow streams, dataset_info.json, state.json; a label is a number with names."""
    folder.mkdir(parents=True)
    schema = pa.schema(
        [
            ("question", pa.string()),
            ("choices", pa.list_(pa.string())),
            ("answer", pa.int64()),
            ("frames", pa.list_(IMAGE)),
        ]
    )
    for shard, row in enumerate(rows):
        table = pa.Table.from_pylist([row], schema=schema)
        path = str(folder / f"data-{shard:05d}-of-{len(rows):05d}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, schema) as writer:
            writer.write_table(table)
    files = [{"filename": f"data-{shard:05d}-of-{len(rows):05d}.arrow"} for shard in range(len(rows))]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_fingerprint": "0", "_split": "test"}))
    features = {
        "question": {"dtype": "string", "_type": "Value"},
        "choices": {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"},
        "answer": {"names": ["B", "A", "C"], "_type": "ClassLabel"},
        "frames": {"feature": {"_type": "Image"}, "_type": "List"},
    }
    (folder / "dataset_info.json").write_text(json.dumps({"citation": "", "features": features, "license": ""}))
    return folder


def test_what_datasets_saves_to_disk_is_read_without_it(tmp_path: Path) -> None:
    rows = [
        {"question": "Where?", "choices": ["left", "right"], "answer": 0, "frames": [picture(1), picture(2)]},
        {"question": "How?", "choices": ["slowly", "fast", "not"], "answer": 2, "frames": [picture(1)]},
    ]
    save_to_disk(tmp_path / "all" / "test", rows)
    (tmp_path / "all" / "dataset_dict.json").write_text(json.dumps({"splits": ["test"]}))
    first, second = read("datasets", tmp_path / "all", tmp_path)
    assert (first.id, first.answer, first.video, len(first.media)) == ("labs/1", "right", True, 2)
    assert (second.id, second.answer) == ("labs/2", "not")
    assert len(list((tmp_path / "pool" / "media").iterdir())) == 2, "equal pictures are kept once"


def test_csv_with_a_column_for_each_choice(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png(1))
    file = tmp_path / "bench.csv"
    file.write_text("index,question,A,B,C,answer,image\n0,What?,cup,jar,,cup,1.png\n1,And?,x,y,z,z,1.png\n")
    first, second = read("csv", file, tmp_path)
    assert (first.choices, first.answer, second.choices, second.answer) == (("cup", "jar"), "cup", ("x", "y", "z"), "z")
    assert first.media == second.media


def test_csv_with_open_answers(tmp_path: Path) -> None:
    file = tmp_path / "bench.csv"
    file.write_text("id,question,answer,unit\na,How far?,0.25,m\nb,Open?,Yes.,\nc,What?,A cup,\n")
    found = read("csv", file, tmp_path)
    assert [(one.answer_kind, one.answer, one.unit) for one in found] == [
        ("number", "0.25", "m"),
        ("yes_no", "yes", ""),
        ("free_text", "A cup", ""),
    ]


def test_own_lines_have_every_part_of_a_question(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(png(1))
    region = "[[0, 0], [1, 0], [1, 1]]"
    rows = [
        {"id": "a", "text": "Where?", "answer_kind": "point", "answer": region, "media": ["1.png"], "scene": "s"},
        {"id": "b", "text": "Next?", "answer_kind": "actions", "answer": "pick, place", "source": "other"},
    ]
    first, second = read("jsonl", lines(tmp_path / "own.jsonl", rows), tmp_path)
    assert (first.source, first.answer, len(first.media), first.scene) == ("labs", region, 1, "s")
    assert second.source == "other"


def test_open_eqa_in_both_forms(tmp_path: Path) -> None:
    rows = [
        {
            "question": "How many chairs?",
            "answer": "Two",
            "category": "object recognition",
            "question_id": "q1",
            "episode_history": "hm3d-v0/000-x",
            "extra_answers": ["2"],
        },
        {"question": "Is it open?", "answer": "No.", "category": "object state recognition", "question_id": "q2"},
    ]
    file = tmp_path / "open-eqa-v0.json"
    file.write_text(json.dumps(rows))
    episode = tmp_path / "frames" / "hm3d-v0" / "000-x"
    episode.mkdir(parents=True)
    for number in range(40):
        (episode / f"{number:05d}-rgb.png").write_bytes(png(number))
    import_pool("openeqa", lines(tmp_path / "eqa.jsonl", rows), tmp_path / "text")
    first, second = read_pool(tmp_path / "text").questions
    assert (first.id, first.answer_kind, first.answer, first.also) == ("OpenEQA/q1", "number", "2", ())
    assert (first.dimension, first.scene, second.dimension) == (
        "ObjectRecognition",
        "hm3d-v0/000-x",
        "ObjectStateRecognition",
    )
    assert (second.answer_kind, second.answer) == ("yes_no", "no")
    file.write_text(json.dumps(rows[:1]))
    pool = import_pool("openeqa", file, tmp_path / "seen", pictures=tmp_path / "frames").pool
    assert (len(pool.questions[0].media), pool.questions[0].video) == (32, True)
    assert [int(pool.images(pool.questions[0])[at][0, 0, 0]) for at in (0, -1)] == [0, 39]


def test_sqa3d_as_published(tmp_path: Path) -> None:
    folder = tmp_path / "sqa"
    folder.mkdir()
    asked = [
        {
            "question_id": 220602000002,
            "question": "Can I walk on?",
            "situation": "I face a door.",
            "alternative_situation": ["..."],
            "scene_id": "scene0050_00",
        }
    ]
    told = [{"question_id": 220602000002, "answers": [{"answer": "yes", "answer_confidence": "yes", "answer_id": 1}]}]
    (folder / "v1_balanced_questions_test_scannetv2.json").write_text(json.dumps({"info": {}, "questions": asked}))
    (folder / "v1_balanced_sqa_annotations_test_scannetv2.json").write_text(json.dumps({"annotations": told}))
    (found,) = import_pool("sqa3d", folder, tmp_path / "pool").pool.questions
    assert (found.id, found.answer_kind, found.answer) == ("SQA3D/220602000002", "yes_no", "yes")
    assert (found.situation, found.scene) == ("I face a door.", "scene0050_00")


@pytest.mark.parametrize(
    ("form", "rows", "fault"),
    [
        ("jsonl", [{"id": "a", "text": "x", "answer_kind": "free_text"}] * 2, r"x.jsonl, line 2: the id 'a' stands al"),
        ("jsonl", [{"id": "a", "txt": "x"}], "line 1: unknown key 'txt'; did you mean 'text'"),
        ("jsonl", [{"id": "a", "text": "x", "answer_kind": "choice", "choices": ["l"], "answer": "r"}], "1: the ans"),
        ("jsonl", [{"id": "a", "text": "x", "answer_kind": "free_text", "media": ["no.png"]}], "1: the picture"),
        ("openeqa", [{"id": "a", "question": "x", "answr": "y"}], "line 1: unknown key 'answr'; did you mean 'answer'"),
        ("sqa3d", [{"id": "a", "question": "x", "answer": "y"}], "line 1: answer must be a list"),
        ("parquet", [{**MMBENCH[0], "answer": "C"}], "row 1: the answer 'C' is none of the choices 'a cup', 'a jar'"),
        ("parquet", [MMBENCH[0], {**MMBENCH[1], "answer": None}], "row 2: has choices but no answer"),
        ("parquet", [MMBENCH[0], MMBENCH[0]], "row 2: the id '7' stands already in .*row 1"),
        ("parquet", [{**MMBENCH[0], "image": {"bytes": None, "path": "gone.png"}}], "1: the picture .gone"),
        ("parquet", [{**MMBENCH[0], "image": {"bytes": b"GIF89a", "path": ""}}], "row 1: the picture is not an intact"),
        ("parquet", [{"q": "What?", "answer": "x"}], "no column of the question, .*name it by --column text=NAME"),
    ],
)  # fmt: skip
def test_refusals_name_file_and_row(form: str, rows: list[Row], fault: str, tmp_path: Path) -> None:
    path = parquet(tmp_path, rows, image=IMAGE) if form == "parquet" else lines(tmp_path / "x.jsonl", rows)
    with pytest.raises(InputError, match=fault):
        import_pool(form, path, tmp_path / "pool", None if form in ("openeqa", "sqa3d") else LABS)
    assert not (tmp_path / "pool" / "pool.yaml").exists()


def test_an_unknown_column_of_csv_is_refused_until_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "b.csv"
    file.write_text("id,question,answer,hint\n1,What?,x,look\n")
    with pytest.raises(InputError, match=r"has a column 'hint'.* --column PART=hint"):
        read("csv", file, tmp_path)
    (found,) = read("csv", file, tmp_path, columns={"meta": ("hint",)})
    assert found.meta == {"hint": "look"}


def test_the_same_import_gives_the_same_bytes_and_another_is_refused(tmp_path: Path) -> None:
    file = parquet(tmp_path, MMBENCH, image=IMAGE)
    read("parquet", file, tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "pool").rglob("*") if path.is_file()}
    (tmp_path / "pool" / "media" / ".1.0.unfinished").write_bytes(b"of a process that was killed")
    read("parquet", file, tmp_path)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "pool").rglob("*") if path.is_file()}
    other = parquet(tmp_path, MMBENCH[:1], "other.parquet", image=IMAGE)
    with pytest.raises(InputError, match="holds another pool;"):
        read("parquet", other, tmp_path)


@pytest.mark.parametrize(
    ("form", "name", "fault"),
    [
        ("parquet", "nothing", "there is no file nothing"),
        ("parquet", "junk.parquet", "junk.parquet is no table"),
        ("parquet", ".", "has no .parquet files"),
        ("datasets", ".", "was not written by save_to_disk"),
        ("openeqa", "no.json", "cannot read no.json"),
        ("openeqa", "junk.json", "is not a text file"),
        ("sqa3d", ".", "must have one file"),
        ("jsonl", "binary.jsonl", "is not a text file"),
        ("tsv", "x", "unknown form 'tsv'; did you mean 'csv'"),
    ],
)
def test_a_file_that_is_not_of_the_form_is_refused(
    form: str, name: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("junk.json", "binary.jsonl"):
        (tmp_path / file).write_bytes(b"\xff\xfe{")
    if name == "junk.parquet":
        (tmp_path / name).write_bytes(b"junk")
    with pytest.raises(InputError, match=fault):
        import_pool(form, Path(name), tmp_path / "pool")


def test_pools_are_joined_with_their_pictures(tmp_path: Path) -> None:
    make: Callable[[str, list[Row]], object] = lambda name, rows: import_pool(  # noqa: E731
        "parquet", parquet(tmp_path, rows, f"{name}.parquet", image=IMAGE), tmp_path / name, BenchmarkSource(name=name)
    )
    make("one", MMBENCH[:1])
    make("two", MMBENCH)
    joined = join([tmp_path / "one", tmp_path / "two"], tmp_path / "all")
    assert [question.id for question in read_pool(tmp_path / "all").questions] == ["one/7", "two/7", "two/8"]
    assert joined.images(joined.questions[2])[0][0, 0, 0] == 2
    with pytest.raises(InputError, match="two questions have the id 'one/7'"):
        join([tmp_path / "one", tmp_path / "one"], tmp_path / "twice")


def test_choices_and_answers_are_read_in_one_form() -> None:
    for cell in ("['a', 'b']", ["A. a", "B. b"], {"A": "a", "B": "b"}):
        assert choices_in(cell, "x").texts == ("a", "b")
    assert choices_in(["A. a", "C. b"], "x").texts == ("A. a", "C. b")
    words, numbers = choices_of(["x", "y"]), choices_of(["1", "2"])
    assert form_of([("(B)", words, "r1"), ("a", words, "r2")]) == "letters"
    assert form_of([("1", numbers, "r1"), ("2", numbers, "r2")]) == "texts"
    assert form_of([(1, numbers, "r1")], whole_numbers=True) == "places from 0"
    with pytest.raises(InputError, match="r2: the answer 'C' is none of the choices 'x', 'y'"):
        form_of([("A", words, "r1"), ("C", words, "r2"), ("B", words, "r3")])
    assert [open_answer(text)[0] for text in ("Yes.", "three", "-1.5", "3 m", "yes, two")] == [
        "yes_no",
        "number",
        "number",
        "free_text",
        "free_text",
    ]
    assert open_answers(["two", "a pair"]) == ("free_text", "two", ("a pair",))
    assert open_answers([" "]) == ("free_text", "", ())


def test_the_command_counts_what_it_joined(tmp_path: Path) -> None:
    for name, rows in (("one", MMBENCH[:1]), ("two", [])):
        table = parquet(tmp_path, rows or MMBENCH[1:2], f"{name}.parquet", image=IMAGE)
        import_pool("parquet", table, tmp_path / name, BenchmarkSource(name=name))
    line = ["curate", "join", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(tmp_path / "all")]
    result = CliRunner().invoke(app, line)
    assert result.stdout.splitlines() == [f"2 questions of 2 sources: {tmp_path / 'all'}"]
