"""The proxy before /act: requests of HTTP, their bytes, their episodes, and the servers' faults."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, RemoteDisconnected
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proxied import Proxied, proxied
from test_proxy_relay import BLUR, PICTURE, call

from merton.models.serving import from_json, to_json


@contextmanager
def act_server(answers: Any = None) -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """A server of /act with all requests that it got; `answers` gives (status, body) for a number of a request."""
    requests: list[tuple[str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append((self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            status, answer = 200, b"{}"
            if answers is not None:
                status, answer = answers(len(requests))
                if not status:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
            elif b"__numpy__" in body:
                content = json.loads(body)
                content = json.loads(content["encoded"]) if "encoded" in content else content
                mean = from_json(content)["image"].mean()
                answer = json.dumps(to_json(np.array([mean, 0.0, 1.0]))).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

        def log_message(self, format: str, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def body(step: int = 0, double: bool = False) -> bytes:
    text = json.dumps(to_json({"image": np.roll(PICTURE, step, axis=0), "instruction": "wipe", "n": [1.5, 2]}))
    return json.dumps({"encoded": text}).encode() if double else text.encode()


def posts(proxy: Proxied, bodies: list[bytes], path: str = "/act") -> list[tuple[int, bytes]]:
    connection = HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    found = []
    for one in bodies:
        connection.request("POST", path, one, {"Content-Type": "application/json", "X-Own": "kept"})
        response = connection.getresponse()
        found.append((response.status, response.read()))
    connection.close()
    return found


def of_act(requests: list[tuple[str, dict[str, str], bytes]]) -> list[bytes]:
    return [content for path, _, content in requests if path.startswith("/act")]


@pytest.mark.parametrize("double", [False, True], ids=["plain", "encoded"])
def test_undistorted_requests_pass_the_very_bytes(tmp_path: Path, double: bool) -> None:
    bodies = [body(step, double) for step in range(3)]
    with act_server() as (url, requests), proxied(tmp_path, url, "act") as proxy:
        answers = posts(proxy, bodies)
    assert of_act(requests) == bodies
    assert [from_json(json.loads(answer))[0] for _, answer in answers] == pytest.approx([PICTURE.mean()] * 3)
    assert requests[-1][1]["x-own"] == "kept"
    assert requests[-1][1]["host"] == url.removeprefix("http://")


def test_distorted_requests_differ_by_the_picture_and_are_asked_again_clean(tmp_path: Path) -> None:
    with act_server() as (url, requests), proxied(tmp_path, url, "act", **BLUR) as proxy:
        posts(proxy, [body(step) for step in range(2)], "/act?task=wipe&scene=4")
        assert call(proxy, "/merton/episode/end", {"success": True})[0] == 200
        call(proxy, "/merton/episode", {"task": "wipe", "scene": 4})
        posts(proxy, [body(step) for step in range(2)], "/act")
        assert call(proxy, "/merton/episode/end", {"success": False})[0] == 200
    sent = of_act(requests)
    assert sent.count(body(0)) == 2  # the undistorted episode, and the second question of the other
    assert sent.count(body(1)) == 1
    changed = [json.loads(one) for one in sent if one not in (body(0), body(1))]
    assert [{**one, "image": 0} for one in changed] == [{"image": 0, "instruction": "wipe", "n": [1.5, 2]}] * 2
    assert [len(json.dumps(one)) for one in changed] == [len(body(0))] * 2
    first, second = proxy.folder.episodes
    assert (first.success, second.success) == (True, False)
    assert second.case.distortion == "gaussian_blur"
    ((step, reference, distorted),) = second.end["answers"]
    assert (step, reference[0][0]) == (0, pytest.approx(PICTURE.mean()))
    assert distorted[0][0] != reference[0][0]


def test_an_address_that_says_another_scene_begins_an_episode(tmp_path: Path) -> None:
    with act_server() as (url, _), proxied(tmp_path, url, "act") as proxy:
        for scene in (1, 1, 2):
            posts(proxy, [body()], f"/act?task=wipe&scene={scene}")
    assert [(past.case.seed, past.end["steps"]) for past in proxy.folder.episodes] == [(1, 2), (2, 1)]


def test_other_requests_pass_and_are_no_observations(tmp_path: Path) -> None:
    with act_server() as (url, requests), proxied(tmp_path, url, "act") as proxy:
        posts(proxy, [b"{}"], "/reset")
        with urllib.request.urlopen(
            urllib.request.Request(f"{proxy.http}/docs?x=1", b"a" * 10), timeout=10
        ) as response:
            assert response.status == 200
    assert [path for path, *_ in requests if path != "/healthz"] == ["/reset", "/docs?x=1"]
    assert proxy.folder.counts.begun == 0


def test_a_failed_policy_and_a_dead_one_are_told_apart(tmp_path: Path) -> None:
    def answers(number: int) -> tuple[int, bytes]:
        return {1: (200, b"OK"), 2: (200, b'"error"'), 3: (503, b"{}"), 4: (0, b"")}.get(number, (200, b"OK"))

    with act_server(answers) as (url, _), proxied(tmp_path, url, "act") as proxy:
        assert posts(proxy, [body()], "/act?task=wipe&scene=1") == [(200, b'"error"')]
        assert posts(proxy, [body()], "/act?task=wipe&scene=2") == [(503, b"{}")]
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            posts(proxy, [body()], "/act?task=wipe&scene=3")
    first, second, third = proxy.folder.episodes
    assert first.end["why"] == "the policy failed: error"
    assert second.lost is not None
    assert third.lost is not None


def test_a_picture_that_cannot_be_read_passes_and_its_episode_is_no_trial(tmp_path: Path) -> None:
    data = body()
    data = data[:2000] + b"!" + data[2001:]  # within the base64 of the picture
    with (
        act_server(lambda number: (200, b"[1.0, 2.0]")) as (url, requests),
        proxied(tmp_path, url, "act", **BLUR) as proxy,
    ):
        for _ in range(2):
            posts(proxy, [data] * 2, "/act?task=wipe")
            assert call(proxy, "/merton/episode/end", {"success": True})[0] == 200
            call(proxy, "/merton/episode", {"task": "wipe"})
    assert set(of_act(requests)) == {data}
    assert proxy.keeper.counts["unread"] == 3, "the first of the undistorted episode, and both of the other"
    (broken,) = proxy.folder.pairs.broken
    assert broken.why.startswith("no picture of it was distorted: a picture cannot be read: ")


@pytest.mark.parametrize("visits", [1, 2], ids=["undistorted", "distorted"])
def test_requests_of_one_session_at_once_are_passed_on_one_after_the_other(tmp_path: Path, visits: int) -> None:
    count, bodies = 8, [body(step) for step in range(8)]
    with act_server() as (url, _), proxied(tmp_path, url, "act", clean_every=1, **BLUR) as proxy:
        for _ in range(visits):
            call(proxy, "/merton/episode", {"task": "wipe", "scene": 1})
            together = threading.Barrier(count)

            def ask(data: bytes, together: threading.Barrier = together) -> list[tuple[int, bytes]]:
                together.wait(10)
                return posts(proxy, [data] * 2)

            with ThreadPoolExecutor(count) as pool:
                answers = list(pool.map(ask, bodies))
            assert call(proxy, "/merton/episode/end", {"success": True})[0] == 200
    assert {status for own in answers for status, _ in own} == {200}
    if visits == 1:  # the answer to its own picture
        assert [from_json(json.loads(own[0][1]))[0] for own in answers] == pytest.approx([PICTURE.mean()] * count)
    assert proxy.keeper.counts["outside"] == 0
    assert proxy.keeper.counts["at_once"] > 0
    assert any("session" in line for line in proxy.said)
    last = proxy.folder.episodes[-1]
    assert last.end is not None
    assert last.end["steps"] == len(last.end["answers"]) == 2 * count
    assert all(None not in row for row in last.end["answers"])


def test_a_client_that_asks_whether_to_go_on_is_answered(tmp_path: Path) -> None:
    with act_server() as (url, requests), proxied(tmp_path, url, "act") as proxy:
        connection = HTTPConnection("127.0.0.1", proxy.port, timeout=10)
        data = body()
        connection.putrequest("POST", "/act")
        connection.putheader("Expect", "100-continue")
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders()
        connection.send(data)
        response = connection.getresponse()
        assert response.status == 200
        response.read()
        connection.close()
    assert of_act(requests) == [data]
