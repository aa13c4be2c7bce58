"""Evaluations: from questions through programs to tables, again after an interruption, without a call made twice."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from unguarded import Unguarded

from merton.curation.pool import Pool
from merton.curation.question import ANSWER_KINDS, Question, Source
from merton.errors import InfrastructureError, InputError
from merton.harness import evaluation
from merton.harness.answerers import Reply, answerers
from merton.harness.evaluation import evaluate
from merton.harness.pipeline import Pipeline, composed
from merton.harness.sandbox import Sandbox
from merton.harness.scores import PREDICTIONS, SCORES, SUMMARY
from merton.results.matrix import read_matrix

ANSWERS = {
    "choice": ("red cube", "blue lid", "peg"),
    "number": ("0.25", "1.5", "3"),
    "point": (
        "[[0.1, 0.1], [0.3, 0.1], [0.3, 0.3]]",
        "[[0.5, 0.5], [0.9, 0.5], [0.9, 0.9]]",
        "[[0, 0], [0, 1], [0.2, 1]]",
    ),
    "yes_no": ("yes", "no", "yes"),
    "free_text": ("on the GOLDEN mat", "left of it", "a drawer"),
    "actions": ("pull, pick, place", "press", "pick, place"),
}


def question(number: int, **values: Any) -> Question:
    kind = ANSWER_KINDS[number % 6]
    answer = ANSWERS[kind][number // 6 % 3]
    own = {"choices": ANSWERS["choice"]} if kind == "choice" else {}
    texts = {"id": f"q{number:03d}", "source": "made", "text": f"What of {number % 5}?", "answer_kind": kind}
    return Question.model_validate(
        {**texts, **own, "answer": answer, "scene": f"s{number % 9}", "dimension": f"D{number % 2}", **values}
    )


def pool(count: int = 54) -> Pool:
    return Pool.of([question(number) for number in range(count)], [Source(name="made")])


@dataclass
class Counting:
    """Always right, counts its calls, and fails once at one of them."""

    name: str = "counting"
    identity: dict[str, Any] = field(default_factory=lambda: {"made": "here"})
    cost_per_1000: float = 2.0
    fails_at: int = -1
    asked: list[str] = field(default_factory=list)

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        if len(self.asked) == self.fails_at:
            self.fails_at = -1
            raise InfrastructureError("the server is gone")
        self.asked.append(question.id)
        return Reply(question.answer, called=True)


def bytes_of(out: Path) -> list[bytes]:
    return [(out / name).read_bytes() for name in (PREDICTIONS, SCORES, SUMMARY)]


def test_an_evaluation_ends_in_tables_that_results_import_reads(tmp_path: Path) -> None:
    made = answerers(["oracle-1.0", "oracle-0.0", "chance", "majority", "blind"], pool())
    sandbox = Unguarded()
    found = evaluate(pool(), made, tmp_path, sandbox=sandbox)
    assert found.scores.overall["oracle-1.0"].mean == 1.0
    assert found.scores.overall["oracle-0.0"].mean < 0.15  # a wrong plan may share steps with the right one
    for name in ("chance", "majority", "blind"):
        mean = found.scores.overall[name]
        assert 0 < mean.mean < 0.9
        assert mean.interval[0] <= mean.mean <= mean.interval[1]
        assert (mean.n, mean.scenes) == (54, 9)
        parts = [found.scores.dimensions[name][dimension].mean for dimension in ("D0", "D1")]
        assert mean.mean == pytest.approx(sum(parts) / 2)
    matrix = read_matrix(tmp_path / SCORES)
    assert [agent.id for agent in matrix.agents] == [answerer.name for answerer in made]
    assert len(matrix.cells) == 5 * 54
    inferred = [str(files) for files in sandbox.given if "infer.py" in files]
    assert inferred
    assert not any("GOLDEN" in files for files in inferred), "an answer reached the inference program"
    assert any("GOLDEN" in str(files) for files in sandbox.given if "score.py" in files)
    assert json.loads((tmp_path / "cost.json").read_text())["answerers"]["blind"]["prompts"] == 54


def test_an_interrupted_evaluation_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "BATCH", 20)
    monkeypatch.setattr(evaluation, "usable_cores", lambda: 1)
    whole, broken = Counting(), Counting(fails_at=25)
    evaluate(pool(), [whole], tmp_path / "whole", sandbox=Unguarded())
    with pytest.raises(InfrastructureError, match="the server is gone"):
        evaluate(pool(), [broken], tmp_path / "broken", sandbox=Unguarded())
    assert len(broken.asked) == 25
    evaluate(pool(), [broken], tmp_path / "broken", sandbox=Unguarded())
    assert len(broken.asked) == 54 + 5, "a batch of twenty was kept; an answerer without a cache is asked again"
    assert bytes_of(tmp_path / "broken") == bytes_of(tmp_path / "whole")
    again = Counting()
    found = evaluate(pool(), [again], tmp_path / "whole", sandbox=Unguarded())
    assert again.asked == []
    assert found.cost["answerers"]["counting"]["money"] == pytest.approx(54 * 0.002)


def test_a_model_is_not_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    cv2.imwrite(str(tmp_path / "media" / "1.png"), np.full((60, 80, 3), 128, np.uint8))
    medium = {"path": "media/1.png", "sha256": hashlib.sha256((tmp_path / "media" / "1.png").read_bytes()).hexdigest()}
    seen = [question(number, media=(medium,)) for number in range(6)]
    both = Pool.of([*seen, question(6)], [Source(name="made")], tmp_path)
    cache = tmp_path / "cache.sqlite"
    first = evaluate(both, answerers(["describe"], both), tmp_path / "1", sandbox=Unguarded(), cache=cache)
    second = evaluate(both, answerers(["describe"], both), tmp_path / "2", sandbox=Unguarded(), cache=cache)
    assert (first.calls, second.calls) == (6, 0)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "2")
    assert "needs an image" in first.rows[6].unasked
    assert first.rows[6].score is None
    assert first.scores.overall["describe"].n == 6, "a question that it could not be asked is no score of 0"
    assert read_matrix(tmp_path / "1" / SCORES).blanks == 1


BAD = """
def predict(case, ask):
    said = ask(case["text"])
    if case["answer_kind"] == "number":
        raise RuntimeError("number")
    if case["answer_kind"] == "point":
        import os
        os._exit(7)
    return said
"""


def test_a_program_that_fails_on_a_case_fails_on_that_case_alone(tmp_path: Path) -> None:
    spoiled = Pipeline(BAD, composed(ANSWER_KINDS).score, "written", ANSWER_KINDS)
    few = pool(12)
    found = evaluate(few, [Counting()], tmp_path, sandbox=Unguarded(), pipeline=spoiled)
    by_kind = {kind: [row for row in found.rows if row.question.answer_kind == kind] for kind in ANSWER_KINDS}
    assert all("RuntimeError: number" in row.error and row.score == 0 for row in by_kind["number"])
    assert all("exit code 7" in row.error and row.score == 0 for row in by_kind["point"])
    assert all(row.score == 1 for kind in ("choice", "yes_no", "free_text", "actions") for row in by_kind[kind])
    assert found.scores.failed["counting"] == 4


def test_a_graded_oracle_answers_a_question_alike_in_every_pool() -> None:
    whole = pool()
    part = Pool.of(
        [one.model_copy(update={"meta": {"assigned": "X"}}) for one in whole.questions[::2]], [Source(name="made")]
    )
    in_whole, in_part = answerers(["graded"], whole), answerers(["graded"], part)
    assert len(in_whole) == 12
    for one, other in zip(in_whole, in_part, strict=True):
        for asked in part.questions:
            right = [made.answer(asked, "", 32, None).text == asked.answer for made in (one, other)]
            assert asked.answer_kind == "point" or right[0] == right[1]


def test_floors_learn_from_other_scenes_alone() -> None:
    """The answer of a scene's own questions would give each away here: all of a scene have one answer of its own."""
    asked = [
        Question(
            id=f"{scene}-{n}",
            source="made",
            text=f"word{scene}",
            answer_kind="free_text",
            answer=f"a{scene}",
            scene=f"{scene}",
        )
        for scene in range(12)
        for n in range(4)
    ]
    made = answerers(["majority", "blind", "chance"], Pool.of(asked, [Source(name="made")]))
    assert not any(one.answer(each, "", 32, None).text == each.answer for one in made for each in asked)


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["oracle-2"], "skill P from 0 to 1"),
        (["chance", "chance"], "named twice"),
        (["nobody"], "unknown answerer 'nobody'"),
        ([], "at least one answerer"),
    ],
)
def test_answerers_that_are_none_are_refused(names: list[str], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        answerers(names, pool())


def test_questions_without_answers_are_left_out(tmp_path: Path) -> None:
    silent = Pool.of([question(0), question(1, answer="")], [Source(name="made")])
    assert evaluate(silent, [Counting()], tmp_path, sandbox=Unguarded()).left_out == 1
    none = Pool.of([question(1, answer="")], [Source(name="made")])
    with pytest.raises(InputError, match="no question has a right answer"):
        evaluate(none, [Counting()], tmp_path, sandbox=Unguarded())
    with pytest.raises(InputError, match="knows no answers of the kind actions"):
        evaluate(pool(), [Counting()], tmp_path, sandbox=Unguarded(), pipeline=composed(["choice", "yes_no"]))


def test_the_same_comes_out_of_the_real_sandbox(tmp_path: Path) -> None:
    made = answerers(["blind"], pool())
    evaluate(pool(), made, tmp_path / "walls", sandbox=Sandbox())
    evaluate(pool(), made, tmp_path / "none", sandbox=Unguarded())
    assert bytes_of(tmp_path / "walls") == bytes_of(tmp_path / "none")
