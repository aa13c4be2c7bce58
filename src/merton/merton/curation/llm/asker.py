"""Questions to an LLM whose answers have a form: quoted data in, a validated object out, no call made twice."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from merton.annotate.cache import Cache, CachedResponse
from merton.annotate.dataset import pixels_sha256
from merton.annotate.identity import identity
from merton.cognition.models.base import MODELS, Answer, ModelEntry, Question, VisionLanguageModel
from merton.config import Model
from merton.curation.budget import Budget, BudgetExhaustedError, Call
from merton.curation.llm.prompting import Prompt, read_prompt
from merton.curation.llm.reading import LONGEST, parsed
from merton.errors import InfrastructureError, InputError, InvalidAnswerError, MertonError, describe_error
from merton.models.rate_limit import RateLimit
from merton.world.observation import Image

ModelType = TypeVar("ModelType", bound=Model)

MAX_TOKENS = 4096
"""Longest answer in tokens (A2Eval, section 4.1)."""
_SHOWN = 1000
"""Characters of a refused answer that the model is shown again [ours]."""
RETRY = "retry"


@dataclass(frozen=True)
class Ask:
    """One call: the data for the places of a prompt, pictures ((height, width, 3) uint8 RGB), and the seed."""

    fields: Mapping[str, str]
    images: tuple[Image, ...] = ()
    seed: int = 0


def chat_model(entry: ModelEntry) -> VisionLanguageModel:
    """The model of an entry, which can be asked without pictures; raises InputError for one that cannot."""
    model = entry.build()
    if not model.is_chat:
        chats = [name for name in MODELS if MODELS[name].adapter == "openai_chat"]
        raise InputError(
            f"{entry.name} answers questions about pictures alone, so it can take no role; choose a model "
            f"behind the chat protocol: {', '.join(chats)}, or one of your own (docs/serving.md)"
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
        self.made = 0
        """Calls made by this object; those in the cache do not count."""

    @property
    def name(self) -> str:
        """Of the model."""
        return self.entry.name

    @property
    def about(self) -> dict[str, Any]:
        """What answers may depend on, beside prompts and seeds; JSON values."""
        return {**self._identity, "temperature": self._temperature}

    def ask(
        self,
        prompt: str,
        fields: Mapping[str, str],
        schema: type[ModelType],
        images: Sequence[Image] = (),
        seed: int = 0,
    ) -> ModelType:
        """The answer to a prompt, as a `schema`; asked once more, with the fault quoted, if it is refused.

        Args:
            prompt: name of a file in curation/llm/prompts, without ".md".
            fields: text for each of its places; quoted as data.
            schema: what the answer must be.
            images: (height, width, 3) uint8 RGB each.
            seed: of sampling.

        Raises:
            InvalidAnswerError: both answers are refused, or the model failed: the outcome "invalid" of this call.
            BudgetExhaustedError: the call would be beyond the budget; answers so far are in the cache.
            InfrastructureError: the server failed for longer than the model's patience; never an outcome.
        """
        (outcome,) = self.ask_all(prompt, [Ask(fields, tuple(images), seed)], schema)
        if isinstance(outcome, InvalidAnswerError):
            raise outcome
        return outcome

    def ask_all(
        self, prompt: str, asks: Sequence[Ask], schema: type[ModelType]
    ) -> list[ModelType | InvalidAnswerError]:
        """As `ask`, several at once, as many as the catalogue's `parallel`; an invalid answer is in its place."""
        template, retry = read_prompt(prompt), read_prompt(RETRY)
        texts = [template.render(ask.fields) for ask in asks]
        answers = self._answers(template, texts, asks)
        outcomes = [self._outcome(answer, schema) for answer in answers]
        refused = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, InvalidAnswerError)]
        again = []
        for place in refused:
            fields = {"fault": str(outcomes[place]), "answer": _text_of(answers[place])[:_SHOWN]}
            again.append(texts[place] + retry.render(fields))
        for place, answer in zip(refused, self._answers(template, again, [asks[p] for p in refused]), strict=True):
            outcomes[place] = self._outcome(answer, schema)
        return outcomes

    def _outcome(self, answer: str, schema: type[ModelType]) -> ModelType | InvalidAnswerError:
        stored = json.loads(answer)
        if "failed" in stored:
            return InvalidAnswerError(f"{self.name} failed: {stored['failed']}")
        try:
            return parsed(stored["text"], schema)
        except InputError as error:
            cut = f" (it was cut off after {MAX_TOKENS} tokens)" if stored["truncated"] else ""
            return InvalidAnswerError(f"{self.name} gave no valid answer: {error}{cut}")

    def _answers(self, template: Prompt, texts: Sequence[str], asks: Sequence[Ask]) -> list[str]:
        """The stored form of the answer to each text; raises as `ask` does, when all that were paid for are stored."""
        questions = {}
        keys = []
        for text, ask in zip(texts, asks, strict=True):
            key = self._key(template, text, ask)
            keys.append(key)
            questions[key] = Question(ask.images, text, MAX_TOKENS, self._temperature, ask.seed)
        about = {"model": self.name, "prompt": template.name, "version": template.version}
        exhausted: BudgetExhaustedError | None = None
        paid = []
        for key in questions:
            try:
                self._budget.charge(Call(key=key, price=self._price, **about))
            except BudgetExhaustedError as error:
                exhausted = error
                break
            paid.append(key)
        known = {key: cached.response for key, cached in self._cache.find(paid).items()}
        known |= self._call({key: questions[key] for key in paid if key not in known})
        if exhausted:
            raise exhausted
        return [known[key] for key in keys]

    def _key(self, template: Prompt, text: str, ask: Ask) -> str:
        parts = {
            **self.about,
            "prompt_file": template.version,
            "text": text,
            "pixels": [pixels_sha256(image) for image in ask.images],
            "seed": ask.seed,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _call(self, questions: Mapping[str, Question]) -> dict[str, str]:
        """Ask the model, and store each answer as it comes.

        A call begins only when there are fewer than `parallel` whose answers are not stored yet, so that no more are
        lost by a kill.
        """
        answers: dict[str, str] = {}
        waiting: dict[Future[tuple[str, float]], str] = {}

        def keep(done: Future[tuple[str, float]]) -> None:
            key = waiting.pop(done)
            if error := done.exception():
                raise error
            response, latency_s = done.result()
            self._cache.add([(key, CachedResponse(response, latency_s))])
            answers[key] = response
            self.made += 1

        with ThreadPoolExecutor(self._model.parallel) as threads:
            try:
                for key, question in questions.items():
                    if len(waiting) == self._model.parallel:
                        keep(next(as_completed(waiting)))
                    waiting[threads.submit(self._asked, question)] = key
                while waiting:
                    keep(next(as_completed(waiting)))
            except BaseException:  # of a server, or Ctrl-C: those under way are paid for
                for done in list(waiting):
                    with suppress(MertonError):
                        keep(done)
                raise
        return answers

    def _asked(self, question: Question) -> tuple[str, float]:
        """The stored form of an answer, and the time it took [s]; raises InfrastructureError for none."""
        self._limit.wait()
        started = time.monotonic()
        answer: Answer | Exception
        try:
            answer = self._model.respond([question])[0]
        except MertonError as error:
            answer = error
        except Exception as error:  # the adapter of a lab may raise anything
            answer = InfrastructureError(f"{self.name}: its adapter failed: {describe_error(error)}")
        if isinstance(answer, InvalidAnswerError):
            value: dict[str, Any] = {"failed": str(answer)}
        elif isinstance(answer, Exception):
            raise answer
        elif len(answer.text) > LONGEST:
            value = {"failed": f"its answer has {len(answer.text)} characters, more than {LONGEST}"}
        else:
            value = {"text": answer.text, "truncated": answer.truncated}
        return json.dumps(value, separators=(",", ":")), time.monotonic() - started


def _text_of(answer: str) -> str:
    return str(json.loads(answer).get("text", ""))
