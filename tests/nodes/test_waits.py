"""Coroutines that wait for a condition: it holds, its time runs out, or a thread brings the result."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future as ThreadFuture

import pytest
from rclpy.task import Future

from merton.errors import InfrastructureError
from merton_nodes.ros import waits
from merton_nodes.ros.runtime import StageNode
from patience import stretched
from ros import LIMIT_S, Ros


@pytest.fixture
def node(ros: Ros) -> Iterator[StageNode]:
    """A node whose executor resumes the waits."""
    return ros.add(StageNode, "waiter")


def test_a_wait_ends_with_its_condition_or_its_deadline(ros: Ros, node: StageNode) -> None:
    waiting, values = waits.Waits(node), []
    held = ros.executor.create_task(waiting.until(lambda: bool(values), LIMIT_S))
    late = ros.executor.create_task(waiting.until(lambda: False, 0.01))
    assert ros.result(late) is False
    assert not held.done()
    values.append(1)
    waiting.wake()
    assert ros.result(held) is True
    assert waiting._pending == []
    at_once = ros.executor.create_task(waiting.until(lambda: True, 0.0))
    assert ros.result(at_once) is True


def test_the_timer_runs_while_something_waits(ros: Ros, node: StageNode) -> None:
    waiting, values = waits.Waits(node), []
    assert waiting._timer.is_canceled()
    two = [ros.executor.create_task(waiting.until(lambda n=n: len(values) > n, LIMIT_S)) for n in range(2)]
    ros.until(lambda: len(waiting._pending) == 2)
    for task in two:
        assert not waiting._timer.is_canceled()
        values.append(1)
        assert ros.result(task) is True  # the timer checks the condition
    assert waiting._timer.is_canceled()


def test_progress_restarts_the_timeout(ros: Ros, node: StageNode, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(waits.time, "monotonic", lambda: now_s[0])
    waiting, progress_s = waits.Waits(node), [0.0]
    wait = waiting.until(lambda: False, 10.0, lambda: progress_s[0])
    wait.send(None)
    for now_s[0], progress_s[0], ended in ((109.0, 108.0, False), (117.0, 50.0, True)):
        waiting.check()
        assert (not waiting._pending) == ended
    with pytest.raises(StopIteration) as stop:
        wait.send(None)
    assert stop.value.value is False


def test_a_thread_brings_the_result_without_waiting_for_the_period(
    ros: Ros, node: StageNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "CHECK_PERIOD_S", 3600.0)
    waiting = waits.Waits(node)
    for future in (Future(), ThreadFuture()):
        result = ros.executor.create_task(waiting.result(future, LIMIT_S, "the thread"))
        threading.Thread(target=future.set_result, args=("done",)).start()
        assert ros.result(result) == "done"


def test_a_late_result_is_an_infrastructure_error_that_names_it(ros: Ros, node: StageNode) -> None:
    waiting, begin_s = waits.Waits(node), time.monotonic()

    async def message() -> str:
        with pytest.raises(InfrastructureError) as raised:
            await waiting.result(Future(), 0.05, "the operator")
        return str(raised.value)

    assert ros.result(ros.executor.create_task(message())) == "waited 0.05 s for the operator"
    assert 0.05 <= time.monotonic() - begin_s < stretched(LIMIT_S)
