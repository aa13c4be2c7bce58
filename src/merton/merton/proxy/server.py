"""The proxy's port: it is open while the policy server accepts connections, and refuses them otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Iterable

from merton.errors import InputError
from merton.hosts import is_loopback
from merton.models.serving import refusal as foreign
from merton.proxy import control
from merton.proxy.given import split_target
from merton.proxy.heads import Head, read_body, read_head
from merton.proxy.relay import Relay
from merton.proxy.requests import Requests
from merton.proxy.sessions import Sessions
from merton.proxy.stream import Keeper
from merton.proxy.upstream import BUFFER, Streams, Upstream, hang_up

HEAD_S = 60.0
"""Longest time until the head of a request has arrived [s]."""
PERIOD_S = 0.25
"""Between two questions whether the policy server accepts connections [s]."""
BACKLOG = 128
SWITCH_S = 0.0005
"""Longest time for which the thread that distorts holds up the one that passes on [s]; Python's own is ten times it."""
EXTENSIONS = "sec-websocket-extensions"
"""Compression would hide the messages; neither side hears that the other one offers it."""


class Server:
    """The proxy on an address.

    Args:
        keeper: of the run.
        upstream: the policy server.
        host, port: where it listens; port 0 takes a free one.
        agent: the policy's name in the record.
        names: host names of this server, beside localhost and addresses.
        say: prints a line.
    """

    def __init__(
        self,
        keeper: Keeper,
        upstream: Upstream,
        host: str,
        port: int,
        agent: str,
        names: Iterable[str],
        say: Callable[[str], None],
    ) -> None:
        self._keeper, self._upstream, self._host = keeper, upstream, host
        self.port, self._say = port, say
        own = () if is_loopback(host) else (socket.gethostname(), socket.getfqdn())
        self._names = frozenset(name.lower() for name in ("localhost", host, *own, *names))
        self._sessions = Sessions(keeper, agent)
        self._connections: set[asyncio.Task[None]] = set()
        self._doubted = asyncio.Event()
        self._bound = self._listening()
        self.port = self._bound.getsockname()[1]

    def _listening(self) -> socket.socket:
        try:
            found = socket.getaddrinfo(self._host, self.port, type=socket.SOCK_STREAM)[0]
            bound = socket.socket(found[0], socket.SOCK_STREAM)
            try:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(found[4])
            except OSError:
                bound.close()
                raise
        except (OSError, OverflowError) as error:
            raise InputError(f"cannot listen on {self._host} port {self.port}: {error}") from None
        return bound

    async def serve(self) -> None:
        """Serve until it is cancelled; then end what goes on."""
        first = True
        if not is_loopback(self._host):
            self._say("every program that reaches that port may use the policy: there is no password")
        try:
            while True:
                if not await self._upstream.accepts(self._keeper.protocol.health):
                    self._say(f"waiting for the policy server at {self._upstream.url}; until then the port is closed")
                    while not await self._upstream.accepts(self._keeper.protocol.health):
                        await asyncio.sleep(PERIOD_S)
                bound = self._bound if first else self._listening()
                first = False
                await self._open(bound)
        finally:
            await self._end()

    async def _open(self, bound: socket.socket) -> None:
        """Accept connections until the policy server accepts none."""
        server = await asyncio.start_server(self._accept, sock=bound, limit=BUFFER, backlog=BACKLOG)
        scheme = "ws" if self._keeper.protocol.websocket else "http"
        shown = f"[{self._host}]" if ":" in self._host else self._host
        self._say(f"{self._keeper.protocol.name} at {scheme}://{shown}:{self.port} for {self._upstream.url}")
        try:
            while True:
                await self._doubted.wait()
                self._doubted.clear()
                if not await self._upstream.accepts(self._keeper.protocol.health):
                    return
        finally:
            server.close()

    async def _end(self) -> None:
        self._bound.close()
        await self._sessions.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve((reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
        except InputError as error:
            self._keeper.note("malformed", f"a connection was ended: {error}")
            writer.write(control.refusal(400, "Bad Request", str(error)))
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            await hang_up(writer)

    async def _serve(self, harness: Streams) -> None:
        try:
            found = await asyncio.wait_for(read_head(harness[0]), HEAD_S)
        except (asyncio.TimeoutError, TimeoutError):
            return
        if found is None:
            return
        head = found[0]
        if refused := self._refused(head):
            harness[1].write(refused)
            return
        if control.is_control(head.first[1]):
            await self._control(head, harness)
            return
        try:
            upstream = await self._upstream.connect()
        except OSError:
            self._doubted.set()
            raise
        try:
            if head.upgrades and self._keeper.protocol.websocket:
                await self._websocket(head, harness, upstream)
            else:
                await Requests(self._keeper, self._upstream, self._sessions, self._refused).run(head, harness, upstream)
        except (OSError, asyncio.IncompleteReadError):
            self._doubted.set()
            raise
        finally:
            await hang_up(upstream[1])

    async def _websocket(self, head: Head, harness: Streams, upstream: Streams) -> None:
        target, said = split_target(head.first[1])
        request = head.rewritten(self._upstream.target(target), self._upstream.authority, (EXTENSIONS,))
        stream = self._sessions.opened(said)
        try:
            relay = Relay(self._keeper, self._upstream, stream, request)
            await relay.run(harness, upstream)
            if relay.broken:
                self._doubted.set()
        finally:
            stream.connections -= 1

    async def _control(self, head: Head, harness: Streams) -> None:
        length = head.get("content-length", "0") or "0"
        if not length.isdecimal() or int(length) > control.LONGEST_BODY or head.get("transfer-encoding"):
            detail = f"a body has a Content-Length, of {control.LONGEST_BODY} bytes at most"
            harness[1].write(control.refusal(413, "Content Too Large", detail))
            return
        _, body = await asyncio.wait_for(read_body(harness[0], head, of_request=True), HEAD_S)
        harness[1].write(await control.respond(head, body, self._keeper, self._sessions))

    def _refused(self, head: Head) -> bytes | None:
        """The answer to a request that a page of another site had a browser send; None for any other."""
        status, why = foreign(head, self._names)
        if not status:
            return None
        return control.refusal(status, "Misdirected Request" if status == 421 else "Forbidden", why)


def run(server: Server) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    sys.setswitchinterval(SWITCH_S)

    async def serving() -> None:
        task = asyncio.ensure_future(server.serve())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(serving())
