"""From models' answers to the score of every question, by the measures of Embodied Arena's benchmarks.

The scores are what `merton.leaderboard.published.arena` makes its boards of. Navigation and task planning are judged by
a simulator: such a row has the end of the episode in place of an answer. A metric of a taxonomy of one's own that is
none of these measures is computed elsewhere: its row has the score in place of an answer.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import Field

from merton import __version__
from merton.cognition.final_answer import VERSION, final_answer, is_unfinished
from merton.cognition.text import Cider
from merton.config import Model, validated
from merton.errors import InputError, InvalidAnswerError, UnknownNameError
from merton.files import file_sha256
from merton.leaderboard.published import arena
from merton.leaderboard.published.items import ORIGINAL, SOURCE, TYPE, ItemScore, optional_names
from merton.leaderboard.published.taxonomy import Taxonomy
from merton.progress import OnProgress, unseen
from merton.results.tables import name_in, plain_number, read_rows
from merton_studies.curation.llm.asker import Ask, Asker
from merton_studies.curation.llm.prompting import read_prompt
from merton_studies.curation.question import ANSWER_KINDS, AnswerKind, Question
from merton_studies.harness import measures
from merton_studies.harness.captions import cider_score, corpora

COLUMNS = ("agent", "benchmark", "item", "dimension", "measure", "answer", "gold")
OPTIONAL = (ORIGINAL, TYPE, SOURCE, "kind", "choices", "unit", "question")
LONGEST = 20_000
"""Characters of a cell [ours]."""

EXACT, MRA, ACCURACY, F1, JUDGED = "exact match", "MRA", "Acc@0.25", "F1@0.25", "language model judge"
CIDER, MICRO_F1, SUCCESS = "CIDEr", "micro-F1", "success rate"
MEASURES = (EXACT, MRA, ACCURACY, F1, JUDGED, CIDER, MICRO_F1, SUCCESS)
"""The measures that are computed here."""
ENDS = {"1": 1.0, "true": 1.0, "yes": 1.0, "success": 1.0, "0": 0.0, "false": 0.0, "no": 0.0, "failure": 0.0}
"""The end of an episode, as a simulator's table may have it, to its score."""

PROMPT = "mark"
BEST_MARK = 5
_BATCH = 64
"""Answers that a judge is asked about before progress is reported."""


class Mark(Model):
    """A judge's answer: 1, nothing of it is right, to 5, it means the same."""

    mark: Annotated[int, Field(ge=1, le=BEST_MARK)]


@dataclass(frozen=True, slots=True)
class Answered:
    """A model's answer to a question.

    Attributes:
        agent, benchmark, item, dimension, original: as in `ItemScore`.
        measure: one of the benchmark's metrics in the taxonomy.
        answer: of the model, as text: the `final_answer` in what the table has; "" where it gave none.
        cut_off: whether what the table has ends in its reasoning, so that there is no answer.
        gold: the right answer, or several; boxes and labels as they are written; empty if the score is given.
        question: with its kind of answer, choices and unit; the kind is free_text where the measure has no other.
        where: place in the file, for messages.
        type, source: of the agent, as in `ItemScore`.
    """

    agent: str
    benchmark: str
    item: str
    dimension: str
    original: str
    measure: str
    answer: str
    gold: tuple[str, ...]
    question: Question
    where: str
    cut_off: bool = False
    type: str = ""
    source: str = ""

    @property
    def is_given(self) -> bool:
        """Whether the table has the score, or the end of an episode, in place of an answer."""
        return self.measure == SUCCESS or self.measure not in MEASURES


@dataclass(frozen=True)
class Scored:
    """Scores of answers.

    Attributes:
        scores: in the order of the answers.
        unscored: (answer, reason) of each that was cut off, that the judge gave no valid mark for, or whose right
            answers have no CIDEr; it has no score.
        about: what the scores were computed from; JSON values.
    """

    scores: tuple[ItemScore, ...]
    unscored: tuple[tuple[Answered, str], ...]
    about: Mapping[str, Any]


def read_answers(path: Path, taxonomy: Taxonomy) -> list[Answered]:
    """The answers in a table with `COLUMNS` and perhaps some of `OPTIONAL`, as in docs/studies/published_rules.md.

    Raises:
        InputError: as for `read_rows`; a name or measure that the taxonomy lacks, a gold answer that does not fit its
            kind or differs between two agents, or anything that the boards would refuse; with the line.
    """
    answers, first = [], dict[tuple[str, str], Answered]()
    for where, row in read_rows(path, COLUMNS, OPTIONAL):
        one = _answered(where, row, taxonomy)
        before = first.setdefault((one.benchmark, one.item), one)
        if (before.measure, before.gold, before.question) != (one.measure, one.gold, one.question):
            raise InputError(
                f"{where}: item {one.item!r} of {one.benchmark} has another measure, gold, kind, choices, unit or "
                f"question than in {before.where}; they belong to the question and are the same for all agents"
            )
        answers.append(one)
    if not answers:
        raise InputError(f"{path}: has no answers; every line must have: {', '.join(COLUMNS)}")
    _refuse_single_captions(first.values())
    # so that nothing is refused after a judge was paid
    arena.boards([_item(one, 0.0) for one in answers], taxonomy)
    return answers


def score_answers(answers: Sequence[Answered], judge: Asker | None = None, on_progress: OnProgress = unseen) -> Scored:
    """The score of every answer.

    Args:
        judge: for answers by `JUDGED`; a blank answer scores 0 without being asked about.
        on_progress: told how many of the judge's answers are there, and of how many.

    Raises:
        InputError: answers need a judge, and there is none.
        BudgetExhaustedError, InfrastructureError: of the judge (see `Asker.ask`); its answers so far are in the cache.
    """
    asked = [one for one in answers if one.measure == JUDGED and one.answer]
    if asked and judge is None:
        raise InputError(f"{asked[0].where}: {JUDGED} needs a judge: name a model of the catalogue with --judge")
    marks: list[float | InvalidAnswerError] = []
    for start in range(0, len(asked), _BATCH):
        if judge is not None:
            marks += _marks(judge, asked[start : start + _BATCH])
        on_progress(len(marks), len(asked))
    found = dict(zip(map(id, asked), marks, strict=True))
    ciders = corpora({(one.benchmark, one.item): one.gold for one in answers if one.measure == CIDER})
    scores, unscored = [], []
    for one in answers:
        score = found[id(one)] if id(one) in found else _computed(one, ciders)
        if one.cut_off:
            unscored.append((one, "it ends in its reasoning: was it cut off?"))
        elif isinstance(score, InvalidAnswerError):
            unscored.append((one, str(score)))
        else:
            scores.append(_item(one, score))
    return Scored(tuple(scores), tuple(unscored), _about(answers, unscored, judge if asked else None))


def _refuse_single_captions(questions: Iterable[Answered]) -> None:
    """InputError for a benchmark with one question by CIDEr, which needs two to tell rare words from common ones."""
    found = [one for one in questions if one.measure == CIDER]
    counts = Counter(one.benchmark for one in found)
    for one in found:
        if counts[one.benchmark] < 2:
            raise InputError(
                f"{one.where}: {one.benchmark} has one question by {CIDER} in the table; its corpus needs two or more: "
                "score a whole release of the benchmark"
            )


def about_file(scored: Scored, answers: Path) -> dict[str, Any]:
    """The origin of the scores of a file of answers: JSON values, the same for the same answers."""
    return {**scored.about, "answers_sha256": file_sha256(answers)}


def _computed(one: Answered, ciders: Mapping[str, Cider]) -> float | InvalidAnswerError:
    if one.is_given:
        return _given(one.measure, one.answer)
    if one.measure == CIDER:
        return cider_score(ciders[one.benchmark], one.gold, one.answer)
    if one.measure == MICRO_F1:
        return measures.label_counts(one.gold[0], one.answer).f1
    if not one.answer:
        return 0.0
    if one.measure == ACCURACY:
        return measures.box_accuracy(measures.right_boxes(one.gold[0], one.where)[0], one.answer)
    if one.measure == F1:
        return measures.box_f1(measures.right_boxes(one.gold[0], one.where), one.answer)
    compute = measures.exact_match if one.measure == EXACT else measures.mean_relative_accuracy
    return compute(one.question, one.answer)


def _marks(judge: Asker, asked: Sequence[Answered]) -> list[float | InvalidAnswerError]:
    """The mark 1..5 of each answer as a score 0..1, as OpenEQA's LLM-Match does (Majumdar and others 2024)."""
    asks = [Ask({"question": one.question.text, "right": "\n".join(one.gold), "answer": one.answer}) for one in asked]
    said = judge.ask_all(PROMPT, asks, Mark)
    return [mark if isinstance(mark, InvalidAnswerError) else (mark.mark - 1) / (BEST_MARK - 1) for mark in said]


def _item(one: Answered, score: float) -> ItemScore:
    counts = measures.label_counts(one.gold[0], one.answer) if one.measure == MICRO_F1 else None
    names = (one.agent, one.benchmark, one.item, one.dimension)
    score = score if counts is None else counts.f1
    return ItemScore(*names, score, one.original, one.where, one.type, one.source, counts)


def _given(measure: str, answer: str) -> float:
    """The score in place of an answer; NaN if it is none."""
    if measure == SUCCESS:
        number = plain_number(answer)
        text = answer.lower() if number is None else f"{number:g}"
        return ENDS.get(text, math.nan)
    number = plain_number(answer)
    return math.nan if number is None or not 0 <= number <= 1 else float(number)


def _about(
    answers: Sequence[Answered], unscored: Iterable[tuple[Answered, str]], judge: Asker | None
) -> dict[str, Any]:
    counts = Counter((one.benchmark, one.measure) for one in answers)
    marker = None if judge is None else {**judge.about, "prompt_file": read_prompt(PROMPT).version}
    return {
        "form": "merton answers 1",
        "merton": __version__,
        "final_answer": VERSION,
        "judge": marker,
        "cut_off": sum(one.cut_off for one in answers),
        "answers": [{"benchmark": name, "measure": what, "n": n} for (name, what), n in sorted(counts.items())],
        "unscored": [
            {"agent": one.agent, "benchmark": one.benchmark, "item": one.item, "reason": reason}
            for one, reason in unscored
        ],
    }


def _answered(where: str, row: Mapping[str, Any], taxonomy: Taxonomy) -> Answered:
    agent, benchmark, item, dimension, measure = (name_in(where, dict(row), column) for column in COLUMNS[:5])
    metrics = {entry.name: entry.metrics for entry in taxonomy.benchmarks}
    if benchmark not in metrics:
        raise InputError(f"{where}: {UnknownNameError('benchmark', benchmark, metrics)}")
    if measure not in metrics[benchmark]:
        raise InputError(f"{where}: {UnknownNameError(f'measure of {benchmark}', measure, metrics[benchmark])}")
    answer, gold = _text(where, row, "answer"), _texts(where, row, "gold")
    original, kind, source = optional_names(where, dict(row))
    is_given = measure == SUCCESS or measure not in MEASURES
    if is_given and (math.isnan(_given(measure, answer)) or any(gold)):
        wanted = f"the end of the episode, one of {', '.join(ENDS)}" if measure == SUCCESS else "its score, 0 to 1"
        raise InputError(f"{where}: {measure} is not made of texts: answer must be {wanted}, and gold be empty")
    if not is_given and not any(gold):
        raise InputError(f"{where}: gold is empty; {measure} needs the right answer")
    if measure == MICRO_F1:
        gold = (_text(where, row, "gold"),)
        if not measures.labels(gold[0]) and gold[0] != "[]":
            raise InputError(f"{where}: gold is {gold[0][:40]!r}; list the right labels, or write [] for none")
    if measure in (ACCURACY, F1):
        gold = (_text(where, row, "gold"),)
        right = measures.right_boxes(gold[0], where)
        if measure == ACCURACY and len(right) != 1:
            raise InputError(f"{where}: {ACCURACY} needs one right box; gold has {len(right)}")
    question = _question(where, row, measure, gold)
    cut_off = not is_given and is_unfinished(answer)
    said = answer if is_given else final_answer(answer)
    names = (agent, benchmark, item, dimension, original, measure)
    return Answered(*names, said, gold, question, where, cut_off, kind, source)


def _question(where: str, row: Mapping[str, Any], measure: str, gold: tuple[str, ...]) -> Question:
    """The question of a row; without `kind` it is a choice if it has choices, a number by MRA, else free text."""
    text = _text(where, row, "question")
    if measure == JUDGED and not text:
        raise InputError(f"{where}: question is empty; a judge must know it")
    choices = _texts(where, row, "choices")
    kind = _text(where, row, "kind") or ("choice" if choices else "number" if measure == MRA else "free_text")
    if kind not in get_args(AnswerKind):
        raise InputError(f"{where}: {UnknownNameError('kind of answer', kind, ANSWER_KINDS)}")
    if (measure == MRA) != (kind == "number") and measure != EXACT:
        raise InputError(f"{where}: the kind {kind!r} does not go with {measure}; leave it empty")
    right = gold if measure in (EXACT, MRA) else ()
    if kind == "point" and right:
        right = (_text(where, row, "gold"),)
    if kind == "choice" and not choices:
        choices, right = _letters(where, right)
    elif kind == "choice":  # a gold answer may be the letter of a choice
        right = tuple(_choice_of(one, choices) for one in right)
    content = {
        "id": "question",
        "source": "answers",
        "text": text or "-",
        "answer_kind": kind,
        "answer": right[0] if right else "",
        "also": right[1:],
        "choices": choices if kind == "choice" else (),
        "unit": _text(where, row, "unit"),
    }
    return validated(Question, json.dumps(content), where)


def _letters(where: str, right: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choices whose texts are unknown: gold names a letter, and so must an answer."""
    choices = tuple("•" * place for place in range(1, 27))  # texts that no answer mentions
    for letter in right:
        if not (len(letter) == 1 and "A" <= letter.upper() <= "Z"):
            raise InputError(f"{where}: gold is {letter[:40]!r}; without choices a choice is a letter from A to Z")
    return choices, tuple(_choice_of(letter, choices) for letter in right)


def _choice_of(right: str, choices: Sequence[str]) -> str:
    place = ord(right.upper()) - ord("A") if len(right) == 1 and right.isascii() else -1
    return choices[place] if right not in choices and 0 <= place < len(choices) else right


def _text(where: str, row: Mapping[str, Any], column: str) -> str:
    """The text of a cell; a number or a list, of a table that knows such, as it is written in JSON."""
    value = row.get(column)
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    text = str(value) if number else "" if value is None else value
    text = text.strip() if isinstance(text, str) else json.dumps(text, default=str)
    if len(text) > LONGEST:
        raise InputError(f"{where}: {column} has {len(text)} characters; at most {LONGEST} are allowed")
    return text


def _texts(where: str, row: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """The texts of a cell: several if it is the JSON of a list of texts, else the one."""
    text = _text(where, row, column)
    if text.startswith("["):
        try:
            several = json.loads(text)
        except (ValueError, RecursionError):
            several = None
        if several and isinstance(several, list) and all(isinstance(one, str) for one in several):
            return tuple(one.strip() for one in several)
    return (text,) if text else ()
