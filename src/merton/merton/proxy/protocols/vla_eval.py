"""vla-eval's websocket: hello, the beginning of an episode, observations and actions, its end with its success.

The form of its messages is that of vla-eval 0.8 (protocol version 1); the package itself is not needed. Pictures travel
as PNG unless the harness is told otherwise, so they are decoded with OpenCV and encoded again.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from merton.models.serving import pack, unpack
from merton.proxy import spans
from merton.proxy.pictures import Picture, by_camera, walk
from merton.proxy.protocols.arrays import number_or_array, pictures_in, piece_of, raw_picture
from merton.proxy.protocols.base import Kind, Message, Protocol, Reply, rows
from merton.proxy.spans import Piece, Span
from merton.world.observation import Image

KINDS = {"observation": Kind.OBSERVATION, "episode_start": Kind.BEGIN, "episode_end": Kind.END}
JPEG_QUALITY = 95
"""With which vla-eval encodes."""
RECORDING = "recording"
"""The part of a beginning that has a server write into the harness's own record; a second session must not."""


class VlaEval(Protocol):
    """vla-eval's protocol."""

    name = "vla-eval"
    has_episodes = True
    health = "/health"

    def message(self, data: bytes) -> Message:
        """As `Protocol.message`."""
        found = _content(data)
        if isinstance(found, str):
            return Message(Kind.OTHER, problem=found)
        kind, number, payload = found
        if kind == "observation":
            pictures = by_camera([*pictures_in(payload), *encoded_pictures(payload)])
            return Message(Kind.OBSERVATION, number, pictures, _text(payload, "task_description"))
        if kind == "episode_start":
            task = payload.get("task")
            return _beginning(number, task if isinstance(task, dict) else {})
        if kind == "episode_end":
            metrics = payload.get("metrics")
            success = metrics.get("success") if isinstance(metrics, dict) else None
            return Message(Kind.END, number, success=None if success is None else bool(success))
        return Message(Kind.OTHER, number)

    def reply(self, data: bytes | str) -> Reply:
        """As `Protocol.reply`."""
        found = _content(data) if isinstance(data, bytes) else "a text, where messages are binary"
        if isinstance(found, str):
            return Reply(True, error=found)
        kind, number, payload = found
        if kind == "error":
            return Reply(True, number, error=str(payload.get("error", payload))[:300])
        if kind != "action":
            return Reply(False, number)
        action = payload.get("actions", payload.get("action"))
        return Reply(True, number, rows(number_or_array(action)) if action is not None else None)

    def for_shadow(self, data: bytes) -> bytes:
        """A beginning without the part by which a server writes into the harness's record."""
        if RECORDING.encode() not in data:
            return data
        content = unpack(data)
        payload = content["payload"]
        if content["type"] != "episode_start" or RECORDING not in payload:
            return data
        return pack({**content, "payload": {key: value for key, value in payload.items() if key != RECORDING}})


def _content(data: bytes) -> tuple[str, int | None, dict[Any, Any]] | str:
    """(type, number, payload) of a message, or what it lacks."""
    try:
        content = spans.read(data)
    except ValueError as error:
        return f"a message that is not msgpack: {error}"
    payload = content.get("payload") if isinstance(content, dict) else None
    if not isinstance(payload, dict) or not isinstance(content.get("type"), str):
        return "a message without a type or a payload"
    number = content.get("seq")
    return content["type"], number if type(number) is int else None, payload


def _beginning(number: int | None, task: dict[Any, Any]) -> Message:
    """The beginning of an episode. A task is named by its suite and its name, or by all that it says."""
    named = [_text(task, key) for key in ("suite", "name")]
    said = {key: value for key, value in task.items() if key != "episode_idx" and not isinstance(value, Span)}
    name = ": ".join(filter(None, named)) if named[1] else json.dumps(said, sort_keys=True, default=str)
    scene = task.get("episode_idx")
    return Message(
        Kind.BEGIN, number, instruction=named[1], task=name, scene=scene if type(scene) in (int, str) else None
    )


def _text(payload: dict[Any, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def encoded_pictures(payload: dict[Any, Any]) -> list[Picture]:
    """The pictures of a payload in vla-eval's form {"__image__": true, "format", "data", "shape"}."""
    return [one for path, value in walk(payload) if (one := _encoded(path, value)) is not None]


def _encoded(path: tuple[str, ...], value: dict[Any, Any]) -> Picture | None:
    data, form, shape = value.get("data"), value.get("format"), value.get("shape")
    if "__image__" in value and form == "raw":
        return raw_picture(path, value)
    if "__image__" not in value or not isinstance(data, Span) or form not in ("png", "jpeg"):
        return None
    if not isinstance(shape, list) or len(shape) != 3 or shape[2] != 3:
        return None
    return Picture(path, lambda: _decoded(data.content), lambda image: _piece(data, form, image))


def _decoded(data: bytes) -> Image:
    import cv2

    bgr = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if bgr is None:
        raise ValueError("a picture that cannot be decoded")
    return np.ascontiguousarray(bgr[:, :, ::-1])


def _piece(span: Span, form: str, image: Image) -> Piece:
    import cv2

    bgr = np.ascontiguousarray(image[:, :, ::-1])
    options = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY] if form == "jpeg" else []
    done, encoded = cv2.imencode(f".{form}", bgr, options)
    if not done:
        raise ValueError("a picture that cannot be encoded")
    return piece_of(span, encoded.tobytes())
