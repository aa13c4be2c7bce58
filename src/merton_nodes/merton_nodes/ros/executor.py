"""The executor of every node: one thread, and a wait set that is built when entities change, not for every message.

Ours, because rclpy's `SingleThreadedExecutor` builds its wait set twice or more for every callback, which was most of
what a node computed, and `rclpy.experimental.EventsExecutor` of 7.1.6 cannot be relied on: a future that is set in
another thread can lock it up for ever, coroutines of services are not awaited, those that wait are resumed at the next
message only, callback groups are ignored, and a task that raises crashes the process (ros2/rclpy, issue 1641).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from rclpy.context import Context
from rclpy.event_handler import EventHandler
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.task import Task
from rclpy.waitable import NumberOfEntities

EVENTS_PERIOD_S = 1.0
"""Period of the look at the middleware's events, which only warn of connections that do not match [s]."""
RESUMES_ITSELF = hasattr(Task, "_add_resume_callback")
"""Whether a task that awaits a future goes on by itself once that is done: from rclpy 7.1.9 on."""
ATTRIBUTES = {
    "timer": "timers",
    "subscription": "subscriptions",
    "guard_condition": "guards",
    "client": "clients",
    "service": "services",
}
"""Kind of entities, as a wait set calls it, to the attribute of a node that keeps them."""


class WatchedEntities:
    """The entities of some nodes, held until `close`, and the wait set they are put into again and again.

    Args:
        nodes: their entities are watched.
        guards: guard conditions of the executor, which only end a wait.
        context: of the nodes.
    """

    def __init__(self, nodes: Iterable[Node], guards: Iterable[Any], context: Context) -> None:
        self._held = contextlib.ExitStack()
        self._hold(context.handle)
        self.by_pointer: dict[str, dict[int, Any]] = {kind: {} for kind in ATTRIBUTES}
        self.waitables: list[Any] = []
        self.events: list[Any] = []
        count = NumberOfEntities()
        own = [guard for guard in guards if self._hold(guard.handle)]
        for node in nodes:
            for kind, by_pointer in self.by_pointer.items():
                entities: Iterable[Any] = getattr(node, ATTRIBUTES[kind])
                by_pointer |= {each.handle.pointer: each for each in entities if self._hold(each.handle)}
            for waitable in node.waitables:
                if self._hold(waitable):
                    count += waitable.get_num_entities()
                    (self.events if isinstance(waitable, EventHandler) else self.waitables).append(waitable)
        self.wait_set = rclpy_implementation.WaitSet(
            count.num_subscriptions + len(self.by_pointer["subscription"]),
            count.num_guard_conditions + len(self.by_pointer["guard_condition"]) + len(own),
            count.num_timers + len(self.by_pointer["timer"]),
            count.num_clients + len(self.by_pointer["client"]),
            count.num_services + len(self.by_pointer["service"]),
            count.num_events,
            context.handle,
        )
        self._own = [guard.handle for guard in own]
        self._groups: dict[Any, tuple[Any, list[Callable[[], object]]]] = {}
        """Callback group to one of its entities, and the calls that add all of its entities to the wait set."""
        for kind, by_pointer in self.by_pointer.items():
            for entity in by_pointer.values():
                self._add(entity, partial(getattr(self.wait_set, f"add_{kind}"), entity.handle))
        for waitable in self.waitables:
            self._add(waitable, partial(waitable.add_to_wait_set, self.wait_set))

    def _hold(self, handle: Any) -> bool:
        """Keep an entity from being destroyed before `close`; False if it already is."""
        try:
            self._held.enter_context(handle)
        except InvalidHandle:
            return False
        return True

    def _add(self, entity: Any, call: Callable[[], object]) -> None:
        self._groups.setdefault(entity.callback_group, (entity, []))[1].append(call)

    def wait(self, timeout_ns: int, with_events: bool) -> list[tuple[str, Any]]:
        """Wait for entities whose callback group lets them run; returns those that are ready, with their kind.

        Args:
            timeout_ns: -1 waits for ever [ns].
            with_events: whether events of the middleware are watched, too.
        """
        wait_set = self.wait_set
        wait_set.clear_entities()
        for handle in self._own:
            wait_set.add_guard_condition(handle)
        for group, (entity, calls) in self._groups.items():
            if group.can_execute(entity):
                for call in calls:
                    call()
        for event in self.events if with_events else ():
            event.add_to_wait_set(wait_set)
        wait_set.wait(timeout_ns)
        found: list[tuple[str, Any]] = []
        unknown = with_events
        for kind, entities in self.by_pointer.items():
            for pointer in wait_set.get_ready_entities(kind):
                if pointer in entities:
                    found.append((kind, entities[pointer]))
                else:
                    unknown = True  # a part of a waitable, or a guard of the executor
        if unknown:
            watched = [each for each in self.waitables if each.callback_group.can_execute(each)]
            ready = [each for each in (*watched, *(self.events if with_events else ())) if each.is_ready(wait_set)]
            found[:0] = [("waitable", each) for each in ready]
        return found

    def close(self) -> None:
        """Let the entities be destroyed."""
        self._held.close()


class NodeExecutor(SingleThreadedExecutor):
    """Runs callbacks in the thread that spins; behaves as rclpy's SingleThreadedExecutor, with a fraction of its work.

    Args:
        context: of the nodes; None for the default one.
    """

    def __init__(self, context: Context | None = None) -> None:
        self._changed = True
        self._watched: WatchedEntities | None = None
        self._due: deque[Callable[[], None]] = deque()
        """Callbacks and tasks that are to run now, the oldest first."""
        self._suspended: list[Task] = []
        """Coroutines that await something; only used if they do not resume themselves."""
        self._thread = 0
        self._events_s = 0.0
        super().__init__(context=context)
        self._takers: dict[str, Callable[[Any], Any]] = {
            "timer": self._take_timer,
            "subscription": self._take_subscription,
            "guard_condition": self._take_guard_condition,
            "client": self._take_client,
            "service": self._take_service,
            "waitable": self._take_waitable,
        }

    def create_task(self, callback: Any, *args: Any, **kwargs: Any) -> Task:
        """Have a function or a coroutine run in the thread that spins; from any thread."""
        task = Task(callback, args, kwargs, executor=self)
        self._call_task_in_next_spin(task)
        return task

    def _call_task_in_next_spin(self, task: Task) -> None:
        """Run or resume a task soon. Newer versions of rclpy call this for a task whose future is done."""
        self._due.append(partial(self._step, task))
        if threading.get_ident() != self._thread:
            self._trigger()

    def add_node(self, node: Node) -> bool:
        self._changed = True
        return bool(super().add_node(node))

    def remove_node(self, node: Node) -> None:
        self._changed = True
        super().remove_node(node)

    def wake(self) -> None:
        """End the wait: a node's entities, or the result that a coroutine awaits, have changed. From any thread."""
        self._changed = True
        self._trigger()

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """End spinning and let go of the nodes; does not wait for the thread that spins: see `Spinner`."""
        ended = bool(super().shutdown(timeout_sec))
        watched, self._watched = self._watched, None
        if watched is not None:
            watched.close()
        return ended

    def _trigger(self) -> None:
        if (guard := self._guard) is not None:
            guard.trigger()

    def _spin_once_impl(self, timeout_sec: Any = None, wait_condition: Callable[[], bool] = lambda: False) -> None:
        """Run one callback; waits for one if none is due."""
        self._thread = threading.get_ident()
        with contextlib.suppress(ShutdownException):
            if not self._due and not wait_condition():
                self._resume()
                self._wait(timeout_sec)
            if self._due:
                self._due.popleft()()

    def _wait(self, timeout_sec: Any) -> None:
        """Wait until callbacks are due, or a call of `wake`."""
        if self._is_shutdown:
            raise ShutdownException
        if self._changed or self._watched is None:
            self._changed = False
            if self._watched is not None:
                self._watched.close()
            guards = [guard for guard in (self._guard, self._sigint_gc) if guard is not None]
            self._watched = WatchedEntities(self.get_nodes(), guards, self._context)
        timeout_s = getattr(timeout_sec, "timeout", timeout_sec)
        timeout_ns = -1 if timeout_s is None or timeout_s < 0 else int(1e9 * timeout_s)
        now_s = time.monotonic()
        if with_events := now_s >= self._events_s + EVENTS_PERIOD_S:
            self._events_s = now_s
        ready = self._watched.wait(0 if self._due else timeout_ns, with_events)
        if self._is_shutdown:
            raise ShutdownException
        if not self._context.ok():
            raise ExternalShutdownException
        self._due.extend(partial(self._run, kind, entity) for kind, entity in ready)

    def _run(self, kind: str, entity: Any) -> None:
        """Run the callback of an entity, unless the callbacks before it have changed that it is ready."""
        group = entity.callback_group
        if not group.can_execute(entity):
            return
        with contextlib.suppress(InvalidHandle):
            if kind == "timer" and not entity.handle.is_timer_ready():
                return
        group.beginning_execution(entity)
        work = self._takers[kind](entity)
        if work is None:
            group.ending_execution(entity)
            return

        async def handle() -> None:
            try:
                await work()
            finally:
                group.ending_execution(entity)

        self._step(Task(handle(), executor=self))

    def _step(self, task: Task) -> None:
        """Run a task to its end or its next wait; raises its exception."""
        task()
        if task.done():
            task.result()
        elif task.cancelled():
            pass
        elif RESUMES_ITSELF:
            task.add_done_callback(Task.result)  # raises its exception in this thread
        elif task not in self._suspended:
            self._suspended.append(task)

    def _resume(self) -> None:
        """Resume the coroutines whose wait has ended. Each can end the wait of another."""
        for _ in range(len(self._suspended)):
            for task in self._suspended:
                self._step(task)
            self._suspended = [task for task in self._suspended if not task.done() and not task.cancelled()]
