"""Pipelines of the verified templates, the properties of a scorer, and the wrong scorers that these catch."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from unguarded import Unguarded

from merton.errors import InputError
from merton_studies.curation.question import ANSWER_KINDS, Question
from merton_studies.harness.answerers import in_form
from merton_studies.harness.fidelity import inference_fidelity, relative_fidelity
from merton_studies.harness.guesses import inside_point, is_inside, region_center
from merton_studies.harness.pipeline import (
    Pipeline,
    case_for_infer,
    case_for_score,
    composed,
    read_pipeline,
    write_pipeline,
)
from merton_studies.harness.reference import reference_prompt, reference_score
from merton_studies.harness.validation import inference_faults, scoring_faults, trial_cases

L_SHAPE = "[[0.1, 0.1], [0.5, 0.1], [0.5, 0.5], [0.4, 0.5], [0.4, 0.2], [0.1, 0.2]]"
ANSWERS = {
    "number": "0.25",
    "point": L_SHAPE,
    "yes_no": "yes",
    "free_text": "a red cube",
    "actions": "pull, pick, place",
}
CHOICES = ("red cube", "dark red cube", "lid")


def question(kind: str, number: int = 0, **values: object) -> Question:
    own = {"choices": CHOICES, "answer": CHOICES[number % 3]} if kind == "choice" else {"answer": ANSWERS[kind]}
    unit = {"unit": "m"} if kind == "number" else {}
    texts = {
        "id": f"{kind}-{number}",
        "source": "made",
        "text": "Which one?",
        "answer_kind": kind,
        "scene": f"s{number}",
    }
    return Question.model_validate({**texts, **own, **unit, **values})


def functions(pipeline: Pipeline) -> tuple:
    """The functions of programs that are ours, in this process."""
    infer: dict = {}
    score: dict = {}
    exec(pipeline.infer, infer)
    exec(pipeline.score, score)
    return infer["predict"], score["score"]


PREDICT, SCORE = functions(composed(ANSWER_KINDS))


def scored(asked: Question, prediction: str) -> float:
    """The score of the templates; the reference must agree."""
    score = SCORE(case_for_score(asked), prediction)
    assert score == reference_score(asked, prediction)
    return float(score)


@pytest.mark.parametrize(
    ("kind", "prediction", "score"),
    [
        *(("choice", text, 1.0) for text in ("A", "a", "(A)", "A.", "A. red cube", "The answer is A", "red cube")),
        *(("choice", text, 1.0) for text in ("Answer: (A) red cube", "I would take the Red Cube.", "**A**")),
        *(
            ("choice", text, 0.0)
            for text in ("", "B", "dark red cube", "A or B", "D", "the cube", "A. B.", "red or lid")
        ),
        ("number", "0.25", 1.0),
        ("number", "about 25 cm", 1.0),
        ("number", "0,25 m", 1.0),
        ("number", "0.3", 0.6),  # off by a fifth: less than 1 - t for t = .50 to .75
        ("number", "0.375", 0.0),  # off by a half, and less than .5 is asked
        ("number", "none", 0.0),
        ("point", "[0.45, 0.4]", 1.0),
        ("point", "(10 %, 15 %)", 1.0),
        ("point", "[0.2, 0.4]", 0.0),  # in the corner of the L
        ("point", "0.45", 0.0),
        ("yes_no", "Yes, it is.", 1.0),
        ("yes_no", "The answer is yes", 1.0),
        ("yes_no", "no", 0.0),
        ("yes_no", "It may be yes or no", 0.0),
        ("free_text", "Red cube.", 1.0),
        ("free_text", "the red lid", 0.5),
        ("free_text", "", 0.0),
        ("actions", "Pull, then pick -> place", 1.0),
        ("actions", "1. pull the drawer\n2. pick it up\n3. place it", 1.0),
        ("actions", "pick, place", 2 / 3),
        ("actions", "", 0.0),
    ],
)
def test_templates_score_by_the_documented_rules(kind: str, prediction: str, score: float) -> None:
    assert scored(question(kind), prediction) == pytest.approx(score)


def test_a_tolerance_replaces_the_mean_relative_accuracy() -> None:
    near = question("number", meta={"tolerance": "0.05"})
    assert [scored(near, text) for text in ("0.3", "0.31", "20 cm", "0.25")] == [1.0, 0.0, 1.0, 1.0]
    assert [scored(question("number", answer="0"), text) for text in ("0", "0.01")] == [1.0, 0.0]


FRAGMENTS = """A B b C G (B) B. B) a ; , . : ' _ - is isn't the\\ answer\\ is Answer: choice option
red\\ cube dark\\ red RED cube lid
0.5 m 0.25 25\\ cm 250mm .25 1,000 0,25 -3 1e2 three twelve yes no Yes, not pick Place pull\\ it then
-> → 1.\\ pick [0.3,\\ 0.15] 30% x=0.2 É é ² 1,020\\ mm 1,2345 0.2375 kilometres metres answerable x1 1x ٣ (C) an on"""


def test_the_reference_agrees_with_the_templates_on_anything() -> None:
    """Two implementations of one text of rules: 1,000 answers put together at random, among them nonsense."""
    fragments = [one.replace("\x00", " ") for one in FRAGMENTS.replace("\\ ", "\x00").split()]
    asked = [question(kind, also=("red lid",) if kind == "free_text" else ()) for kind in ANSWER_KINDS]
    draw = random.Random(0)
    for _ in range(1000):
        text = "".join(draw.choice(fragments) + draw.choice(["", " ", " ", "\n"]) for _ in range(draw.randint(0, 6)))
        for one in asked:
            assert SCORE(case_for_score(one), text) == reference_score(one, text), (one.answer_kind, text)
    for one in asked:
        prompts: list[str] = []
        PREDICT(case_for_infer(one), lambda prompt, prompts=prompts: prompts.append(prompt) or "x")
        assert prompts == [reference_prompt(one)]


def test_a_case_of_inference_tells_nothing_of_the_answer() -> None:
    secret = {"also": ("SECRET",), "dimension": "SECRET", "twin_of": "SECRET", "meta": {"a": "SECRET"}, "id": "SECRET"}
    asked = question("free_text", answer="SECRET", source="SECRET", scene="SECRET", **secret)
    assert "SECRET" not in str(case_for_infer(asked))
    assert "SECRET" in str(case_for_score(asked))


def test_the_templates_pass_the_validation_of_written_programs() -> None:
    asked = trial_cases([question(kind, number) for kind in ANSWER_KINDS for number in range(6)])
    assert len(asked) == 16
    assert {one.answer_kind for one in asked} == set(ANSWER_KINDS)
    pipeline, sandbox = composed(ANSWER_KINDS), Unguarded()

    def right(number: int, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> str:
        one = asked[number]
        return in_form(one, region_center(one.answer) if one.answer_kind == "point" else one.answer, prompt)

    faults, predictions = inference_faults(pipeline.infer, asked, sandbox, right, right)
    assert faults == []
    assert scoring_faults(pipeline.score, asked, predictions, sandbox) == []


WRONG = {
    "always 1": "return 1.0",
    "always 0": "return 0",
    "ignores the choices": "return float(prediction.strip() == case['answer'])",
    "off by one letter": "return float(prediction.strip('().')[:1] == chr(66 + case['choices'].index(case['answer'])))",
    "inverted": "return 1.0 - right(case, prediction)",
    "by length": "return min(1.0, len(prediction) / 10)",
    "not a number": "return float('nan')",
    "beyond 1": "return 1.7",
    "a text": "return 'right'",
    "another at each run": "import os; return right(case, prediction) * (os.getpid() % 1009 / 1009)",
    "raises": "raise KeyError('gold')",
    "ends the process": "import os; os._exit(3)",
    "its index": "return float(case['index'] == 0)",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_scorer_is_caught(wrong: str) -> None:
    """The programs know the right scores, `right`, and spoil them."""
    program = composed(["choice"]).score + f"\n\nright = score\n\n\ndef score(case, prediction):\n    {WRONG[wrong]}\n"
    asked = [question("choice", number) for number in range(3)]
    faults = scoring_faults(program, asked, ["A", "lid", ""], Unguarded())
    assert faults
    if wrong == "raises":
        assert "KeyError: 'gold'" in faults[0].text
        assert "raise KeyError('gold')" in faults[0].trace
        assert '"red cube"' in faults[0].shown
    if wrong == "beyond 1":
        assert "score returned 1.7, which is not in 0..1" in faults[0].text
    if wrong == "ends the process":
        assert "exit code 3" in faults[0].text
    if wrong in ("always 1", "off by one letter", "inverted"):
        assert all(not fault.shown for fault in faults), (
            "properties are told in words, without the case that broke them"
        )


def test_a_scorer_that_takes_any_number_for_right_is_caught() -> None:
    """Only the wrong answers show it: the right one scores 1, nothing scores 0."""
    program = "def score(case, prediction):\n    return float(any(sign.isdigit() for sign in prediction))\n"
    (fault,) = scoring_faults(program, [question("number")], ["0.25"], Unguarded())
    assert "a wrong answer to a case with answer_kind number must score less" in fault.text


def test_an_inference_program_that_drops_the_choices_is_caught() -> None:
    asked = [question("choice", number) for number in range(3)]
    program = "def predict(case, ask):\n    return ask(case['text'])[:1]\n"
    ask = lambda number, *_: asked[number].answer  # noqa: E731
    faults, predictions = inference_faults(program, asked, Unguarded(), ask, ask)
    assert "each choice on a line of its own" in faults[0].text
    assert predictions == []
    silent, _ = inference_faults("def predict(case, ask):\n    return 'A'\n", asked, Unguarded(), ask, ask)
    assert "did not ask the model" in silent[0].text


def test_a_pipeline_is_read_as_it_was_written_and_refused_when_changed(tmp_path: Path) -> None:
    write_pipeline(composed(["choice", "number"]), tmp_path)
    assert read_pipeline(tmp_path) == composed(["number", "choice", "choice"])
    (tmp_path / "score.py").write_text("def score(case, prediction):\n    return 1.0\n")
    with pytest.raises(InputError, match=r"score\.py has changed since it was validated"):
        read_pipeline(tmp_path)
    with pytest.raises(InputError, match="unknown kind of answer 'poem'"):
        composed(["poem"])


def test_fidelity_is_that_of_the_paper() -> None:
    """Section 4.6 and appendix F; 0 against 0 is faithful, and against 0 nothing else is defined (ours)."""
    assert relative_fidelity(0.45, 0.5) == pytest.approx(0.9)
    assert relative_fidelity(0.0, 0.0) == 1.0
    assert relative_fidelity(0.1, 0.0) is None
    assert inference_fidelity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert inference_fidelity("", "") == 1.0


def test_a_point_inside_a_bent_region_is_found() -> None:
    bent = [(0.1, 0.1), (0.9, 0.1), (0.9, 0.2), (0.2, 0.2), (0.2, 0.9), (0.1, 0.9)]
    assert not is_inside((0.4, 0.4), bent)
    assert is_inside(inside_point(bent), bent)
