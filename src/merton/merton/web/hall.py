"""An application with a thread's event loop and places of its own, over connections that an acceptor hands in."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from dataclasses import dataclass, field
from typing import Any, cast

from merton.errors import needing
from merton.web.places import Places

with needing("serve", "a served page"):
    import uvicorn
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEEP = "keep_place"
"""Name of the callback in the state of an ASGI scope, see `keep_place`."""


@dataclass(eq=False)
class Connection:
    """A client's connection.

    Attributes:
        sock: closed as soon as the connection has ended.
        origin: address of the client, see `acceptor.origin`.
        since_s: when it was accepted, monotonic clock [s].
        received: the bytes read so far; the application gets them first.
        transport: of the event loop that serves it.
    """

    sock: socket.socket
    origin: str
    since_s: float
    received: bytes = b""
    transport: asyncio.Transport | None = field(default=None, repr=False)

    @property
    def closed(self) -> bool:
        return self.sock.fileno() < 0


class Hall(uvicorn.Server):
    """Serves an ASGI application; `run` blocks until `should_exit` is set, or until Ctrl-C in the main thread.

    An answer ends its connection, unless the body of the request still arrives. So heads come by the acceptor, and no
    connection that has been served holds a place.

    Args:
        app: the application.
        most: connections at the same time.
        options: of `uvicorn.Config`.
    """

    def __init__(self, app: ASGIApp, most: int, **options: Any) -> None:
        common = {"log_level": "warning", "access_log": False, "proxy_headers": False, "server_header": False}
        super().__init__(uvicorn.Config(_one_request_each(app), **{**common, **options}))
        self.ready = threading.Event()
        self._most = most
        self._places: Places[Connection] = Places(most)
        self._leaving: set[Connection] = set()
        self._beginning: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, without a listener."""
        await super().startup(sockets=[])
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    def adopt(self, connection: Connection, known: bool) -> None:
        """Serve a connection whose head has arrived; called in the acceptor's thread.

        Args:
            connection: without a token it is closed at once if all others have one, or if as many connections as
                there are places still wait for their end.
            known: whether the head shows a valid token.
        """
        self._leaving = {one for one in self._leaving if not one.closed}
        if len(self._leaving) >= self._most and not known:
            connection.sock.close()
            return
        if len(self._places) >= self._most:
            for one in self._places.all():
                if one.closed:
                    self._places.leave(one)
        gives_way = self._places.enter(connection, connection.origin, known)
        if gives_way is connection:
            connection.sock.close()
            return
        try:
            self._loop.call_soon_threadsafe(self._begin, connection)
            if gives_way is not None:
                self._leaving.add(gives_way)
                self._loop.call_soon_threadsafe(self._abort, gives_way)
        except RuntimeError:  # the loop has ended
            connection.sock.close()

    def _begin(self, connection: Connection) -> None:
        task = self._loop.create_task(self._serve_connection(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _serve_connection(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):  # the client has left
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: _Beginning(self, connection), connection.sock
            )
            connection.transport = transport
            return
        connection.sock.close()

    def _abort(self, connection: Connection) -> None:
        if connection.transport is not None:
            connection.transport.abort()
        elif not connection.closed:
            self._loop.call_soon(self._abort, connection)  # it has not begun yet

    def keep(self, connection: Connection) -> None:
        self._places.keep(connection)


class _Beginning(asyncio.Protocol):
    """Gives way to uvicorn's protocol, which begins with the bytes that the acceptor has read."""

    def __init__(self, hall: Hall, connection: Connection) -> None:
        self._hall, self._connection = hall, connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        hall, connection = self._hall, self._connection
        state = {**hall.lifespan.state, KEEP: lambda: hall.keep(connection)}
        kind = cast(Any, hall.config.http_protocol_class)
        protocol = kind(config=hall.config, server_state=hall.server_state, app_state=state)
        cast(asyncio.Transport, transport).set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(connection.received)


def keep_place(scope: Scope) -> None:
    """The client of this ASGI connection has shown a token: its place is kept while there are clients without one.

    Without a hall, as in tests or under another server, nothing happens.
    """
    if KEEP in scope.get("state", {}):
        scope["state"][KEEP]()


def _one_request_each(app: ASGIApp) -> ASGIApp:
    """The application, with answers that end their connection; where a body is still arriving, uvicorn discards it."""

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        arriving = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])

        async def receive_noting() -> Message:
            nonlocal arriving
            message = await receive()
            arriving = arriving and bool(message.get("more_body", False))
            return message

        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start" and not arriving:
                message = {**message, "headers": [*message.get("headers", []), (b"connection", b"close")]}
            await send(message)

        await app(scope, receive_noting, send_closing)

    return closing
