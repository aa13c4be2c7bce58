"""The newest message of several topics, and waits for messages to come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from merton.errors import InfrastructureError
from merton_nodes.ros.service_caller import more_time

Message = TypeVar("Message")

MOST_DEADLINES = 10
"""Number of deadlines after which a wait for something that goes on advancing ends."""


class NewestMessages:
    """The newest message by key, and a condition that every new one notifies."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.messages: dict[str, Any] = {}

    def keep(self, key: str) -> Callable[[Any], None]:
        """A subscription callback that keeps the newest message under `key`."""
        return self.keep_with(self.messages.__setitem__, key)

    def keep_with(self, add: Callable[..., None], *arguments: str) -> Callable[[Any], None]:
        """A subscription callback that calls `add` with these arguments and the message."""

        def callback(message: Any) -> None:
            with self.changed:
                add(*arguments, message)
                self.changed.notify_all()

        return callback

    def forget(self, keys: Iterable[str]) -> None:
        """Forget the messages under these keys."""
        with self.changed:
            for key in keys:
                self.messages.pop(key, None)

    def wait(
        self,
        ready: Callable[[dict[str, Any]], Message | None],
        deadline_s: float,
        missing: Callable[[], str],
        advance: Callable[[], object] = lambda: None,
    ) -> Message:
        """Wait until `ready` returns something; after `deadline_s` an InfrastructureError names what is `missing`.

        Args:
            advance: the deadline begins anew whenever its value changes, `MOST_DEADLINES` times as long in all.
        """
        start_s = restarted_s = time.monotonic()
        with self.changed:
            last = advance()
            while (found := ready(self.messages)) is None:
                if (now := advance()) != last:
                    last, restarted_s = now, time.monotonic()
                end_s = min(restarted_s + deadline_s, start_s + MOST_DEADLINES * deadline_s)
                left = end_s - time.monotonic()
                if left <= 0:
                    raise InfrastructureError(f"waited {deadline_s:g} s for {missing()}; {more_time(deadline_s)}")
                self.changed.wait(left)
            return found
