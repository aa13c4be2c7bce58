"""Queues of requests to models: each model answers them in batches, in a separate thread.

The path of a request: `ModelPool.submit`, `ModelWorker.submit`; then, in the worker's thread, `ModelAdapter.respond`.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from merton.errors import InfrastructureError, is_infrastructure, reason_of
from merton.models.base import ModelAdapter, Request, Response
from merton.models.catalogue import CatalogueEntry

WINDOW = 300
"""Number of the last requests that latencies are computed over."""


@dataclass
class _Ticket:
    """A request or a warm-up in the queue."""

    request: Any
    is_warm_up: bool = False
    future: Future[Any] = field(default_factory=Future)
    arrived_s: float = field(default_factory=time.monotonic)


class ModelWorker(Generic[Request, Response]):
    """The queue and the thread of one model: one call at a time, in order of arrival.

    A call has up to `batch_size` of the waiting requests. If a batch raises, its requests are retried one by one, so
    that a bad one fails alone; infrastructure errors are not retried. The model is built in its thread at the first
    request or warm-up, and after a failure again at the next one.

    Args:
        entry: the catalogue's entry of the model.
        batch_size: most requests of a call, >= 1.
        batch_window_s: longest wait of the first request of a batch for others, >= 0.

    Attributes:
        model: None until it is built.
    """

    def __init__(self, entry: CatalogueEntry, batch_size: int = 8, batch_window_s: float = 0.0) -> None:
        self.name = entry.name
        self.model: ModelAdapter[Request, Response] | None = None
        self._entry, self._batch_size, self._batch_window_s = entry, batch_size, batch_window_s
        self._queue: deque[_Ticket] = deque()
        self._latencies_s: deque[float] = deque(maxlen=WINDOW)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"model {self.name}", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> Future[Response]:
        """Queue a request.

        A waiting request can be cancelled by its future and never reaches the model; a running call cannot be
        cancelled. An error of the model is the future's exception; a model that cannot be built gives an
        InfrastructureError or a MissingDependencyError.

        Raises:
            InfrastructureError: the worker is closed.
        """
        return self._enqueue(_Ticket(request))

    def warm_up(self) -> Future[None]:
        """Queue the building and warming up of the model."""
        return self._enqueue(_Ticket(None, is_warm_up=True))

    @property
    def waiting(self) -> int:
        """Number of requests in the queue, without those of the running call."""
        with self._changed:
            return sum(not ticket.future.cancelled() for ticket in self._queue)

    def latencies_ms(self) -> tuple[float, float, int]:
        """p50 and p99 [ms] from arrival to answer of the last requests, and their number; (0, 0, 0) for none."""
        with self._changed:
            latencies_s = list(self._latencies_s)
        if not latencies_s:
            return 0.0, 0.0, 0
        p50, p99 = np.percentile(latencies_s, (50, 99))
        return 1e3 * float(p50), 1e3 * float(p99), len(latencies_s)

    def close(self, *, finish: bool = True) -> None:
        """Accept no more requests; answer the queue or, unless `finish`, cancel it; then release the model."""
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

    def _enqueue(self, ticket: _Ticket) -> Future[Any]:
        with self._changed:
            if self._closed:
                raise InfrastructureError(f"the model {self.name} is being released")
            self._queue.append(ticket)
            self._changed.notify_all()
        return ticket.future

    def _run(self) -> None:
        while batch := self._next_batch():
            self._answer(batch)
            del batch  # its images would stay in memory until the next batch
        self.model = None

    def _next_batch(self) -> list[_Ticket]:
        """Wait for the next batch, or for one warm-up; empty if the worker is closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return []
                left_s = self._queue[0].arrived_s + self._batch_window_s - time.monotonic()
                if left_s > 0 and not self._queue[0].is_warm_up:
                    self._changed.wait_for(lambda: self._closed or len(self._queue) >= self._batch_size, left_s)
                batch: list[_Ticket] = []
                while self._queue and len(batch) < self._batch_size:
                    if batch and (batch[0].is_warm_up or self._queue[0].is_warm_up):
                        break
                    ticket = self._queue.popleft()
                    if ticket.future.set_running_or_notify_cancel():
                        batch.append(ticket)
                if batch:
                    return batch

    def _answer(self, batch: list[_Ticket]) -> None:
        """Call the model, and give each ticket its result or its exception."""
        try:
            model = self._built()
            if batch[0].is_warm_up:
                model.warm_up()
                results: list[Any] = [None]
            else:
                results = self._results(model, [ticket.request for ticket in batch])
        except Exception as error:  # a model may raise anything; the thread goes on
            results = [error] * len(batch)
        now_s = time.monotonic()
        with self._changed:
            self._latencies_s.extend(now_s - ticket.arrived_s for ticket in batch if not ticket.is_warm_up)
        for ticket, result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                ticket.future.set_exception(result)
            else:
                ticket.future.set_result(result)

    def _built(self) -> ModelAdapter[Request, Response]:
        """The model; a failure to build it is an infrastructure error, as no request has reached the model."""
        if self.model is None:
            try:
                self.model = self._entry.build()
            except Exception as error:
                if is_infrastructure(error):
                    raise
                raise InfrastructureError(f"{self.name} cannot be built: {reason_of(error)}") from error
        return self.model

    def _results(self, model: ModelAdapter[Request, Response], requests: Sequence[Request]) -> list[Any]:
        """A response or an exception for each request: in one call, or in one for each request if that raises."""
        try:
            results = list(model.respond(requests))
            if len(results) != len(requests):
                raise ValueError(f"{self.name} gave {len(results)} results for {len(requests)} requests")
            return results
        except Exception as error:
            if len(requests) == 1 or is_infrastructure(error):
                return [error] * len(requests)
        return [result for request in requests for result in self._results(model, [request])]


class ModelPool(Generic[Request, Response]):
    """The workers of all models in use, and the exchange of models while others answer requests."""

    def __init__(
        self, catalogue: Mapping[str, CatalogueEntry], batch_size: int = 8, batch_window_s: float = 0.0
    ) -> None:
        self._catalogue, self._batching = catalogue, (batch_size, batch_window_s)
        self._workers: dict[str, ModelWorker[Request, Response]] = {}
        self._lock = threading.RLock()
        self._exchange_lock = threading.Lock()
        self._closed = False

    def __getitem__(self, name: str) -> ModelWorker[Request, Response]:
        """The worker of a model, started if there is none.

        Raises:
            InfrastructureError: the pool is closed.
            UnknownNameError: no such model in the catalogue.
        """
        with self._lock:
            if self._closed:
                raise InfrastructureError("the models are being shut down")
            if name not in self._workers:
                self._workers[name] = ModelWorker(self._catalogue[name], *self._batching)
            return self._workers[name]

    def submit(self, name: str, request: Request) -> Future[Response]:
        """Queue a request for a model; see `ModelWorker.submit`. An exchange of models never loses a request."""
        with self._lock:
            return self[name].submit(request)

    @property
    def workers(self) -> list[ModelWorker[Request, Response]]:
        """All workers, in order of their start."""
        with self._lock:
            return list(self._workers.values())

    def keep_loaded(self, names: Iterable[str]) -> dict[str, Exception]:
        """Release the other models that take memory, then load and warm up the named ones. Blocks.

        The old models answer their queues and are freed before another is loaded, since memory may not hold both.
        Models with `memory_gb` 0 stay. One exchange at a time; a later one waits.

        Returns:
            The errors by name; such a model is built again at its next request.
        """
        wanted = list(names)
        failures: dict[str, Exception] = {}
        with self._exchange_lock:
            self._release_all_but(set(wanted))
            for name in wanted:
                try:
                    self[name].warm_up().result()
                except Exception as error:
                    failures[name] = error
        return failures

    def close(self, timeout_s: float = 5.0) -> None:
        """Cancel the queues and end every worker, without waiting for one whose model runs beyond `timeout_s`."""
        with self._lock:
            self._closed = True
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.close(finish=False)
        end_s = time.monotonic() + timeout_s
        for worker in workers:
            worker.join(max(0.0, end_s - time.monotonic()))

    def _release_all_but(self, wanted: set[str]) -> None:
        with self._lock:
            names = [name for name in self._workers if name not in wanted and self._catalogue[name].memory_gb > 0]
            released = [self._workers.pop(name) for name in names]
            for worker in released:
                worker.close()
        for worker in released:
            worker.join()
        if released:
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()  # other processes use the same GPU
