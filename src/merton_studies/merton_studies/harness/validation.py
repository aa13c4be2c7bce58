"""Checks of the programs of a pipeline before any score of theirs counts.

A2Eval accepts a program that "executes reliably" and "produces valid metrics" (section 3.2). That lets a scorer pass
that gives 1 to everything, so ours also checks properties that hold for every benchmark and that the writer of a
program is not shown: the right answer scores 1, no answer 0, other letters or other words for the same choice change
nothing, and a wrong answer scores less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from merton.seeding import generator
from merton_studies.curation.question import ANSWER_KINDS, Question
from merton_studies.harness.guesses import Majority, region_center, wrong_answer
from merton_studies.harness.pipeline import case_for_infer, case_for_score
from merton_studies.harness.reference import reference_score
from merton_studies.harness.running import Ask, Outcome, Runner, run_infer, run_score

CASES = 16
"""Test cases T_s of a writer, stratified by kind of answer. Ours: the paper gives no number."""
SLOWEST_S = 0.5
"""Longest time of a case, without the model's. Ours."""
_CLOSE = 1e-9


@dataclass(frozen=True)
class Fault:
    """A reason why a program is refused.

    Attributes:
        text: for the writer: a contract that is broken, or a property in general words, without the case that shows it.
        shown: the case that the writer may see; "" of a property.
        trace: the last lines of the program's traceback, or how its process ended; "" where it did not fail.
    """

    text: str
    shown: str = ""
    trace: str = ""


@dataclass(frozen=True)
class _Probe:
    """A question, a prediction, and the property that its score must have: a value, or less than another probe's."""

    question: Question
    prediction: str
    property: str
    value: float | None = None


def trial_cases(questions: Sequence[Question], seed: int = 0) -> list[Question]:
    """Questions with answers: as many of each kind as possible, and of these of each source; the same for one seed."""
    order = generator("test cases", seed).permutation(len(questions)).tolist()
    by_kind: dict[str, list[Question]] = {kind: [] for kind in ANSWER_KINDS}
    for place in order:
        if questions[place].answer:
            by_kind[questions[place].answer_kind].append(questions[place])
    for kind, several in by_kind.items():
        sources: dict[str, int] = {}
        ranked = []
        for question in several:
            sources[question.source] = sources.get(question.source, 0) + 1
            ranked.append((sources[question.source], question))
        by_kind[kind] = [question for _, question in sorted(ranked, key=lambda pair: pair[0])]
    found: list[Question] = []
    for rank in range(CASES):
        found += [several[rank] for several in by_kind.values() if rank < len(several)]
    return found[:CASES]


def scoring_faults(
    program: str, questions: Sequence[Question], predictions: Sequence[str], sandbox: Runner, seed: int = 0
) -> list[Fault]:
    """Faults of a scoring program, the first ones of each sort; none if it may be used.

    Args:
        program: text of score.py.
        questions: test cases with answers.
        predictions: of the inference program for each, which the contract is checked on.
        sandbox: where the program runs.
        seed: of what is drawn.
    """
    cases = [case_for_score(question) for question in questions]
    first, seconds = run_score(sandbox, program, cases, predictions)
    faults = _contract(first, cases, predictions, seconds)
    if faults:
        return faults
    second, _ = run_score(sandbox, program, cases, predictions)
    for case, said, one, other in zip(cases, predictions, first, second, strict=True):
        if one != other:
            text = "two runs gave different scores for one case: the program must be deterministic"
            return [Fault(text, _told(case, said))]
    return _property_faults(program, _probes(questions, seed), sandbox)


def inference_faults(
    program: str, questions: Sequence[Question], sandbox: Runner, ask: Ask, right: Ask
) -> tuple[list[Fault], list[str]]:
    """Faults of an inference program, and its predictions for the model's answers where it has none.

    Args:
        program: text of infer.py.
        questions: test cases.
        sandbox: where the program runs.
        ask: the model that is evaluated (A2Eval, equation 8: the sandbox runs the program on it).
        right: a model that gives the right answer in the form that a prompt asks for: what the program makes of it must
            be right too, which the writer is not shown.
    """
    cases = [case_for_infer(question) for question in questions]
    asked: dict[int, list[str]] = {}

    def noted(number: int, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> str:
        asked.setdefault(number, []).append(prompt)
        return ask(number, prompt, max_tokens, pictures)

    first, _ = run_infer(sandbox, program, cases, noted)
    faults = _contract(first, cases, None, 0.0)
    if not faults:
        faults = [
            Fault("predict did not ask the model about a case", _told(case))
            for number, case in enumerate(cases)
            if number not in asked
        ][:1]
    if faults:
        return faults, []
    second, _ = run_infer(sandbox, program, cases, ask)
    differ = [number for number, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
    if differ:
        return [Fault("two runs gave different predictions for one case", _told(cases[differ[0]]))], []
    best, _ = run_infer(sandbox, program, cases, right)
    for question, outcome in zip(questions, best, strict=True):
        if outcome.error or reference_score(question, outcome.value) < 1.0 - _CLOSE:
            return [Fault(_lost(question))], []
    return [], [str(outcome.value) for outcome in first]


def _lost(question: Question) -> str:
    return (
        f"a model that always gives the right answer in the form that the prompt asks for is not right by these "
        f"predictions, for a case with answer_kind {question.answer_kind}: the prompt must have the question, the "
        "situation and each choice on a line of its own behind its letter, and the prediction must keep the answer"
    )


def _contract(
    outcomes: Sequence[Outcome], cases: Sequence[dict[str, Any]], predictions: Sequence[str] | None, seconds: float
) -> list[Fault]:
    """The first case on which a program failed or broke its contract, or its slowness."""
    for number, outcome in enumerate(outcomes):
        if outcome.error:
            said = None if predictions is None else predictions[number]
            last = outcome.error.strip().splitlines()[-1]
            return [Fault(f"the program failed on a case: {last}", _told(cases[number], said), outcome.error)]
    if seconds > SLOWEST_S * len(cases) + 5.0:
        return [Fault(f"the program took {seconds:.0f} s for {len(cases)} cases; at most {SLOWEST_S} s a case")]
    return []


def _told(case: dict[str, Any], prediction: str | None = None) -> str:
    given = case if prediction is None else {"case": case, "prediction": prediction}
    return json.dumps(given, ensure_ascii=False)[:4000]


def _probes(questions: Sequence[Question], seed: int) -> list[_Probe]:
    """Everything that is asked of a scorer; a wrong answer follows its question's right one."""
    known = Majority(questions, seed)
    found = []
    for question in questions:
        kind = question.answer_kind
        draw = generator("probes", seed, question.id)
        right = region_center(question.answer) if kind == "point" else question.answer
        found.append(_Probe(question, right, f"the right answer to a case with answer_kind {kind} must score 1", 1.0))
        nothing = f"an empty prediction for a case with answer_kind {kind} must score 0"
        found += [_Probe(question, text, nothing, 0.0) for text in ("", " ")]
        wordy = f"the right answer to a case with answer_kind {kind} must score 1 in other words too"
        found += [_Probe(question, text, wordy, 1.0) for text in _rewordings(question, right)]
        for wrong in _wrong_answers(question, known, draw):
            less = f"a wrong answer to a case with answer_kind {kind} must score less than a right one"
            found.append(_Probe(question, wrong, less))
        if kind == "choice":
            found += _permuted(question, draw)
    return found


def _rewordings(question: Question, right: str) -> list[str]:
    """The right answer as models write it."""
    kind = question.answer_kind
    if kind == "choice":
        letter = _letter(question, question.answer)
        forms = [f"({letter})", f"{letter}.", letter, f"The answer is {letter}", f"{letter}. {right}"]
        return [*forms, f"The answer is {right}.", right.upper()] if not _is_letter(right) else forms
    if kind == "yes_no":
        return [right.capitalize() + ".", right.upper(), f"The answer is {right}."]
    if kind == "number":
        return [f"The answer is {right}", f" {right} {question.unit}".rstrip()]
    if kind == "point":
        x, y = re.findall(r"[\d.]+", right)
        return [f"({x}, {y})", f"The answer is [{x},{y}]."]
    if kind == "actions":
        return [right.replace(", ", ","), right.capitalize()]
    return [right.upper(), f"{right}."]


def _is_letter(text: str) -> bool:
    return len(text.strip()) == 1


def _letter(question: Question, choice: str) -> str:
    return chr(65 + question.choices.index(choice))


def _wrong_answers(question: Question, known: Majority, draw: np.random.Generator) -> list[str]:
    right = {question.answer, *question.also}
    if question.answer_kind == "choice":
        wrong = [choice for choice in question.choices if choice not in right]
        return [*(_letter(question, choice) for choice in wrong), *(text for text in wrong if not _is_letter(text))]
    if question.answer_kind == "point":
        return ["[-1, -1]", wrong_answer(question, known, draw)]
    found = wrong_answer(question, known, draw) or "zebra"
    return [found] if reference_score(question, found) < 1.0 - _CLOSE else ["zebra"]


def _permuted(question: Question, draw: np.random.Generator) -> list[_Probe]:
    """The choices in another order: the right one's new letter is right, its old letter is wrong."""
    order = draw.permutation(len(question.choices)).tolist()
    if order == sorted(order):
        order = order[::-1]
    moved = question.model_copy(update={"choices": tuple(question.choices[place] for place in order)})
    same = "the order of the choices must not matter: the letter of the right one must score 1, other letters 0"
    found = []
    for choice in moved.choices:
        value = 1.0 if choice in (question.answer, *question.also) else 0.0
        found.append(_Probe(moved, _letter(moved, choice), same, value))
    return found


def _property_faults(program: str, probes: Sequence[_Probe], sandbox: Runner) -> list[Fault]:
    """A fault for each property that a probe breaks."""
    cases = [case_for_score(probe.question) for probe in probes]
    outcomes, _ = run_score(sandbox, program, cases, [probe.prediction for probe in probes])
    broken: dict[str, None] = {}
    right: dict[str, float] = {}
    for probe, outcome in zip(probes, outcomes, strict=True):
        if outcome.error:
            last = outcome.error.strip().splitlines()[-1]
            broken.setdefault(f"the program failed on a prediction of another form: {last}")
            continue
        score = float(outcome.value)
        right.setdefault(probe.question.id, score)
        wanted = probe.value
        fails = score >= right[probe.question.id] - _CLOSE if wanted is None else abs(score - wanted) > _CLOSE
        if fails:
            broken.setdefault(probe.property)
    return [Fault(text) for text in broken]
