"""OpenVLA's POST /act: JSON with arrays in json-numpy's form, or that JSON as a text under "encoded"."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from merton.models.serving import from_json
from merton.proxy.pictures import Picture, by_camera, in_array, walk
from merton.proxy.protocols.arrays import is_bytes, is_shape
from merton.proxy.protocols.base import Kind, Message, Protocol, Reply, rows
from merton.proxy.protocols.openpi import instruction
from merton.proxy.spans import Piece

ARRAY = "__numpy__"


class Act(Protocol):
    """OpenVLA's REST protocol and its relatives; any picture of an observation is found."""

    name = "act"
    websocket = False

    def message(self, data: bytes) -> Message:
        """As `Protocol.message`."""
        try:
            content = _decoded(data)
            if not isinstance(content, dict):
                return Message(Kind.OTHER, problem="a request that is no object")
            pictures, problem = _pictures(data, content)
        except (ValueError, RecursionError) as error:
            return Message(Kind.OTHER, problem=f"a request that is not JSON: {error}")
        return Message(Kind.OBSERVATION, pictures=pictures, instruction=instruction(content), problem=problem)

    def reply(self, data: bytes | str) -> Reply:
        """As `Protocol.reply`; the text "error" is a failure."""
        try:
            content = json.loads(data)
            if content == "error":
                return Reply(True, error="error")
            if isinstance(content, str):  # of servers asked with "encoded", and of some forks always
                content = json.loads(content)
            if isinstance(content, dict) and ARRAY not in content:
                content = content.get("actions", content.get("action"))
            return Reply(True, action=rows(from_json(content)))
        except (ValueError, TypeError, RecursionError) as error:
            return Reply(True, error=f"the reply is no action: {error}")


def _decoded(data: bytes) -> Any:
    content = json.loads(data)
    return json.loads(content["encoded"]) if isinstance(content, dict) and set(content) == {"encoded"} else content


def _pictures(data: bytes, content: dict[str, Any]) -> tuple[dict[str, Picture], str]:
    """The pictures by camera, and why one was not found at its place in the bytes."""
    found, at, problem = [], 0, ""
    for path, value in walk(content):
        text = value.get(ARRAY)
        if not isinstance(text, str):
            continue
        begin = _place(data, text.encode(), at)
        if begin < 0:  # base64 has no character that JSON must escape, but a sender may
            picture = _picture(path, value, 0, text)
            problem = f"the picture {'.'.join(path)} is written with escapes" if picture else problem
            continue
        at = begin + len(text)
        picture = _picture(path, value, begin, text)
        if picture is not None:
            found.append(picture)
    return by_camera(found), problem


def _place(data: bytes, text: bytes, at: int) -> int:
    """Where a whole text of base64 stands, from a byte on; below 0 if nowhere."""
    while (begin := data.find(text, at)) >= 0 and data[begin + len(text) : begin + len(text) + 1] not in (b'"', b"\\"):
        at = begin + 1
    return begin


def _picture(path: tuple[str, ...], value: dict[str, Any], begin: int, text: str) -> Picture | None:
    shape = value.get("shape")
    if not is_bytes(value.get("dtype")) or not is_shape(shape) or 4 * -(-math.prod(shape) // 3) != len(text):
        return None

    def write(content: bytes) -> Piece:
        return Piece(begin, begin + len(text), base64.b64encode(content))

    return in_array(path, shape, lambda: base64.b64decode(text, validate=True), write)
