"""Reference implementations of inference and scoring, by kind of answer: a pipeline's fidelity is measured by them.

They follow the rules that docs/studies/curation.md states, in this process, with code of their own: none of the
templates' functions is used, texts are read character by character, polygons are winding numbers, sequences compared by
rapidfuzz.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import groupby

from merton.world.tasks import TASKS
from merton_studies.curation.question import Question
from merton_studies.harness.pipeline import TOLERANCE
from merton_studies.harness.reference_choice import named
from merton_studies.harness.reference_number import NUMBER_WORDS, in_bases, numbers, unit_of
from merton_studies.harness.reference_text import (
    behind_cue,
    end_of_digits,
    form,
    is_word,
    paragraph,
    tokens,
    truth,
    truth_of,
)

_FORMS = {
    "choice": "Answer with the letter of one choice alone.",
    "number": "Answer with one number alone{unit}.",
    "point": "Answer with one point [x, y] alone, in shares of the width and the height, from 0 to 1, "
    "from the upper left.",
    "yes_no": "Answer with yes or no alone.",
    "free_text": "Answer with a word or a short phrase.",
    "actions": f"Answer with the actions in their order, separated by commas, each one of: {', '.join(TASKS)}.",
}


def reference_prompt(question: Question) -> str:
    """The prompt for a question: situation, question, lettered choices, and the form of the answer, a line each."""
    lines = [part for part in (question.situation.strip(), question.text.strip()) if part]
    letters = (chr(ord("A") + place) for place in range(len(question.choices)))
    lines += [". ".join(pair) for pair in zip(letters, question.choices, strict=True)]
    unit = ", in " + question.unit if question.unit else ""
    return "\n".join([*lines, _FORMS[question.answer_kind].replace("{unit}", unit)])


def reference_score(question: Question, prediction: str) -> float:
    """The score of a prediction, 0..1, by the question's kind."""
    return _SCORES[question.answer_kind](question, prediction)


def _right(question: Question) -> Iterable[str]:
    yield question.answer
    yield from question.also


def _choice(question: Question, prediction: str) -> float:
    return float(named(question.choices, prediction) in set(_right(question)))


def _yes_no(question: Question, prediction: str) -> float:
    return float(truth(prediction) in set(_right(question)))


def _number(question: Question, prediction: str) -> float:
    value = _said_number(behind_cue(form(prediction))[0], question.unit.strip().lower())
    if value is None:
        return 0.0
    return max(_accuracy(value, Fraction(right), question.meta.get(TOLERANCE, "")) for right in _right(question))


def _accuracy(value: Fraction, right: Fraction, tolerance: str) -> float:
    off = abs(value - right)
    if tolerance:
        return float(off <= Fraction(tolerance))
    if not right:
        return float(not off)
    return sum(off < size * abs(right) for size in _SIZES) / len(_SIZES)


_SIZES = [Fraction(5 * step, 100) for step in range(1, 11)]
"""1 - t for the thresholds t = .95, .90 ... .50 of VSI-Bench."""


def _said_number(text: str, unit: str) -> Fraction | None:
    """The first number of a text, in the unit of the question."""
    found = next(numbers(text), None)
    if found is None:
        runs = groupby(text.lower(), lambda character: "a" <= character <= "z")
        words = ["".join(run) for is_latin, run in runs if is_latin]
        return next((Fraction(NUMBER_WORDS.index(word)) for word in words if word in NUMBER_WORDS), None)
    asked = unit_of(unit)
    if asked and asked[0] == found.kind:
        return found.total / asked[1]
    is_other = asked and found.kind and text[found.stop - 1].isalpha()  # a quotation mark is no inch here
    return None if is_other else found.value


def _point(question: Question, prediction: str) -> float:
    point = _said_point(behind_cue(form(prediction))[0])
    if point is None:
        return 0.0
    return float(any(_winds_about(point, json.loads(text, parse_float=Decimal)) for text in _right(question)))


def _said_point(text: str) -> tuple[Decimal, Decimal] | None:
    values: list[Decimal] = []
    place = 0
    while place < len(text) and len(values) < 2:
        before = text[place - 1] if place else " "
        signed = place + (text[place] in "+-")
        whole = text[signed : signed + 1].isdecimal()
        fraction = text[signed : signed + 1] == "." and text[signed + 1 : signed + 2].isdecimal()
        if is_word(before) or before == "." or not (whole or fraction):
            place += 1
            continue
        end = end_of_digits(text, signed)
        if text[end : end + 1] == "." and text[end + 1 : end + 2].isdecimal():
            end = end_of_digits(text, end + 1)
        value = Decimal(text[place:end])
        values.append(value.scaleb(-2) if text[end:].lstrip()[:1] == "%" else value)
        place = end
    return (values[0], values[1]) if len(values) == 2 else None


def _winds_about(point: tuple[Decimal, Decimal], corners: Sequence[Sequence[Decimal | int]]) -> bool:
    """Whether a border goes around a point an odd number of times, or through it; exact."""
    x, y = point
    turns = 0
    with localcontext() as context:
        context.prec = 200
        for place, end in enumerate(corners):
            (ax, ay), (bx, by) = ((Decimal(u) - x, Decimal(v) - y) for u, v in (corners[place - 1], end))
            side = ax * by - ay * bx
            if side == 0 and ax * bx <= 0 and ay * by <= 0:
                return True
            turns += (ay <= 0 < by and side > 0) - (by <= 0 < ay and side < 0)
    return bool(turns % 2)


def _free_text(question: Question, prediction: str) -> float:
    return max(_likeness(question.text, right, prediction) for right in _right(question))


def _likeness(asked: str, right: str, said: str) -> float:
    """0..1 for one right answer: a letter, yes or no, or words."""
    if is_letter(right):
        return float(_names_letter(asked, right, said))
    if truth_of(right):
        return float(truth(said) == truth_of(right))
    return max(_f1(*pair) for pair in _pairs(right, said))


def same_text(asked: str, right: str, said: str) -> bool:
    """Whether a text is a right one, word for word; see `merton_studies.harness.measures.exact_match`."""
    if is_letter(right):
        return _names_letter(asked, right, said)
    if truth_of(right):
        return truth(said) == truth_of(right)
    return any(first == second for first, second in _pairs(right, said))


def is_letter(right: str) -> bool:
    """Whether a right answer is one Latin letter, so that of a choice which the question lists."""
    bare = right.strip()
    return len(bare) == 1 and bare.isascii() and bare.isalpha()


def _names_letter(asked: str, right: str, said: str) -> bool:
    choices = _listed(asked)
    place = ord(right.strip().upper()) - ord("A")
    return place < len(choices) and named(choices, said) == choices[place]


def _listed(asked: str) -> list[str]:
    """The choices that a question lists behind capital letters from A on, the last such list; else 26 without words."""
    asked = unicodedata.normalize("NFKC", asked)
    marks = [(place, end) for place in range(len(asked)) if (end := _end_of_mark(asked, place))]
    starts = [at for at, (place, _) in enumerate(marks) if asked[place] == "A"]
    for first in reversed(starts):
        run = [
            mark for at, mark in enumerate(marks[first:]) if [asked[p] for p, _ in marks[first : first + at + 1]]
            == [chr(ord("A") + step) for step in range(at + 1)]
        ]  # fmt: skip
        borders = [place for place, _ in run[1:]] + [len(asked)]
        texts = [asked[end:border].strip() for (_, end), border in zip(run, borders, strict=True)]
        texts = [text.split("\n")[0] for text in texts]
        ends = [_end_of_sentence(text) for text in texts]
        if max(ends[:-1], default=-1) < 0 <= ends[-1]:  # an instruction behind the last choice
            texts[-1] = texts[-1][: ends[-1]]
        texts = [text.strip(" .,;(、") for text in texts]
        if len(run) > 1:
            if len(set(texts)) == len(run):
                return texts
            break
    return ["•" * count for count in range(1, 27)]


def _end_of_sentence(text: str) -> int:
    """The place of the first ".", "!" or "?" with a capital behind space; -1 for none. "St. Louis" is one sentence."""
    for place, character in enumerate(text):
        rest = text[place + 1 :]
        bare = rest.lstrip()
        if character not in ".!?" or rest == bare or not "A" <= bare[:1] <= "Z":
            continue
        title = text[max(place - 2, 0) : place]
        if title not in ("Dr", "Mr", "Ms", "Mt", "St") or is_word(text[place - 3 : place - 2]):
            return place
    return -1


def _end_of_mark(asked: str, place: int) -> int:
    """The end of "A.", "A)" or "A:" with the space behind it, at a place; 0 for none."""
    before = asked[place - 1] if place else ""
    if not "A" <= asked[place] <= "Z" or is_word(before) or before == "'":
        return 0
    end = place + 1 + asked[place + 1 : place + 2].isspace()
    if asked[end : end + 1] not in (".", ")", ":", "、") or end >= len(asked):
        return 0
    bare = asked[end + 1 :].lstrip()
    return len(asked) - len(bare) if bare else 0


def _pairs(right: str, said: str) -> Iterable[tuple[list[str], list[str]]]:
    """Words of the right answer and of what was said, read in each way that counts."""
    wanted, whole = form(right), form(said)
    for part in (whole, paragraph(behind_cue(whole)[0])):
        yield content_words(wanted), content_words(part)
        yield content_words(in_bases(wanted)), content_words(in_bases(part))


def content_words(text: str) -> list[str]:
    """The words of a text in `form` without articles; with them where it has no others."""
    kept, place = "", 0
    while place < len(text):
        end = _end_of_article(text, place)
        kept += " " if end else text[place]
        place = end or place + 1
    return tokens(kept) or tokens(text)


def _end_of_article(text: str, place: int) -> int:
    """The end of an article at a place, 0 for none: before a word, and no capital "A" amid a sentence."""
    before = text[place - 1] if place else ""
    if is_word(before) or before == "'":
        return 0
    for article in ("a", "an", "the"):
        end = place + len(article)
        if text[place:end].lower() != article or not text[end : end + 1].isspace():
            continue
        if not is_word(text[end:].lstrip()[:1]):
            continue
        ahead = text[:place].rstrip()
        if text[place:end] == "A" and not text.isupper() and ahead and ahead[-1] not in ".!?:;":
            return 0
        return end
    return 0


def _f1(right: list[str], said: list[str]) -> float:
    """The harmonic mean of precision and recall of words, computed as such."""
    left = list(right)
    for word in said:
        if word in left:
            left.remove(word)
    common = len(right) - len(left)
    return 2 * common / (len(right) + len(said)) if common else 0.0


def _actions(question: Question, prediction: str) -> float:
    from rapidfuzz.distance import Levenshtein

    rest = behind_cue(form(prediction))[0]
    likeness = []
    for part in (rest, paragraph(rest)):
        said = _steps(part)
        for right in _right(question):
            steps = _steps(right)
            likeness.append(Levenshtein.distance(steps, said) / max(len(steps), len(said)) if steps and said else 1.0)
    return 1.0 - min(likeness)


def _steps(text: str) -> list[str]:
    """The steps of a plan, each by the first verb of Merton's tasks in it, else by its words."""
    for mark in (";", "\n", "->", "→"):
        text = text.replace(mark, ",")
    found = []
    for piece in ",".join(_without_then(text)).split(","):
        step = tokens(_unnumbered(piece))
        if step:
            found.append(next((word for word in step if word in TASKS), " ".join(step)))
    return found


def _without_then(text: str) -> list[str]:
    parts, start = [], 0
    for place in range(len(text) - 3):
        before, after = text[place - 1 : place] or " ", text[place + 4 : place + 5] or " "
        if text[place : place + 4] == "then" and not is_word(before) and not is_word(after):
            parts.append(text[start:place])
            start = place + 4
    return [*parts, text[start:]]


def _unnumbered(piece: str) -> str:
    """A step without the number of its line."""
    bare = piece
    while bare and not is_word(bare[0]):
        bare = bare[1:]
    end = end_of_digits(bare, 0)
    return bare[end:] if 0 < end < len(bare) and not is_word(bare[end]) else piece


_SCORES: dict[str, Callable[[Question, str], float]] = {
    "choice": _choice,
    "number": _number,
    "point": _point,
    "yes_no": _yes_no,
    "free_text": _free_text,
    "actions": _actions,
}
