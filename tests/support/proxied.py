"""A proxy in a thread of this process, and servers of policies for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.server import ServerConnection, serve

from merton.episodes.design import Design
from merton.episodes.folder import EpisodesFolder
from merton.episodes.run import EpisodesRun
from merton.proxy.protocols import protocol_named
from merton.proxy.server import Server
from merton.proxy.stream import Keeper
from merton.proxy.upstream import Upstream


@dataclass
class Proxied:
    """A proxy that runs.

    Attributes:
        port: where it listens.
        said: its lines so far.
        folder: of the run, once it is closed.
    """

    port: int
    keeper: Keeper
    path: Path
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def folder(self) -> EpisodesFolder:
        return EpisodesFolder.read(self.path)


@contextmanager
def proxied(runs: Path, upstream: str, protocol: str, **design: Any) -> Iterator[Proxied]:
    """A proxy before a policy server, stopped and closed at the end; the first line that it says is awaited."""
    run = EpisodesRun.create(runs, Design(name="proxied", **design))
    said: list[str] = []
    spoke = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        spoke.set()

    keeper = Keeper(run, protocol_named(protocol), say)
    loop = asyncio.new_event_loop()
    server = Server(keeper, Upstream.at(upstream), "127.0.0.1", 0, "policy", (), say)
    task = loop.create_task(server.serve())

    def work() -> None:
        try:
            loop.run_until_complete(asyncio.wait([task]))
        finally:
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert spoke.wait(10)
        yield Proxied(server.port, keeper, run.path, said)
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
        keeper.close()
        assert not thread.is_alive()


@contextmanager
def websocket_server(handler: Callable[[ServerConnection], None], port: int = 0, **options: Any) -> Iterator[str]:
    """A server on loopback, with its address; `handler` gets each connection in a thread of its own."""
    with serve(handler, "127.0.0.1", port, compression=None, max_size=None, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join(10)
