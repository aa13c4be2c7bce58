"""Pipelines that a language model writes: the loops of Evaluator and Scorer (A2Eval, equations 8 and 9).

    f_{j+1} = Evaluator(f_j, T_s, diagnostics_j)              until the sandbox runs f on the model with the test cases
    g_{j+1} = Scorer(g_j, T_s, f(T_s), diagnostics_j)         until g scores them validly

The first round of a role is greedy, each further one has a temperature and a seed of its own: a greedy writer would
write the same again. Each round is kept as a folder: the program, and why it was refused. The writer is shown broken
contracts with the case and the traceback; of the properties that only we check (`merton_studies.harness.validation`) it
is told in general words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from merton import __version__
from merton.config import Model
from merton.errors import InfrastructureError, InputError, InvalidAnswerError
from merton.files import write_file
from merton_studies.curation.budget import BudgetExhaustedError
from merton_studies.curation.llm.asker import TEMPERATURE, Asker, RefusedAnswerError
from merton_studies.curation.llm.prompting import read_prompt
from merton_studies.curation.question import ANSWER_KINDS, Question
from merton_studies.harness.answerers import Answerer, in_form
from merton_studies.harness.guesses import region_center
from merton_studies.harness.pipeline import INFER, SCORE, Pipeline, case_for_infer, case_for_score, write_pipeline
from merton_studies.harness.running import Ask, Runner
from merton_studies.harness.validation import Fault, inference_faults, scoring_faults, trial_cases

ROUNDS = 5
"""Most rounds of each role. Ours: the paper says "a predefined iteration budget" and no number."""
LONGEST_PROGRAM = 40_000
"""Characters of a program. Ours: the composed scoring program of all kinds has some 29,000."""
DIAGNOSTICS, FOLDER = "diagnostics.json", "rounds"
NOTHING = "none yet"

Role = Literal["infer", "score"]


class Program(Model):
    """The answer of a writer."""

    program: Annotated[str, Field(min_length=1, max_length=LONGEST_PROGRAM)]


@dataclass(frozen=True)
class Attempt:
    """One round of one role: a program, or none where the answer had none, and its faults."""

    role: Role
    number: int
    program: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Written:
    """The end of the writing.

    Attributes:
        pipeline: the validated programs; None if a budget ended before there were any, and then nothing is scored.
        rounds: all attempts, in their order.
        ended: why there is no pipeline, in a sentence; "" where there is one.
    """

    pipeline: Pipeline | None
    rounds: tuple[Attempt, ...]
    ended: str = ""


def written(
    asker: Asker, questions: Sequence[Question], answerer: Answerer, sandbox: Runner, out: Path, seed: int = 0
) -> Written:
    """Let a language model write the pipeline of a benchmark.

    Args:
        asker: of the writer.
        questions: of the benchmark; those with answers are used.
        answerer: the model M that the programs are tried on.
        sandbox: where they run.
        out: folder for the rounds, and for the pipeline in the end.
        seed: of the test cases and of the probes.

    Raises:
        InputError: no question has an answer.
        InfrastructureError: the writer's server, the model or the sandbox failed.
    """
    cases = trial_cases(questions, seed=seed)
    if not cases:
        raise InputError("no question has a right answer: there is nothing to try programs on")
    rounds: list[Attempt] = []

    def model(number: int, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> str:
        reply = answerer.answer(cases[number], prompt, max_tokens, pictures)
        if reply.unasked:  # else the program would be judged by an empty text that no model said
            raise InfrastructureError(f"{answerer.name} gave no answer to try a program with: {reply.unasked}")
        return reply.text

    predictions: list[str] = []

    def infer_faults(program: str) -> list[Fault]:
        faults, said = inference_faults(program, cases, sandbox, model, _always_right(cases))
        predictions[:] = said
        return faults

    def score_faults(program: str) -> list[Fault]:
        return scoring_faults(program, cases, predictions, sandbox, seed)

    try:
        shown = [json.dumps(case_for_infer(case), ensure_ascii=False) for case in cases]
        infer = _loop("infer", asker, shown, infer_faults, rounds, out)
        pairs = zip(cases, predictions, strict=True) if infer else ()
        shown = [
            json.dumps({"case": case_for_score(case), "prediction": said}, ensure_ascii=False) for case, said in pairs
        ]
        score = _loop("score", asker, shown, score_faults, rounds, out) if infer else None
    except BudgetExhaustedError as error:
        return Written(None, tuple(rounds), str(error))
    if not infer or not score:
        last = rounds[-1]
        name = "inference" if last.role == "infer" else "scoring"
        told = last.faults[-1].text
        return Written(None, tuple(rounds), f"no valid {name} program in {ROUNDS} rounds; the last fault: {told}")
    kinds = tuple(kind for kind in ANSWER_KINDS if kind in {case.answer_kind for case in cases})
    made = {
        "merton": __version__,
        "writer": {**asker.about, "temperature_of_further_rounds": TEMPERATURE},
        "prompts": {name: read_prompt(name).version for name in ("write_infer", "write_score")},
        "rounds": {role: sum(one.role == role for one in rounds) for role in ("infer", "score")},
        "tried_on": answerer.name,
        "cases": [case.id for case in cases],
        "seed": seed,
    }
    pipeline = Pipeline(infer, score, "written", kinds, made)
    write_pipeline(pipeline, out)
    return Written(pipeline, tuple(rounds))


def _loop(
    role: Role,
    asker: Asker,
    shown: Sequence[str],
    faults_of: Callable[[str], list[Fault]],
    rounds: list[Attempt],
    out: Path,
) -> str | None:
    """The rounds of one role; the first program without faults, or None when the rounds are spent."""
    program, faults = "", [Fault(NOTHING)]
    refused: dict[str, tuple[int, list[Fault]]] = {}
    for number in range(1, ROUNDS + 1):
        fields = {
            "cases": "\n".join(shown),
            "program": program or NOTHING,
            "diagnostics": "\n\n".join(_told(fault) for fault in faults),
        }
        temperature = None if number == 1 else TEMPERATURE
        try:
            program = asker.ask(f"write_{role}", fields, Program, seed=number, temperature=temperature).program
        except InvalidAnswerError as error:
            told = error.fault if isinstance(error, RefusedAnswerError) else str(error)
            faults = [Fault(f"the answer had no program: {told}")]
            _keep(Attempt(role, number, "", tuple(faults)), rounds, out)
            continue
        if program in refused:
            first, known = refused[program]
            faults = [Fault(f"this is the program of round {first} again, letter for letter: change it"), *known]
        else:
            faults = faults_of(program)
            refused[program] = number, faults
        _keep(Attempt(role, number, program, tuple(faults)), rounds, out)
        if not faults:
            return program
    return None


def _told(fault: Fault) -> str:
    """A fault as the writer reads it."""
    case = f"The case: {fault.shown}" if fault.shown else ""
    return "\n".join(filter(None, (fault.text, case, fault.trace)))


def _keep(attempt: Attempt, rounds: list[Attempt], out: Path) -> None:
    rounds.append(attempt)
    folder = out / FOLDER / f"{attempt.role}-{attempt.number}"
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / (INFER if attempt.role == "infer" else SCORE), attempt.program.encode())
    told = {"valid": not attempt.faults, "faults": [asdict(fault) for fault in attempt.faults]}
    write_file(folder / DIAGNOSTICS, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())


def _always_right(cases: Sequence[Question]) -> Ask:
    """A model that gives the right answer in the form that the prompt asks for."""

    def ask(number: int, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> str:
        case = cases[number]
        right = region_center(case.answer) if case.answer_kind == "point" else case.answer
        return in_form(case, right, prompt)

    return ask
