"""The listener before an application: a thread that accepts connections and reads the head of each one's request.

An application sees a connection only when its head has arrived. Until then a connection costs a descriptor and the
bytes that it sent. Idle and half-sent connections give way to new ones (`Places`) and end after `HEAD_LIMIT_S`, as with
nginx's `client_header_timeout`; uvicorn has no such limit. The head tells which `Hall` serves the request, so that an
urgent request meets a thread and places of its own, under the same address as the others.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import re
import resource
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from merton.web.hall import Connection, Hall
from merton.web.places import Places

HEAD_LIMIT_S = 5.0
"""Longest time until the head of a request has arrived [s]."""
LONGEST_HEAD = 16 * 1024
"""Of a request [bytes]."""
WAITING = 8192
"""Connections whose head has not arrived, if there are descriptors for so many (`affordable`)."""
DESCRIPTORS = 32768
"""The limit of file descriptors that a server sets itself, if the hard limit permits it."""
BACKLOG = 4096
"""Connections that the system holds until they are accepted; its own limit may be smaller."""
BATCH = 64
"""Steps of one kind before those of the others have their turn: accepting, reading, closing."""
PERIOD_S = 0.25
"""Time between two looks for connections that took too long [s]."""
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: `close` keeps nothing of the connection in the system."""

END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
REQUEST_LINE = re.compile(rb"\s*([A-Z]+) ([^\s?]+)")
BEARER = re.compile(rb"\nauthorization:[ \t]*bearer[ \t]+([^\r\n]+)", re.IGNORECASE)


@dataclass(frozen=True)
class Head:
    """The head of a request, as far as the choice of a hall needs it; the application checks it again.

    Attributes:
        method: such as "POST"; empty if the head is malformed.
        path: without the query.
        token: in the header Authorization; empty if there is none.
    """

    method: str
    path: str
    token: str

    @classmethod
    def of(cls, data: bytes, seen: int = 0) -> Head | None:
        """The head at the beginning of received bytes; None if its end has not arrived.

        Args:
            data: all bytes so far.
            seen: how many of them were looked at before, in vain.
        """
        end = END_OF_HEAD.search(data, max(0, seen - 3))
        if end is None:
            return None
        line, bearer = REQUEST_LINE.match(data), BEARER.search(data, 0, end.end())
        method, path = (part.decode("latin-1") for part in line.groups()) if line else ("", "")
        return cls(method, path, bearer[1].decode("latin-1").strip() if bearer else "")


@dataclass
class Acceptor:
    """Accepts the connections of a bound socket and hands them to halls. `end` also closes the socket.

    Args:
        bound: the socket, not listening yet.
        halls: that are handed connections; accepting begins when all of them are ready.
        choose: a head to the hall that serves its request, and whether it shows a valid token.
        waiting: connections whose head has not arrived, at most.
    """

    bound: socket.socket
    halls: Iterable[Hall]
    choose: Callable[[Head], tuple[Hall, bool]]
    waiting: int = field(default_factory=lambda: affordable(WAITING, 3 / 8))

    def __post_init__(self) -> None:
        self._places: Places[Connection] = Places(self.waiting)
        self._ended = threading.Event()
        self._chosen = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="acceptor", daemon=True)
        self.bound.setblocking(False)
        self.bound.listen(BACKLOG)  # a request right after the address was shown waits a moment

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Accept no more; connections without a head are closed, the others are the halls'."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        for connection in self._places.all():
            connection.sock.close()
        self._chosen.close()
        self.bound.close()

    def _run(self) -> None:
        for hall in self.halls:
            while not hall.ready.wait(PERIOD_S):
                if self._ended.is_set():
                    return
        self._chosen.register(self.bound, selectors.EVENT_READ)
        late = False
        while not self._ended.is_set():
            for number, (key, _) in enumerate(self._chosen.select(0 if late else PERIOD_S)):
                if key.fileobj is self.bound or number % BATCH == 0:
                    self._accept()
                if key.data is not None and not key.data.closed and self._read(key.data):
                    self._places.leave(key.data)  # closed ones gave way in this round
            late = self._drop_late()

    def _accept(self) -> None:
        for _ in range(BATCH):
            try:
                sock, address = self.bound.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in NO_DESCRIPTOR and not self._drop_oldest():
                    self._ended.wait(PERIOD_S)
                return
            sock.setblocking(False)
            connection = Connection(sock, origin(address[0]), time.monotonic())
            self._chosen.register(sock, selectors.EVENT_READ, connection)
            if self._read(connection):  # a client of ours sends its head at once, so it never waits for a place
                continue
            gives_way = self._places.enter(connection, connection.origin)
            if gives_way is not None:
                self._drop(gives_way)

    def _read(self, connection: Connection) -> bool:
        """Read; True if the connection needs no place any more: it has a hall, or it is closed."""
        try:
            data = connection.sock.recv(LONGEST_HEAD)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        seen = len(connection.received)
        connection.received += data
        head = Head.of(connection.received, seen) if data else None
        if head is not None:
            self._chosen.unregister(connection.sock)
            hall, known = self.choose(head)
            hall.adopt(connection, known)
        elif not data or len(connection.received) > LONGEST_HEAD:
            self._drop(connection)
        else:
            return False
        return True

    def _drop_late(self) -> bool:
        """Close connections that took too long, not too many at once; True if there are more of them."""
        earliest_s = time.monotonic() - HEAD_LIMIT_S
        for _ in range(BATCH):
            oldest = self._places.oldest()
            if oldest is None or oldest.since_s > earliest_s:
                return False
            self._drop_oldest()
        return True

    def _drop_oldest(self) -> bool:
        """Close the connection that has waited for the longest time; False if none waits."""
        oldest = self._places.oldest()
        if oldest is not None:
            self._places.leave(oldest)
            self._drop(oldest)
        return oldest is not None

    def _drop(self, connection: Connection) -> None:
        self._chosen.unregister(connection.sock)
        with contextlib.suppress(OSError):
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.sock.close()


def origin(address: str) -> str:
    """The address of a client as places are counted: of IPv6 the first 64 bits, since a client has all of the rest."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))


def affordable(wanted: int, share: float = 1 / 8) -> int:
    """The number of connections to hold: those wanted, but no more than a share of this process's file descriptors.

    Raises the soft limit of descriptors towards the hard one: a connection that can be held costs nothing, one that
    gives way comes again.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
        soft = DESCRIPTORS if hard == resource.RLIM_INFINITY else max(soft, min(hard, DESCRIPTORS))
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(8, min(wanted, int(share * soft)))
