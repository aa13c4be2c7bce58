"""The queue and the thread of a model: order, batches, cancelling, failures, and the exchange of models."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from merton.errors import InfrastructureError, InputError, InvalidAnswerError, MissingDependencyError
from merton.models.base import ModelAdapter
from merton.models.catalogue import CatalogueEntry
from merton.models.worker import ModelPool, ModelWorker
from patience import stretched

LIMIT_S = stretched(30.0)


class Echo(ModelAdapter[str, str]):
    """Responds with the request in capitals, or raises the error that the request names. Waits at `gate`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.gate = threading.Event()
        self.gate.set()
        self.called = threading.Event()
        self.calls: list[list[str]] = []
        self.warm = 0

    def respond(self, requests: Sequence[str]) -> list[str | Exception]:
        self.calls.append(list(requests))
        self.called.set()
        assert self.gate.wait(LIMIT_S)
        for request in requests:
            if request in ERRORS:
                raise ERRORS[request]
        return [InvalidAnswerError("no text") if request == "invalid" else request.upper() for request in requests]

    def make_example(self) -> str:
        return "example"

    @staticmethod
    def summary(response: str) -> str:
        return response

    def warm_up(self) -> None:
        self.warm += 1


class Miscounting(Echo):
    """Responds to the first request of a batch only."""

    def respond(self, requests: Sequence[str]) -> list[str | Exception]:
        return super().respond(requests)[:1]


ERRORS: dict[str, Exception] = {
    "bad": ValueError("bad request"),
    "dead": InfrastructureError("the server is gone"),
    "absent": MissingDependencyError("pip install it"),
}


class EchoEntry(CatalogueEntry):
    """An entry whose name selects the result of building it."""

    def build(self) -> ModelAdapter[Any, Any]:
        if self.name == "broken":
            raise InputError("broken refuses its settings")
        if self.name == "crashing":
            raise RuntimeError("no such symbol")
        if self.name == "uninstalled":
            raise MissingDependencyError("install it")
        return Miscounting(self.name) if self.name == "miscounting" else Echo(self.name)


def entry(name: str = "echo", memory_gb: float = 0.0) -> EchoEntry:
    return EchoEntry(name=name, description="", adapter="", memory_gb=memory_gb)


@pytest.fixture
def worker() -> Iterator[ModelWorker]:
    worker = ModelWorker(entry(), batch_size=3)
    worker.warm_up().result(LIMIT_S)
    yield worker
    worker.model.gate.set()
    worker.close()
    worker.join(LIMIT_S)


def busy(worker: ModelWorker) -> None:
    """The model is in a call until its gate opens."""
    worker.model.gate.clear()
    worker.model.called.clear()
    worker.submit("busy")
    assert worker.model.called.wait(LIMIT_S)


def test_waiting_requests_are_answered_in_order_in_batches(worker: ModelWorker) -> None:
    busy(worker)
    futures = [worker.submit(text) for text in "abcde"]
    assert worker.waiting == 5
    worker.model.gate.set()
    assert [future.result(LIMIT_S) for future in futures] == list("ABCDE")
    assert worker.model.calls == [["busy"], ["a", "b", "c"], ["d", "e"]]
    assert worker.waiting == 0
    p50, p99, count = worker.latencies_ms()
    assert 0 < p50 <= p99
    assert count == 6


def test_a_window_waits_for_other_requests_until_the_batch_is_full() -> None:
    worker = ModelWorker(entry(), batch_size=3, batch_window_s=1000.0)
    futures = [worker.submit(text) for text in "abc"]
    assert [future.result(LIMIT_S) for future in futures] == list("ABC")
    assert worker.model.calls == [["a", "b", "c"]]
    worker.submit("d")
    worker.close()
    worker.join(LIMIT_S)
    short = ModelWorker(entry(), batch_size=3, batch_window_s=0.01)
    assert short.submit("alone").result(LIMIT_S) == "ALONE", "no other request came"
    short.close()


def test_without_a_window_one_is_answered_at_once(worker: ModelWorker) -> None:
    assert worker.submit("a").result(LIMIT_S) == "A"
    assert worker.model.calls == [["a"]]


def test_a_cancelled_request_never_reaches_the_model(worker: ModelWorker) -> None:
    busy(worker)
    first, second, third = (worker.submit(text) for text in "abc")
    assert second.cancel()
    assert worker.waiting == 2
    worker.model.gate.set()
    assert (first.result(LIMIT_S), third.result(LIMIT_S)) == ("A", "C")
    assert worker.model.calls[1:] == [["a", "c"]]


def test_a_running_call_cannot_be_cancelled(worker: ModelWorker) -> None:
    worker.model.gate.clear()
    future = worker.submit("a")
    assert worker.model.called.wait(LIMIT_S)
    assert not future.cancel()
    worker.model.gate.set()
    assert future.result(LIMIT_S) == "A"


def test_a_bad_request_fails_alone(worker: ModelWorker) -> None:
    busy(worker)
    good, bad, invalid = (worker.submit(text) for text in ("good", "bad", "invalid"))
    worker.model.gate.set()
    assert good.result(LIMIT_S) == "GOOD"
    assert isinstance(bad.exception(LIMIT_S), ValueError)
    assert isinstance(invalid.exception(LIMIT_S), InvalidAnswerError)
    assert worker.model.calls[1:] == [["good", "bad", "invalid"], ["good"], ["bad"], ["invalid"]]


def test_infrastructure_errors_are_not_retried_one_by_one(worker: ModelWorker) -> None:
    busy(worker)
    futures = [worker.submit(text) for text in ("a", "dead", "b")]
    worker.model.gate.set()
    assert all(isinstance(future.exception(LIMIT_S), InfrastructureError) for future in futures)
    assert worker.model.calls[1:] == [["a", "dead", "b"]]
    assert isinstance(worker.submit("absent").exception(LIMIT_S), MissingDependencyError)


def test_a_model_that_miscounts_gets_its_requests_one_by_one() -> None:
    worker = ModelWorker(entry("miscounting"), batch_size=2, batch_window_s=1000.0)
    assert [future.result(LIMIT_S) for future in [worker.submit("a"), worker.submit("b")]] == ["A", "B"]
    worker.close()


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("broken", InfrastructureError, "broken cannot be built: broken refuses its settings"),
        ("crashing", InfrastructureError, "crashing cannot be built: RuntimeError: no such symbol (FILE, line N)"),
        ("uninstalled", MissingDependencyError, "install it"),
    ],
)
def test_a_model_that_cannot_be_built_has_not_failed(name: str, error: type, says: str) -> None:
    worker = ModelWorker(entry(name))
    for _ in range(2):
        raised = worker.submit("a").exception(LIMIT_S)
        assert type(raised) is error
        assert re.sub(r"\(.*, line \d+\)", "(FILE, line N)", str(raised)) == says
    worker.close()


def test_a_closed_worker_answers_its_queue_and_accepts_no_more(worker: ModelWorker) -> None:
    busy(worker)
    model, last = worker.model, worker.submit("last")
    worker.close()
    with pytest.raises(InfrastructureError, match="echo"):
        worker.submit("late")
    model.gate.set()
    assert last.result(LIMIT_S) == "LAST"
    worker.join(LIMIT_S)
    assert worker.model is None, "its memory is free"
    worker.model = model


def test_a_pool_exchanges_large_models_and_keeps_small_ones() -> None:
    entries = [entry("small"), entry("large", 8.0), entry("other", 8.0), entry("broken")]
    pool: ModelPool = ModelPool({entry.name: entry for entry in entries})
    assert pool.keep_loaded(["small", "large"]) == {}
    small, large = pool["small"], pool["large"]
    assert (small.model.warm, large.model.warm) == (1, 1)
    busy(large)
    model = large.model
    last = large.submit("last")
    exchange = threading.Thread(target=pool.keep_loaded, args=(["other"],), daemon=True)
    exchange.start()
    assert pool.submit("small", "meanwhile").result(LIMIT_S) == "MEANWHILE"
    assert exchange.is_alive(), "the old one still answers, and the new one is not loaded beside it"
    model.gate.set()
    exchange.join(LIMIT_S)
    assert last.result(LIMIT_S) == "LAST"
    assert [worker.name for worker in pool.workers] == ["small", "other"]
    assert pool["other"].model.warm == 1
    assert large.model is None
    failures = pool.keep_loaded(["other", "broken"])
    assert list(failures) == ["broken"]
    pool.close()
    with pytest.raises(InfrastructureError, match="shut down"):
        pool["small"]


def test_closing_a_pool_cancels_its_queues() -> None:
    pool: ModelPool = ModelPool({"a": entry("a")})
    pool.keep_loaded(["a"])
    model = pool["a"].model
    busy(pool["a"])
    waiting = pool["a"].submit("never")
    pool.close(timeout_s=0.01)
    with pytest.raises(CancelledError):
        waiting.result(0)
    model.gate.set()
    assert model.calls == [["busy"]]
