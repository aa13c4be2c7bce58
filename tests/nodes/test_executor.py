"""The executor of every node: what it runs, in which order, and that a message costs one wait."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from std_msgs.msg import Header
from std_srvs.srv import Trigger

from merton_nodes.ros import executor as executors
from merton_nodes.ros.runtime import Spinner, StageNode
from patience import stretched
from ros import LIMIT_S, Ros


@pytest.fixture
def node(ros: Ros) -> Node:
    """A node that is spun."""
    return ros.add(Node, "spun")


def test_a_message_costs_one_wait_and_no_new_wait_set(ros: Ros, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    for index in range(5):
        node.create_subscription(Header, f"topic_{index}", heard.append, 10)
    publisher = node.create_publisher(Header, "topic_0", 10)
    waits: list[Any] = []
    wait = executors.WatchedEntities.wait

    def counted(watched: executors.WatchedEntities, *args: Any) -> Any:
        waits.append(watched)
        return wait(watched, *args)

    ros.until(lambda: publisher.get_subscription_count() == 1)
    ros.result(ros.executor.create_task(lambda: monkeypatch.setattr(executors.WatchedEntities, "wait", counted)))
    for count in range(1, 11):
        publisher.publish(Header())
        ros.until(lambda count=count: len(heard) == count)
    assert len(waits) <= 10 + 2  # before the first and after the last message
    assert len(set(map(id, waits))) == 1


def test_entities_are_watched_from_their_creation_to_their_destruction(ros: Ros, node: Node) -> None:
    publisher = node.create_publisher(Header, "topic", 10)
    first: list[Any] = []
    second: list[Any] = []
    subscription = node.create_subscription(Header, "topic", first.append, 10)
    ros.until(lambda: publisher.get_subscription_count() == 1)
    publisher.publish(Header())
    ros.until(lambda: len(first) == 1)
    node.create_subscription(Header, "topic", second.append, 10)
    ros.until(lambda: publisher.get_subscription_count() == 2)
    ros.result(ros.executor.create_task(node.destroy_subscription, subscription))
    ros.until(lambda: publisher.get_subscription_count() == 1)  # it is not only deaf, it is gone
    publisher.publish(Header())
    ros.until(lambda: len(second) == 1)
    assert len(first) == 1


@pytest.mark.parametrize("reentrant", [False, True])
def test_while_a_coroutine_waits_only_other_callback_groups_run(ros: Ros, node: Node, reentrant: bool) -> None:
    gate: Future = Future()
    order: list[str] = []
    both_heard: list[Any] = []

    async def slow(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        order.append("begins")
        response.success = await gate
        order.append("ends")
        return response

    group = ReentrantCallbackGroup() if reentrant else None
    node.create_service(Trigger, "slow", slow, callback_group=group)
    node.create_subscription(Header, "topic", lambda _: order.append("heard"), 10, callback_group=group)
    other = ros.add(Node, "other")
    other.create_subscription(Header, "topic", both_heard.append, 10)
    publisher, client = other.create_publisher(Header, "topic", 10), other.create_client(Trigger, "slow")
    ros.until(lambda: publisher.get_subscription_count() == 2 and client.service_is_ready())
    answer = client.call_async(Trigger.Request())
    ros.until(lambda: order)
    publisher.publish(Header())
    ros.until(lambda: both_heard and (not reentrant or "heard" in order))
    assert order == (["begins", "heard"] if reentrant else ["begins"])
    gate.set_result(True)
    ros.executor.wake()
    assert ros.result(answer).success
    ros.until(lambda: len(order) == 3)
    assert order == (["begins", "heard", "ends"] if reentrant else ["begins", "ends", "heard"])


def test_a_coroutine_goes_on_when_a_thread_or_another_coroutine_has_set_its_result(ros: Ros, node: Node) -> None:
    first, second = Future(), Future()

    async def passes_on() -> None:
        second.set_result(2 * await first)

    async def ends() -> int:
        return 1 + await second

    last = ros.executor.create_task(ends())
    ros.executor.create_task(passes_on())

    def work() -> None:
        first.set_result(20)
        ros.executor.wake()

    threading.Thread(target=work).start()
    assert ros.result(last) == 41


def test_tasks_run_in_their_order(ros: Ros, node: Node) -> None:
    order: list[int] = []
    tasks = [ros.executor.create_task(order.append, index) for index in range(20)]
    ros.until(lambda: all(task.done() for task in tasks))
    assert order == list(range(20))


def test_a_timer_that_a_callback_before_it_has_cancelled_does_not_run(ros: Ros) -> None:
    node = ros.add(StageNode, "timers")
    ran: list[str] = []
    timers: list[Any] = []

    def run(name: str) -> None:
        ran.append(name)
        for timer in timers:
            timer.cancel()

    def start() -> None:
        timers.extend(node.create_timer_s(0.001, lambda name=name: run(name)) for name in "ab")

    ros.result(ros.executor.create_task(start))
    ros.until(lambda: ran)
    assert len(ran) == 1


def test_the_exception_of_a_callback_or_of_a_task_ends_spinning(ros: Ros) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    async def fail_later(future: Future) -> None:
        await future
        raise ZeroDivisionError

    for how in ("timer", "task", "coroutine"):
        spinner = Spinner(ros.context)
        node = StageNode("failing", context=ros.context)
        spinner.executor.add_node(node)
        failed = threading.Event()
        future: Future = Future()
        if how == "timer":
            node.create_timer_s(0.001, fail)
        elif how == "task":
            spinner.executor.create_task(fail)
        else:
            spinner.executor.create_task(fail_later(future))
        thread = spinner.start("failing", failed.set)
        future.set_result(None)
        spinner.executor.wake()
        assert failed.wait(stretched(LIMIT_S)), how
        thread.join(stretched(LIMIT_S))
        spinner.end()
        node.destroy_node()


def test_a_connection_that_does_not_match_is_warned_of(ros: Ros, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(type(get_logger("any")), "warn", lambda _, text, **__: warnings.append(text))
    ros.add(StageNode, "with_a_timer")  # every node of Merton has one of 1 s
    node.create_subscription(Header, "topic", print, QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE))
    node.create_publisher(Header, "topic", QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT))
    ros.until(lambda: any("incompatible QoS" in text for text in warnings))
