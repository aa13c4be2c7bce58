"""One browser's WebSocket: whenever it is ready, it gets everything that has changed, in one message.

The browser says "ready" once it has shown what it got. So one update is on its way at a time: a slow line or a slow
browser gets fewer updates, each the newest there is, and nothing piles up anywhere.

An update is binary: four bytes, the length of the JSON that follows (big endian); the JSON, `{"state": {section:
content}, "frames": [{"stream", "stamp_ns", "bytes"}]}`; the JPEG files of the frames, one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import time
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from merton.monitor.hub import Hub, Update

HELLO_LIMIT_S = 5.0
"""How long a browser may take to say who it is [s]."""
READY_LIMIT_S = 30.0
"""How long a browser may take to show an update [s]; then it is disconnected and may come again."""
PERIOD_S = 0.1
"""The least time between two updates of one browser [s]: ten a second are enough for an eye."""
ALIVE_S = 1.0
"""An update is sent at least this often, be it empty, so that the page knows that it is not looking at the past [s]."""
BAD_MESSAGE, NOT_ALLOWED = 1003, 1008


def packed(update: Update) -> bytes:
    """An update as bytes."""
    frames = [{"stream": f.stream, "stamp_ns": f.stamp_ns, "bytes": len(f.jpeg)} for f in update.frames]
    head = json.dumps({"state": update.sections, "frames": frames}, allow_nan=False).encode()
    return b"".join([struct.pack(">I", len(head)), head, *(frame.jpeg for frame in update.frames)])


async def serve(socket: WebSocket, hub: Hub, may_look: Callable[[str], bool]) -> None:
    """Talk to one browser until it leaves, is too slow, or says something else than it should.

    Args:
        socket: not accepted yet.
        hub: what is shown.
        may_look: whether the holder of this token may; the token is empty if there is none.
    """
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        try:
            if not may_look(_token(await asyncio.wait_for(_said(socket), HELLO_LIMIT_S))):
                await socket.close(NOT_ALLOWED, "unknown token")
                return
            await _updates(socket, hub)
        except ValueError as error:
            await socket.close(BAD_MESSAGE, str(error))
        except (asyncio.TimeoutError, TimeoutError):
            await socket.close(NOT_ALLOWED, "nothing was heard for too long")


async def _updates(socket: WebSocket, hub: Hub) -> None:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def on_update() -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(changed.set)

    version = 0
    with hub.listening(on_update):
        while True:
            began_s = time.monotonic()
            changed.clear()
            update = hub.since(version)
            if not update:
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    await asyncio.wait_for(changed.wait(), ALIVE_S)
                update = hub.since(version)
            version = update.version
            await socket.send_bytes(packed(update))
            if await asyncio.wait_for(_said(socket), READY_LIMIT_S) != "ready":
                raise ValueError('after an update a browser says "ready" and nothing else')
            await asyncio.sleep(max(0.0, began_s + PERIOD_S - time.monotonic()))


async def _said(socket: WebSocket) -> str:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", 1005))
    return message.get("text") or ""


def _token(hello: str) -> str:
    """The token in a browser's first message, {"token": "..."}; raises ValueError for anything else."""
    try:
        said = json.loads(hello)
    except RecursionError:
        said = None
    if not isinstance(said, dict) or set(said) != {"token"} or not isinstance(said["token"], str):
        raise ValueError('a browser begins with {"token": "..."}')
    return said["token"]
