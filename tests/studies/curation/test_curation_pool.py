"""Questions and pools: the checks of a question, and the round trip of a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from merton.config import validated
from merton.errors import InputError
from merton_studies.curation.pool import Pool, read_pool, write_pool
from merton_studies.curation.question import BenchmarkSource, Question


def question(**values: object) -> Question:
    return validated(
        Question, {"id": "a", "source": "s", "text": "How many?", "answer_kind": "number", **values}, "test"
    )


def test_a_pool_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    cv2.imwrite(str(tmp_path / "media" / "1.png"), np.full((4, 5, 3), 7, np.uint8))
    sha256 = hashlib.sha256((tmp_path / "media" / "1.png").read_bytes()).hexdigest()
    first = question(answer="0.25", unit="m", media=({"path": "media/1.png", "sha256": sha256},), meta={"k": "v"})
    second = question(id="b", answer_kind="choice", choices=("left", "right"), answer="left", also=("right",))
    pool = Pool.of([second, first], [BenchmarkSource(name="s", licence="MIT")], tmp_path, seed=3)
    write_pool(pool, tmp_path)
    content = (tmp_path / "questions.parquet").read_bytes()
    found = read_pool(tmp_path)
    assert found == pool
    assert [one.id for one in found.questions] == ["a", "b"]
    assert found.images(found.questions[0])[0].shape == (4, 5, 3)
    write_pool(found, tmp_path)
    assert (tmp_path / "questions.parquet").read_bytes() == content
    (tmp_path / "questions.parquet").write_bytes(content + b" ")
    with pytest.raises(InputError, match="has changed"):
        read_pool(tmp_path)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"answer": "three"}, "no number"),
        ({"answer": "nan"}, "no finite number"),
        ({"answer_kind": "choice", "choices": ("x", "y"), "answer": "z"}, "none of the choices"),
        ({"answer_kind": "choice", "choices": ("x", "x")}, "two choices are the same"),
        ({"choices": ("x", "y")}, "has choices if its answer_kind is choice"),
        ({"answer_kind": "yes_no", "answer": "maybe"}, "neither yes nor no"),
        ({"answer_kind": "point", "answer": "[[0, 0], [1, 1]]"}, "no polygon"),
        ({"answer_kind": "point", "answer": "[[0, 0], [1, 1], [2, 0]]"}, "no polygon"),
    ],
)
def test_an_answer_that_is_none_of_its_kind_is_refused(values: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        question(**values)


def test_ids_are_unique_and_sources_described() -> None:
    with pytest.raises(InputError, match="two questions have the id 'a'"):
        Pool.of([question(), question()], [BenchmarkSource(name="s")])
    with pytest.raises(InputError, match="which is not described"):
        Pool.of([question()], [])


@pytest.mark.parametrize(
    ("kind", "answer", "read"),
    [
        ("number", 3, "3"),
        ("number", 3.0, "3"),
        ("number", 0.25, "0.25"),
        ("number", -1e-7, "-1e-07"),
        ("free_text", 3, "3"),
        ("yes_no", True, "yes"),
        ("yes_no", False, "no"),
        ("free_text", None, ""),
        ("point", [[0, 0], [1, 0], [1, 0.5]], "[[0, 0], [1, 0], [1, 0.5]]"),
    ],
)
def test_values_of_json_are_the_texts_of_answers(kind: str, answer: object, read: str) -> None:
    line = json.dumps({"id": 7, "source": "made", "text": "?", "answer_kind": kind, "answer": answer, "scene": 2})
    found = validated(Question, line, "line 1")
    assert (found.id, found.scene, found.answer) == ("7", "2", read)


def test_choices_and_notes_of_numbers_are_texts() -> None:
    values = {"id": "a", "source": "made", "text": "?", "answer_kind": "choice", "choices": [1, 2.5], "answer": 2.5}
    found = validated(Question, json.dumps({**values, "meta": {"frame": 12}}), "line 1")
    assert (found.choices, found.answer, found.meta) == (("1", "2.5"), "2.5", {"frame": "12"})
    for bad in ({"answer": {"a": 1}}, {"id": True}, {"text": 3}):
        with pytest.raises(InputError, match="must be a text"):
            validated(Question, json.dumps({**values, **bad}), "line 1")
