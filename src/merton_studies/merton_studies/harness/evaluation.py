"""Answerers run and scored on a benchmark through a pipeline in the sandbox (A2Eval, equations 10 and 11).

    OUT/pipeline/            the programs
    OUT/pieces/              results of batches: after a kill -9 the same call goes on, and the tables are the same
    OUT/predictions.parquet  a row for each answerer and question
    OUT/scores.parquet       a row for each answerer, a column for each question: `merton results import` reads it
    OUT/scores.json          means by dimension with intervals, and what they were computed from
    OUT/cost.json            measured times, calls and money
    OUT/calls.jsonl          every different call that was needed, of all starts; the limits hold for these
    OUT/fidelity.json        if asked for: agreement with the reference implementations

A piece is kept under the hash of all that it depends on, so an answerer that is added later costs its own calls alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton import __version__
from merton.cognition.final_answer import VERSION, cut_off_sentence, final_answer, is_unfinished
from merton.cognition.models.base import MAX_TOKENS
from merton.errors import InfrastructureError, InputError, MertonError, describe_error
from merton.files import locked_folder, write_file
from merton.processes import usable_cores
from merton.progress import OnProgress, unseen
from merton_studies.annotate.cache import Cache
from merton_studies.curation.budget import Budget, BudgetExhaustedError, Call
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question, questions_sha256
from merton_studies.harness.answerers import Answerer, capability
from merton_studies.harness.fidelity import Fidelity, fidelity_of, write_fidelity
from merton_studies.harness.models import CataloguedModel
from merton_studies.harness.pipeline import INFER, Pipeline, case_for_infer, case_for_score, composed, write_pipeline
from merton_studies.harness.reference import reference_prompt
from merton_studies.harness.reply import Reply
from merton_studies.harness.requests import storable
from merton_studies.harness.running import ANSWER_LIMIT, Runner, run_infer, run_score
from merton_studies.harness.scores import ScoredAnswer, Scores, scores_of, write_predictions, write_scores

BATCH = 250
"""Questions of a process. Ours: a start costs a tenth of a second, and a kill loses no more than a batch."""
PIPELINE, PIECES, COST, CACHE = "pipeline", "pieces", "cost.json", "answers.sqlite"


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
        moved = _counter(len(answerers) * len(questions), on_progress)
        work = _Work(used, sandbox, out / PIECES, ask_model, moved)
        pieces = _all_pieces(work, answerers, questions)
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
        write_scores(rows, scores, out)
        cost = _cost(pieces, answerers)
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


AskModel = Callable[[Answerer, Question, str, int, "tuple[int, ...] | None"], Reply]


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


@dataclass(frozen=True)
class _Work:
    """The evaluation of one batch by one answerer, in a thread."""

    pipeline: Pipeline
    sandbox: Runner
    folder: Path
    ask_model: AskModel
    on_answer: Callable[[int], None]
    stopped: threading.Event = field(default_factory=threading.Event)
    failures: dict[str, MertonError] = field(default_factory=dict)
    """Answerer to the failure after which it is asked no more."""

    def piece(self, answerer: Answerer, batch: Sequence[Question]) -> dict[str, Any]:
        """The results of a batch, from its file if it is there."""
        file = self.folder / f"{self._key(answerer, batch)}.json"
        if file.is_file():
            self.on_answer(len(batch))
            return dict(json.loads(file.read_bytes()))
        conversation = _Conversation(answerer, batch, self)
        cases = [case_for_infer(question) for question in batch]
        said, infer_s = run_infer(self.sandbox, self.pipeline.infer, cases, conversation.ask)
        if answerer.name in self.failures:
            raise self.failures[answerer.name]
        if self.stopped.is_set():
            raise InfrastructureError("the evaluation was stopped")
        texts = [outcome.value if isinstance(outcome.value, str) else "" for outcome in said]
        gold = [case_for_score(question) for question in batch]
        scored, score_s = run_score(self.sandbox, self.pipeline.score, gold, texts)
        rows = []
        for place, (prediction, score) in enumerate(zip(said, scored, strict=True)):
            cut_off, error = place in conversation.cut_off, prediction.error or score.error
            unasked = conversation.unasked.get(place, "")
            if not (unasked or error or place in conversation.answered):
                if cut_off:
                    unasked = cut_off_sentence()
                elif place not in conversation.met:
                    unasked = "the program put no question to it that can be asked"
            value = None if unasked or error else float(score.value)
            row = {"prediction": texts[place], "score": value, "error": error, "unasked": unasked}
            rows.append({**row, "cut_off": cut_off})
        piece = {
            "rows": rows,
            "infer_s": infer_s,
            "score_s": score_s,
            "prompts": conversation.prompts,
            "calls": conversation.calls,
        }
        self.on_answer(len(batch) - len(conversation.met))
        write_file(file, (json.dumps(piece) + "\n").encode())
        return piece

    def _key(self, answerer: Answerer, batch: Sequence[Question]) -> str:
        parts = [__version__, VERSION, self.pipeline.sha256, answerer.name, answerer.identity, questions_sha256(batch)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Conversation:
    """The questions that a program puts to one answerer about a batch."""

    def __init__(self, answerer: Answerer, batch: Sequence[Question], work: _Work) -> None:
        self._answerer, self._batch, self._work = answerer, batch, work
        self.met: set[int] = set()
        self.prompts = self.calls = 0
        self.unasked: dict[int, str] = {}
        self.cut_off: set[int] = set()
        self.answered: set[int] = set()
        """Places where the model said something beside its reasoning, also if the program dropped it."""

    def ask(self, place: int, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> str:
        """The raw answer; after a failure of the infrastructure nothing more is asked, and the batch is not kept."""
        if self._work.stopped.is_set() or self._answerer.name in self._work.failures:
            return ""
        self.prompts += 1
        if place not in self.met:
            self.met.add(place)
            self._work.on_answer(1)
        try:
            reply = self._work.ask_model(self._answerer, self._batch[place], prompt, max_tokens, pictures)
        except Exception as error:  # the adapter of a lab may raise anything
            told = InfrastructureError(f"{self._answerer.name} failed: {describe_error(error)}")
            if isinstance(error, MertonError):
                self._work.failures.setdefault(self._answerer.name, error)
            self._work.failures.setdefault(self._answerer.name, told)
            return ""
        self.calls += reply.called
        if reply.unasked:
            self.unasked.setdefault(place, storable(reply.unasked))
        if reply.truncated or is_unfinished(reply.text):
            self.cut_off.add(place)
        if final_answer(reply.text):
            self.answered.add(place)
        return reply.text


def _counter(total: int, on_progress: OnProgress) -> Callable[[int], None]:
    """Counts answers of all threads."""
    done, counting = 0, threading.Lock()
    on_progress(0, total)

    def count(answers: int) -> None:
        nonlocal done
        with counting:
            done += answers
            on_progress(done, total)

    return count


def _all_pieces(
    work: _Work, answerers: Sequence[Answerer], questions: Sequence[Question]
) -> dict[str, list[dict[str, Any]]]:
    """The pieces of every answerer in the order of the questions, computed on all cores; none of one that failed.

    Raises the failure where every answerer failed, or the budget is spent.
    """
    work.folder.mkdir(parents=True, exist_ok=True)
    batches = [questions[start : start + BATCH] for start in range(0, len(questions), BATCH)]
    futures: dict[str, list[Future[dict[str, Any]]]] = {answerer.name: [] for answerer in answerers}
    with ThreadPoolExecutor(usable_cores()) as threads:
        for batch in batches:  # the answerers in turn, so that two models are asked at the same time
            for answerer in answerers:
                futures[answerer.name].append(threads.submit(work.piece, answerer, batch))
        try:
            for future in as_completed([future for several in futures.values() for future in several]):
                error = future.exception()
                failure = next((one for one in work.failures.values() if one is error), None)
                if error and (failure is None or isinstance(failure, BudgetExhaustedError)):
                    raise error
        except BaseException:
            work.stopped.set()
            threads.shutdown(wait=True, cancel_futures=True)
            raise
    if len(work.failures) == len(answerers):
        raise next(iter(work.failures.values()))
    return {
        name: [future.result() for future in several] for name, several in futures.items() if name not in work.failures
    }


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


def _cost(pieces: Mapping[str, Sequence[Mapping[str, Any]]], answerers: Sequence[Answerer]) -> dict[str, Any]:
    """Measured cost by answerer, and of all (A2Eval, Table 5): of the batches as they were run, on one core each."""
    by_name: dict[str, dict[str, Any]] = {}
    for answerer in answerers:
        own = pieces[answerer.name]
        sums = {name: sum(piece[name] for piece in own) for name in ("infer_s", "score_s", "prompts", "calls")}
        by_name[answerer.name] = {
            "questions": sum(len(piece["rows"]) for piece in own),
            **sums,
            "money": sums["calls"] * answerer.cost_per_1000 / 1000,
            "tokens": None,
        }
    hardware = {"machine": platform.machine(), "cores": os.cpu_count(), "usable_cores": usable_cores()}
    seconds = sum(one["infer_s"] + one["score_s"] for one in by_name.values())
    return {"answerers": by_name, "process_s": seconds, "hardware": hardware}
