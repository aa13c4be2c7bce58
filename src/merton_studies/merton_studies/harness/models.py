"""Vision-language models of the catalogue as answerers, each answer kept in a cache."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from merton.cognition.models import base
from merton.cognition.models.base import ModelEntry, VisionLanguageModel, checked_answer
from merton.errors import InputError, InvalidAnswerError, MertonError, describe_error, is_infrastructure, reason_of
from merton.models.rate_limit import RateLimit
from merton.world.observation import Image
from merton_studies.annotate.cache import Cache, CachedResponse
from merton_studies.annotate.identity import identity
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import Question
from merton_studies.harness.reply import Reply


class CataloguedModel:
    """A VLM of the catalogue, asked about the pictures of a pool.

    To be used from one thread. A failure of the model itself is no answer, and a question that it cannot be asked,
    because it has no pictures or too many, has none: both are `Reply.unasked`. What the adapter of a lab raises beside
    Merton's own errors is a failure too, but is not kept: it is asked again the next time.

    Attributes:
        cache: of all answers, raw; without one every prompt is a call.
        charge: told the key of every answer that is needed, before it is looked up; may raise BudgetExhaustedError.
        calls: made so far; answers of the cache are none.
    """

    def __init__(self, entry: ModelEntry, pool: Pool) -> None:
        self._pool, self._entry = pool, entry
        self._model: VisionLanguageModel = entry.build()
        self.name = entry.name
        self.cost_per_1000 = entry.cost_per_1000
        self.identity: dict[str, Any] = identity(entry, self._model)
        self.cache: Cache | None = None
        self.charge: Callable[[str], None] = lambda key: None
        self.calls = 0
        self._shown: tuple[str, list[Image]] = ("", [])
        self._limit = RateLimit(entry.requests_per_minute)

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        """See `Answerer.answer`."""
        chosen = range(len(question.media)) if pictures is None else pictures
        if not all(0 <= place < len(question.media) for place in chosen):
            return Reply("", unasked=f"the program asked for a picture that is not there: {list(chosen)}")
        limit = self._entry.limit(max_tokens)
        parts = [self.identity, [question.media[place].sha256 for place in chosen], prompt, limit]
        key = hashlib.sha256(json.dumps(["merton curate", *parts], sort_keys=True).encode()).hexdigest()
        self.charge(key)
        found = self.cache.find([key]).get(key) if self.cache else None
        if found is not None:
            return self._reply(json.loads(found.response), found.latency_s, called=False)
        images = self._images(question)
        try:
            said, latency_s = self._ask([images[place] for place in chosen], prompt, limit)
        except InputError as error:
            return Reply("", unasked=str(error))
        except InvalidAnswerError as error:  # of an adapter that gives none
            return Reply("", unasked=str(error), called=True)
        except Exception as error:  # the adapter of a lab may raise anything
            if is_infrastructure(error):
                raise
            return Reply("", unasked=f"{self.name} failed: {describe_error(error)}", called=True)
        if self.cache:
            self.cache.add([(key, CachedResponse(json.dumps(said), latency_s))])
        return self._reply(said, latency_s, called=True)

    def _reply(self, said: Mapping[str, Any], latency_s: float, called: bool) -> Reply:
        """A reply from its cached form."""
        if "failed" in said:
            return Reply("", f"{self.name} failed: {said['failed']}", called, latency_s=latency_s)
        return Reply(said["text"], "", called, said.get("truncated", False), latency_s)

    def _ask(self, images: list[Image], prompt: str, max_tokens: int) -> tuple[dict[str, Any], float]:
        """The response as it is cached, and its time [s]; raises InputError and the errors of the infrastructure."""
        self._limit.wait()
        began_s = time.monotonic()
        try:
            output = self._model.respond([base.Question(tuple(images), prompt, max_tokens)])[0]
            if isinstance(output, Exception):
                raise output
        except InputError:
            raise
        except MertonError as error:
            if is_infrastructure(error):
                raise
            self.calls += 1
            return {"failed": reason_of(error)}, time.monotonic() - began_s
        self.calls += 1
        answer = checked_answer(output, self.name)
        return {"text": answer.text, "truncated": answer.truncated}, time.monotonic() - began_s

    def _images(self, question: Question) -> list[Image]:
        if self._shown[0] != question.id:
            self._shown = (question.id, self._pool.images(question))
        return self._shown[1]
