"""Calls to servers: deadlines that hold, retries that end, and no patience with the dead."""

from __future__ import annotations

import gzip
import html
import json
import os
import re
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from merton.config import validated
from merton.errors import InfrastructureError, InputError, InvalidAnswerError, LoadingError, MissingDependencyError
from merton.hosts import is_loopback_url
from merton.models.content_coding import decoded
from merton.models.redaction import without_key
from merton.models.remote import HttpServer, Patience, Remote, TransientError, check_url, optional, wait_of
from patience import stretched
from wire import LIMIT_S, closed_port, dripping, garbage, half_closed, http_server, replying, silent, vanishing

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")

QUICK = Patience(deadline_s=LIMIT_S, pause_s=0.01)


def asking(server: HttpServer) -> Callable[[], Any]:
    async def attempt() -> Any:
        return (await server.request("POST", "/ask", {"question": 1})).json()

    return lambda: server.call(attempt)


def test_calls_reuse_one_connection() -> None:
    with http_server(replying(200, {"fine": True})) as wire:
        ask = asking(HttpServer(wire.http + "/", QUICK))
        assert [ask(), ask()] == [{"fine": True}] * 2
        assert [(request.method, request.path, request.body) for request in wire.requests] == [
            ("POST", "/ask", {"question": 1})
        ] * 2


@pytest.mark.parametrize(
    "fault",
    [replying(429, "later"), replying(503, "busy"), replying(200, b"<html>"), half_closed, vanishing, garbage],
    ids=["429", "503", "no JSON", "half closed", "vanishing", "garbage"],
)
def test_transient_failures_are_retried(fault: Any) -> None:
    with http_server(fault, fault, replying(200, "fine")) as wire:
        assert asking(HttpServer(wire.http, QUICK))() == "fine"
        assert len(wire.requests) == 3


def test_retries_end_and_the_error_lists_the_attempts() -> None:
    with http_server(replying(503, "warming up")) as wire:
        with pytest.raises(InfrastructureError, match=r"no answer \(3 times HTTP 503: \"warming up\"\)"):
            asking(HttpServer(wire.http, QUICK))()
        assert len(wire.requests) == 3


LLAMA_CPP = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}
"""Of llama.cpp's server while it loads (tools/server/README.md: GET /health, 503)."""


def test_a_key_is_found_in_every_form_that_writers_give_it() -> None:
    """Those of the standard library, of Go's encoding/json (\\u0026 for HTML) and of PHP's (\\/)."""
    key = "sk-abc&def\"gh/12345+XYZ==<'\\ end"
    plain = json.dumps(key)[1:-1]
    forms = [
        key,
        plain,
        json.dumps(plain)[1:-1],
        plain.replace("/", "\\/"),
        "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in key),
        plain.replace("&", "\\u0026").replace("=", "\\u003D").replace("<", "\\u003c"),
        html.escape(key),
        html.escape(key).replace("&", "\\u0026"),
        html.escape(key, quote=False),
        key.replace('"', "&#34;").replace("+", "&#43;"),
        quote(key, safe=""),
        quote(key),
        re.sub("%..", lambda found: found[0].lower(), quote(key, safe="")),
        quote_plus(key),
        key.replace("+", "%2b"),
    ]
    for form in forms:
        assert without_key(f"<{form}>".encode(), key) == b"<<the key>>", form
    assert without_key(b"sk-abcd", key) == b"sk-abcd"
    assert without_key(b"nothing", "") == b"nothing"


@pytest.mark.parametrize("body", [b"error downloading file failed permanently", b"overloading", b"busy"])
def test_a_word_that_only_ends_like_loading_is_a_fault_as_any_other(body: bytes) -> None:
    with http_server(replying(503, body)) as wire:
        with pytest.raises(InfrastructureError, match="2 times HTTP 503") as ended:
            asking(HttpServer(wire.http, Patience(deadline_s=LIMIT_S, pause_s=0.001, attempts=2)))()
        assert not isinstance(ended.value, LoadingError)
        assert len(wire.requests) == 2


@pytest.mark.parametrize("reply", [LLAMA_CPP, {"error": "Model x is currently loading", "estimated_time": 20.0}])
def test_a_server_that_loads_its_model_is_waited_for_until_the_deadline(reply: Any) -> None:
    loading = replying(503, reply)
    with http_server(*[loading] * 7, replying(503, "busy"), loading, replying(200, "fine")) as wire:
        assert asking(HttpServer(wire.http, Patience(deadline_s=LIMIT_S, pause_s=0.001, attempts=2)))() == "fine"
        assert len(wire.requests) == 10, "those that load are no attempts"
    with http_server(loading) as wire:
        server = HttpServer(wire.http, Patience(deadline_s=stretched(0.3), pause_s=0.01, failures=1))
        for _ in range(2):
            with pytest.raises(LoadingError, match=r"loads its model: \d+ times HTTP 503: .*oading"):
                asking(server)()


def test_a_deadline_that_ends_within_an_attempt_at_a_loading_server_says_that_it_loads() -> None:
    """The server is alive, so the failure counts for nothing: the next call is attempted."""
    replies = [replying(503, LLAMA_CPP), silent]
    with http_server(*replies, *replies) as wire:
        server = HttpServer(wire.http, Patience(deadline_s=stretched(0.5), pause_s=0.001, failures=1))
        for _ in range(2):
            with pytest.raises(LoadingError, match=r"oading.*; then no answer within the deadline"):
                asking(server)()


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        ({"code": 429, "message": "rate limited"}, 3),
        ({"code": "502"}, 3),
        ({"status": 503, "message": "busy"}, 3),
        ({"code": 401}, 1),
        ({"code": "invalid_api_key"}, 1),
        ("out of memory", 1),
    ],
)
def test_an_error_with_status_200_is_an_error_by_its_code(error: Any, calls: int) -> None:
    """As OpenRouter documents its errors: {"error": {"code": number, "message": text}}, perhaps with status 200."""
    with http_server(replying(200, {"error": error})) as wire:
        with pytest.raises(InfrastructureError, match="an error with status 200"):
            asking(HttpServer(wire.http, QUICK))()
        assert len(wire.requests) == calls
    with http_server(replying(200, {"error": None, "fine": 1})) as wire:
        assert asking(HttpServer(wire.http, QUICK))() == {"error": None, "fine": 1}


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("identity", lambda body: body),
        ("gzip", gzip.compress),
        ("GZIP, gzip", lambda body: gzip.compress(gzip.compress(body))),
        ("gzip", lambda body: gzip.compress(body[:5]) + gzip.compress(body[5:])),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body)[2:-4]),
    ],
    ids=["identity", "gzip", "twice", "two members", "zlib", "raw deflate"],
)
def test_content_codings_are_undone(coding: str, packed: Any) -> None:
    with http_server(replying(200, packed(b'{"fine": [1, 2]}'), Content_Encoding=coding)) as wire:
        assert asking(HttpServer(wire.http, QUICK))() == {"fine": [1, 2]}
        assert wire.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        gzip.compress(b"[1]" * 99)[:-9],
        gzip.compress(b"[1]")[:-1],
        gzip.compress(b"[1]") + b"[",
        gzip.compress(b"") * 101,
    ],
    ids=["empty", "torn", "without its checksum", "more behind it", "101 members"],
)
def test_a_body_that_is_not_whole_is_refused(body: bytes) -> None:
    with pytest.raises(InfrastructureError, match=r"gzip (cannot be unpacked|has more than 100 parts)"):
        decoded(body, "gzip", 1000)


def test_a_body_in_layers_is_never_unpacked_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """6 kB in two layers of gzip had made 594 MB: now no layer makes more than the limit of one reply."""
    monkeypatch.setattr("merton.models.remote.MAX_REPLY_BYTES", 1 << 20)
    twice = gzip.compress(gzip.compress(b" " * (200 << 20)))
    assert len(twice) < 10_000
    for body, coding, says in (
        (twice, "gzip, gzip", "more than 1 MiB unpacked"),
        (gzip.compress(b" " * (2 << 20)), "gzip", "more than 1 MiB unpacked"),
        (b"{}", "gzip", "cannot be unpacked"),
        (b"{}", "br", "in the coding 'br' cannot be read"),
        (b"{}", ", ".join(["gzip"] * 50), "in 50 layers of coding cannot be read"),
    ):
        tracemalloc.start()
        with (
            http_server(replying(200, body, Content_Encoding=coding)) as wire,
            pytest.raises(InfrastructureError, match=f"127.*{says}"),
        ):
            asking(HttpServer(wire.http, QUICK))()
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
        tracemalloc.stop()


@pytest.mark.parametrize("status", [301, 400, 401, 404])
def test_permanent_failures_are_not_retried(status: int) -> None:
    with http_server(replying(status, {"error": "unknown model"})) as wire:
        with pytest.raises(InfrastructureError, match=f"HTTP {status}.*unknown model"):
            asking(HttpServer(wire.http, QUICK))()
        assert len(wire.requests) == 1


@pytest.mark.parametrize("step", [silent, dripping])
def test_the_deadline_holds_for_any_server(step: Any) -> None:
    with http_server(step) as wire:
        started = time.monotonic()
        with pytest.raises(InfrastructureError, match=r"no answer within the deadline of 0\.4 s"):
            asking(HttpServer(wire.http, Patience(deadline_s=0.4)))()
        assert time.monotonic() - started < stretched(5)


def test_retry_after_is_honoured_and_not_waited_for_in_vain() -> None:
    with http_server(replying(429, "slow down", Retry_After="0.4"), replying(200, 1)) as wire:
        started = time.monotonic()
        assert asking(HttpServer(wire.http, QUICK))() == 1
        assert time.monotonic() - started >= 0.4
    with http_server(replying(429, "slow down", Retry_After="3600")) as wire:
        started = time.monotonic()
        with pytest.raises(InfrastructureError, match="would be in 3600 s, after the deadline"):
            asking(HttpServer(wire.http, QUICK))()
        assert time.monotonic() - started < stretched(LIMIT_S / 2)


def test_retry_after_values() -> None:
    assert wait_of("7") == 7
    assert wait_of("-3") == 0
    assert wait_of("") is None
    assert wait_of("soon") is None
    later = datetime.now(timezone.utc) + timedelta(seconds=100)
    assert wait_of(format_datetime(later, usegmt=True)) == pytest.approx(100, abs=5)
    assert wait_of("Wed, 21 Oct 2015 07:28:00 GMT") == 0


def test_calls_to_a_dead_server_fail_at_once_until_the_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = Patience(deadline_s=LIMIT_S, attempts=2, pause_s=0, failures=2, rest_s=1000)
    ask = asking(HttpServer(f"http://127.0.0.1:{closed_port()}", patience))
    for _ in range(2):
        with pytest.raises(InfrastructureError, match="2 times ConnectError"):
            ask()
    with pytest.raises(
        InfrastructureError, match=r"left alone for another \d+\.\d s after 2 failed calls.*ConnectError"
    ):
        ask()
    real = time.monotonic
    monkeypatch.setattr("merton.models.remote.time.monotonic", lambda: real() + 1001)
    with pytest.raises(InfrastructureError, match=r"no answer \(2 times"):
        ask()
    with pytest.raises(InfrastructureError, match=r"left alone.* after 3 failed calls"):
        ask()


def test_a_models_own_failure_shows_that_the_server_is_alive() -> None:
    remote = Remote("x", Patience(attempts=1, failures=2))
    outcomes: list[Exception] = []

    async def attempt() -> None:
        raise outcomes.pop(0)

    for error in (TransientError("no"), InvalidAnswerError("model"), TransientError("no"), InvalidAnswerError("model")):
        outcomes.append(error)
        kind = InfrastructureError if isinstance(error, TransientError) else InvalidAnswerError
        with pytest.raises(kind):
            remote.call(attempt)


def test_calls_from_threads_and_forks() -> None:
    with http_server(replying(200, "fine")) as wire:
        ask = asking(HttpServer(wire.http, QUICK))
        answers: list[Any] = []
        threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert answers == ["fine"] * 8
        child = os.fork()
        if child == 0:
            os._exit(0 if ask() == "fine" else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_reply_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merton.models.remote.MAX_REPLY_BYTES", 100_000)
    with (
        http_server(replying(200, b"0" * 200_000)) as wire,
        pytest.raises(InfrastructureError, match="replies with more than"),
    ):
        asking(HttpServer(wire.http, QUICK))()


def test_addresses_and_settings() -> None:
    check_url("wss://host/path", ("ws", "wss"))
    for wrong in ("host:80", "ftp://host", "http://", "http://host:x", "http://host:99999"):
        with pytest.raises(InputError, match=r"http:// or https://, got"):
            HttpServer(wrong, QUICK)
    assert is_loopback_url("http://127.0.0.1:8000")
    assert is_loopback_url("ws://localhost")
    assert is_loopback_url("http://[::1]:80")
    assert not is_loopback_url("https://127.example.org")
    with pytest.raises(InputError, match=r"^mine: attempts: .* \(and 1 more\)"):
        validated(Patience, {"attempts": 0, "patience": 1}, "mine")
    with pytest.raises(InputError, match=r"mine: patience: unknown key; valid keys are: deadline_s"):
        validated(Patience, {"patience": 1}, "mine")
    with pytest.raises(MissingDependencyError, match=r"needs no_such_module: .*merton\[remote\]"):
        optional("no_such_module")
