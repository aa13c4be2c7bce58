"""How a worker asks: one model in memory at a time, in batches, at the pace the model allows.

A response is JSON. Of a VLM: {"text", "truncated"}. Of a policy: {"deltas", "step_s", "frame", "done"}. Of either, if
the model itself failed, which is an outcome: {"failed": why}.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from merton.annotate.dataset import pixels_sha256
from merton.annotate.views import observation
from merton.annotate.work import Job, Picture, Reply, Request
from merton.cognition.models.base import Answer, ModelEntry, Question
from merton.decision.models.base import PolicyEntry
from merton.errors import INFRASTRUCTURE_ERRORS, InfrastructureError, InputError, MertonError, MissingDependencyError
from merton.models.base import ModelAdapter
from merton.perception.dataset.intake import decode
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation

Asked = tuple[Request, Question | Observation]


class Asker:
    """Asks whatever model a job names; keeps the last one.

    Args:
        workers: how many such askers share a model's rate limit.
        clock, sleep: time [s] and waiting for it.
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
        self._not_before = 0.0

    def ask(self, job: Job) -> list[Reply]:
        """A reply to every request of a job, in its order. What went wrong stands in the replies."""
        try:
            if self._entry != job.entry:
                self._model, self._entry = None, None  # the old one goes before the new one comes
                self._model, self._entry = job.entry.build(), job.entry
        except MertonError as error:
            return [_unanswered(key, error, hopeless=True) for key in job.keys]
        asked: list[Asked] = []
        replies: list[Reply] = []
        for picture in job.pictures:
            try:
                image = _read(picture)
            except InfrastructureError as error:
                replies += [_unanswered(request.key, error) for request in picture.requests]
            else:
                asked += [(request, _input(job.entry, picture, request, image)) for request in picture.requests]
        interval_s = self._workers * 60.0 / job.entry.requests_per_minute if job.entry.requests_per_minute else 0.0
        size = 1 if job.one_by_one else max(1, int(1.0 / interval_s)) if interval_s else max(1, len(asked))
        for start in range(0, len(asked), size):
            replies += self._together(asked[start : start + size], interval_s)
        places = {key: place for place, key in enumerate(job.keys)}
        return sorted(replies, key=lambda reply: places[reply.key])

    def _together(self, asked: Sequence[Asked], interval_s: float) -> list[Reply]:
        """Ask as one batch; one after the other if it fails as a whole, so that the others have their say."""
        keys = [request.key for request, _ in asked]
        self._pace(len(asked), interval_s)
        started = self._clock()
        try:
            assert self._model is not None
            outputs: Sequence[Any] = self._model.respond([one for _, one in asked])
            if len(outputs) != len(asked):
                raise InfrastructureError(f"{len(asked)} requests gave {len(outputs)} responses")
        except Exception as error:
            own = isinstance(error, MertonError) and not isinstance(error, INFRASTRUCTURE_ERRORS)
            if own and len(asked) > 1:
                return [reply for one in asked for reply in self._together([one], interval_s)]
            outputs = [error] * len(asked)
        each_s = (self._clock() - started) / len(asked)
        return [_reply(key, output, each_s) for key, output in zip(keys, outputs, strict=True)]

    def _pace(self, count: int, interval_s: float) -> None:
        """Wait until `count` requests may be made, `interval_s` apart on the average."""
        now = self._clock()
        if self._not_before > now:
            self._sleep(self._not_before - now)
        self._not_before = max(now, self._not_before) + count * interval_s


def _read(picture: Picture) -> Image:
    """The image; raises InfrastructureError if it is no longer the one that was planned with."""
    try:
        image = decode(picture.file.read_bytes())
    except (OSError, InputError) as error:
        raise InfrastructureError(f"{picture.file.name} cannot be read: {error}") from None
    if pixels_sha256(image) != picture.pixels:
        raise InfrastructureError(f"{picture.file.name} has other pixels than when the work was planned")
    return image


def _input(entry: ModelEntry | PolicyEntry, picture: Picture, request: Request, image: Image) -> Question | Observation:
    if isinstance(entry, PolicyEntry):
        return observation(image, picture.taken_by, entry.cameras, request.text, request.seed)
    return Question((image,), request.text)


def _reply(key: str, output: object, latency_s: float) -> Reply:
    """What came of one request: an answer, a chunk or a failure of the model's own, or nothing from the model."""
    if isinstance(output, INFRASTRUCTURE_ERRORS):
        return _unanswered(key, output, isinstance(output, MissingDependencyError))
    if isinstance(output, Answer | ActionChunk | MertonError):
        return Reply(key, _response(output), latency_s)
    if isinstance(output, Exception):  # a fault of the adapter or of what it calls is not the model's answer
        return _unanswered(key, f"{type(output).__name__}: {output}")
    return _unanswered(key, f"the adapter gave a {type(output).__name__} instead of an answer or an action")


def _response(output: Answer | ActionChunk | MertonError) -> str:
    """The JSON of an answer, a chunk, or a failure of the model's own."""
    if isinstance(output, Answer):
        # half of a surrogate pair is no text that could be stored
        text = output.text.encode("utf-8", "replace").decode()
        value: dict[str, Any] = {"text": text, "truncated": output.truncated}
    elif isinstance(output, ActionChunk):
        value = {"deltas": output.deltas.tolist(), "step_s": output.step_s, "frame": output.frame, "done": output.done}
    else:
        value = {"failed": str(output)}
    return json.dumps(value, separators=(",", ":"))


def _unanswered(key: str, reason: object, hopeless: bool = False) -> Reply:
    return Reply(key, None, 0.0, " ".join(str(reason).split()), hopeless)
