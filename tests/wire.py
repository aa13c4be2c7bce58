"""Servers for tests, written to the public protocols: for each request they do the next step of a script."""

from __future__ import annotations

import dataclasses
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from merton.decision.models.base import example_observation
from merton.world.observation import Observation
from patience import stretched

LIMIT_S = stretched(60.0)
"""Longest that anything here waits."""


@dataclass
class Request:
    """One HTTP request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Wire:
    """A listening server: where it is, what it has seen, and the event that ends steps which would wait for ever."""

    port: int
    requests: list[Any] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.port}"


HttpStep = Callable[[socket.socket, Wire], None]


def replying(status: int, value: Any, **headers: str) -> HttpStep:
    """A whole reply; bytes as they are, anything else as JSON."""

    def step(connection: socket.socket, wire: Wire) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return step


def silent(connection: socket.socket, wire: Wire) -> None:
    """Takes the request and says nothing."""
    wire.ended.wait(LIMIT_S)


def dripping(connection: socket.socket, wire: Wire) -> None:
    """Never stops sending headers, one byte now and then: no timeout between bytes would notice."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nx-slow: ")
    with suppress(OSError):
        while not wire.ended.wait(0.02):
            connection.sendall(b"a")


def half_closed(connection: socket.socket, wire: Wire) -> None:
    """Promises more than it sends, and goes."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b'{"choices"')


def vanishing(connection: socket.socket, wire: Wire) -> None:
    """Hangs up without a word."""


def garbage(connection: socket.socket, wire: Wire) -> None:
    """Speaks no HTTP."""
    connection.sendall(b"\x00\xff\x17 this is not the protocol\r\n\r\n")


@contextmanager
def http_server(*script: HttpStep) -> Iterator[Wire]:
    """Walks through the script, a step for each request, and then repeats the last one."""
    listener = socket.create_server(("127.0.0.1", 0))
    wire, lock = Wire(listener.getsockname()[1]), threading.Lock()

    def converse(connection: socket.socket) -> None:
        with connection, suppress(OSError), connection.makefile("rb") as stream:
            connection.settimeout(LIMIT_S)
            while line := stream.readline():
                method, path, _ = line.decode().split()
                headers = {}
                while (header := stream.readline().decode().strip()) != "":
                    name, _, text = header.partition(":")
                    headers[name.lower()] = text.strip()
                data = stream.read(int(headers.get("content-length", 0)))
                with lock:
                    step = script[min(len(wire.requests), len(script) - 1)]
                    wire.requests.append(Request(method, path, headers, json.loads(data) if data else None))
                step(connection, wire)
                if not getattr(step, "__qualname__", "").startswith("replying"):
                    return

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=converse, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield wire
    finally:
        wire.ended.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@contextmanager
def websocket_server(greeting: bytes | str, *script: Callable[[Any, Wire], Any]) -> Iterator[Wire]:
    """Greets, then for each message calls a step: what it returns is sent, and after None the connection is cut."""
    from websockets.sync.server import serve

    lock = threading.Lock()

    def converse(connection: Any) -> None:
        with suppress(Exception):
            connection.send(greeting)
            for message in connection:
                with lock:
                    step = script[min(len(wire.requests), len(script) - 1)]
                    wire.requests.append(message)
                reply = step(message, wire)
                if reply is None:
                    connection.socket.shutdown(socket.SHUT_RDWR)
                    return
                connection.send(reply)
                if isinstance(reply, str) and "Traceback" in reply:
                    connection.close(1011)
                    return

    server = serve(converse, "127.0.0.1", 0, compression=None, max_size=None)
    wire = Wire(server.socket.getsockname()[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield wire
    finally:
        wire.ended.set()
        server.shutdown()


def closed_port() -> int:
    """A port of loopback without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def observation(*cameras: str, seed: int = 7) -> Observation:
    """The example with random images from these cameras."""
    rng = np.random.default_rng(1)
    made = example_observation("pick up the red cube", cameras)
    views = {
        name: dataclasses.replace(view, color=rng.integers(0, 256, view.color.shape, np.uint8))
        for name, view in made.views.items()
    }
    return dataclasses.replace(made, views=views, noise_seed=seed)
