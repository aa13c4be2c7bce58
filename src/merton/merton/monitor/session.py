"""One browser's WebSocket: whenever it is ready, it gets all changes in one message.

The browser sends "ready" once it has shown an update. So one update is on its way at a time: a slow line or a slow
browser gets fewer updates, each of the newest state, and no queue grows.

An update is binary: four bytes, the length of the JSON that follows (big endian); the JSON, `{"state": {section:
content}, "frames": [{"stream", "stamp_ns", "bytes"}], "stop_path_age_s": number or null}`; the JPEG files of the
frames, one after the other. `stop_path_age_s` is the time since the node last looked whether a stop would arrive [s]:
an update of a server whose node hangs must not look current.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import struct
import time
from collections.abc import Callable

from merton.errors import needing
from merton.monitor.hub import Hub, Update
from merton.web.hall import keep_place

with needing("serve", "the monitor"):
    from starlette.websockets import WebSocket, WebSocketDisconnect

HELLO_LIMIT_S = 5.0
"""Longest time until a browser has sent its token [s]."""
READY_LIMIT_S = 30.0
"""Longest time until a browser has shown an update [s]; then it is disconnected and may connect again."""
PERIOD_S = 0.1
"""The least time between two updates of one browser [s]: ten a second look continuous."""
ALIVE_S = 1.0
"""An update is sent at least this often, even an empty one, so that the page knows that its content is current [s]."""
SLOW_S = 3.0
"""A browser that takes longer than this to show an update gives its place to another one, if all are taken [s]."""
BAD_MESSAGE, NOT_ALLOWED, TRY_AGAIN_LATER = 1003, 1008, 1013


class Browsers:
    """The browsers that are shown the content, at most `most`; one that does not answer gives way to a newcomer."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._asked_s: dict[WebSocket, float] = {}  # since when an update waits for its "ready"; infinite if none does

    async def enter(self, socket: WebSocket) -> bool:
        """Take a place; False if there is none."""
        if len(self._asked_s) >= self.most:
            slowest = min(self._asked_s, key=self._asked_s.__getitem__)
            if time.monotonic() - self._asked_s[slowest] < SLOW_S:
                return False
            self.leave(slowest)
            await slowest.close(TRY_AGAIN_LATER, "no answer for too long, and another browser has come")
        self._asked_s[socket] = math.inf
        return True

    def leave(self, socket: WebSocket) -> None:
        self._asked_s.pop(socket, None)

    async def show(self, socket: WebSocket, update: bytes) -> str:
        """Send an update; the browser's answer."""
        if socket in self._asked_s:
            self._asked_s[socket] = time.monotonic()
        await socket.send_bytes(update)
        answer = await asyncio.wait_for(_received(socket), READY_LIMIT_S)
        if socket in self._asked_s:
            self._asked_s[socket] = math.inf
        return answer


def packed(update: Update, stop_path_age_s: float | None = None) -> bytes:
    """An update as bytes: length of the head (4 bytes, big endian), the head as JSON, the JPEGs one after the other."""
    frames = [{"stream": f.stream, "stamp_ns": f.stamp_ns, "bytes": len(f.jpeg)} for f in update.frames]
    content = {"state": update.sections, "frames": frames, "stop_path_age_s": stop_path_age_s}
    head = json.dumps(content, allow_nan=False).encode()
    return b"".join([struct.pack(">I", len(head)), head, *(frame.jpeg for frame in update.frames)])


async def serve(socket: WebSocket, hub: Hub, may_view: Callable[[str], bool], browsers: Browsers) -> None:
    """Serve one browser until it leaves, is too slow, or sends an unexpected message.

    Args:
        socket: not accepted yet.
        hub: the content.
        may_view: whether the holder of a token may view it; the token is empty if there is none.
        browsers: with a place for this one, which it takes once its token is checked.
    """
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        try:
            if not may_view(_token(await asyncio.wait_for(_received(socket), HELLO_LIMIT_S))):
                await socket.close(NOT_ALLOWED, "unknown token")
                return
            if not await browsers.enter(socket):
                await socket.close(TRY_AGAIN_LATER, f"{browsers.most} browsers are connected already")
                return
            keep_place(socket.scope)
            await _updates(socket, hub, browsers)
        except ValueError as error:
            await socket.close(BAD_MESSAGE, str(error))
        except (asyncio.TimeoutError, TimeoutError):
            await socket.close(NOT_ALLOWED, "no message for too long")
        finally:
            browsers.leave(socket)


async def _updates(socket: WebSocket, hub: Hub, browsers: Browsers) -> None:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def on_update() -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(changed.set)

    version = 0
    with hub.listening(on_update):
        while True:
            start_s = time.monotonic()
            changed.clear()
            update = hub.since(version)
            if not update:
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    await asyncio.wait_for(changed.wait(), ALIVE_S)
                update = hub.since(version)
            version = update.version
            if await browsers.show(socket, packed(update, hub.age_s("stop_path"))) != "ready":
                raise ValueError('after an update a browser sends "ready" and nothing else')
            await asyncio.sleep(max(0.0, start_s + PERIOD_S - time.monotonic()))


async def _received(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    return message.get("text") or ""


def _token(hello: str) -> str:
    """The token in a browser's first message, {"token": "..."}; raises ValueError for anything else."""
    try:
        document = json.loads(hello)
    except RecursionError:
        document = None
    if not isinstance(document, dict) or set(document) != {"token"} or not isinstance(document["token"], str):
        raise ValueError('a browser begins with {"token": "..."}')
    return document["token"]
