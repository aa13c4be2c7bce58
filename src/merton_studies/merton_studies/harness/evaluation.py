"""Answerers run and scored on a benchmark through a pipeline in the sandbox (A2Eval, equations 10 and 11).

    OUT/pipeline/            the programs
    OUT/pieces/              results of batches: after a kill -9 the same call goes on, and the tables are the same
    OUT/predictions.parquet  a row for each answerer and question
    OUT/scores.parquet       a row for each answerer, a column for each question: `merton results import` reads it
    OUT/scores.json          means by dimension with intervals, and what they were computed from
    OUT/cost.json            measured times, calls and money
    OUT/calls.jsonl          every different call that was needed, of all starts; the limits hold for these
    OUT/fidelity.json        if asked for: agreement with Merton's second implementation of its rules

A piece is kept under the hash of all that it depends on, so an answerer that is added later costs its own calls alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton import __version__
from merton.cognition.final_answer import VERSION, final_answer
from merton.cognition.models.base import MAX_TOKENS
from merton.errors import InputError, MertonError
from merton.files import locked_folder, write_file
from merton.progress import OnProgress, unseen
from merton_studies.annotate.cache import Cache
from merton_studies.curation.budget import Budget, Call
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import questions_sha256
from merton_studies.curation.speedup import COST
from merton_studies.harness.answerers import Answerer, capability
from merton_studies.harness.batches import AskModel, Work, all_pieces, counter
from merton_studies.harness.costs import cost_of
from merton_studies.harness.fidelity import Fidelity, fidelity_of, write_fidelity
from merton_studies.harness.models import CataloguedModel
from merton_studies.harness.pipeline import INFER, Pipeline, composed, write_pipeline
from merton_studies.harness.reference import reference_prompt
from merton_studies.harness.reply import Reply
from merton_studies.harness.running import ANSWER_LIMIT, Runner
from merton_studies.harness.scores import ScoredAnswer, Scores, scores_of, write_predictions, write_scores

PIPELINE, PIECES, CACHE = "pipeline", "pieces", "answers.sqlite"


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        rows: of every answerer and question, in the order of both.
        scores: means by answerer and dimension.
        cost: as in cost.json.
        calls: of models, made in this run.
        left_out: questions without a right answer, which nothing can be scored by.
        fidelity: answerer to dimension, and "overall", to fidelity; empty unless asked for.
        failures: answerer that has no rows to the error of its server or its machine; the others were scored.
    """

    rows: tuple[ScoredAnswer, ...]
    scores: Scores
    cost: Mapping[str, Any]
    calls: int
    left_out: int
    fidelity: Mapping[str, Mapping[str, Fidelity]]
    failures: Mapping[str, MertonError] = field(default_factory=dict)


def evaluate(
    pool: Pool,
    answerers: Sequence[Answerer],
    out: Path,
    *,
    sandbox: Runner,
    pipeline: Pipeline | None = None,
    dimensions: Mapping[str, str] | None = None,
    cache: Path | None = None,
    seed: int = 0,
    fidelity: bool = False,
    budget: Budget | None = None,
    on_progress: OnProgress = unseen,
) -> Evaluation:
    """Run every answerer on every question of a pool or curated benchmark, score it, and write the tables.

    The same arguments give the same bytes, but for the times in cost.json.

    Args:
        pool: the questions; those without a right answer are left out, and counted.
        answerers: as of `answerers`, with different names.
        out: folder of the results; one that was begun is finished.
        sandbox: where the programs run.
        pipeline: validated programs; composed of the verified templates by default.
        dimensions: question to the dimension that it counts for; assigned or people's by default (`capability`).
        cache: file of the models' answers, which any number of evaluations may share; in `out` by default.
        seed: of the answerers, kept with the scores.
        fidelity: also ask each question as the reference implementation does, and write fidelity.json; for the verified
            templates the prompts are the same, so that the cache has the answers.
        budget: of the answers of models; without limits by default.
        on_progress: called with the number of answers and their total.

    Raises:
        InputError: no question with an answer, a kind of answer that the pipeline does not know, or another evaluation
            is at work in the folder.
        BudgetExhaustedError: the budget is spent; what was answered is kept.
        InfrastructureError: the sandbox or the disk failed, or the server of the only answerer, or of all; what was
            answered is kept. Where only some fail, the others are scored (`Evaluation.failures`).
    """
    questions = [question for question in pool.questions if question.answer]
    if not questions:
        raise InputError("no question has a right answer: there is nothing to score by")
    used = pipeline or composed(question.answer_kind for question in questions)
    unknown = sorted({question.answer_kind for question in questions} - set(used.kinds))
    if unknown:
        raise InputError(f"the pipeline knows no answers of the kind {unknown[0]}, only: {', '.join(used.kinds)}")
    by_id = {question.id: (dimensions or {}).get(question.id) or capability(question) for question in questions}
    with locked_folder(out, "merton curate evaluate"), _desk(answerers, cache or out / CACHE) as ask_model:
        charge = charging(budget or Budget(), used.sha256[INFER])
        for model in _models(answerers):
            model.charge = charge(model)
        write_pipeline(used, out / PIPELINE)
        moved = counter(len(answerers) * len(questions), on_progress)
        work = Work(used, sandbox, out / PIECES, ask_model, moved)
        pieces = all_pieces(work, answerers, questions)
        answerers = [answerer for answerer in answerers if answerer.name in pieces]
        rows = tuple(
            ScoredAnswer(answerer.name, question, by_id[question.id], **result)
            for answerer in answerers
            for question, result in zip(questions, _results(pieces, answerer), strict=True)
        )
        made = {
            "merton": __version__,
            "questions_sha256": questions_sha256(questions),
            "left_out": len(pool.questions) - len(questions),
            "pipeline": used.sha256,
            "final_answer": VERSION,
            "answerers": {answerer.name: answerer.identity for answerer in answerers},
            "seed": seed,
        }
        scores = scores_of(rows, made)
        write_predictions(rows, out)
        write_scores(rows, scores, out, {name: str(error) for name, error in work.failures.items()})
        cost = cost_of(pieces, answerers)
        write_file(out / COST, (json.dumps(cost, indent=1) + "\n").encode())
        compared = _fidelity(rows, answerers, ask_model, out) if fidelity else {}
    calls = sum(model.calls for model in _models(answerers))
    return Evaluation(rows, scores, cost, calls, len(pool.questions) - len(questions), compared, work.failures)


def _models(answerers: Sequence[Answerer]) -> list[CataloguedModel]:
    return [answerer for answerer in answerers if isinstance(answerer, CataloguedModel)]


def charging(budget: Budget, program: str) -> Callable[[CataloguedModel], Callable[[str], None]]:
    """Gives a model the function that charges its calls; of one budget for the threads of all models.

    Args:
        budget: see `Budget.charge`.
        program: hash of the program that asks.
    """
    charging = threading.Lock()

    def of(model: CataloguedModel) -> Callable[[str], None]:
        def charge(key: str) -> None:
            price = model.cost_per_1000 / 1000
            with charging:
                budget.charge(Call(key=key, model=model.name, prompt=INFER, version=program[:16], price=price))

        return charge

    return of


@contextmanager
def _desk(answerers: Sequence[Answerer], cache: Path) -> Iterator[AskModel]:
    """Each model and its connection to the cache in a thread of its own; answerers that compute are asked in any."""
    models = _models(answerers)
    with ExitStack() as stack:
        desks = {model.name: stack.enter_context(ThreadPoolExecutor(1)) for model in models}
        for model in models:
            model.cache = desks[model.name].submit(Cache, cache).result()
            stack.callback(lambda desk, opened: desk.submit(opened.__exit__).result(), desks[model.name], model.cache)

        def ask(answerer: Answerer, *request: Any) -> Reply:
            if isinstance(answerer, CataloguedModel):
                return desks[answerer.name].submit(answerer.answer, *request).result()
            return answerer.answer(*request)

        yield ask


def _results(pieces: Mapping[str, Sequence[Mapping[str, Any]]], answerer: Answerer) -> list[dict[str, Any]]:
    return [row for piece in pieces[answerer.name] for row in piece["rows"]]


def _fidelity(
    rows: Sequence[ScoredAnswer], answerers: Sequence[Answerer], ask_model: AskModel, out: Path
) -> dict[str, dict[str, Fidelity]]:
    """Fidelity of every answerer's rows to what the reference implementations make of it; written to a file."""
    by_name = {answerer.name: answerer for answerer in answerers}
    references = []
    for row in rows:
        request = (row.question, reference_prompt(row.question), MAX_TOKENS, None)
        said = "" if row.unasked else ask_model(by_name[row.answerer], *request).text
        references.append(final_answer(said)[:ANSWER_LIMIT])  # as much as a program sees
    found = fidelity_of(rows, references)
    write_fidelity(found, out)
    return found
