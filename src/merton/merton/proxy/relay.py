"""One websocket of a harness, passed on to the policy server frame by frame; only shown pictures differ."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass

from merton.errors import InputError
from merton.proxy.frames import CLOSE, Assembly, Frame, Whole, client_frame, close_code, read_frame
from merton.proxy.given import Given
from merton.proxy.heads import read_head
from merton.proxy.protocols.base import Kind, Message, Reply
from merton.proxy.shadow import Shadow
from merton.proxy.stream import LEFT, Keeper, Running, Stream, known, number_of
from merton.proxy.upstream import Streams, Upstream, hang_up

ENDED = (OSError, asyncio.IncompleteReadError)


@dataclass(frozen=True)
class Sent:
    """A message of the harness that is to be answered.

    Attributes:
        running: the episode of an observation; None outside of one, and for other messages.
        step: its number in the episode.
        number: by which the answer names it.
        asked: what a second session is to be asked; None for nothing.
        added_s: the proxy's own time so far.
        distorting_s: of that of distorting.
    """

    running: Running | None = None
    step: int = 0
    number: int | None = None
    asked: bytes | None = None
    added_s: float = 0.0
    distorting_s: float = 0.0


class Relay:
    """A websocket from its opening to its end.

    Args:
        keeper: of the run.
        upstream: the policy server.
        stream: of the harness's episodes.
        request: the head with which the policy server is asked to open.

    Attributes:
        broken: how the policy server ended the connection; "" if it did not.
    """

    def __init__(self, keeper: Keeper, upstream: Upstream, stream: Stream, request: bytes) -> None:
        self._keeper, self._upstream, self._stream, self._request = keeper, upstream, stream, request
        self._protocol = keeper.protocol
        self._greeting: list[bytes] = []  # messages from before the first episode
        self._beginning: list[bytes] = []  # and those of the episode's beginning
        self._waiting: deque[Sent] = deque()
        self._greeted = not self._protocol.greets
        self._running: Running | None = None
        self.broken = ""

    async def run(self, harness: Streams, upstream: Streams) -> None:
        """Open, pass on in both directions, and end what is left of an episode."""
        upstream[1].write(self._request)
        found = await read_head(upstream[0])
        if found is None:
            raise ConnectionResetError("the policy server closed the connection")
        harness[1].write(found[1])
        await harness[1].drain()
        if found[0].status != 101:
            await _rest(upstream[0], harness[1])
            return
        directions = [
            asyncio.ensure_future(work) for work in (self._up(harness, upstream), self._down(harness, upstream))
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in directions:  # the other one ends with its own side, a moment after
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    await asyncio.wait_for(asyncio.shield(direction), 1.0)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            self._finish()
            await self._stream.settled()

    def _finish(self) -> None:
        running = self._stream.running
        if running is None or running is not self._running:  # the next connection has another one
            return
        if self.broken and not running.error:
            self._stream.lost(self.broken)
        elif self._protocol.has_episodes:
            self._stream.end(None, LEFT + (", while it waited for an answer" if self._waiting else ""))

    async def _up(self, harness: Streams, upstream: Streams) -> None:
        assembly, reader, writer = Assembly(), harness[0], upstream[1]
        try:
            while (frame := await self._sent(reader)) is not None:
                if frame.is_control:
                    self._stream.left = self._stream.left or frame.opcode == CLOSE
                    writer.write(frame.raw)
                elif (whole := assembly.add(frame)) is not None:
                    await self._take(whole, writer)
                await writer.drain()
            upstream[1].close()
        except ENDED:  # the policy server went, not the harness: the other direction sees it, too
            return
        except ValueError as error:  # InputError, and of a picture
            self._keeper.note("malformed", f"a harness's connection was ended: {error}")
            self._stream.left = True
            upstream[1].close()
            harness[1].close()

    async def _sent(self, reader: asyncio.StreamReader) -> Frame | None:
        """The harness's next frame; None if it has left."""
        try:
            return await read_frame(reader)
        except ENDED:
            self._stream.left = True
            return None

    async def _take(self, whole: Whole, writer: asyncio.StreamWriter) -> None:
        message = self._protocol.message(whole.payload) if whole.is_binary else Message(Kind.OTHER)
        if message.problem:
            self._keeper.note("malformed", f"a message of the harness is passed on as it is: {message.problem}")
        if message.kind is Kind.OBSERVATION:
            await self._observation(message, whole, writer)
            return
        writer.write(whole.raw)
        if self._protocol.answers_each:
            self._waiting.append(Sent())
        if message.kind is Kind.BEGIN:
            self._beginning = [whole.payload]
            await self._begin(message)
        elif message.kind is Kind.END:
            self._stream.end(message.success)
        elif whole.is_binary and not message.problem:
            self._greeting.append(whole.payload)

    async def _begin(self, message: Message) -> None:
        """An episode begins by the protocol; where that says no scene, with the next observation."""
        given = self._stream.given
        task = given.task or message.task
        scene = given.scene if given.scene is not None else message.scene
        if task is None or scene is None:
            self._stream.say(Given(given.agent, task, scene, given.condition, given.session))
            return
        said = Given(given.agent, task, number_of(scene), given.condition, given.session)
        begins = [*self._greeting, *self._beginning]
        self._running = await self._stream.begin(said, message.instruction, self._shadow(), begins)

    def _shadow(self) -> Shadow:
        return Shadow(self._upstream, self._protocol, self._request, self._keeper.run.design.clean_every == 1)

    async def _observation(self, message: Message, whole: Whole, writer: asyncio.StreamWriter) -> None:
        running = self._stream.running
        if self._stream.next is not None and (self._beginning or not self._protocol.has_episodes):
            said = known(self._stream.next, message)
            begins = [*self._greeting, *self._beginning]
            running = self._running = await self._stream.begin(said, message.instruction, self._shadow(), begins)
        if running is None:
            self._keeper.counts["outside"] += 1
            self._waiting.append(Sent(number=message.number))
            writer.write(whole.raw)
            return
        step, pieces, distorting_s = await running.observed(message)
        raw = client_frame(self._protocol.shown(whole.payload, pieces)) if pieces else whole.raw
        asked = whole.payload if due(running, step) else None
        added_s = time.perf_counter() - whole.arrived_s - distorting_s
        self._waiting.append(Sent(running, step, message.number, asked, added_s, distorting_s))
        writer.write(raw)

    async def _down(self, harness: Streams, upstream: Streams) -> None:
        assembly, reader, writer = Assembly(), upstream[0], harness[1]
        closed = False
        try:
            while True:
                frame = await read_frame(reader)
                writer.write(frame.raw)
                if frame.opcode == CLOSE and not self._stream.left:
                    code, reason = close_code(frame.payload)
                    self.broken = f"the policy server closed the connection ({code} {reason})".replace(" )", ")")
                closed = closed or frame.opcode == CLOSE
                whole = None if frame.is_control else assembly.add(frame)
                await writer.drain()
                if whole is not None:
                    await self._answered(whole)
        except ENDED:
            if not self._stream.left and not closed:
                self.broken = "the policy server went away"
        except InputError as error:
            self.broken = f"the policy server's connection was ended: {error}"
        if self.broken:
            self._finish()  # before the harness hears of it
        if closed:
            await hang_up(writer)
        else:
            writer.transport.abort()

    async def _answered(self, whole: Whole) -> None:
        passed_s = time.perf_counter() - whole.arrived_s
        if not self._greeted:
            self._greeted = True
            return
        if not self._waiting:
            return
        reply = self._protocol.reply(whole.payload if whole.is_binary else whole.payload.decode("utf-8", "replace"))
        sent = self._matched(reply)
        if sent is None or sent.running is None:
            return
        added_s = sent.added_s + passed_s
        self._keeper.latency.add(added_s, sent.distorting_s)
        if reply.error:
            self._keeper.note("policy_failed", f"the policy failed, and the harness was told: {reply.error}")
        await sent.running.keep(sent.running.answered(sent.step, reply, sent.asked, added_s))

    def _matched(self, reply: Reply) -> Sent | None:
        """The message that a reply answers, taken from those that wait."""
        if not reply.is_answer:
            return None
        if self._protocol.answers_each:
            return self._waiting.popleft()
        while self._waiting:  # answers come in the order of their observations; some have none
            sent = self._waiting[0]
            if reply.number is not None and sent.number is not None and sent.number > reply.number:
                return None
            self._waiting.popleft()
            if sent.number == reply.number:
                return sent
        return None


def due(running: Running, step: int) -> bool:
    """Whether a second session is asked about the observation as it was sent.

    Also about one that was not changed: the answers of a policy with a memory may differ there, and the difference
    between the answers to equal pictures is that of the policy's own noise.
    """
    return running.episode.asks_clean(step)


async def _rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What follows a refusal to open, until the connection ends."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
