"""Waiting in a coroutine: a condition, its deadline, and the events after which both are checked."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from rclpy.exceptions import InvalidHandle
from rclpy.task import Future

from merton.errors import InfrastructureError
from merton_nodes.ros.runtime import StageNode

CHECK_PERIOD_S = 0.1
"""Period of the check for waits past their deadline, while there are any [s]."""


class Waits:
    """The waits of a node's coroutines. All methods but `wake` are for the executor's thread.

    Conditions are checked when a wait begins, by `check`, and every `CHECK_PERIOD_S`. So a callback that changes a
    value on which conditions depend ends with `check`, and a thread with `wake`. While nothing waits, no timer runs.

    Args:
        node: its executor resumes the coroutines; gets a timer.
    """

    def __init__(self, node: StageNode) -> None:
        self.node = node
        self._pending: list[tuple[Callable[[], bool], Callable[[], float], Future]] = []
        """Condition, deadline on the monotonic clock [s], and the future that the coroutine awaits."""
        self._timer = node.create_timer_s(CHECK_PERIOD_S, self.check, autostart=False)

    @property
    def pending(self) -> bool:
        """Whether a coroutine waits."""
        return bool(self._pending)

    async def until(
        self, condition: Callable[[], bool], timeout_s: float, progress_s: Callable[[], float] | None = None
    ) -> bool:
        """Wait for a condition. Returns False if the time ran out first.

        Args:
            condition: cheap, and without side effects.
            timeout_s: wall time [s].
            progress_s: time of the last progress on the monotonic clock [s]; each progress restarts the timeout.
        """
        start_s, ended = time.monotonic(), Future()

        def deadline_s() -> float:
            return timeout_s + (start_s if progress_s is None else max(start_s, progress_s()))

        if not self._pending:
            self._timer.reset()
        self._pending.append((condition, deadline_s, ended))
        self.check()
        return await ended

    async def require(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """As `until`; raises InfrastructureError, with the text `what`, if the time ran out."""
        if not await self.until(condition, timeout_s):
            raise InfrastructureError(f"waited {timeout_s:g} s for {what}")

    async def result(self, future: Any, timeout_s: float, what: str) -> Any:
        """The result of a future, of rclpy or of `concurrent.futures`, or its exception.

        Raises:
            InfrastructureError: not done within `timeout_s` [s].
        """
        future.add_done_callback(lambda _: self.wake())
        await self.require(future.done, timeout_s, what)
        return future.result()

    def check(self) -> None:
        """End every wait whose condition holds or whose time has run out."""
        now_s = time.monotonic()
        for condition, deadline_s, ended in self._pending:
            if (holds := bool(condition())) or now_s > deadline_s():
                ended.set_result(holds)
        self._pending = [wait for wait in self._pending if not wait[-1].done()]
        if not self._pending:
            self._timer.cancel()

    def wake(self) -> None:
        """Let the executor call `check` soon. From any thread."""
        executor = self.node.executor
        if executor is not None:
            with contextlib.suppress(AttributeError, InvalidHandle):  # the executor is being shut down
                executor.create_task(self.check)
