"""The listener of the servers: who gives way, what idle and half-sent connections can do, and what they cannot."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")

from websockets.exceptions import InvalidMessage
from websockets.sync.client import connect

from merton.leaderboard.serve import uploads as uploads_module
from merton.leaderboard.serve.tokens import Tokens
from merton.leaderboard.serve.uploads import Refused, Uploads
from merton.monitor import server as server_module
from merton.monitor.buttons import PressReply
from merton.monitor.hub import Hub
from merton.monitor.server import MonitorServer
from merton.web import acceptor
from merton.web.acceptor import Head, affordable, origin
from merton.web.places import Places
from patience import stretched, until

LIMIT_S = stretched(60.0)
PLACES = 16
"""Of connections in these tests, of each kind."""
TOKEN = "a token of forty random characters, say"
HALF = b"POST /api/stop HTTP/1.1\r\nHost: localhost\r\n"
HALF_BODY = b"POST /api/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
WEBSOCKET = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


# Places


def test_the_origin_with_most_places_loses_its_oldest_guest() -> None:
    places: Places[str] = Places(4)
    for guest in ("a1", "b1", "a2", "a3"):
        assert places.enter(guest, guest[0]) is None
    assert places.enter("c1", "c") == "a1"
    assert places.enter("a4", "a") == "a2"
    assert (places.all(), places.oldest(), len(places)) == (["b1", "a3", "c1", "a4"], "b1", 4)


def test_guests_with_a_token_stay_as_long_as_there_are_others() -> None:
    places: Places[str] = Places(3)
    places.enter("known", "a", known=True)
    places.enter("became known", "a")
    places.keep("became known")
    places.keep("never came")
    assert [places.enter(f"stranger {i}", "b") for i in range(3)] == [None, "stranger 0", "stranger 1"]
    assert places.enter("third known", "c", known=True) == "stranger 2"
    assert places.enter("stranger", "d") == "stranger", "there is no place for it among those with tokens"
    assert places.enter("fourth known", "c", known=True) == "known"


def test_a_place_that_is_left_is_free() -> None:
    places: Places[int] = Places(1)
    places.enter(1, "a")
    places.leave(1)
    places.leave(1)
    assert (places.enter(2, "a"), places.all()) == (None, [2])


# Heads


@pytest.mark.parametrize(
    ("data", "head"),
    [
        (
            b"POST /api/stop?x=1 HTTP/1.1\r\nHost: a\r\nAUTHORIZATION:  bearer abc \r\n\r\n{}",
            ("POST", "/api/stop", "abc"),
        ),
        (b"GET / HTTP/1.1\nAuthorization: Basic abc\n\n", ("GET", "/", "")),
        (b"POST / HTTP/1.1\r\n\r\nx\nauthorization: bearer of the body\r\n", ("POST", "/", "")),
        (b"\xff\x00\r\n\r\n", ("", "", "")),
    ],
)
def test_a_head_is_read_as_far_as_it_is_needed(data: bytes, head: tuple[str, str, str]) -> None:
    assert Head.of(data) == Head(*head)
    end = next(i for i in range(len(data) + 1) if Head.of(data[:i]) is not None)
    assert [Head.of(data[:i], max(0, i - 1)) is not None for i in range(end + 1)] == [False] * end + [True]


def test_an_ipv6_client_is_one_origin_with_all_its_addresses() -> None:
    assert origin("2001:db8:1:2::7") == origin("2001:db8:1:2:ffff::8") != origin("2001:db8:1:3::7")
    assert origin("fe80::1%eth0") == "fe80::/64"
    assert origin("192.0.2.7") == "192.0.2.7"


# The listener


class Desk:
    """Controls that note their presses."""

    def __init__(self) -> None:
        self.stops = 0

    def stop(self) -> Future[PressReply]:
        self.stops += 1
        pending: Future[PressReply] = Future()
        pending.set_result(PressReply(True, "stopped"))
        return pending

    reset = confirm = arranged = stop


class Monitor:
    """A server of the operator's page on a port, with few places, and connections that are closed at the end."""

    def __init__(self, folder: Path) -> None:
        tokens = folder / "tokens.yaml"
        tokens.write_text(f"tokens: {{Grace: {hashlib.sha256(TOKEN.encode()).hexdigest()}}}\n", encoding="utf-8")
        self.hub, self.desk = Hub(), Desk()
        self.server = MonitorServer(self.hub, self.desk, folder / "log", port=0, tokens=tokens)  # type: ignore[arg-type]
        self.where = urlsplit(self.server.address)
        self.open: list[socket.socket] = []

    def attack(self, data: bytes, count: int) -> None:
        for _ in range(count):
            self.open.append(socket.create_connection((self.where.hostname, self.where.port), LIMIT_S))
            with contextlib.suppress(OSError):
                self.open[-1].sendall(data)

    def lost(self) -> int:
        """How many of the attacker's connections the server has closed."""
        closed = 0
        for one in self.open:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                try:
                    while one.recv(65536):
                        pass
                except ConnectionError:
                    pass
                closed += 1
        return closed

    def press(self, what: str, token: str = TOKEN) -> int:
        connection = HTTPConnection(self.where.netloc, timeout=LIMIT_S)
        with contextlib.closing(connection):
            connection.request("POST", f"/api/{what}", b'{"who": "Ada"}', {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            answer.read()
            return answer.status

    def watch(self) -> Any:
        """The live view. Like the page it connects again while the server has more to close than it has places."""
        return until(self._connect)

    def _connect(self) -> Any:
        with contextlib.suppress(InvalidMessage, ConnectionError):
            address = f"ws://{self.where.netloc}/ws"
            return connect(address, open_timeout=LIMIT_S, close_timeout=LIMIT_S, max_size=None, proxy=None)


@pytest.fixture
def monitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    for module in (acceptor, server_module):
        monkeypatch.setattr(module, "affordable", lambda *_: PLACES)
    monitor = Monitor(tmp_path)
    monitor.server.start()
    yield monitor
    for one in monitor.open:
        one.close()
    monitor.server.stop()


def test_a_stop_passes_idle_and_half_sent_connections_and_websockets_without_a_token(monitor: Monitor) -> None:
    """All come from the operator's address, and there are far more of them than places."""
    for data in (b"", HALF, WEBSOCKET, HALF_BODY):
        monitor.attack(data, 3 * PLACES)
        assert monitor.press("stop") == 200
        assert monitor.press("reset") == 200
    assert monitor.press("stop", "wrong") == 401
    assert monitor.desk.stops == 8
    until(lambda: len(monitor.open) - monitor.lost() <= 2 * PLACES)  # without a head, and with one


def test_the_live_view_outlasts_connections_without_a_token(monitor: Monitor) -> None:
    with monitor.watch() as browser:
        browser.send(json.dumps({"token": TOKEN}))
        browser.recv(LIMIT_S)
        for data in (WEBSOCKET, HALF_BODY, b""):
            monitor.attack(data, 3 * PLACES)
        monitor.hub.put("safety", {"mode": "NORMAL"})
        browser.send("ready")
        assert b"NORMAL" in browser.recv(LIMIT_S)
        with monitor.watch() as second:
            second.send(json.dumps({"token": TOKEN}))
            assert b"NORMAL" in second.recv(LIMIT_S)


def test_a_head_that_does_not_arrive_ends_its_connection(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor, "HEAD_LIMIT_S", 0.05)
    monitor.attack(b"", 2)
    monitor.attack(HALF, 2)
    monitor.attack(b"x" * (acceptor.LONGEST_HEAD + 1), 2)
    until(lambda: monitor.lost() == 6)
    assert monitor.press("stop") == 200


def test_a_head_in_many_pieces_is_one_request(monitor: Monitor) -> None:
    head = HALF + f"Authorization: Bearer {TOKEN}\r\nContent-Length: 2\r\n\r\n".encode()
    with socket.create_connection((monitor.where.hostname, monitor.where.port), LIMIT_S) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(head), 7):
            one.sendall(head[at : at + 7])
        one.sendall(b"{}")
        assert one.recv(15) == b"HTTP/1.1 200 OK"
    assert monitor.desk.stops == 1


def test_a_refusal_arrives_although_the_body_is_not_read(monitor: Monitor) -> None:
    """The server does not close a connection whose body still arrives: that would destroy the answer."""
    connection = HTTPConnection(monitor.where.netloc, timeout=LIMIT_S)
    with contextlib.closing(connection):
        connection.request("POST", "/api/reset", bytes(1 << 20), {"Authorization": f"Bearer {TOKEN}"})
        assert connection.getresponse().status == 413
    assert monitor.press("stop") == 200


def test_an_answer_ends_its_connection(monitor: Monitor) -> None:
    """So every request comes by the listener, which knows where a stop is served."""
    connection = HTTPConnection(monitor.where.netloc, timeout=LIMIT_S)
    with contextlib.closing(connection):
        for method, path, body in (("POST", "/api/stop", b"{}"), ("GET", "/api/session", None)):
            connection.request(method, path, body, {"Authorization": f"Bearer {TOKEN}"})
            answer = connection.getresponse()
            answer.read()
            assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_descriptors_are_left_for_the_rest_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, int]] = []
    monkeypatch.setattr(acceptor.resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.setattr(acceptor.resource, "setrlimit", lambda _, limits: said.append(limits))
    waiting, page, stop = affordable(acceptor.WAITING, 3 / 8), affordable(128), affordable(32)
    assert waiting + 2 * (page + stop) < 0.75 * 1024, (
        "a connection that gives way has its descriptor until it has ended"
    )
    assert set(said) == {(1024, 1024)}
    monkeypatch.setattr(acceptor.resource, "getrlimit", lambda _: (1024, 1 << 20))
    assert affordable(acceptor.WAITING, 3 / 8) == acceptor.WAITING
    assert said[-1] == (acceptor.DESCRIPTORS, 1 << 20)


# Submissions


def form(token: str = "", archive: bytes = b"PK") -> bytes:
    field = f'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n{token}\r\n' if token else ""
    head = '--x\r\nContent-Disposition: form-data; name="archive"; filename="a.zip"\r\n\r\n'
    return f"{field}{head}".encode() + archive


class Door:
    """Uploads whose archives are all accepted; requests are given to it as an ASGI server does."""

    def __init__(self, tokens: Tokens | None) -> None:
        self.uploads = Uploads(lambda archive, owner: (owner, len(archive.read())), tokens, None)  # type: ignore[arg-type, return-value]

    async def send(self, *chunks: bytes, whole: bool = True, address: str = "192.0.2.7", token: str = "") -> Any:
        """The receipt, or the status of the refusal. If it is not whole, nothing follows the chunks."""
        from starlette.requests import Request

        coming = list(chunks)

        async def receive() -> Any:
            if not coming and not whole:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": coming.pop(0), "more_body": bool(coming) or not whole}

        headers = [(b"content-type", b"multipart/form-data; boundary=x")]
        headers += [(b"authorization", f"Bearer {token}".encode())] if token else []
        scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "client": (address, 1)}
        try:
            return await self.uploads.handle(Request(scope, receive))
        except Refused as refused:
            return refused.status


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    file = tmp_path / "tokens.yaml"
    file.write_text(f"tokens: {{Acme: {hashlib.sha256(TOKEN.encode()).hexdigest()}}}\n", encoding="utf-8")
    return Tokens(file)


END = b"\r\n--x--\r\n"


def test_half_sent_submissions_without_a_token_block_none_with_one(tokens: Tokens) -> None:
    async def scenario() -> None:
        door = Door(tokens)
        held = [asyncio.ensure_future(door.send(form(), whole=False)) for _ in range(50)]
        await asyncio.sleep(0)
        archive = bytes(200_000)
        for chunks in ((form(TOKEN, archive), END), (form(TOKEN), archive, END)):
            owner, _ = await asyncio.wait_for(door.send(*chunks), LIMIT_S)
            assert owner == "Acme"
        assert await asyncio.wait_for(door.send(form("", archive), END, token=TOKEN), LIMIT_S) == ("Acme", 200_000)
        for one in held:
            one.cancel()

    asyncio.run(scenario())


def test_a_long_archive_without_a_token_before_it_is_not_read(tokens: Tokens) -> None:
    async def scenario() -> None:
        door, archive = Door(tokens), bytes(uploads_module.BEFORE_TOKEN_BYTES)
        assert await asyncio.wait_for(door.send(form("", archive), whole=False), LIMIT_S) == 401
        assert await asyncio.wait_for(door.send(form("wrong", archive), whole=False), LIMIT_S) == 401
        assert await asyncio.wait_for(door.send(form(), END), LIMIT_S) == 401

    asyncio.run(scenario())


def test_without_tokens_the_oldest_half_sent_submission_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "ARRIVING", 4)

    async def scenario() -> None:
        door = Door(None)
        other = asyncio.ensure_future(door.send(form(), whole=False, address="192.0.2.99"))
        held = [asyncio.ensure_future(door.send(form(), whole=False)) for _ in range(4)]
        assert await asyncio.wait_for(held[0], LIMIT_S) == 429
        assert await asyncio.wait_for(door.send(form(), END), LIMIT_S) == (None, 2)
        assert await asyncio.wait_for(held[1], LIMIT_S) == 429
        assert not other.done(), "it is the only one of its address"
        for one in (other, *held):
            one.cancel()

    asyncio.run(scenario())
