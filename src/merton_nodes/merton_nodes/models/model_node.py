"""The base of vlm_node and vla_node: workers, the exchange of models, waits for answers, error codes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generic, TypeVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter

from merton.errors import (
    ErrorCode,
    InfrastructureError,
    InputError,
    InvalidActionError,
    InvalidAnswerError,
    LoadingError,
    MissingDependencyError,
    UnknownNameError,
    is_infrastructure,
    reason_of,
)
from merton.models.catalogue import Catalogue
from merton.models.worker import ModelPool
from merton_nodes.ros.runtime import StageNode
from merton_nodes.ros.waits import Waits

LOADING_ANSWER_S = 5.0
"""Time after which a request to a model that is still being loaded is answered with LOADING [s]."""

Request = TypeVar("Request")
Result = TypeVar("Result")


class Cancelled(Exception):
    """The client has cancelled its request."""


class ModelNode(StageNode, Generic[Request, Result]):
    """A node with models of a catalogue. Each runs in a thread of its own; the executor's thread only waits.

    Subclasses call `serve` in `set_up`, and `ask` in the coroutines that answer.
    """

    def serve(self, catalogue: Catalogue[Any], preload: list[str]) -> None:
        """Declare the parameters all such nodes have, then load and warm up the models named for preloading.

        Raises:
            InputError: a model that does not exist or cannot be loaded. A remote server that does not answer is only
                logged; the first request tries again.
        """
        self.catalogue = catalogue
        names = self.parameter(
            "preload",
            preload,
            f"models kept loaded and warm, [''] for none; setting it loads and releases; of: {', '.join(catalogue)}",
            read_only=False,
        )
        batch_size = self.parameter("batch_size", 8, "most requests answered by one call", minimum=1, maximum=1024)
        batch_window_s = self.parameter(
            "batch_window_s", 0.0, "how long the first request of a batch waits for others [s]", minimum=0, maximum=10
        )
        self.deadline_s = self.parameter(
            "deadline_s",
            120.0,
            "how long a request may wait and be worked on, once its model is loaded [s]",
            minimum=0.1,
            maximum=3600.0,
        )
        self.pool: ModelPool[Request, Result] = ModelPool(catalogue, batch_size, batch_window_s)
        self.loads: dict[str, Future[None]] = {}
        """The newest loading of each model that a request has begun."""
        self.closing.callback(self.pool.close)
        self.waits = Waits(self)
        self.exchange, self.exchanging = "", 0
        names = self.checked(names)
        for name, error in self.pool.keep_loaded(names).items():
            if not isinstance(error, InfrastructureError) or self.pool[name].model is None:
                raise InputError(f"{name} cannot be loaded: {self.describe(error)}") from error
            self.get_logger().warning(f"{name} is not warm: {error}")
        self.add_on_set_parameters_callback(self.on_parameters)
        self.closing.callback(self.remove_on_set_parameters_callback, self.on_parameters)
        self.add_post_set_parameters_callback(self.on_parameters_set)
        self.closing.callback(self.remove_post_set_parameters_callback, self.on_parameters_set)

    def unfinished(self) -> str:
        return "it answers a request, or exchanges models" if self.waits.pending or self.exchanging else ""

    # Requests

    def entry(self, name: str) -> Any:
        """The catalogue's entry of a model; raises InfrastructureError with the valid names."""
        try:
            return self.catalogue[name]
        except UnknownNameError as error:  # not an error of any model
            raise InfrastructureError(str(error)) from None

    async def ask(self, name: str, request: Request, is_cancelled: Callable[[], bool] = lambda: False) -> Result:
        """The answer of a model. Call it from the executor's thread, in a reentrant callback.

        Args:
            name: of the model.
            request: as the model's worker takes it.
            is_cancelled: whether the client has cancelled its request; call `waits.wake` after that changes.

        Raises:
            Cancelled: by `is_cancelled`.
            LoadingError: the model is being loaded.
            InfrastructureError: not active, no such model, not built, or no answer within `deadline_s`.
            Exception: any other error of the model.
        """
        if not self.active:
            raise InfrastructureError(f"{self.get_name()} is not active")
        self.entry(name)
        await self.loaded(name, is_cancelled)
        ticket = self.pool.submit(name, request)
        ticket.add_done_callback(lambda _: self.waits.wake())
        try:
            in_time = await self.waits.until(lambda: ticket.done() or is_cancelled(), self.deadline_s)
        finally:
            ticket.cancel()  # drops it if it is still queued; the result of a running call is discarded
        if is_cancelled():
            raise Cancelled
        if not in_time:
            self.counters["too late"] += 1
            raise InfrastructureError(f"no answer within {self.deadline_s:g} s")
        return ticket.result()

    async def loaded(self, name: str, is_cancelled: Callable[[], bool]) -> None:
        """Load a model at its first request: a deadline counts only time in which the model could answer.

        Raises LoadingError if that takes longer than `LOADING_ANSWER_S`, or the error with which loading failed.
        """
        load, worker = self.loads.get(name), self.pool[name]
        if worker.model is None and (load is None or load.done()):
            load = self.loads[name] = worker.warm_up()
            load.add_done_callback(lambda _: self.waits.wake())
        if load is None or load.done():
            return
        if not await self.waits.until(lambda: load.done() or is_cancelled(), LOADING_ANSWER_S):
            raise LoadingError(f"{name} is being loaded: ask again")
        if load.done() and worker.model is None:
            load.result()

    def failure(self, error: Exception) -> tuple[ErrorCode, str]:
        """Error code and sentence of an exception; counted by kind."""
        if isinstance(error, (InvalidActionError, InvalidAnswerError)):
            self.counters["invalid outputs"] += 1
            return ErrorCode.INVALID_ACTION, reason_of(error)
        if is_infrastructure(error):
            if isinstance(error, LoadingError):
                self.counters["asked while loading"] += 1
                return ErrorCode.LOADING, str(error)
            self.counters["errors of the infrastructure"] += 1
            if isinstance(error, (MissingDependencyError, ImportError)):
                return ErrorCode.NOT_INSTALLED, self.describe(error)
            return ErrorCode.NOT_SERVED, self.describe(error)
        self.counters["errors of models"] += 1
        return ErrorCode.MODEL_FAILED, self.describe(error)

    # Exchanging models

    def checked(self, names: Any) -> list[str]:
        """The names without empty ones; raises UnknownNameError for one that is not in the catalogue."""
        given = [name for name in names or () if name]
        for name in given:
            self.catalogue[name]
        return given

    def on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse models that do not exist."""
        try:
            for parameter in parameters:
                if parameter.name == "preload":
                    self.checked(parameter.value)
        except UnknownNameError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def on_parameters_set(self, parameters: list[Parameter]) -> None:
        """Exchange the models in a thread; the others go on answering."""
        for parameter in parameters:
            if parameter.name == "preload":
                names = self.checked(parameter.value)
                self.exchange = f"loading {', '.join(names) or 'nothing'}"
                self.exchanging += 1
                threading.Thread(target=self.keep_loaded, args=(names, self.executor), daemon=True).start()

    def keep_loaded(self, names: list[str], executor: Any) -> None:
        """Load and release models, in a thread; the executor's thread reports how it went."""
        failures = self.pool.keep_loaded(names)
        with contextlib.suppress(AttributeError):  # the executor has been shut down meanwhile
            executor.create_task(self.on_exchanged, names, failures)

    def on_exchanged(self, names: list[str], failures: dict[str, Exception]) -> None:
        """Log and publish the result of an exchange."""
        self.exchanging -= 1
        for name, error in failures.items():
            self.get_logger().error(f"{name} cannot be loaded: {self.describe(error)}")
        warm = [name for name in names if name not in failures]
        self.exchange = f"warm: {', '.join(warm) or 'none'}"
        if failures:
            self.exchange += f"; not loaded: {', '.join(failures)}"

    # Diagnostics

    def observe(self) -> None:
        self.details = {"memory": resident_memory(), "last exchange of models": self.exchange or "none"}
        for worker in self.pool.workers:
            p50, p99, count = worker.latencies_ms()
            self.details[worker.name] = (
                f"{'loaded' if worker.model is not None else 'not loaded'}, {worker.waiting} waiting, "
                f"latency p50 {p50:.1f} ms, p99 {p99:.1f} ms over {count}"
            )


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turns an InputError of a message into an InfrastructureError: the fault is the sender's, not the model's."""
    try:
        yield
    except InputError as error:
        raise InfrastructureError(f"the request cannot be used: {error}") from None


def resident_memory() -> str:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return f"{int(line.split()[1]) / 1024:.0f} MiB"
    return "unknown"
