"""A question of a benchmark, and where benchmarks come from."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from merton.config import Model

AnswerKind = Literal["choice", "number", "point", "yes_no", "free_text", "actions"]
ANSWER_KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)
"""The form of an answer, and how its text in `Question.answer` is written:

choice: one of `choices`, letter by letter.
number: a decimal number such as "0.25", in the unit `Question.unit`.
point: the region in which a point is right, as the JSON of a polygon [[x, y], ...] of at least three corners, in shares
    of the first picture's width and height, 0 to 1, from its upper left corner.
yes_no: "yes" or "no".
free_text: any text.
actions: verbs of docs/use/tasks.md, separated by ", ", in their order.
"""


def text_of(value: Any) -> Any:
    """A number of JSON as text: 3 and 3.0 are "3"; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return _digits(value)
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


def _digits(value: int) -> str:
    """An integer as text, raising ValueError for one that Python refuses to write."""
    try:
        return str(value)
    except ValueError:
        raise ValueError("a whole number has more digits than can be read; write it as text") from None


def answer_text_of(value: Any) -> Any:
    """A value of JSON as the text of an answer: numbers as `text_of`, true is "yes", null "", a polygon its JSON.

    Raises:
        ValueError: a list that is no list of corners, or of such lists.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    if not isinstance(value, list):
        return text_of(value)
    if not all(isinstance(one, list) and _has_numbers(one) for one in value or [None]):
        form = json.dumps(value, ensure_ascii=False)[:60]
        raise ValueError(
            f"an answer must be one text or number, or corners [[x, y], ...] of a region, got the list {form}; "
            "write further right answers in also"
        )
    return json.dumps(value)


def _has_numbers(value: Any) -> bool:
    """Whether a value of JSON is a number, or a list of such values with at least one."""
    if isinstance(value, list):
        return bool(value) and all(map(_has_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


MOST_DIGITS = 300
"""Of a number in an answer. Ours: programs read more digits as no number; Python refuses to read more than 4,300."""
_LONG_NUMBER = re.compile(rf"(?:\d,?){{{MOST_DIGITS + 1},}}")

_Named = Annotated[str, BeforeValidator(text_of)]
_Answer = Annotated[str, BeforeValidator(answer_text_of)]


class Medium(Model):
    """A picture of a question.

    Attributes:
        path: of the file, relative to the folder of the pool, with "/".
        sha256: of the file's bytes, 64 hexadecimal digits.
        time_s: of a frame of a video file, since the video's first frame; None for any other picture.
    """

    path: Annotated[str, Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    time_s: float | None = None

    @model_serializer(mode="wrap")
    def _without_unknown_time(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = serialize(self)
        return {name: value for name, value in found.items() if name != "time_s" or value is not None}


class Question(Model):
    """A question about pictures, with its answer.

    Attributes:
        id: unique in its pool.
        source: name of its benchmark, one of the pool's `BenchmarkSource`s.
        text: the question alone, without the choices.
        answer_kind: see `ANSWER_KINDS`.
        answer: the right answer, written as its kind asks; "" where the benchmark keeps it to itself.
        also: further texts that are right too.
        choices: the texts to choose from, in their order; empty unless the kind is "choice".
        unit: of a number, such as "m"; "" where it has none.
        media: pictures in their order, or the frames of a video.
        video: whether `media` are the frames of one video.
        situation: text before the question that tells where the asked one stands; may be "".
        scene: the scene that the question is about, the unit of every interval; the id where nothing is known.
        dimension: the capability that people, or the maker of the question, say it needs; "" where unknown. No
            agent sees it: it is the truth that assignments are compared with.
        twin_of: id of the question that this one repeats in other words, if the maker planted it; else "".
        meta: anything else by name.

    Where JSON has a number in place of a text, it is read as it is written (`text_of`, `answer_text_of`).
    """

    id: Annotated[_Named, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    text: Annotated[str, Field(min_length=1)]
    answer_kind: AnswerKind
    answer: _Answer = ""
    also: tuple[_Answer, ...] = ()
    choices: tuple[_Answer, ...] = ()
    unit: str = ""
    media: tuple[Medium, ...] = ()
    video: bool = False
    situation: str = ""
    scene: _Named = ""
    dimension: _Named = ""
    twin_of: _Named = ""
    meta: dict[str, _Named] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Question:
        if (self.answer_kind == "choice") != bool(self.choices):
            raise ValueError("a question has choices if its answer_kind is choice, and only then")
        if len(set(self.choices)) < len(self.choices):
            raise ValueError("two choices are the same")
        truths = _truths(self.choices)
        if truths:  # the answer true of JSON, where the choices are True and False
            object.__setattr__(self, "answer", truths.get(self.answer, self.answer))
            object.__setattr__(self, "also", tuple(truths.get(one, one) for one in self.also))
        for answer in filter(None, (self.answer, *self.also)):
            fault = _fault(self.answer_kind, answer, self.choices)
            if fault:
                raise ValueError(f"the answer {answer[:80]!r} is {fault}")
        return self

    @property
    def unit_of_intervals(self) -> str:
        """The scene, or the id of a question whose scene is unknown."""
        return self.scene or self.id

    @property
    def full_text(self) -> str:
        """Situation, question and choices: what an agent reads to say which capability is needed."""
        return " ".join(filter(None, (self.situation, self.text, " / ".join(self.choices))))


class BenchmarkSource(Model):
    """A benchmark whose questions are in a pool (A2Eval: benchmark information I_i).

    Attributes:
        name: as in `Question.source`.
        description: a few sentences about what it tests.
        licence: of its questions, an SPDX name where there is one.
        url: its page.
        citation: how its authors want it cited.
    """

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    licence: str = ""
    url: str = ""
    citation: str = ""


def _truths(choices: tuple[str, ...]) -> dict[str, str]:
    """ "yes" and "no" to the choices that say true and false; nothing where choices do not, or are yes or no."""
    names = {choice.strip().lower(): choice for choice in choices}
    if not {"true", "false"} <= set(names) or {"yes", "no"} & set(choices):
        return {}
    return {"yes": names["true"], "no": names["false"]}


def polygon(answer: str) -> list[tuple[float, float]]:
    """The corners of the region of a point's answer; raises ValueError if the text is none."""
    corners = json.loads(answer)
    if not isinstance(corners, list) or len(corners) < 3:
        raise ValueError("fewer than three corners")
    found = [(float(x), float(y)) for x, y in corners]
    if not all(0 <= value <= 1 for corner in found for value in corner):
        raise ValueError("a corner outside the picture")
    return found


def _fault(kind: AnswerKind, answer: str, choices: tuple[str, ...]) -> str:
    """Reason why a text is no answer of its kind, or ""."""
    if _LONG_NUMBER.search(answer):
        return f"no answer that can be compared: a number has more than {MOST_DIGITS} digits"
    if kind == "choice" and answer not in choices:
        return "none of the choices"
    if kind == "yes_no" and answer not in ("yes", "no"):
        return "neither yes nor no"
    if kind == "number":
        try:
            if not math.isfinite(float(answer)):
                return "no finite number"
        except ValueError:
            return "no number"
    if kind == "point":
        try:
            polygon(answer)
        except (ValueError, TypeError):
            return "no polygon [[x, y], ...] with three or more corners between 0 and 1"
    return ""


def questions_sha256(questions: Sequence[Question]) -> str:
    """A hash of questions, whole and in their order."""
    rows = [question.model_dump(mode="json") for question in questions]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
