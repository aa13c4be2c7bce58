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

from merton.cognition.models.base import MODELS, Answer, ModelEntry
from merton.cognition.models.describe import Describe
from merton.errors import InfrastructureError, InputError
from merton.leaderboard.capabilities import MAXIMUM, PREDICTIONS, capability_board, question_scores
from merton.results.matrix import read_matrix
from merton_studies.curation.budget import CALLS, Budget, BudgetExhaustedError
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import ANSWER_KINDS, BenchmarkSource, Question
from merton_studies.harness import batches
from merton_studies.harness.answerers import answerers
from merton_studies.harness.confinement.limits import Ended
from merton_studies.harness.evaluation import evaluate
from merton_studies.harness.pipeline import Pipeline, composed
from merton_studies.harness.reply import Reply
from merton_studies.harness.requests import RefusedError, predicted, read_request
from merton_studies.harness.sandbox import Sandbox
from merton_studies.harness.scores import SCORES, SUMMARY

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
    return Pool.of([question(number) for number in range(count)], [BenchmarkSource(name="made")])


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
    for row in capability_board(question_scores([tmp_path])).rows:
        mine = found.scores.overall[row.agent]
        assert mine.interval is not None
        assert row.total.interval == pytest.approx(mine.interval.scaled(MAXIMUM)), "one number has one interval"
    matrix = read_matrix(tmp_path / SCORES)
    assert [agent.id for agent in matrix.agents] == [answerer.name for answerer in made]
    assert len(matrix.cells) == 5 * 54
    inferred = [str(files) for files in sandbox.given if "infer.py" in files]
    assert inferred
    assert not any("GOLDEN" in files for files in inferred), "an answer reached the inference program"
    assert any("GOLDEN" in str(files) for files in sandbox.given if "score.py" in files)
    assert json.loads((tmp_path / "cost.json").read_text())["answerers"]["blind"]["prompts"] == 54


def test_an_interrupted_evaluation_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 20)
    monkeypatch.setattr(batches, "usable_cores", lambda: 1)
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
    both = Pool.of([*seen, question(6)], [BenchmarkSource(name="made")], tmp_path)
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
    assert all("RuntimeError: number" in row.error and row.score is None for row in by_kind["number"])
    assert all("exit code 7" in row.error and row.score is None for row in by_kind["point"])
    assert all(row.score == 1 for kind in ("choice", "yes_no", "free_text", "actions") for row in by_kind[kind])
    assert found.scores.failed["counting"] == 4


def test_a_graded_oracle_answers_a_question_alike_in_every_pool() -> None:
    whole = pool()
    part = Pool.of(
        [one.model_copy(update={"meta": {"assigned": "X"}}) for one in whole.questions[::2]],
        [BenchmarkSource(name="made")],
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
    made = answerers(["majority", "blind", "chance"], Pool.of(asked, [BenchmarkSource(name="made")]))
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
    silent = Pool.of([question(0), question(1, answer="")], [BenchmarkSource(name="made")])
    assert evaluate(silent, [Counting()], tmp_path, sandbox=Unguarded()).left_out == 1
    none = Pool.of([question(1, answer="")], [BenchmarkSource(name="made")])
    with pytest.raises(InputError, match="no question has a right answer"):
        evaluate(none, [Counting()], tmp_path, sandbox=Unguarded())
    with pytest.raises(InputError, match="knows no answers of the kind actions"):
        evaluate(pool(), [Counting()], tmp_path, sandbox=Unguarded(), pipeline=composed(["choice", "yes_no"]))


def test_the_same_comes_out_of_the_real_sandbox(tmp_path: Path) -> None:
    made = answerers(["blind"], pool())
    evaluate(pool(), made, tmp_path / "walls", sandbox=Sandbox())
    evaluate(pool(), made, tmp_path / "none", sandbox=Unguarded())
    assert bytes_of(tmp_path / "walls") == bytes_of(tmp_path / "none")


@dataclass
class Saying:
    """Says one text to everything."""

    text: str
    truncated: bool = False
    name: str = "saying"
    cost_per_1000: float = 0.0

    @property
    def identity(self) -> dict[str, Any]:
        return {"says": self.text, "truncated": self.truncated}

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        return Reply(self.text, truncated=self.truncated)


def one_choice() -> Pool:
    return Pool.of([question(0)], [BenchmarkSource(name="made")])


@pytest.mark.parametrize(
    ("said", "score", "cut_off"),
    [
        ("<think>B is near, C is far.</think>\n\nA", 1.0, 0),
        ("<think>B</think><answer>A</answer><|im_end|>", 1.0, 0),
        ("\\boxed{A}", 1.0, 0),
        ("A\n\nBecause the blue lid is far.", 1.0, 0),
        ("<think>A is near. B is", None, 1),
    ],
)
def test_the_answer_in_a_models_raw_text_is_scored(
    tmp_path: Path, said: str, score: float | None, cut_off: int
) -> None:
    found = evaluate(one_choice(), [Saying(said)], tmp_path, sandbox=Unguarded())
    assert found.rows[0].score == score
    assert found.scores.cut_off["saying"] == found.scores.cut_off_blank["saying"] == cut_off
    assert json.loads((tmp_path / SUMMARY).read_text())["answerers"]["saying"]["cut_off"] == cut_off


def test_an_answer_that_was_cut_off_behind_its_letter_counts_and_is_counted(tmp_path: Path) -> None:
    found = evaluate(one_choice(), [Saying("A. red cube, bec", truncated=True)], tmp_path, sandbox=Unguarded())
    assert (found.rows[0].score, found.rows[0].cut_off) == (1.0, True)
    assert (found.scores.cut_off["saying"], found.scores.cut_off_blank["saying"]) == (1, 0)


def test_a_model_that_said_nothing_has_no_score_whatever_the_program_makes_of_it(tmp_path: Path) -> None:
    """The program's default is the right choice; the model was cut off in its reasoning."""
    parts = composed(ANSWER_KINDS)
    default = "def predict(case, ask):\n    return ask('Which?') or case['choices'][0]\n"
    pipeline = Pipeline(default, parts.score, "written", ANSWER_KINDS)
    for said, score in (("<think>A is near. B is", None), ("<think>B</think>A", 1.0)):
        found = evaluate(one_choice(), [Saying(said)], tmp_path / said[-1], sandbox=Unguarded(), pipeline=pipeline)
        assert found.rows[0].score == score
        assert found.scores.cut_off_blank["saying"] == (score is None)


def test_fidelity_compares_as_much_of_an_answer_as_a_program_sees(tmp_path: Path) -> None:
    """Of 5,000 digits neither reads a number; Python itself refuses to."""
    number = Pool.of([question(1)], [BenchmarkSource(name="made")])
    found = evaluate(number, [Saying("9" * 5000)], tmp_path, sandbox=Unguarded(), fidelity=True)
    assert found.fidelity["saying"]["overall"].inference == 1.0


@pytest.mark.parametrize("key", ["case", "error", "value", "prompt", "pictures", "max_tokens"])
def test_a_line_that_is_nested_deeply_is_refused(key: str) -> None:
    """Python reads JSON of about 990 lists within lists and raises RecursionError when it writes it."""
    for depth in range(900, 1000):
        said = {"case": "0", "prompt": '"x"', "value": "1", key: "[" * depth + "]" * depth}
        if key in ("error", "value"):
            del said["prompt"]
        line = "{" + ", ".join(f'"{name}": {value}' for name, value in said.items()) + "}"
        try:
            told = read_request(line.encode(), 4)
            with pytest.raises(RefusedError):
                predicted(told.value)  # type: ignore[union-attr]
        except RefusedError:
            pass


def test_a_picture_is_chosen_once() -> None:
    with pytest.raises(RefusedError, match="different whole numbers"):
        read_request(b'{"case": 0, "prompt": "x", "pictures": [1, 1.0]}', 1)
    assert read_request(b'{"case": 0, "prompt": "x", "pictures": [1, 0]}', 1).pictures == (1, 0)  # type: ignore[union-attr]


RAW = """
import json, os
def tell(line):
    os.write(3, line.encode() + b"\\n")
    os.read(4, 65536)
def {function}:
    {body}
"""


def raw_program(role: str, body: str) -> Pipeline:
    """Programs of which one writes to the pipe itself."""
    parts = composed(ANSWER_KINDS)
    if role == "infer":
        return Pipeline(RAW.format(function="predict(case, ask)", body=body), parts.score, "written", ANSWER_KINDS)
    return Pipeline(parts.infer, RAW.format(function="score(case, prediction)", body=body), "written", ANSWER_KINDS)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"case": 0, "value": 17}', "score returned 17, which is not in 0..1"),
        ('{"case": 0, "value": -0.1}', "score returned -0.1, which is not in 0..1"),
        ('{"case": 0, "value": NaN}', "score returned NaN, which is not in 0..1"),
        ('{"case": 0, "value": true}', "score returned true, not a number"),
        ('{"case": 0, "value": "1"}', 'score returned "1", not a number'),
        ('{"case": 0, "value": 1e999}', "which is not in 0..1"),
        ('{"case": 0}', "score returned null, not a number"),
        *((f'{{"case": {case}, "value": 1}}', "") for case in ("Infinity", '"abc"', "null", "-1", "1", "true", "0.5")),
        *((f'{{"case": {case}, "value": 1}}', "") for case in ("[0]", "1" + "0" * 400)),
        *((line, "") for line in ("[]", "0", "null", '"a"', "[" * 2000 + "]" * 2000)),
    ],
)
def test_a_scorer_that_writes_to_the_pipe_itself_is_not_believed(tmp_path: Path, line: str, error: str) -> None:
    """A line that is no result is passed over; the program's own result, .25, is the first that counts then."""
    body = f"tell({line!r})\n    return 0.25"
    found = evaluate(one_choice(), [Saying("A")], tmp_path, sandbox=Unguarded(), pipeline=raw_program("score", body))
    assert found.rows[0].score == (None if error else 0.25)
    assert error in found.rows[0].error


@pytest.mark.parametrize("value", ["3", "null", '["A"]', "NaN"])
def test_a_prediction_that_is_no_text_is_none(tmp_path: Path, value: str) -> None:
    body = f"""tell('{{"case": 0, "value": {value}}}')\n    return "A" """
    found = evaluate(one_choice(), [Saying("A")], tmp_path, sandbox=Unguarded(), pipeline=raw_program("infer", body))
    assert (found.rows[0].score, found.rows[0].prediction) == (None, "")
    assert "predict returned" in found.rows[0].error


def test_half_a_surrogate_pair_is_stored_as_a_question_mark(tmp_path: Path) -> None:
    body = r"""return "A \ud83d" """
    spoiled = raw_program("infer", body)
    for _ in range(2):  # and again from the pieces
        found = evaluate(one_choice(), [Saying("A")], tmp_path, sandbox=Unguarded(), pipeline=spoiled)
        assert found.rows[0].prediction == "A ?"
    heard: list[str] = []
    counting = Counting()
    counting.answer = lambda asked, prompt, *_: heard.append(prompt) or Reply("A")  # type: ignore[method-assign]
    spoiled = raw_program("infer", r"""return ask("which \ud83d?")""")
    evaluate(one_choice(), [counting], tmp_path / "prompt", sandbox=Unguarded(), pipeline=spoiled)
    assert heard == ["which ??"]


@pytest.mark.parametrize("most", ["10**12", "-5", "0", "True", "1.5", "'many'", "float('inf')", "10**400"])
def test_a_program_asks_for_no_absurd_number_of_tokens(tmp_path: Path, most: str) -> None:
    counting = Counting()
    spoiled = raw_program("infer", f"return ask('?', {most})")
    found = evaluate(one_choice(), [counting], tmp_path, sandbox=Unguarded(), pipeline=spoiled)
    assert counting.asked == []
    assert "max_tokens must be a whole number from 1 to 4096" in found.rows[0].error


@pytest.mark.parametrize(
    "body", ["return 'A'", "try:\n        ask('?', 0)\n    except ValueError:\n        return 'A'"]
)
def test_a_program_that_did_not_ask_is_no_answer_of_the_model(tmp_path: Path, body: str) -> None:
    found = evaluate(one_choice(), [Counting()], tmp_path, sandbox=Unguarded(), pipeline=raw_program("infer", body))
    assert (found.rows[0].score, found.rows[0].error) == (None, "")
    assert found.rows[0].unasked == "the program put no question to it that can be asked"


def test_a_program_asks_twenty_times_about_a_case(tmp_path: Path) -> None:
    counting = Counting()
    spoiled = raw_program("infer", "return [ask(f'{n}?') for n in range(3000)][0]")
    found = evaluate(pool(4), [counting], tmp_path, sandbox=Unguarded(), pipeline=spoiled)
    assert len(counting.asked) == 80
    assert all("at most 20 times about a case" in row.error for row in found.rows)


@pytest.mark.parametrize("ask", ["'x' * 60000", "7", "'?', 32, [0, 0]", "'?', 32, 3", "'?', 32, [1e9]"])
def test_a_question_of_no_sensible_form_reaches_no_model(tmp_path: Path, ask: str) -> None:
    counting = Counting()
    found = evaluate(
        one_choice(), [counting], tmp_path, sandbox=Unguarded(), pipeline=raw_program("infer", f"return ask({ask})")
    )
    assert counting.asked == []
    assert "ValueError" in found.rows[0].error


@dataclass
class Hanging:
    """A stand-in for a sandbox that ends every process at its limit of three seconds."""

    runs: int = 0
    ended_at_s: float = 3.0
    exit_code: int = -9

    def run(self, files: Any, main: str, inputs: Any = None, serve: Any = None) -> Any:
        self.runs += 1
        return Ended(self.exit_code, "It ran longer than 3 s and was ended.", "", "", self.ended_at_s)


def test_a_program_that_hangs_is_not_started_again_for_every_case(tmp_path: Path) -> None:
    hanging = Hanging()
    found = evaluate(pool(12), [Counting()], tmp_path, sandbox=hanging)
    assert hanging.runs == 3 + 3, "three for the predictions, three for the scores"
    assert "It ran longer than 3 s" in found.rows[0].error
    assert "not started again" in found.rows[11].error
    slow = Hanging(exit_code=1, ended_at_s=200.0)
    evaluate(pool(12), [Counting()], tmp_path / "slow", sandbox=slow)
    assert slow.runs == 2 + 2


class Picky:
    """The adapter of a lab that needs a picture and does not say so."""

    adapter_version = "1"
    is_chat = False

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> Picky:
        return cls()

    def respond(self, asked: Any) -> list[Answer]:
        return [Answer(str(one.images[0][0, 0, 0])) for one in asked]


def test_a_model_that_raises_on_a_question_ends_neither_the_others_nor_its_other_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = ModelEntry(name="picky", description="-", adapter="test_evaluation:Picky")
    monkeypatch.setattr(MODELS, "_entries", {**MODELS, "picky": entry})
    (tmp_path / "media").mkdir()
    cv2.imwrite(str(tmp_path / "media" / "1.png"), np.full((8, 8, 3), 3, np.uint8))
    medium = {"path": "media/1.png", "sha256": hashlib.sha256((tmp_path / "media" / "1.png").read_bytes()).hexdigest()}
    both = Pool.of([question(1, answer="3", media=(medium,)), question(7)], [BenchmarkSource(name="made")], tmp_path)
    found = evaluate(both, answerers(["picky", "chance"], both), tmp_path / "out", sandbox=Unguarded())
    assert [row.score for row in found.rows[:2]] == [1.0, None]
    assert found.rows[1].unasked.startswith("picky failed: IndexError: tuple index out of range")
    assert found.scores.overall["chance"].n == 2
    assert found.failures == {}


class Unbuildable(Picky):
    """An adapter whose driver is missing."""

    @classmethod
    def from_entry(cls, entry: ModelEntry) -> Picky:
        raise ValueError("the driver is not there")


def test_a_model_that_cannot_be_built_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = ModelEntry(name="broken", description="-", adapter="test_evaluation:Unbuildable")
    monkeypatch.setattr(MODELS, "_entries", {**MODELS, "broken": entry})
    found = evaluate(pool(6), answerers(["broken", "chance"], pool(6)), tmp_path, sandbox=Unguarded())
    assert {row.answerer for row in found.rows} == {"chance"}
    assert str(found.failures["broken"]).startswith("broken cannot be built: ValueError: the driver is not there")
    told = json.loads((tmp_path / SUMMARY).read_text())
    assert told["failures"] == {"broken": str(found.failures["broken"])}
    with pytest.raises(InfrastructureError, match="broken cannot be built"):
        evaluate(pool(6), answerers(["broken"], pool(6)), tmp_path / "alone", sandbox=Unguarded())


def test_a_server_that_fails_ends_its_own_answerer_alone(tmp_path: Path) -> None:
    dead, alive = Counting(fails_at=3, name="dead"), Counting(name="alive")
    found = evaluate(pool(12), [dead, alive], tmp_path, sandbox=Unguarded())
    assert str(found.failures["dead"]) == "the server is gone"
    assert {row.answerer for row in found.rows} == {"alive"}
    assert len(read_matrix(tmp_path / SCORES).agents) == 1
    again = evaluate(pool(12), [dead, alive], tmp_path, sandbox=Unguarded())
    assert again.failures == {}
    assert len(read_matrix(tmp_path / SCORES).agents) == 2
    assert len(alive.asked) == 12


def test_a_budget_holds_for_the_answers_of_models(tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    cv2.imwrite(str(tmp_path / "media" / "1.png"), np.full((60, 80, 3), 128, np.uint8))
    medium = {"path": "media/1.png", "sha256": hashlib.sha256((tmp_path / "media" / "1.png").read_bytes()).hexdigest()}
    asked = Pool.of(
        [question(number, media=(medium,)) for number in range(6)], [BenchmarkSource(name="made")], tmp_path
    )
    out = tmp_path / "out"
    out.mkdir()
    for start in range(2):  # started again, it makes no call more
        made = answerers(["describe"], asked)
        with pytest.raises(BudgetExhaustedError, match="the budget of 4 calls is spent"):
            evaluate(asked, made, out, sandbox=Unguarded(), budget=Budget(4, file=out / CALLS))
        assert made[0].calls == (0 if start else 4)
    found = evaluate(
        asked, answerers(["describe"], asked), out, sandbox=Unguarded(), budget=Budget(6, file=out / CALLS)
    )
    assert found.calls == 2
    assert found.scores.overall["describe"].n == 6


def test_a_limit_of_tokens_is_an_option_and_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "media").mkdir()
    cv2.imwrite(str(tmp_path / "media" / "1.png"), np.full((60, 80, 3), 128, np.uint8))
    medium = {"path": "media/1.png", "sha256": hashlib.sha256((tmp_path / "media" / "1.png").read_bytes()).hexdigest()}
    asked = Pool.of(
        [question(number, media=(medium,)) for number in range(6)], [BenchmarkSource(name="made")], tmp_path
    )
    limits: list[int] = []

    def respond(self: object, requests: Any) -> list[Answer]:
        limits.extend(one.max_tokens for one in requests)
        return [Answer("<think>so", truncated=one.max_tokens < 99) for one in requests]

    monkeypatch.setattr(Describe, "respond", respond)
    for max_tokens, truncated in ((None, True), (512, False)):
        made = answerers(["describe"], asked, max_tokens=max_tokens)
        found = evaluate(asked, made, tmp_path / str(max_tokens), sandbox=Unguarded(), cache=tmp_path / "cache.sqlite")
        assert found.scores.cut_off_blank["describe"] == 6, "an old cache does not say that an answer was cut off"
        assert made[0].identity["max_tokens"] == (max_tokens or 32)
        assert truncated or limits[-1] == 512
    assert limits == [32] * 6 + [512] * 6
