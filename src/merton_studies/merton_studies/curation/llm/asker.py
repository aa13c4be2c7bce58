"""Questions to an LLM whose answers have a form: quoted data in, a validated object out, no call made twice.

An answer is checked against what was asked for (`merton_studies.curation.llm.forms`). One that is refused, has a fault
or comes too late is asked for once more, and differently: with the fault quoted, a temperature, and another seed,
because a greedy model says the same again. Then the valid part is the answer, and a call without one is an outcome of
its own, which ends no other.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from merton.cognition.models.base import MODELS, Answer, ModelEntry, Question, VisionLanguageModel, checked_answer
from merton.config import Model
from merton.errors import (
    InfrastructureError,
    InputError,
    InvalidAnswerError,
    LateAnswerError,
    MertonError,
    describe_error,
)
from merton.models.rate_limit import RateLimit
from merton.models.remote import RestingError
from merton.seeding import derive_seed
from merton.world.observation import Image
from merton_studies.annotate.cache import Cache, CachedResponse
from merton_studies.annotate.dataset import pixels_sha256
from merton_studies.annotate.identity import identity
from merton_studies.curation.budget import Budget, BudgetExhaustedError, Call
from merton_studies.curation.llm.forms import Form, ValidPart, Whole
from merton_studies.curation.llm.prompting import Prompt, read_prompt
from merton_studies.curation.llm.reading import LONGEST

ModelType = TypeVar("ModelType", bound=Model)
Result = TypeVar("Result")

MAX_TOKENS = 4096
"""Longest answer in tokens (A2Eval, section 4.1)."""
_SHOWN = 1000
"""Characters of a refused answer that the model is shown again [ours]."""
RETRY = "retry"
TEMPERATURE = 0.7
"""Of every try after the first, and of voters that share a model: a greedy one says the same again [ours; the paper
gives no temperature]."""
MOST_LATE = 6
"""Late answers in a row after which the server counts as failed: three calls, each asked twice [ours]."""
KEY_DIGITS = 12
"""Of the key of an answer in messages."""


@dataclass(frozen=True)
class Ask:
    """One call.

    Attributes:
        fields: data for the places of a prompt.
        images: (height, width, 3) uint8 RGB each.
        seed: of sampling.
        temperature: of the first try; None for the asker's.
    """

    fields: Mapping[str, str]
    images: tuple[Image, ...] = ()
    seed: int = 0
    temperature: float | None = None


class RefusedAnswerError(InvalidAnswerError):
    """No valid part in either of two answers; `fault` is what the model can be told of the second."""

    def __init__(self, text: str, fault: str) -> None:
        super().__init__(text)
        self.fault = fault


@dataclass(frozen=True)
class _Said:
    """An answer: its key, its text, whether it was cut off, and why there is none; `kept` in the cache or not."""

    key: str
    text: str = ""
    truncated: bool = False
    failed: str = ""
    kept: bool = True


def chat_model(entry: ModelEntry) -> VisionLanguageModel:
    """The model of an entry, which can be asked without pictures; raises InputError for one that cannot."""
    model = entry.build()
    if not model.is_chat:
        chats = [name for name in MODELS if MODELS[name].adapter == "openai_chat"]
        raise InputError(
            f"{entry.name} answers questions about pictures alone, so it can take no role; choose a model "
            f"behind the chat protocol: {', '.join(chats)}, or one of your own (docs/use/serving.md)"
        )
    return model


class Asker:
    """A model of the catalogue that answers prompts with JSON.

    Args:
        model: its name in the catalogue of VLMs, or an entry; it must be behind the chat protocol (`openai_chat`).
        cache: of all answers. Its key has the model's identity and revision, the prompt's text, the data, the pixels
            of the pictures, temperature, seed and the longest answer, so that a run which was killed repeats no call.
        budget: shared by all roles of a curation.
        temperature: of sampling; 0 is greedy (A2Eval, section 4.1).

    Raises:
        InputError: a model that cannot be asked without pictures.
        UnknownNameError: no such model.
        MissingDependencyError: the extra `remote` is not installed.
    """

    def __init__(self, model: str | ModelEntry, cache: Cache, budget: Budget, temperature: float = 0.0) -> None:
        self.entry = MODELS[model] if isinstance(model, str) else model
        self._model = chat_model(self.entry)
        self._price = self.entry.cost_per_1000 / 1000
        self._cache, self._budget, self._temperature = cache, budget, temperature
        self._identity = identity(self.entry, self._model) | {"kind": "chat", "max_tokens": MAX_TOKENS}
        self._limit = RateLimit(self.entry.requests_per_minute)
        self._late = 0
        self.made = 0
        """Calls made by this object; those in the cache do not count."""

    @property
    def name(self) -> str:
        """Of the model."""
        return self.entry.name

    @property
    def about(self) -> dict[str, Any]:
        """Identity and settings of the model, on which answers may depend beside prompts and seeds; JSON values."""
        return {**self._identity, "temperature": self._temperature}

    def ask(
        self,
        prompt: str,
        fields: Mapping[str, str],
        schema: type[ModelType],
        images: Sequence[Image] = (),
        seed: int = 0,
        temperature: float | None = None,
    ) -> ModelType:
        """The answer to a prompt, as a `schema`; asked once more, with the fault quoted, if it is refused.

        Args:
            prompt: name of a file in curation/llm/prompts, without ".md".
            fields: text for each of its places; quoted as data.
            schema: what the answer must be.
            images: (height, width, 3) uint8 RGB each.
            seed: of sampling.
            temperature: of the first try; None for the asker's.

        Raises:
            InvalidAnswerError: both answers are refused or late, or the model failed: the outcome "invalid" of this
                call.
            BudgetExhaustedError: the call would be beyond the budget; answers so far are in the cache.
            InfrastructureError: the server failed for longer than the model's patience, or was late `MOST_LATE` times
                in a row; never an outcome.
        """
        asks = [Ask(fields, tuple(images), seed, temperature)]
        return _raised(self.ask_all(prompt, asks, schema)[0])

    def ask_all(
        self, prompt: str, asks: Sequence[Ask], schema: type[ModelType]
    ) -> list[ModelType | InvalidAnswerError]:
        """As `ask`, several at once, as many as the catalogue's `parallel`; an invalid answer is in its place."""
        form = Whole(schema, read_prompt(prompt).examples)
        found = self.ask_parts(prompt, asks, [form] * len(asks))
        return [one if isinstance(one, InvalidAnswerError) else one.value for one in found]

    def ask_part(self, prompt: str, ask: Ask, form: Form[Result]) -> ValidPart[Result]:
        """As `ask`, but the valid part of an answer that has faults after two tries is taken, with the faults."""
        return _raised(self.ask_parts(prompt, [ask], [form])[0])

    def ask_parts(
        self, prompt: str, asks: Sequence[Ask], forms: Sequence[Form[Result]]
    ) -> list[ValidPart[Result] | InvalidAnswerError]:
        """As `ask_part`, several at once, each with its form; an invalid answer is in its place."""
        template, retry = read_prompt(prompt), read_prompt(RETRY)
        texts = [template.render(ask.fields) for ask in asks]
        answers = self._answers(template, texts, asks)
        outcomes = [self._outcome(answer, form) for answer, form in zip(answers, forms, strict=True)]
        again = [place for place, outcome in enumerate(outcomes) if _fault_of(outcome)]
        second_texts, second_asks = [], []
        for place in again:
            fields = {"fault": _fault_of(outcomes[place]), "answer": answers[place].text[:_SHOWN]}
            second_texts.append(texts[place] + retry.render(fields))
            second_asks.append(self._sampled(asks[place], 1))
        for place, second in zip(again, self._answers(template, second_texts, second_asks), strict=True):
            outcomes[place] = self._joined(forms[place], outcomes[place], answers[place], second)
        return outcomes

    def _sampled(self, ask: Ask, tries: int) -> Ask:
        """A call that is asked again, after some tries: with a temperature, and a seed of 31 bits of its own."""
        temperature = max(TEMPERATURE, self._temperature if ask.temperature is None else ask.temperature)
        return replace(ask, temperature=temperature, seed=derive_seed("another try", ask.seed, tries) % 2**31)

    def _outcome(self, answer: _Said, form: Form[Result]) -> ValidPart[Result] | InvalidAnswerError:
        if answer.failed:
            return RefusedAnswerError(f"{self.name} failed: {answer.failed}", answer.failed)
        try:
            return form.read(answer.text)
        except InputError as error:
            cut = f" (it was cut off after {MAX_TOKENS} tokens)" if answer.truncated else ""
            return RefusedAnswerError(f"{self.name} gave no valid answer: {error}{cut}", f"{error}{cut}")

    def _joined(
        self, form: Form[Result], first: ValidPart[Result] | InvalidAnswerError, answer: _Said, said: _Said
    ) -> ValidPart[Result] | InvalidAnswerError:
        """The outcome of two tries; `answer` is the text of the first, `said` of the second."""
        second = self._outcome(said, form)
        if isinstance(first, ValidPart) and isinstance(second, ValidPart):
            return form.join(first, second)
        if isinstance(first, ValidPart) or isinstance(second, ValidPart):
            return first if isinstance(first, ValidPart) else second
        kept = [one.key[:KEY_DIGITS] for one in (answer, said) if one.kept]
        told = f" (kept as {' and '.join(kept)}: see `merton curate answer`)" if kept else ""
        return RefusedAnswerError(f"{second}{told}", _fault_of(second))

    def _answers(self, template: Prompt, texts: Sequence[str], asks: Sequence[Ask]) -> list[_Said]:
        """The answer to each text; raises as `ask` does, when all that were paid for are stored."""
        keys = [self._key(template, text, ask) for text, ask in zip(texts, asks, strict=True)]
        again = self._cache.forgotten(keys)
        questions, paid = {}, []
        exhausted: BudgetExhaustedError | None = None
        for key, text, ask in zip(keys, texts, asks, strict=True):
            if key in questions:
                continue
            tries = again.get(key, 0)
            asked = self._sampled(ask, 1 + tries) if tries else ask
            temperature = self._temperature if asked.temperature is None else asked.temperature
            questions[key] = Question(asked.images, text, MAX_TOKENS, temperature, asked.seed)
            charged = f"{key}.{tries}" if tries else key
            call = Call(key=charged, model=self.name, prompt=template.name, version=template.version, price=self._price)
            try:
                self._budget.charge(call)
            except BudgetExhaustedError as error:
                exhausted = error
                break
            paid.append(key)
        stored = {key: cached.response for key, cached in self._cache.find(paid).items()}
        known = {key: _said(key, response) for key, response in stored.items()}
        known |= self._call(template, {key: questions[key] for key in paid if key not in known})
        if exhausted:
            raise exhausted
        return [known[key] for key in keys]

    def _key(self, template: Prompt, text: str, ask: Ask) -> str:
        parts = {
            **self.about,
            "temperature": self._temperature if ask.temperature is None else ask.temperature,
            "prompt_file": template.version,
            "text": text,
            "pixels": [pixels_sha256(image) for image in ask.images],
            "seed": ask.seed,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _call(self, template: Prompt, questions: Mapping[str, Question]) -> dict[str, _Said]:
        """Ask the model, and store each answer as it comes.

        A call begins only when there are fewer than `parallel` whose answers are not stored yet, so that no more are
        lost by a kill. One that the server does not answer in time ends no other, and is not stored.
        """
        answers: dict[str, _Said] = {}
        waiting: dict[Future[tuple[str, float]], str] = {}

        def keep(done: Future[tuple[str, float]]) -> None:
            key = waiting.pop(done)
            error = done.exception()
            if isinstance(error, LateAnswerError):
                self._late += 1
                if self._late == MOST_LATE:
                    raise InfrastructureError(f"{self.name} was late {MOST_LATE} times in a row: {error}") from None
                told = f"{error}; a shorter answer, or a longer patience.deadline_s in its entry, may do"
                answers[key] = _Said(key, failed=told, kept=False)
                return
            if error:
                raise error
            response, latency_s = done.result()
            self._cache.add([(key, CachedResponse(response, latency_s))])
            answers[key] = _said(key, response)
            self.made += 1
            self._late = 0

        with ThreadPoolExecutor(self._model.parallel) as threads:
            try:
                for key, question in questions.items():
                    if len(waiting) == self._model.parallel:
                        keep(next(as_completed(waiting)))
                    waiting[threads.submit(self._asked, template, question)] = key
                while waiting:
                    keep(next(as_completed(waiting)))
            except BaseException:  # of a server, or Ctrl-C: those under way are paid for
                for done in list(waiting):
                    with suppress(MertonError):
                        keep(done)
                raise
        return answers

    def _asked(self, template: Prompt, question: Question) -> tuple[str, float]:
        """The stored form of an answer, and the time it took [s]; raises InfrastructureError for none."""
        self._limit.wait()
        started = time.monotonic()
        answer: Answer | Exception
        while True:
            try:
                output: object = self._model.respond([question])[0]
                answer = output if isinstance(output, Exception) else self._checked(output)
            except MertonError as error:
                answer = error
            except Exception as error:  # the adapter of a lab may raise anything
                answer = InfrastructureError(f"{self.name}: its adapter failed: {describe_error(error)}")
            if not isinstance(answer, RestingError):
                break
            time.sleep(answer.left_s)  # calls before this one were late: a failure of another kind ends the work
        if isinstance(answer, InvalidAnswerError):
            value: dict[str, Any] = {"failed": str(answer)}
        elif isinstance(answer, Exception):
            raise answer
        elif len(answer.text) > LONGEST:
            value = {"failed": f"its answer has {len(answer.text)} characters, more than {LONGEST}"}
        else:
            value = {"text": answer.text, "truncated": answer.truncated}
        value["asked"] = {
            "model": self.name,
            "prompt": template.name,
            "temperature": question.temperature,
            "seed": question.seed,
        }
        return json.dumps(value, separators=(",", ":")), time.monotonic() - started

    def _checked(self, output: object) -> Answer:
        """The answer of an adapter; raises InfrastructureError for one that is none, which is not kept."""
        try:
            return checked_answer(output, self.name)
        except InvalidAnswerError as error:
            raise InfrastructureError(f"{self.name}: its adapter failed: {error}") from None


def _said(key: str, response: str) -> _Said:
    """An answer as it is stored."""
    value = json.loads(response)
    return _Said(key, value.get("text", ""), bool(value.get("truncated")), value.get("failed", ""))


def _fault_of(outcome: ValidPart[Any] | InvalidAnswerError) -> str:
    """Fault of an answer, for its model; "" for a whole one."""
    if isinstance(outcome, RefusedAnswerError):
        return outcome.fault
    return "; ".join(outcome.faults) if isinstance(outcome, ValidPart) else str(outcome)


def _raised(outcome: Result | InvalidAnswerError) -> Result:
    if isinstance(outcome, InvalidAnswerError):
        raise outcome
    return outcome
