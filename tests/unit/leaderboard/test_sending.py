"""Sending a submission to a server: what a sender is told of servers that misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from merton.errors import InfrastructureError, InputError
from merton.leaderboard.submissions.archive import pack
from merton.leaderboard.submissions.manifest import (
    FORMAT,
    NO_WEIGHTS,
    Manifest,
    dataset_sha256,
    manifest_bytes,
    scores_bytes,
)
from merton.leaderboard.submissions.sending import is_server, send


class Answers(BaseHTTPRequestHandler):
    """Answers every submission with what the test has put into the server."""

    def do_POST(self) -> None:
        self.server.asked.append((self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
        status, location, content = self.server.answer
        self.send_response(status)
        self.send_header("Location", location)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.asked, server.answer = [], (200, "", b"")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """A submission in a directory."""
    items = {"first": 0.25, "second": 1.0}
    manifest = Manifest(
        format=FORMAT, manufacturer="Acme", agent="servo", version="1.0", weights_sha256=NO_WEIGHTS,
        harness_version="0.1.0", dataset_sha256=dataset_sha256(items),
    )  # fmt: skip
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "manifest.yaml").write_bytes(manifest_bytes(manifest))
    (folder / "scores.csv").write_bytes(scores_bytes(items))
    return folder


def address(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize(
    ("status", "content", "error", "said"),
    [
        (409, b'{"detail": "one a month"}', InputError, "refuses the submission: one a month"),
        (422, b"<html>", InputError, "HTTP 422"),
        (429, b'{"detail": "later"}', InfrastructureError, "could not take the submission: later"),
        (503, b"[]", InfrastructureError, "HTTP 503"),
        (302, b"", InfrastructureError, "HTTP 302"),
        (200, b'{"detail": "hello"}', InfrastructureError, "did not answer with a receipt"),
        (200, b"garbage", InfrastructureError, "did not answer with a receipt"),
    ],
)
def test_a_refusal_of_the_server_is_one_sentence(
    server: HTTPServer, submission: Path, status: int, content: bytes, error: type[Exception], said: str
) -> None:
    server.answer = (status, "/elsewhere", content)
    with pytest.raises(error, match=said):
        send(address(server), submission, "secret")
    [(path, headers, body)] = server.asked  # the token goes to no other server, and the request is not repeated
    assert path == "/api/submissions"
    assert headers["Authorization"] == "Bearer secret"
    files = {name: (submission / name).read_bytes() for name in ("manifest.yaml", "scores.csv")}
    assert pack(files) in body


def test_an_invalid_submission_is_not_sent(server: HTTPServer, submission: Path) -> None:
    (submission / "scores.csv").write_text("item,score\nfirst,2\n")
    with pytest.raises(InputError, match=r"scores\.csv, line 2"):
        send(address(server), submission)
    with pytest.raises(InputError, match="there is no file"):
        send(address(server), submission / "nothing.zip")
    assert server.asked == []


def test_an_unreachable_server_is_an_infrastructure_error(server: HTTPServer, submission: Path) -> None:
    server.server_close()
    with pytest.raises(InfrastructureError, match="cannot reach"):
        send(address(server), submission)
    with pytest.raises(InfrastructureError, match="cannot reach"):
        send("http://[::1", submission)


def test_an_address_is_no_record() -> None:
    assert is_server("http://127.0.0.1:8080")
    assert not is_server("postgresql://host/name")
    assert not is_server("runs/http")
