"""Calls of services and actions with a deadline, repeated if an answer gets lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future

from merton.errors import MODEL_ERRORS, ErrorCode, InfrastructureError, LoadingError

REPEAT_S = 10.0
"""Time after which a call is repeated [s], because an answer can get lost while nodes are discovering each other; every
further repeat waits twice as long: calls must not pile up in a node that is only slow. Every service and action of the
graph may be called repeatedly."""
LARGEST_PAUSE = 0.25
"""Largest share of a deadline before its first repeat."""


def pauses_s(deadline_s: float) -> Iterator[float]:
    """The waits [s] after each call for an answer: `deadline_s` in all."""
    pause_s = min(REPEAT_S, LARGEST_PAUSE * deadline_s)
    while deadline_s > 0:
        yield min(pause_s, deadline_s)
        deadline_s -= pause_s
        pause_s *= 2


def usable(response: Any, what: str) -> Any:
    """The response of a service or an action called `what`, if it has no error but of a model.

    Raises:
        LoadingError: its model is being loaded.
        InfrastructureError: it has another error.
    """
    code = getattr(response, "error_code", 0)
    if code == ErrorCode.LOADING:
        raise LoadingError(response.error_msg)
    if code and code not in MODEL_ERRORS:
        raise InfrastructureError(f"{what}: {response.error_msg}")
    return response


def more_time(deadline_s: float) -> str:
    """Advice to allow twice the deadline of experiment_node [s], as a clause for the sentence that it has passed."""
    return f"a busy machine may need more: merton run --set deadline_s={2 * deadline_s:g}"


class ServiceCaller:
    """Calls other nodes from a thread that does not spin the node; a call that is late raises InfrastructureError.

    Args:
        node: spun in another thread.
        deadline_s: default time for an answer [s].
    """

    def __init__(self, node: Node, deadline_s: float) -> None:
        self.node, self.deadline_s = node, deadline_s

    def ask_until(
        self, answered: threading.Event, ask: Callable[[], object], what: str, deadline_s: float, *, again: bool = True
    ) -> None:
        """Call `ask` until `answered` is set, once unless `again`; the log says for how long nothing came.

        Raises InfrastructureError, with the name `what`, after `deadline_s` [s].
        """
        waited_s = 0.0
        for pause_s in pauses_s(deadline_s) if again else (deadline_s,):
            ask()
            if answered.wait(pause_s):
                return
            waited_s += pause_s
            self.node.get_logger().info(f"{what} has not answered for {waited_s:g} s; limit {deadline_s:g} s")
        raise InfrastructureError(f"{what} did not answer within {deadline_s:g} s; {more_time(self.deadline_s)}")

    def call(self, client: Any, request: Any, deadline_s: float | None = None, *, again: bool = True) -> Any:
        """Call a service; raises InfrastructureError if it is absent or late, or answers with an error of its own.

        With `again` a late call is repeated; without it a person may take the whole deadline for the answer.
        """
        deadline_s = deadline_s or self.deadline_s
        if not client.wait_for_service(timeout_sec=deadline_s):
            raise InfrastructureError(f"no node offers {client.srv_name}")
        futures: list[Future] = []
        answered = threading.Event()

        def ask() -> None:
            futures.append(client.call_async(request))
            futures[-1].add_done_callback(lambda _: answered.set())

        try:
            self.ask_until(answered, ask, client.srv_name, deadline_s, again=again)
            response = next(future for future in futures if future.done()).result()
        finally:
            for future in futures:
                future.cancel()
        return usable(response, client.srv_name)

    def act_on(self, client: ActionClient, goal: Any, what: str, deadline_s: float) -> Any:
        """Run an action to its end and return its result, whichever error code it has; a late goal is cancelled.

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

        try:
            self.ask_until(finished, lambda: executor.create_task(ask), what, deadline_s)
        except InfrastructureError:
            for handle in handles:
                executor.create_task(handle.cancel_goal_async)
            raise
        if not results:
            raise InfrastructureError(f"{what} refused the goal: it is busy or not active")
        result = results[0]
        if result.status != GoalStatus.STATUS_SUCCEEDED:  # a node that raised: rclpy answers with an empty result
            raise InfrastructureError(f"{what} failed; the log of its node says why")
        return result.result
