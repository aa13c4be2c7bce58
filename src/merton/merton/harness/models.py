"""Vision-language models of the catalogue as answerers, each answer kept in a cache."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from merton.annotate.cache import Cache, CachedResponse
from merton.annotate.identity import identity
from merton.cognition.models import base
from merton.cognition.models.base import Answer, ModelEntry, VisionLanguageModel
from merton.curation.pool import Pool
from merton.curation.question import Question
from merton.errors import INFRASTRUCTURE_ERRORS, InputError, MertonError
from merton.harness.answerers import Reply
from merton.models.rate_limit import RateLimit
from merton.world.observation import Image


class CataloguedModel:
    """A VLM of the catalogue, asked about the pictures of a pool.

    To be used from one thread. A failure of the model itself (`InvalidAnswerError`) is an empty answer, which scores as
    such; a question that the model cannot be asked, because it has no pictures or too many, is `Reply.unasked`.

    Attributes:
        cache: of all answers; without one every prompt is a call.
        calls: made so far; answers of the cache are none.
    """

    def __init__(self, entry: ModelEntry, pool: Pool) -> None:
        self._pool = pool
        self._model: VisionLanguageModel = entry.build()
        self.name = entry.name
        self.cost_per_1000 = entry.cost_per_1000
        self.identity: dict[str, Any] = identity(entry, self._model)
        self.cache: Cache | None = None
        self.calls = 0
        self._shown: tuple[str, list[Image]] = ("", [])
        self._limit = RateLimit(entry.requests_per_minute)

    def answer(self, question: Question, prompt: str, max_tokens: int, pictures: tuple[int, ...] | None) -> Reply:
        """See `Answerer.answer`."""
        chosen = range(len(question.media)) if pictures is None else pictures
        if not all(0 <= place < len(question.media) for place in chosen):
            return Reply("", unasked=f"the program asked for a picture that is not there: {list(chosen)}")
        parts = [self.identity, [question.media[place].sha256 for place in chosen], prompt, max_tokens]
        key = hashlib.sha256(json.dumps(["merton curate", *parts], sort_keys=True).encode()).hexdigest()
        found = self.cache.find([key]).get(key) if self.cache else None
        if found is None:
            images = self._images(question)
            try:
                said, latency_s = self._ask([images[place] for place in chosen], prompt, max_tokens)
            except InputError as error:
                return Reply("", unasked=str(error))
            found = CachedResponse(json.dumps(said), latency_s)
            if self.cache:
                self.cache.add([(key, found)])
            return Reply(said.get("text", ""), called=True)
        return Reply(json.loads(found.response).get("text", ""))

    def _ask(self, images: list[Image], prompt: str, max_tokens: int) -> tuple[dict[str, str], float]:
        """The response as it is cached, and its time [s]; raises InputError and the errors of the infrastructure."""
        self._limit.wait()
        began_s = time.monotonic()
        try:
            output = self._model.respond([base.Question(tuple(images), prompt, max_tokens)])[0]
            if isinstance(output, Exception):
                raise output
        except (InputError, *INFRASTRUCTURE_ERRORS):
            raise
        except MertonError as error:
            self.calls += 1
            return {"failed": str(error)}, time.monotonic() - began_s
        self.calls += 1
        assert isinstance(output, Answer)
        return {"text": output.text}, time.monotonic() - began_s

    def _images(self, question: Question) -> list[Image]:
        if self._shown[0] != question.id:
            self._shown = (question.id, self._pool.images(question))
        return self._shown[1]
