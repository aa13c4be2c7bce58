"""Batches of questions run and scored, by every answerer on all cores; each is kept in a file of its own."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton import __version__
from merton.cognition.final_answer import VERSION, cut_off_sentence, final_answer, is_unfinished
from merton.errors import InfrastructureError, MertonError, describe_error
from merton.files import write_file
from merton.processes import usable_cores
from merton.progress import OnProgress
from merton_studies.curation.budget import BudgetExhaustedError
from merton_studies.curation.question import Question, questions_sha256
from merton_studies.harness.answerers import Answerer
from merton_studies.harness.logs import Logged
from merton_studies.harness.pipeline import Pipeline, case_for_infer, case_for_score
from merton_studies.harness.reply import Reply
from merton_studies.harness.requests import storable
from merton_studies.harness.running import ANSWER_LIMIT, Outcome, Runner, run_infer, run_score

BATCH = 250
"""Questions of a process. Ours: a start costs a tenth of a second, and a kill loses no more than a batch."""
FORM = "merton batch 2"
"""Of the file of a batch."""

AskModel = Callable[[Answerer, Question, str, int, "tuple[int, ...] | None"], Reply]


@dataclass(frozen=True)
class Work:
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
        said, infer_s = self._said(answerer, batch, conversation)
        if answerer.name in self.failures:
            raise self.failures[answerer.name]
        if self.stopped.is_set():
            raise InfrastructureError("the evaluation was stopped")
        texts = [outcome.value if isinstance(outcome.value, str) else "" for outcome in said]
        gold = [case_for_score(question) for question in batch]
        scored, score_s = run_score(self.sandbox, self.pipeline.score, gold, texts)
        rows = [
            conversation.row(place, text, prediction, score)
            for place, (text, prediction, score) in enumerate(zip(texts, said, scored, strict=True))
        ]
        piece = {
            "rows": rows,
            "infer_s": infer_s,
            "score_s": score_s,
            "waited_s": conversation.waited_s,
            "model_s": conversation.model_s,
            "prompts": conversation.prompts,
            "calls": conversation.calls,
        }
        self.on_answer(len(batch) - len(conversation.met))
        write_file(file, (json.dumps(piece) + "\n").encode())
        return piece

    def _said(
        self, answerer: Answerer, batch: Sequence[Question], conversation: _Conversation
    ) -> tuple[list[Outcome], float]:
        """The prediction for each question, and the seconds of the program; those of a log need no program."""
        if isinstance(answerer, Logged):
            raw = [conversation.ask(place, "", 0, None) for place in range(len(batch))]
            conversation.prompts = 0
            return [Outcome(storable(final_answer(text)[:ANSWER_LIMIT])) for text in raw], 0.0
        cases = [case_for_infer(question) for question in batch]
        return run_infer(self.sandbox, self.pipeline.infer, cases, conversation.ask)

    def _key(self, answerer: Answerer, batch: Sequence[Question]) -> str:
        parts = [
            FORM,
            __version__,
            VERSION,
            self.pipeline.sha256,
            answerer.name,
            answerer.identity,
            questions_sha256(batch),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Conversation:
    """The questions that a program puts to one answerer about a batch."""

    def __init__(self, answerer: Answerer, batch: Sequence[Question], work: Work) -> None:
        self._answerer, self._batch, self._work = answerer, batch, work
        self.met: set[int] = set()
        self.prompts = self.calls = 0
        self.waited_s = self.model_s = 0.0
        """Time that the program waited for answers, and that they took when they were made [s]."""
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
        began_s = time.monotonic()
        try:
            reply = self._work.ask_model(self._answerer, self._batch[place], prompt, max_tokens, pictures)
        except Exception as error:  # the adapter of a lab may raise anything
            told = InfrastructureError(f"{self._answerer.name} failed: {describe_error(error)}")
            if isinstance(error, MertonError):
                self._work.failures.setdefault(self._answerer.name, error)
            self._work.failures.setdefault(self._answerer.name, told)
            return ""
        waited_s = time.monotonic() - began_s
        self.waited_s += waited_s
        self.model_s += waited_s if reply.latency_s is None else reply.latency_s
        self.calls += reply.called
        if reply.unasked:
            self.unasked.setdefault(place, storable(reply.unasked))
        if reply.truncated or is_unfinished(reply.text):
            self.cut_off.add(place)
        if final_answer(reply.text):
            self.answered.add(place)
        return reply.text

    def row(self, place: int, text: str, prediction: Outcome, score: Outcome) -> dict[str, Any]:
        """The result of a question: no failure, of whatever, is a score."""
        cut_off, error = place in self.cut_off, prediction.error or score.error
        unasked = self.unasked.get(place, "")
        if not (unasked or error or place in self.answered):
            if cut_off:
                unasked = cut_off_sentence()
            elif place not in self.met:
                unasked = "the program put no question to it that can be asked"
        value = None if unasked or error else float(score.value)
        return {"prediction": text, "score": value, "error": error, "unasked": unasked, "cut_off": cut_off}


def counter(total: int, on_progress: OnProgress) -> Callable[[int], None]:
    """Counts answers of all threads."""
    done, counting = 0, threading.Lock()
    on_progress(0, total)

    def count(answers: int) -> None:
        nonlocal done
        with counting:
            done += answers
            on_progress(done, total)

    return count


def all_pieces(
    work: Work, answerers: Sequence[Answerer], questions: Sequence[Question]
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
