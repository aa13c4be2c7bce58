"""The second session: it asks the policy about the undistorted picture, and the first session knows nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol as Shape

from merton.errors import InputError
from merton.proxy.frames import CLOSE, PING, PONG, Assembly, client_frame, close_code, read_frame
from merton.proxy.heads import read_head, read_response
from merton.proxy.protocols.base import Protocol, Reply
from merton.proxy.upstream import Streams, Upstream, hang_up

PATIENCE_S = 120.0
"""Longest time for one question [s]; ours: twice what the slowest policies of the catalogue take."""


class Asker(Shape):
    """Something that asks a policy about an observation."""

    async def ask(self, begins: Sequence[bytes], payload: bytes) -> Reply | str:
        """The policy's answer to a message, or why there is none.

        Args:
            begins: messages of the harness from before the observation: of the connection, and of the episode.
            payload: the observation as the harness sent it.
        """

    async def close(self) -> None:
        """End its connection."""


class Shadow:
    """A session of its own on a websocket.

    It is opened by the head of the harness's own request. A policy may keep a history or a buffer of actions for each
    session. So a session that is not shown every observation is begun anew for each question; one that is goes on.

    Args:
        upstream: the policy server.
        protocol: its protocol.
        request: the bytes with which the first session was opened.
        follows: whether it is asked about every observation of an episode.
    """

    def __init__(self, upstream: Upstream, protocol: Protocol, request: bytes, follows: bool) -> None:
        self._upstream, self._protocol, self._request, self._follows = upstream, protocol, request, follows
        self._streams: Streams | None = None
        self._assembly = Assembly()
        self._lock = asyncio.Lock()

    async def ask(self, begins: Sequence[bytes], payload: bytes) -> Reply | str:
        """As `Asker.ask`; never raises."""
        async with self._lock:
            try:
                async with asyncio.timeout(PATIENCE_S):
                    if self._streams is None:
                        await self._open(begins)
                    return await self._asked(payload)
            except (OSError, asyncio.IncompleteReadError, ValueError) as error:  # InputError, too
                await self.close()
                return f"the second session broke: {_words(error)}"
            finally:
                if not self._follows:
                    await self.close()

    async def close(self) -> None:
        """As `Asker.close`."""
        if self._streams is not None:
            writer, self._streams = self._streams[1], None
            await hang_up(writer)

    async def _open(self, begins: Sequence[bytes]) -> None:
        self._streams = reader, writer = await self._upstream.connect()
        self._assembly = Assembly()
        writer.write(self._request)
        found = await read_head(reader)
        if found is None or found[0].status != 101:
            raise InputError("it was not opened")
        if self._protocol.greets:
            await self._next()
        for begin in begins:
            writer.write(client_frame(self._protocol.for_shadow(begin)))
            if self._protocol.answers_each:
                await self._next()

    async def _asked(self, payload: bytes) -> Reply:
        assert self._streams is not None
        number = self._protocol.message(payload).number
        self._streams[1].write(client_frame(payload))
        while True:
            reply = self._protocol.reply(await self._next())
            if reply.is_answer and (reply.error or reply.number == number):
                return reply

    async def _next(self) -> bytes | str:
        """The next message of the policy; pings are answered."""
        assert self._streams is not None
        reader, writer = self._streams
        while True:
            frame = await read_frame(reader)
            if frame.opcode == PING:
                writer.write(client_frame(frame.payload, PONG))
            elif frame.opcode == CLOSE:
                code, reason = close_code(frame.payload)
                raise InputError(f"it was closed ({code} {reason})")
            elif not frame.is_control and (whole := self._assembly.add(frame)) is not None:
                return whole.payload if whole.is_binary else whole.payload.decode("utf-8", "replace")


class Again:
    """The same request of HTTP once more, on a connection of its own; the protocol keeps no state.

    Args:
        upstream: the policy server.
        protocol: its protocol.
        request: the head of the request, as it was sent on, without its end and the length of the body.
    """

    def __init__(self, upstream: Upstream, protocol: Protocol, request: bytes) -> None:
        self._upstream, self._protocol, self._request = upstream, protocol, request

    async def ask(self, begins: Sequence[bytes], payload: bytes) -> Reply | str:
        """As `Asker.ask`; never raises."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await self._upstream.connect()
                try:
                    length = f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
                    writer.write(self._request + length.encode() + payload)
                    head, _, body = await read_response(reader, "POST")
                finally:
                    await hang_up(writer)
        except (OSError, asyncio.IncompleteReadError, InputError) as error:
            return f"the second request broke: {_words(error)}"
        if head.status != 200:
            return f"the second request was answered with status {head.status}"
        return self._protocol.reply(body)

    async def close(self) -> None:
        """There is nothing to close."""


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE_S:.0f} s"
    if isinstance(error, asyncio.IncompleteReadError):
        return "the connection was closed"
    return str(error) or type(error).__name__
