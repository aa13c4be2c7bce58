"""Calls of services and actions with a deadline, repeated if an answer gets lost."""

from __future__ import annotations

import threading
import time
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future

from merton.errors import MODEL_ERRORS, InfrastructureError

REPEAT_AFTER = 0.25
"""Share of the deadline after which a call is repeated: while nodes are still discovering each other, an answer can get
lost. Every service and action of the graph may be called twice."""


class ServiceCaller:
    """Calls other nodes from a thread that does not spin the node; a call that is late raises InfrastructureError.

    Args:
        node: spun in another thread.
        deadline_s: default time for an answer [s].
    """

    def __init__(self, node: Node, deadline_s: float) -> None:
        self.node, self.deadline_s = node, deadline_s

    def wait_for(self, future: Future, what: str, deadline_s: float) -> Any:
        """The result of a future the executor completes; raises InfrastructureError after `deadline_s`."""
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        if not done.wait(deadline_s):
            future.cancel()
            raise InfrastructureError(f"{what} did not answer within {deadline_s:g} s")
        return future.result()

    def call(self, client: Any, request: Any, deadline_s: float | None = None, *, again: bool = True) -> Any:
        """Call a service; raises InfrastructureError if it is absent or late, or answers with an error of its own.

        With `again` a late call is repeated; without it a person may take the whole deadline for the answer.
        """
        deadline_s = deadline_s or self.deadline_s
        if not client.wait_for_service(timeout_sec=deadline_s):
            raise InfrastructureError(f"no node offers {client.srv_name}")
        future = client.call_async(request)
        try:
            response = self.wait_for(future, client.srv_name, deadline_s * (REPEAT_AFTER if again else 1))
        except InfrastructureError:
            if not again:
                raise
            future = client.call_async(request)
            response = self.wait_for(future, client.srv_name, deadline_s * (1 - REPEAT_AFTER))
        code = getattr(response, "error_code", 0)
        if code and code not in MODEL_ERRORS:
            raise InfrastructureError(f"{client.srv_name}: {response.error_msg}")
        return response

    def act_on(self, client: ActionClient, goal: Any, what: str, deadline_s: float) -> Any:
        """Run an action to its end and return its result; the goal is cancelled if it is late.

        After a while without an answer the request is repeated: for the goal if it was not accepted, else for its
        result. Everything is sent from the executor's thread: rclpy's action client registers a request after sending
        it, so that an answer to a request from another thread can come too early, and is then dropped.
        """
        if not client.wait_for_server(timeout_sec=self.deadline_s):
            raise InfrastructureError(f"no node offers {what}")
        executor = self.node.executor
        assert executor is not None, "the node is not spun"
        handles: list[Any] = []
        results: list[Any] = []
        finished = threading.Event()

        def on_result(future: Future) -> None:
            if future.result().status == GoalStatus.STATUS_UNKNOWN:
                handles.clear()  # its result has expired: send the goal again
                return
            results.append(future.result())
            finished.set()

        def on_answer(future: Future) -> None:
            handles.append(future.result())
            if handles[-1].accepted:
                handles[-1].get_result_async().add_done_callback(on_result)
            else:
                finished.set()

        def ask() -> None:
            if handles:
                handles[-1].get_result_async().add_done_callback(on_result)
            else:
                client.send_goal_async(goal).add_done_callback(on_answer)

        end_s = time.monotonic() + deadline_s
        while not finished.is_set():
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                for handle in handles:
                    executor.create_task(handle.cancel_goal_async)
                raise InfrastructureError(f"{what} did not answer within {deadline_s:g} s")
            executor.create_task(ask)
            finished.wait(min(left_s, self.deadline_s * REPEAT_AFTER))
        if not results:
            raise InfrastructureError(f"{what} refused the goal: it is busy or not active")
        result = results[0]
        if result.status != GoalStatus.STATUS_SUCCEEDED:  # a node that raised: rclpy answers with an empty result
            raise InfrastructureError(f"{what} failed; the log of its node says why")
        return result.result
