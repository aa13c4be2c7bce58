"""ROS for tests: a domain of their own, a fresh context for each test, and waits on conditions that end."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

import rclpy
from action_msgs.msg import GoalStatus
from merton_interfaces.msg import SafetyState
from rclpy.action import ActionClient, ActionServer
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from std_srvs.srv import Trigger
from unique_identifier_msgs.msg import UUID

from merton.execution.gate.permit import permit_text
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.marks import Message, marked
from merton_nodes.ros.runtime import Spinner, StageNode
from patience import LIMIT_S, stretched, until

Result = TypeVar("Result")


class Ros:
    """A context with an executor thread; its exceptions are raised in the test."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context, domain_id=int(os.environ["ROS_DOMAIN_ID"]))
        self.spinner = Spinner(self.context)
        self.executor = self.spinner.executor
        self.nodes: list[Node] = []
        self.clients: dict[tuple[Node, str], ActionClient] = {}
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._spin, daemon=True)
        self.thread.start()

    def _spin(self) -> None:
        try:
            self.spinner.spin()
        except BaseException as error:
            self.error = error

    def add(self, make: Callable[..., Node], *args: Any, **kwargs: Any) -> Any:
        """A node in this context, which is spun and in the end destroyed; `up` brings a StageNode up as well."""
        node = make(*args, context=self.context, **kwargs)
        self.nodes.append(node)
        self.executor.add_node(node)
        return node

    def until(self, condition: Callable[[], Result], limit_s: float = LIMIT_S) -> Result:
        """As `patience.until`; raises what the executor thread raised."""

        def check() -> None:
            if self.error is not None:
                raise self.error

        check()
        return until(condition, limit_s, meanwhile=check)

    def result(self, future: Any, limit_s: float = LIMIT_S) -> Any:
        """The result of an rclpy future."""
        self.until(future.done, limit_s)
        return future.result()

    def call(self, node: Node, kind: Any, name: str, request: Any) -> Any:
        """Call a service once it is there; after a while without an answer once more."""
        client = node.create_client(kind, name)
        self.until(client.service_is_ready)
        return self.ask(client, request, 20.0)

    def ask(self, client: Any, request: Any, again_s: float = 5.0) -> Any:
        """The answer of a service that may be asked twice: one to a client that is not discovered yet is dropped."""
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return self.result(client.call_async(request), again_s)
        return self.result(client.call_async(request))

    def action_client(self, node: Node, kind: Any, name: str) -> ActionClient:
        """The client of an action, made once. Make it early: a server answers only whom it has discovered."""
        if (node, name) not in self.clients:
            self.clients[node, name] = ActionClient(node, kind, name)
        return self.clients[node, name]

    def act(self, node: Node, kind: Any, name: str, goal: Any, on_feedback: Any = None) -> Any:
        """Run an action to its end; returns its result."""
        client = self.action_client(node, kind, name)
        self.until(client.server_is_ready)
        goal_id = UUID(uuid=list(uuid4().bytes))  # the same at each asking, so that no second goal begins
        handles: list[Any] = []
        results: list[Any] = []

        def on_handle(future: Any) -> None:
            if not handles:
                handles.append(future.result())

        def on_result(future: Any) -> None:
            results.append(future.result())

        def send() -> None:
            client.send_goal_async(goal, on_feedback, goal_id).add_done_callback(on_handle)

        def ask_for_result() -> None:
            handles[0].get_result_async().add_done_callback(on_result)

        # An answer to a client that is not discovered yet is dropped: ask again. A goal that was accepted at the first
        # asking is not accepted once more, but it has a result; one that was refused has none, which is told at once.
        for request, answers in ((send, handles), (ask_for_result, results)):
            for limit_s in (10.0, 10.0, LIMIT_S):
                self.executor.create_task(request)
                with contextlib.suppress(AssertionError):
                    self.until(lambda answers=answers: answers, limit_s)
                    break
            assert answers, f"{name} did not answer"
        assert results[0].status != GoalStatus.STATUS_UNKNOWN, f"{name} refused the goal"
        return results[0].result

    def close(self) -> None:
        """End everything; raises what the executor thread raised."""
        self.spinner.ask_to_end()
        self.thread.join(stretched(10))
        self.executor.shutdown()
        for node in self.nodes:
            if isinstance(node, StageNode):
                node.closing.close()
            # rclpy leaves these to the garbage collector, and other processes go on seeing the node until then
            for action in [one for one in node.waitables if isinstance(one, ActionClient | ActionServer)]:
                action.destroy()
            node.destroy_node()
        self.context.try_shutdown()
        if self.error is not None:
            raise self.error


class Probe(Node):
    """A node that keeps the messages it receives."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__("probe", **kwargs)
        self.heard: dict[str, list[Any]] = {}

    def listen(self, kind: Any, name: str, qos: Any) -> list[Any]:
        """All messages on a topic from now on."""
        heard = self.heard.setdefault(name, [])
        self.create_subscription(kind, name, heard.append, qos)
        return heard


class Permits:
    """Stands for arm_node at a cell: publishes its safety state, and gives commands the permit of that state.

    Beside an arm_node it needs that node's publisher, because no other may publish the state.
    """

    def __init__(self, node: Node, states: Publisher | None = None) -> None:
        self.states = states or node.create_publisher(SafetyState, names.ARM_SAFETY, names.LATCHED_QOS)
        self.permit = 0
        self.say(SafetyState.NORMAL)

    def say(self, mode: int) -> None:
        """A state with a new permit."""
        self.permit = max(self.permit + 1, time.time_ns())
        self.states.publish(SafetyState(mode=mode, header=convert.header(self.permit, "base_link")))

    def given(self, command: Message) -> Message:
        """The command, with the permit."""
        return marked(command, permit_text(self.permit))


def up(ros: Ros, make: Callable[..., Node], **parameters: Any) -> Any:
    """An active node with parameters."""
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    node = ros.add(make, parameter_overrides=overrides)
    assert node.trigger_configure().name == "SUCCESS"
    assert node.trigger_activate().name == "SUCCESS"
    return node


def trigger(ros: Ros, node: Node, name: str) -> Trigger.Response:
    """Call a service of std_srvs/Trigger."""
    return ros.call(node, Trigger, name, Trigger.Request())
