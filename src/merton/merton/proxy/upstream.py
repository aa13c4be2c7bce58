"""The policy server behind the proxy: its address, connections to it, and whether it accepts any."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from merton.errors import InputError

BUFFER = 1024 * 1024
"""Bytes that are read ahead of a message's end, in each direction."""
SCHEMES = {"ws": 80, "http": 80, "wss": 443, "https": 443}
PROBE_S = 5.0
"""Longest time that a server takes to accept a connection and to answer a question about its health [s]."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Upstream:
    """The address of a policy server.

    Attributes:
        url: as it was given.
        host, port: where it listens.
        path: before the paths of requests; "" or "/policy".
        is_encrypted: by TLS.
    """

    url: str
    host: str
    port: int
    path: str
    is_encrypted: bool

    @classmethod
    def at(cls, url: str) -> Upstream:
        """The server of an address such as ws://127.0.0.1:8000; raises InputError."""
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in SCHEMES or not parts.hostname or port == -1:
            raise InputError(f"{url!r} is no address of a policy server, such as ws://127.0.0.1:8000")
        encrypted = parts.scheme in ("wss", "https")
        return cls(url, parts.hostname, port or SCHEMES[parts.scheme], parts.path.rstrip("/"), encrypted)

    @property
    def authority(self) -> str:
        """For the field Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def target(self, target: str) -> str:
        """The target of a request there; a path that the address has already is not put before it again."""
        if self.path and (target == self.path or target.startswith((f"{self.path}/", f"{self.path}?"))):
            return target
        return self.path + target if target != "/" or not self.path else self.path

    async def connect(self) -> Streams:
        """A connection; raises OSError."""
        context = _context() if self.is_encrypted else None
        return await asyncio.open_connection(self.host, self.port, limit=BUFFER, ssl=context)

    async def accepts(self, path: str) -> bool:
        """Whether it takes connections, and answers a question about its health in any way."""
        try:
            async with asyncio.timeout(PROBE_S):
                reader, writer = await self.connect()
                try:
                    head = f"GET {self.target(path)} HTTP/1.1\r\nHost: {self.authority}\r\nConnection: close\r\n\r\n"
                    writer.write(head.encode())
                    return bool(await reader.read(1))
                finally:
                    await hang_up(writer)
        except TimeoutError:  # it listens, and is busy
            return True
        except OSError:
            return False


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    """Of all encrypted connections; the system's certificates are read once."""
    return ssl.create_default_context()


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what is still to be sent is sent."""
    writer.close()
    with contextlib.suppress(OSError, asyncio.TimeoutError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), PROBE_S)
