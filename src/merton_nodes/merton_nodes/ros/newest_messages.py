"""The newest message of several topics, and waits for messages to come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from merton.errors import InfrastructureError
from merton_nodes.ros.service_caller import more_time

Message = TypeVar("Message")


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
        self, ready: Callable[[dict[str, Any]], Message | None], deadline_s: float, missing: Callable[[], str]
    ) -> Message:
        """Wait until `ready` returns something; after `deadline_s` an InfrastructureError names what is `missing`."""
        end = time.monotonic() + deadline_s
        with self.changed:
            while (found := ready(self.messages)) is None:
                left = end - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    if (found := ready(self.messages)) is not None:
                        break
                    raise InfrastructureError(f"waited {deadline_s:g} s for {missing()}; {more_time(deadline_s)}")
            return found
