"""What the composed scoring programs, and the reference implementations, read in answers as models write them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from merton_studies.curation.question import ANSWER_KINDS, Question
from merton_studies.harness.measures import exact_match
from merton_studies.harness.pipeline import SHARED, case_for_score, composed
from merton_studies.harness.reference import reference_score

PROGRAM: dict[str, Any] = {}
exec(composed(ANSWER_KINDS).score, PROGRAM)
WAYS = ("left", "right", "up", "down")


def asked(kind: str, answer: str, **values: Any) -> Question:
    return Question.model_validate(
        {"id": "q", "source": "made", "text": "Which?", "answer_kind": kind, "answer": answer, **values}
    )


def score(question: Question, said: str) -> float:
    found = float(PROGRAM["score"](case_for_score(question), said))
    assert found == pytest.approx(reference_score(question, said)), "the reference reads it otherwise"
    return found


@pytest.mark.parametrize(
    "said",
    [
        *("B", "(b)", "b) right", "**B**", "$B$", "B.", "B: right", "B)\nright", '{"answer": "B"}'),
        *("B\n\nBecause the left thing is A.", "The left one is nearer.\n\nB", "B because it is nearer than A"),
        *("B, because A is wrong", "B, since A is far", "B. right\n\nA is wrong.", "It is B, not A"),
        *("Answer: I think it is B", "I think B", "I choose B over A", "Therefore, B.", "A is far, C is far, so B"),
        *("The answer is b", "The correct option is (B).", "Final answer: **B. right**", "B is the answer."),
        *("B is the correct choice because it is near", "B. I made this choice because A is far."),
        *(
            "Ｂ",
            "（Ｂ）",
            "Ｂ、右",
            "答案：B",
            "答案是B。因为A太远",
            "我选择 B",
            "选B",
            "正解はB",
            "정답은 B",
            "La respuesta es B",
        ),
        *("right", "It is on the right.", "The answer is not A, it is B."),
    ],
)
def test_a_choice_is_read_in_what_stands_around_it(said: str) -> None:
    question = asked("choice", "right", choices=WAYS)
    assert score(question, said) == 1.0
    assert score(asked("choice", "left", choices=WAYS), said) == 0.0


@pytest.mark.parametrize(
    "said",
    [
        *("", "A or B", "A, B", "A. B.", "Both A and B", "Neither A nor B", "not B", "The answer is not B."),
        *("A. left\nB. right\nC. up\nD. down", "A. left B. right C. up", "left or right", "I cannot tell", "E"),
    ],
)
def test_no_choice_and_several_choices_are_none(said: str) -> None:
    assert [score(asked("choice", way, choices=WAYS), said) for way in WAYS[:2]] == [0.0, 0.0]


@pytest.mark.parametrize(
    "said",
    [
        *("The answer cannot be B", "I don't think it is B", "B can't be right", "I rule out B", "Eliminate B"),
        *(
            "B is ruled out",
            "anything but B",
            "B不对",
            "B是错的",
            "不选B",
            "不可能是B",
            "B选项不对",
            "B is the wrong answer",
        ),
        *("I do not choose option B", "I would never say the answer is B", "It’s not B", "I can’t say B", "排除B"),
        *("It is not A or B", "A and B are wrong", "A, B and C are wrong", "not A, B or C"),
        *("The answer is not right.", "It is not on the right.", "right is wrong", "The answer isn't right"),
        *("neither left nor right", "not left or right", "left and right are wrong"),
    ],
)
def test_a_choice_that_is_rejected_is_not_named(said: str) -> None:
    """By the meaning of the sentences: each rejects the second choice, "right", and names no other."""
    assert [score(asked("choice", way, choices=WAYS), said) for way in WAYS] == [0.0] * 4


@pytest.mark.parametrize(
    "said",
    [
        *("B, because A is wrong", "not A but B", "The answer is B, not A", "It is not A and B is correct"),
        *("The answer is B and A is wrong", "It is B, and A can't be right", "B is not wrong", "B cannot be wrong"),
        *(
            "A and C are wrong, so B",
            "anything but A? No: B",
            "I am not sure it is B.",
            "I rule out A, so B",
            "不选A，选B",
        ),
        *("It is not left; it is right.", "The cup is not on the left, but on the right.", "not left. right"),
        *("정답: B입니다", "B번", "답은 B입니다", "답: B"),
    ],
)
def test_a_choice_beside_a_rejected_one_is_named(said: str) -> None:
    assert [score(asked("choice", way, choices=WAYS), said) for way in WAYS] == [0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *(("not yes", "no"), ("not no", "yes"), ("It isn't true", "no"), ("I cannot say yes", ""), ("네", "yes")),
        *(("It is not. No.", "no"), ("Maybe not. Yes", "yes"), ("I cannot say yes or no", ""), ("아니요", "no")),
    ],
)
def test_a_negated_yes_is_no_yes(said: str, meant: str) -> None:
    assert [score(asked("yes_no", right), said) for right in ("yes", "no")] == [meant == "yes", meant == "no"]


def test_an_article_is_no_letter() -> None:
    question = asked("choice", "red cube", choices=("lid", "red cube"))
    assert score(question, "Answer: A red cube") == 1.0
    assert score(question, "I see a lid and, behind it, B") == 1.0


@pytest.mark.parametrize(
    ("said", "unit", "right"),
    [
        *(("1,200", "", "1200"), ("1200", "", "1200"), ("about 1,200.5 of them", "", "1200.5")),
        *(("１．７米", "m", "1.7"), ("约170厘米", "m", "1.7"), ("170 cm", "m", "1.7"), ("1 m 70 cm", "m", "1.7")),
        # an inch is 25.4 mm, a foot 12 inches: 66 in = 1.6764 m
        *((text, "m", "1.6764") for text in ("5 ft 6 in", "5'6\"", "5′6″", "5 feet, 6 inches", "66 inches")),
        *(("6 in. tall", "cm", "15.24"), ("2 yards", "feet", "6"), ("3'", "ft", "3")),
        *(
            ("−3", "", "-3"),
            ("1/2", "", "0.5"),
            ("90 s", "min", "1.5"),
            ("1.5 minutes", "s", "90"),
            ("2 kg", "g", "2000"),
        ),
        *(("1½ m", "m", "1.5"), ("½", "", "0.5"), ("1 1/2", "", "1.5"), ("−1½", "", "-1.5"), ("5½ ft", "m", "1.6764")),
        *(("15 dm", "m", "1.5"), ("1.5 decimeters", "m", "0.15"), ("150 cms", "m", "1.5"), ("2 µm", "mm", "0.002")),
        ("5 ft 6½ in", "m", "1.6891"),  # 66.5 x 0.0254
        # no units: a preposition, another word, a quotation mark
        *(("3 in total", "m", "3"), ("3 metallic balls", "cm", "3"), ('{"answer": "3"}', "m", "3")),
    ],
)
def test_a_number_is_read_with_its_units(said: str, unit: str, right: str) -> None:
    assert score(asked("number", right, unit=unit, meta={"tolerance": "0"}), said) == 1.0


@pytest.mark.parametrize(
    "said", ["1.5 ms", "1.5 s", "1.5 lb", "1.5 μm", "9" * 5000, "1," + "111," * 2000 + "111", "1/" + "9" * 5000]
)
def test_a_unit_of_another_quantity_and_a_number_of_thousands_of_digits_are_no_length(said: str) -> None:
    assert score(asked("number", "1.5", unit="m"), said) == 0.0


def test_a_number_that_python_refuses_to_read_is_compared_as_none() -> None:
    """Python reads no more than 4,300 digits; 12 m and another length have one word of two in common."""
    question = asked("free_text", "12 m")
    assert [score(question, "9" * count + " km") for count in (250, 4299, 5000)] == pytest.approx([0.5, 0, 0])
    assert exact_match(question, "9" * 4299 + " km") == 0.0
    with pytest.raises(ValueError, match="a number has more than 300 digits"):
        asked("free_text", "9" * 5000 + " m")


@pytest.mark.parametrize(
    ("right", "said", "expected"),
    [
        *(("1.5", "1,5", 1.0), ("1.5", "3/2", 1.0), ("1.5", "1½.", 1.0), (".1", "0,1", 1.0), ("1.5", "15", 0.0)),
        *(("1,200", "1200", 1.0), ("1200", "1,200", 1.0), ("0.5", ".50", 1.0), ("3 cups", "three cups", 1.0)),
        *(("3.5 m", "350 cm", 1.0), ("350 cm", "3.5 metres", 1.0), ("6 feet", "72 inches", 1.0)),
        *(("50%", "50 percent", 1.0), ("90°", "90 degrees", 1.0), ("5 ft 6 in", "5'6\"", 1.0)),
        *(("True", "Yes", 1.0), ("true", "Yes, it is.", 1.0), ("False", "no", 1.0), ("False", "Yes", 0.0)),
        ("0.5", "5", 0.0),
        ("-3 degrees", "3 degrees", 0.5),  # one of two words
        ("3.5 m", "3.5 cm", 0.5),
        ("vitamin A", "vitamin B", 0.5),
        *(("red cube", "A red cube", 1.0), ("on a table", "ON A TABLE", 1.0), ("Plan A", "plan a", 1.0)),
        *(("red cube", "The answer is red cube.", 1.0), ("red cube", "red cube\n\nBecause it is red.", 1.0)),
        ("红色的杯子在桌子上", "红色的杯子在桌子左边", 16 / 19),  # 8 characters of 9 and 10 in common
        ("की", "का", 0.0),  # one letter with two vowels
    ],
)
def test_free_text_is_compared_in_one_form(right: str, said: str, expected: float) -> None:
    assert score(asked("free_text", right), said) == pytest.approx(expected)
    assert exact_match(asked("free_text", right), said) == float(expected == 1.0)


LISTED = "Which way? A. left. B. right. C. up."
# the form of ERQA, with the instruction behind the last choice
ERQA = (
    "Which? Choices: A. Yellow. B. Red. C. Blue. D. Green. Please answer directly with only the letter of the choice."
)
PLACES = "Where? A. Mt. Rigi. B. St. Gallen. C. Dr. Who."
LINES = "Which way?\nA: left,\nB: right\nAnswer by letter."


@pytest.mark.parametrize(
    ("text", "right", "said", "expected"),
    [
        *((LISTED, "A", said, 1.0) for said in ("A", "The answer is A.", "A. left", "left")),
        *((ERQA, "D", said, 1.0) for said in ("D", "Green", "D. Green", "The answer is Green.")),
        *((ERQA, "C", said, 0.0) for said in ("D", "Green", "D. Green")),
        *((PLACES, "C", said, 1.0) for said in ("Dr. Who", "C")),
        *(("哪边? A、左 B、右", "B", said, 1.0) for said in ("B", "右", "B、右")),
        *(("哪边？（A）左（B）右", "B", said, 1.0) for said in ("B", "右", "B、右")),
        *((LINES, "B", said, 1.0) for said in ("B. right", "right", "(b)")),
        *(("Which way? A. left. B. right.", "A", said, 0.0) for said in ("B", "right", "A or B", "a thing")),
        *(("Which letter is it?", "A", said, 1.0) for said in ("The answer is A.", "It shows the letter A", "a")),
        ("Which letter is it?", "A", "B", 0.0),
    ],
)  # fmt: skip
def test_a_key_of_one_letter_is_a_choice_in_the_question(text: str, right: str, said: str, expected: float) -> None:
    assert score(asked("free_text", right, text=text), said) == expected
    assert exact_match(asked("free_text", right, text=text), said) == expected


@pytest.mark.parametrize(
    ("right", "said"),
    [
        *(("yes", said) for said in ("True", "Yeah.", "是的", "对", "はい", "答案：是", "Answer: yes", "not false")),
        *(("no", said) for said in ("False.", "Not true", "不是", "没有", "いいえ、違います", "No, it is not", "Nope")),
    ],
)
def test_yes_and_no_have_other_words(right: str, said: str) -> None:
    assert score(asked("yes_no", right), said) == 1.0
    assert score(asked("yes_no", "no" if right == "yes" else "yes"), said) == 0.0


def test_a_point_and_a_plan_are_read_in_what_stands_around_them() -> None:
    region = "[[0.1, 0.1], [0.5, 0.1], [0.5, 0.5]]"
    assert [score(asked("point", region), text) for text in ("（０．４，０．２）", "Answer: [0.4, 0.2]")] == [1.0, 1.0]
    plan = asked("actions", "pull, pick, place")
    assert score(plan, "pull, pick, place\n\nBecause the lid must be moved first.") == 1.0


PIECES = st.sampled_from(
    [
        *(
            "A",
            "B",
            "b",
            "(B)",
            "A is",
            "I",
            "not ",
            "so ",
            "answer",
            "答案",
            "是",
            "不",
            "Ｂ",
            "１",
            "米",
            "5'6\"",
            "1/2",
        ),
        *("1/0", "1,200", "1e99", "-", ".", "in", "ft", "m", "%", "°", "yes", "not true", "\n\n", "红", "की", "\u0301"),
        *("\ud800", "²", "left", "A. left B. right", "'", '"', "{", "٣", "9" * 60, "["),
    ]
)
SAID = st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=10).flatmap(
    lambda parts: st.sampled_from(["", " "]).map(lambda space: space.join(parts))
)
QUESTIONS = [
    asked("choice", "right", choices=WAYS),
    asked("choice", "5", choices=("-5", "5", "3.50")),
    asked("number", "1.6764", unit="m"),
    asked("number", "0"),
    asked("yes_no", "no"),
    asked("point", "[[0, 0], [1, 0], [1, 1]]"),
    asked("free_text", "a red cube", also=("3.5 m", "True")),
    asked("free_text", "A", text="Which? A. left B. right"),
    asked("actions", "pull, pick"),
]


@settings(max_examples=100, deadline=None)
@given(SAID)
def test_no_answer_is_a_traceback_and_the_reference_agrees(said: str) -> None:
    for question in QUESTIONS:
        assert 0.0 <= score(question, said) <= 1.0


def test_the_parts_of_a_program_have_names_of_their_own() -> None:
    """They stand in one file: a second use of a name would change the first part."""
    import ast
    from importlib import import_module
    from inspect import getsource

    names: list[str] = []
    for part in (*SHARED, *ANSWER_KINDS):
        body = ast.parse(getsource(import_module(f"merton_studies.harness.templates.score_{part}"))).body
        names += [node.name for node in body if isinstance(node, ast.FunctionDef)]
        targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
        names += [target.id for target in targets if isinstance(target, ast.Name)]
    assert len(names) == len(set(names))
