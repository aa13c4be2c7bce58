"""openpi's websocket: metadata, then an observation and its action in turn; text is the policy's traceback.

Its messages and errors: docs/use/serving.md. It has no message where an episode begins or ends.
"""

from __future__ import annotations

from typing import Any

from merton.proxy import spans
from merton.proxy.pictures import by_camera
from merton.proxy.protocols.arrays import number_or_array, pictures_in
from merton.proxy.protocols.base import Kind, Message, Protocol, Reply, rows

PROMPTS = ("prompt", "instruction", "task")
"""Keys of an instruction; the first is openpi's own."""


class OpenPi(Protocol):
    """openpi, and RoboArena's variant with "endpoint"."""

    name = "openpi"
    greets = True
    answers_each = True

    def message(self, data: bytes) -> Message:
        """As `Protocol.message`; a reset of RoboArena's variant begins an episode."""
        try:
            content = spans.read(data)
        except ValueError as error:
            return Message(Kind.OTHER, problem=f"a message that is not msgpack: {error}")
        if not isinstance(content, dict):
            return Message(Kind.OTHER, problem="a message that is no dictionary")
        endpoint = content.get("endpoint", "infer")
        if endpoint != "infer":
            return Message(Kind.BEGIN if endpoint == "reset" else Kind.OTHER)
        return Message(Kind.OBSERVATION, pictures=by_camera(pictures_in(content)), instruction=instruction(content))

    def reply(self, data: bytes | str) -> Reply:
        """As `Protocol.reply`; metadata, which come first, have no action and are no answer."""
        if isinstance(data, str):
            lines = data.strip().splitlines() or ["(nothing)"]
            return Reply(True, error=lines[-1][:300])
        try:
            content = spans.read(data)
        except ValueError as error:
            return Reply(True, error=f"the reply is not msgpack: {error}")
        action = content.get("actions", content.get("action")) if isinstance(content, dict) else None
        return Reply(True, action=rows(number_or_array(action)) if action is not None else None)


def instruction(content: dict[Any, Any]) -> str:
    """The instruction of an observation; "" if it has none."""
    for key in PROMPTS:
        value = content.get(key)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str) and value:
            return value
    return ""
