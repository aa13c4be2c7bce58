"""A model at work beside a node: requests queue up, a thread of the model's own answers them, in batches where it can.

Knows neither ROS nor what a model is: whoever uses it says how one is built, warmed up and called.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from merton.errors import INFRASTRUCTURE_ERRORS, InfrastructureError, MertonError

ModelType = TypeVar("ModelType")
Request = TypeVar("Request")
Result = TypeVar("Result")

WINDOW = 300
"""How many of the last requests the latencies are told of."""


@dataclass(frozen=True)
class Kind(Generic[ModelType, Request, Result]):
    """How models of one stage are handled.

    Attributes:
        build: the model of a name, nothing heavy loaded.
        warm_up: loads what there is to load.
        call: answers a batch: as many results, in the order of the requests. An exception in the list is that
            request's alone.
    """

    build: Callable[[str], ModelType]
    warm_up: Callable[[ModelType], None]
    call: Callable[[ModelType, Sequence[Request]], Sequence[Result | Exception]]


@dataclass
class _Ticket:
    """A place in the queue; without a request it asks for a warm-up."""

    request: Any
    future: Future[Any] = field(default_factory=Future)
    arrived_s: float = field(default_factory=time.monotonic)
    warms_up: bool = False


class ModelWorker(Generic[ModelType, Request, Result]):
    """The queue and the thread of one model: one call at a time, in order of arrival, `batch_size` at most.

    Whatever waits when the model is free goes into one call. With a window, the first of a batch waits that long for
    company. A batch that raises is asked again one by one, so that nobody pays for another's request; not if it was
    the infrastructure that failed. The model is built in its thread, at the first request or warm-up, and again at
    the next if that failed.

    Args:
        name: of the model.
        kind: how it is handled.
        batch_size: most requests of a call, >= 1.
        batch_window_s: how long the first of a batch waits for others [s], >= 0.

    Attributes:
        model: None until it is built.
    """

    def __init__(
        self,
        name: str,
        kind: Kind[ModelType, Request, Result],
        batch_size: int = 8,
        batch_window_s: float = 0.0,
    ) -> None:
        self.name = name
        self.model: ModelType | None = None
        self._kind, self._batch_size, self._batch_window_s = kind, batch_size, batch_window_s
        self._queue: deque[_Ticket] = deque()
        self._latencies_s: deque[float] = deque(maxlen=WINDOW)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> Future[Result]:
        """Queue a request.

        While it waits, the future can be cancelled, and the model never sees it. A running call cannot be: whoever no
        longer wants the result ignores it. What the model raised is the future's exception; a model that cannot even
        be built is an InfrastructureError or a MissingDependencyError.

        Raises:
            InfrastructureError: the worker is closed.
        """
        return self._add(_Ticket(request))

    def warm_up(self) -> Future[None]:
        """Queue the building and warming up of the model."""
        return self._add(_Ticket(None, warms_up=True))

    @property
    def waiting(self) -> int:
        """How many requests are in the queue, the running call not among them."""
        with self._changed:
            return sum(not ticket.future.cancelled() for ticket in self._queue)

    def latencies_ms(self) -> tuple[float, float, int]:
        """p50 and p99 [ms] from arrival to answer of the last requests, and how many those are; (0, 0, 0) for none."""
        with self._changed:
            latencies_s = list(self._latencies_s)
        if not latencies_s:
            return 0.0, 0.0, 0
        p50, p99 = np.percentile(latencies_s, (50, 99))
        return 1e3 * float(p50), 1e3 * float(p99), len(latencies_s)

    def close(self, *, finish: bool = True) -> None:
        """Take no more requests and let the model go; what waits is still answered, or, unless `finish`, cancelled."""
        with self._changed:
            self._closed = True
            dropped = [] if finish else list(self._queue)
            if not finish:
                self._queue.clear()
            self._changed.notify_all()
        for ticket in dropped:
            ticket.future.cancel()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until a closed worker has ended, at most `timeout_s`."""
        self._thread.join(timeout_s)

    def _add(self, ticket: _Ticket) -> Future[Any]:
        with self._changed:
            if self._closed:
                raise InfrastructureError(f"the model {self.name} is being released")
            self._queue.append(ticket)
            self._changed.notify_all()
        return ticket.future

    def _run(self) -> None:
        while batch := self._take():
            self._serve(batch)
            del batch  # or the last one would be held while waiting for the next
        self.model = None

    def _take(self) -> list[_Ticket]:
        """The next batch, or one warm-up; none if the worker is closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return []
                left_s = self._queue[0].arrived_s + self._batch_window_s - time.monotonic()
                if left_s > 0 and not self._queue[0].warms_up:
                    self._changed.wait_for(lambda: self._closed or len(self._queue) >= self._batch_size, left_s)
                batch: list[_Ticket] = []
                while self._queue and len(batch) < self._batch_size:
                    if batch and (batch[0].warms_up or self._queue[0].warms_up):
                        break
                    ticket = self._queue.popleft()
                    if ticket.future.set_running_or_notify_cancel():
                        batch.append(ticket)
                if batch:
                    return batch

    def _serve(self, batch: list[_Ticket]) -> None:
        try:
            model = self._built()
            results = self._warmed(model) if batch[0].warms_up else self._called(model, batch)
        except Exception as error:  # a model may raise anything; the thread goes on
            results = [error] * len(batch)
        now_s = time.monotonic()
        with self._changed:
            self._latencies_s.extend(now_s - ticket.arrived_s for ticket in batch if not ticket.warms_up)
        for ticket, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                ticket.future.set_exception(result)
            else:
                ticket.future.set_result(result)

    def _built(self) -> ModelType:
        """The model; what goes wrong before it is asked anything is never its own failure."""
        if self.model is None:
            try:
                self.model = self._kind.build(self.name)
            except INFRASTRUCTURE_ERRORS:
                raise
            except Exception as error:
                text = str(error) if isinstance(error, MertonError) else f"{type(error).__name__}: {error}"
                raise InfrastructureError(f"{self.name} cannot be built: {text}") from error
        return self.model

    def _warmed(self, model: ModelType) -> list[Any]:
        self._kind.warm_up(model)
        return [None]

    def _called(self, model: ModelType, batch: Sequence[_Ticket]) -> list[Any]:
        try:
            results = list(self._kind.call(model, [ticket.request for ticket in batch]))
            if len(results) != len(batch):
                raise ValueError(f"{self.name} gave {len(results)} results for {len(batch)} requests")
            return results
        except INFRASTRUCTURE_ERRORS:
            raise
        except Exception as error:
            if len(batch) == 1:
                return [error]
        return [self._called_alone(model, ticket) for ticket in batch]

    def _called_alone(self, model: ModelType, ticket: _Ticket) -> Any:
        try:
            return self._called(model, [ticket])[0]
        except INFRASTRUCTURE_ERRORS as error:
            return error


class ModelPool(Generic[ModelType, Request, Result]):
    """A worker for every model that was asked for, and the exchange of models while others are being asked.

    Args:
        kind: how models are handled.
        memory_gb: what a model of a name takes [GB]; 0 for one that is worth no thought.
        batch_size: see `ModelWorker`.
        batch_window_s: see `ModelWorker`.
    """

    def __init__(
        self,
        kind: Kind[ModelType, Request, Result],
        memory_gb: Callable[[str], float] = lambda name: 0.0,
        batch_size: int = 8,
        batch_window_s: float = 0.0,
    ) -> None:
        self._kind, self._memory_gb, self._batching = kind, memory_gb, (batch_size, batch_window_s)
        self._workers: dict[str, ModelWorker[ModelType, Request, Result]] = {}
        self._lock = threading.RLock()
        self._exchanging = threading.Lock()
        self._closed = False

    def __getitem__(self, name: str) -> ModelWorker[ModelType, Request, Result]:
        """The worker of a model, started if there is none; raises InfrastructureError once the pool is closed."""
        with self._lock:
            if self._closed:
                raise InfrastructureError("the models are being shut down")
            if name not in self._workers:
                self._workers[name] = ModelWorker(name, self._kind, *self._batching)
            return self._workers[name]

    def submit(self, name: str, request: Request) -> Future[Result]:
        """Queue a request for a model; see `ModelWorker.submit`. Never falls between two exchanges."""
        with self._lock:
            return self[name].submit(request)

    @property
    def workers(self) -> list[ModelWorker[ModelType, Request, Result]]:
        """All there are, in order of their start."""
        with self._lock:
            return list(self._workers.values())

    def hold(self, names: Iterable[str]) -> dict[str, Exception]:
        """Let go of models that are not named and take memory, then load and warm up the named ones. Blocks.

        The old ones answer what waits for them and are gone before anything is loaded: both may not fit. Models that
        take no memory worth speaking of stay. One exchange at a time; a later one waits.

        Returns what was raised, by name; such a model is tried again when it is asked.
        """
        wanted = list(names)
        failures: dict[str, Exception] = {}
        with self._exchanging:
            self._release(set(wanted))
            for name in wanted:
                try:
                    self[name].warm_up().result()
                except Exception as error:
                    failures[name] = error
        return failures

    def close(self, timeout_s: float = 5.0) -> None:
        """Cancel what waits and end every worker; one whose model still runs after `timeout_s` is left behind."""
        with self._lock:
            self._closed = True
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.close(finish=False)
        end_s = time.monotonic() + timeout_s
        for worker in workers:
            worker.join(max(0.0, end_s - time.monotonic()))

    def _release(self, kept: set[str]) -> None:
        with self._lock:
            names = [name for name in self._workers if name not in kept and self._memory_gb(name) > 0]
            released = [self._workers.pop(name) for name in names]
            for worker in released:
                worker.close()
        for worker in released:
            worker.join()
        if released:
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()  # other processes use the same GPU
