"""Requests of HTTP of a harness, passed on to the policy server; those of /act are observations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from merton.errors import InputError
from merton.proxy.given import split_target
from merton.proxy.heads import Head, read_body, read_head, read_response
from merton.proxy.protocols.base import Kind, Message, Reply
from merton.proxy.relay import due
from merton.proxy.sessions import Sessions
from merton.proxy.shadow import Again
from merton.proxy.stream import Keeper, Running, known
from merton.proxy.upstream import Streams, Upstream, hang_up

UNAVAILABLE = (502, 503, 504)
"""Statuses by which a server, or one before it, says that the policy was not asked."""
AT_ONCE = (
    "requests of one session came at once and are passed on one after the other: if they are of several simulators, "
    "give each its own ?session=NAME"
)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Requests:
    """The requests of one connection, one after the other.

    Args:
        keeper: of the run.
        upstream: the policy server.
        sessions: of all harnesses.
        refused: the answer to a request that this server does not take; None for one that it does.
    """

    def __init__(
        self,
        keeper: Keeper,
        upstream: Upstream,
        sessions: Sessions,
        refused: Callable[[Head], bytes | None],
    ) -> None:
        self._keeper, self._upstream, self._sessions, self._refused = keeper, upstream, sessions, refused
        self._streams: Streams | None = None

    async def run(self, head: Head, harness: Streams, streams: Streams) -> None:
        """Pass on the first request, whose head is read, and those that follow it.

        Raises:
            OSError: the policy server does not take a connection.
            asyncio.IncompleteReadError: one of the sides has gone.
            InputError: it is no HTTP.
        """
        self._streams = streams
        try:
            while True:
                if refusal := self._refused(head):
                    harness[1].write(refusal)
                    return
                if not await self._one(head, harness):
                    return
                found = await read_head(harness[0])
                if found is None:
                    return
                head = found[0]
        finally:
            if self._streams is not None:
                await hang_up(self._streams[1])

    async def _one(self, head: Head, harness: Streams) -> bool:
        """Pass one request on, and its answer back; False if the connection ends with it."""
        began_s = time.perf_counter()
        if head.says("expect", "100-continue"):
            harness[1].write(CONTINUE)
        sent = await read_body(harness[0], head, of_request=True)
        said = split_target(head.first[1])[1]
        if self._keeper.protocol.websocket or head.first[0] != "POST":
            return await self._passed(head, sent, harness, began_s)
        asked_s = time.perf_counter()
        if (turn := self._sessions.turn(said)).locked():
            self._keeper.note("at_once", AT_ONCE)
        async with turn:  # the time until the policy has answered another request is not the proxy's own
            return await self._passed(head, sent, harness, began_s + time.perf_counter() - asked_s)

    async def _passed(self, head: Head, sent: tuple[bytes, bytes], harness: Streams, began_s: float) -> bool:
        """As `_one`, of a request that is read: its body as it came, and its content."""
        sent_raw, body = sent
        target, said = split_target(head.first[1])
        read_s = time.perf_counter()
        running, step, shown, distorting_s = self._unread(head, target, said), 0, body, 0.0
        if running is not None:
            step, running.steps = running.steps, running.steps + 1
        elif (message := self._message(head, target, body)) is not None:
            read_s = time.perf_counter() - read_s
            running, step, shown, distorting_s = await self._show(message, body, said, head, target)
            distorting_s += read_s if distorting_s else 0.0
        changed = shown is not body
        request = head.rewritten(
            self._upstream.target(target),
            self._upstream.authority,
            ("expect", "content-length", "transfer-encoding") if changed else ("expect",),
        )
        if changed:
            request = request[:-2] + f"Content-Length: {len(shown)}\r\n\r\n".encode()
        try:
            reader, writer = await self._connected()
            writer.write(request + (shown if changed else sent_raw))
            await writer.drain()
            added_s = time.perf_counter() - began_s - distorting_s
            answer, raw, reply = await read_response(reader, head.first[0])
        except (OSError, asyncio.IncompleteReadError, InputError) as error:
            if running is not None:
                self._sessions.at(said).lost("the policy server went away")
            raise ConnectionResetError("the policy server went away") from error
        passed_s = time.perf_counter()
        harness[1].write(raw)
        await harness[1].drain()
        if running is not None:
            added_s += time.perf_counter() - passed_s
            self._keeper.latency.add(added_s, distorting_s)
            read = self._keeper.protocol.reply(reply)
            if answer.status != 200:
                self._keeper.note("policy_failed", f"the policy server answered with status {answer.status}")
                read = Reply(True, error=f"status {answer.status}")
            if answer.status in UNAVAILABLE:
                self._sessions.at(said).lost(f"the policy server answered with status {answer.status}")
            asked = body if due(running, step) else None
            await running.keep(running.answered(step, read, asked, added_s))
        return _stays(head) and _stays(answer) and answer.get("content-length") is not None

    def _unread(self, head: Head, target: str, said: dict[str, str]) -> Running | None:
        """The episode of an observation that need not be read, since its pictures pass and are not kept."""
        if self._keeper.protocol.websocket or head.first[0] != "POST" or not _is_act(target):
            return None
        stream = self._sessions.at(said)
        running = stream.running
        return None if stream.next or running is None or running.looks_at(running.steps) else running

    def _message(self, head: Head, target: str, body: bytes) -> Message | None:
        """The observation of a request; None for another request."""
        if self._keeper.protocol.websocket or head.first[0] != "POST":
            return None
        message = self._keeper.protocol.message(body)
        named = _is_act(target)
        if message.problem and named:
            self._keeper.note("malformed", f"a request is passed on as it is: {message.problem}")
        return message if message.kind is Kind.OBSERVATION and (named or message.pictures) else None

    async def _show(
        self, message: Message, body: bytes, said: dict[str, str], head: Head, target: str
    ) -> tuple[Running | None, int, bytes, float]:
        """(episode, step, the body to send, how long distorting took [s])."""
        stream = self._sessions.at(said)
        if stream.next is not None:
            own = ("expect", "content-length", "transfer-encoding", "connection")
            request = head.rewritten(self._upstream.target(target), self._upstream.authority, own)
            shadow = Again(self._upstream, self._keeper.protocol, request[:-2])
            await stream.begin(known(stream.next, message), message.instruction, shadow, [])
        running = stream.running
        if running is None:
            self._keeper.counts["outside"] += 1
            return None, 0, body, 0.0
        step, pieces, distorting_s = await running.observed(message)
        return running, step, self._keeper.protocol.shown(body, pieces) if pieces else body, distorting_s

    async def _connected(self) -> Streams:
        """The connection, or another one where the policy server has ended it between two requests."""
        if self._streams is None or self._streams[0].at_eof() or self._streams[1].is_closing():
            if self._streams is not None:
                await hang_up(self._streams[1])
            self._streams = await self._upstream.connect()
        return self._streams


def _is_act(target: str) -> bool:
    return target.partition("?")[0].rstrip("/").endswith("/act")


def _stays(head: Head) -> bool:
    """Whether the connection goes on after this message."""
    version = head.first[2] if head.first[2].startswith("HTTP/") else head.first[0]
    return not head.says("connection", "close") and (version != "HTTP/1.0" or head.says("connection", "keep-alive"))
