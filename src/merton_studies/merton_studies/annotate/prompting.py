"""The work inside a worker: one model in memory at a time, requests in batches, within the model's rate limit.

A response is JSON: {"text", "truncated"} of a VLM, {"deltas", "step_s", "frame", "done"} of a policy, and
{"failed": reason} of either if the model itself failed, which is an outcome.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from merton.cognition.models.base import Answer, ModelEntry, Question, checked_answer
from merton.decision.models.base import PolicyEntry
from merton.errors import (
    LONGEST_REASON,
    InfrastructureError,
    InputError,
    InvalidAnswerError,
    MertonError,
    MissingDependencyError,
    is_infrastructure,
    reason_of,
)
from merton.models.base import ModelAdapter
from merton.models.rate_limit import RateLimit
from merton.perception.dataset.intake import decode
from merton.results.text import one_line
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation
from merton_studies.annotate.dataset import pixels_sha256
from merton_studies.annotate.views import observation
from merton_studies.annotate.work import Job, Reply, Request, WorkItem

Prompt = tuple[Request, Question | Observation]
"""A request and the model's input for it."""


class ModelRunner:
    """Runs the model that a job names; keeps the last one loaded.

    Args:
        workers: number of runners that share a model's rate limit.
        clock, sleep: as in `time`; replaced in tests.
    """

    def __init__(
        self,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._workers, self._clock, self._sleep = workers, clock, sleep
        self._entry: ModelEntry | PolicyEntry | None = None
        self._model: ModelAdapter[Any, Any] | None = None
        self._limits: dict[str, RateLimit] = {}

    def run(self, job: Job) -> list[Reply]:
        """A reply to every request of a job, in its order; errors are in the replies."""
        try:
            if self._entry != job.entry:
                self._model, self._entry = None, None  # frees the old model before the new one is built
                self._model, self._entry = job.entry.build(), job.entry
        except MertonError as error:
            return [_unanswered(key, error, permanent=True) for key in job.keys]
        prompts: list[Prompt] = []
        replies: list[Reply] = []
        for item in job.items:
            try:
                image = _read(item)
            except InfrastructureError as error:
                replies += [_unanswered(request.key, error) for request in item.requests]
            else:
                prompts += [(request, _model_input(job.entry, item, request, image)) for request in item.requests]
        limit = self._limit(job.entry)
        most = int(1.0 / limit.interval_s) if limit.interval_s else len(prompts)
        size = 1 if job.one_by_one else max(1, most)
        for start in range(0, len(prompts), size):
            replies += self._run_batch(prompts[start : start + size], limit)
        places = {key: place for place, key in enumerate(job.keys)}
        return sorted(replies, key=lambda reply: places[reply.key])

    def _run_batch(self, prompts: Sequence[Prompt], limit: RateLimit) -> list[Reply]:
        """Run one batch; after a failure of the model, one request after the other."""
        keys = [request.key for request, _ in prompts]
        limit.wait(len(prompts))
        started = self._clock()
        try:
            assert self._model is not None
            outputs: Sequence[Any] = self._model.respond([model_input for _, model_input in prompts])
            if len(outputs) != len(prompts):
                raise InfrastructureError(f"{len(prompts)} requests gave {len(outputs)} responses")
        except Exception as error:
            own = isinstance(error, MertonError) and not is_infrastructure(error)
            if own and len(prompts) > 1:
                return [reply for prompt in prompts for reply in self._run_batch([prompt], limit)]
            outputs = [error] * len(prompts)
        each_s = (self._clock() - started) / len(prompts)
        return [
            _reply(key, output, each_s, self._entry.name if self._entry else "the model")
            for key, output in zip(keys, outputs, strict=True)
        ]

    def _limit(self, entry: ModelEntry | PolicyEntry) -> RateLimit:
        if entry.name not in self._limits:
            limit = RateLimit(entry.requests_per_minute, self._workers, self._clock, self._sleep)
            self._limits[entry.name] = limit
        return self._limits[entry.name]


def run_job(job: Job, workers: int) -> list[Reply]:
    """The replies to a job, by this process, which keeps its model from job to job; see `ModelRunner`."""
    return _runner(workers).run(job)


@lru_cache(maxsize=1)
def _runner(workers: int) -> ModelRunner:
    return ModelRunner(workers)


def _read(item: WorkItem) -> Image:
    """The image; raises InfrastructureError if it has changed since the jobs were made."""
    try:
        image = decode(item.file.read_bytes())
    except (OSError, InputError) as error:
        raise InfrastructureError(f"{item.file.name} cannot be read: {error}") from None
    if pixels_sha256(image) != item.pixels:
        raise InfrastructureError(f"{item.file.name} has changed since the jobs were made")
    return image


def _model_input(
    entry: ModelEntry | PolicyEntry, item: WorkItem, request: Request, image: Image
) -> Question | Observation:
    if isinstance(entry, PolicyEntry):
        return observation(image, item.taken_by, entry.cameras, request.text, request.seed)
    return Question((image,), request.text, entry.limit())


def _reply(key: str, output: object, latency_s: float, model: str) -> Reply:
    """The reply to one request: an answer, a chunk, a failure of the model itself, or no outcome of the model."""
    if isinstance(output, Exception) and is_infrastructure(output):
        reason = output if isinstance(output, MertonError) else f"{type(output).__name__}: {output}"
        return _unanswered(key, reason, isinstance(output, (MissingDependencyError, ImportError)))
    if isinstance(output, Answer):
        try:
            output = checked_answer(output, model)
        except InvalidAnswerError as error:  # a fault of the adapter, which may be mended
            return _unanswered(key, error)
    if isinstance(output, Answer | ActionChunk | MertonError):
        return Reply(key, _response(output), latency_s)
    if isinstance(output, Exception):  # an error in the adapter is not the model's answer
        return _unanswered(key, f"{type(output).__name__}: {output}")
    return _unanswered(key, f"the adapter gave a {type(output).__name__} instead of an answer or an action")


def _response(output: Answer | ActionChunk | MertonError) -> str:
    """The JSON of an answer, a chunk, or a failure of the model itself."""
    if isinstance(output, Answer):
        value: dict[str, Any] = {"text": output.text, "truncated": output.truncated}
    elif isinstance(output, ActionChunk):
        value = {"deltas": output.deltas.tolist(), "step_s": output.step_s, "frame": output.frame, "done": output.done}
    else:
        value = {"failed": reason_of(output)}
    return json.dumps(value, separators=(",", ":"))


def _unanswered(key: str, reason: object, permanent: bool = False) -> Reply:
    return Reply(key, None, 0.0, one_line(reason, LONGEST_REASON), permanent)
