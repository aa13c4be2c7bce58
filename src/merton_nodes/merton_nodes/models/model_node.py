"""What the nodes that hold models share: workers, the exchange of models, waiting for answers, what went wrong."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from rclpy.task import Future

from merton.errors import (
    INFRASTRUCTURE_ERRORS,
    InfrastructureError,
    InputError,
    InvalidActionError,
    InvalidAnswerError,
    MissingDependencyError,
    UnknownNameError,
)
from merton.execution.gate.safety import Code
from merton.models.catalogue import Catalogue
from merton.models.worker import Kind, ModelPool
from merton_nodes.ros.runtime import StageNode

MODEL_FAILED = 100
NOT_SERVED = 400
NOT_INSTALLED = 401
LOOK_PERIOD_S = 0.1
"""How often it is looked whether somebody has waited too long [s]."""

ModelType = TypeVar("ModelType")
Request = TypeVar("Request")
Result = TypeVar("Result")


class Cancelled(Exception):
    """Whoever asked no longer wants the answer."""


class ModelNode(StageNode, Generic[ModelType, Request, Result]):
    """A node with models of a catalogue. They run in threads of their own; the executor's thread only waits for them.

    Subclasses call `serve` in `set_up`, and `ask` in the coroutines that answer.
    """

    def serve(self, catalogue: Catalogue[Any], kind: Kind[ModelType, Request, Result], preload: list[str]) -> None:
        """Declare the parameters all such nodes have, then load and warm up the models named for preloading.

        Raises:
            InputError: a model that does not exist or cannot be loaded. A server that does not answer yet is no
                reason not to come up: the log says so, and the first request tries again.
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
            "how long a request may wait and be worked on, the loading of its model included [s]",
            minimum=0.1,
            maximum=3600.0,
        )
        self.pool = ModelPool(kind, lambda name: catalogue[name].memory_gb, batch_size, batch_window_s)
        self.asked: dict[Future, tuple[float, Any]] = {}
        """Who waits for an answer: until when on the monotonic clock [s], and a key to cancel by."""
        self.exchange = ""
        names = self.checked(names)
        for name, error in self.pool.hold(names).items():
            if not isinstance(error, InfrastructureError) or self.pool[name].model is None:
                raise InputError(f"{name} cannot be loaded: {self.explain(error)}") from error
            self.get_logger().warning(f"{name} is not warm: {error}")
        self.every(LOOK_PERIOD_S, self.give_up)
        self.add_on_set_parameters_callback(self.on_parameters)
        self.add_post_set_parameters_callback(self.on_parameters_set)

    def tear_down(self) -> None:
        """End the models' threads."""
        if hasattr(self, "pool"):
            self.pool.close()

    # Asking

    def entry(self, name: str) -> Any:
        """What the catalogue says of a model; raises InfrastructureError with the names there are."""
        try:
            return self.catalogue[name]
        except UnknownNameError as error:  # nobody was asked, so nobody failed
            raise InfrastructureError(str(error)) from None

    async def ask(self, name: str, request: Request, key: Any = None) -> Result:
        """What a model answers, once it has. Call it from the executor's thread, in a callback that may be overtaken.

        Args:
            name: of the model.
            request: what its worker takes.
            key: `cancel` takes the same.

        Raises:
            Cancelled: by `cancel`.
            InfrastructureError: not active, no such model, not built, or no answer within `deadline_s`.
            Exception: whatever else the model raised.
        """
        if not self.active:
            raise InfrastructureError(f"{self.get_name()} is not active")
        self.entry(name)
        ticket = self.pool.submit(name, request)
        answered = Future()
        self.asked[answered] = (time.monotonic() + self.deadline_s, key)
        ticket.add_done_callback(lambda _: self.resolve(answered, None))
        try:
            given_up = await answered
        finally:
            del self.asked[answered]
            ticket.cancel()  # if it is still in the queue; a running call goes on for nobody
        if given_up is not None:
            raise given_up
        return ticket.result()

    def resolve(self, answered: Future, given_up: Exception | None) -> None:
        """Let whoever waits go on; from any thread. The executor sees it only if it is woken."""
        if not answered.done():
            answered.set_result(given_up)
        executor = self.executor
        if executor is not None:
            executor.wake()

    def cancel(self, key: Any) -> None:
        """End the waiting for a request, queued or running."""
        for answered, (_, other) in list(self.asked.items()):
            if other == key:
                self.resolve(answered, Cancelled())

    def give_up(self) -> None:
        """End the waiting of those whose deadline has passed."""
        now_s = time.monotonic()
        for answered, (end_s, _) in list(self.asked.items()):
            if now_s > end_s:
                self.counters["too late"] += 1
                self.resolve(answered, InfrastructureError(f"no answer within {self.deadline_s:g} s"))

    def failure(self, error: Exception) -> tuple[int, str]:
        """Error code and sentence of what was raised on the way to an answer; counted by kind."""
        if isinstance(error, (InvalidActionError, InvalidAnswerError)):
            self.counters["invalid outputs"] += 1
            return int(Code.INVALID_ACTION), str(error)
        if isinstance(error, INFRASTRUCTURE_ERRORS):
            self.counters["errors of the infrastructure"] += 1
            if isinstance(error, MissingDependencyError):
                return NOT_INSTALLED, self.explain(error)
            return NOT_SERVED, self.explain(error)
        self.counters["errors of models"] += 1
        return MODEL_FAILED, self.explain(error)

    # Exchanging models

    def checked(self, names: Any) -> list[str]:
        """The names that are meant; raises UnknownNameError for one that is not in the catalogue."""
        meant = [name for name in names or () if name]
        for name in meant:
            self.catalogue[name]
        return meant

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
        """Exchange the models in a thread: meanwhile the others answer."""
        for parameter in parameters:
            if parameter.name == "preload":
                names = self.checked(parameter.value)
                self.exchange = f"loading {', '.join(names) or 'nothing'}"
                threading.Thread(target=self.hold, args=(names, self.executor), daemon=True).start()

    def hold(self, names: list[str], executor: Any) -> None:
        """Load and release; runs in a thread, and reports in the executor's."""
        failures = self.pool.hold(names)
        with contextlib.suppress(AttributeError):  # the executor has been shut down meanwhile
            executor.create_task(self.on_exchanged, names, failures)

    def on_exchanged(self, names: list[str], failures: dict[str, Exception]) -> None:
        """Say how an exchange went."""
        for name, error in failures.items():
            self.get_logger().error(f"{name} cannot be loaded: {self.explain(error)}")
        warm = [name for name in names if name not in failures]
        self.exchange = f"warm: {', '.join(warm) or 'none'}"
        if failures:
            self.exchange += f"; not loaded: {', '.join(failures)}"

    # Diagnostics

    def observe(self) -> None:
        """Memory of the process, and for each model its latencies and its queue."""
        if not hasattr(self, "pool"):
            return
        self.details = {"memory": resident_memory(), "last exchange of models": self.exchange or "none"}
        for worker in self.pool.workers:
            p50, p99, count = worker.latencies_ms()
            self.details[worker.name] = (
                f"{'loaded' if worker.model is not None else 'not loaded'}, {worker.waiting} waiting, "
                f"latency p50 {p50:.1f} ms, p99 {p99:.1f} ms over {count}"
            )


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Around the reading of a message: what is wrong with it is its sender's fault, not the model's."""
    try:
        yield
    except InputError as error:
        raise InfrastructureError(f"the request cannot be used: {error}") from None


def resident_memory() -> str:
    """Memory this process has in RAM, in words."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return f"{int(line.split()[1]) / 1024:.0f} MiB"
    return "unknown"
