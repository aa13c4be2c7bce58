"""The server of a leaderboard: what it shows, to whom, and what it refuses. No port is opened here."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from postgres import new_database
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from merton.errors import InfrastructureError, InputError
from merton.hosts import is_loopback
from merton.leaderboard.serve import app as app_module
from merton.leaderboard.serve import create_app
from merton.leaderboard.serve import publisher as publisher_module
from merton.leaderboard.serve import uploads as uploads_module
from merton.leaderboard.serve.uploads import AT_ONCE, MAX_UPLOAD_BYTES
from merton.leaderboard.submissions import packing
from merton.leaderboard.submissions.manifest import NO_WEIGHTS
from merton.leaderboard.submissions.packing import example_submission
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.web import access, serving
from merton.web.access import is_from_elsewhere
from patience import stretched, until

NOVEMBER = datetime(2026, 11, 21, 8, 0, tzinfo=timezone.utc)
AGENTS = ("hold", "plunge", "servo")
CASES = [TestCase("pick", seed, "gaussian_blur", level) for seed in range(3) for level in (1, 3, 5)]
PATIENCE_S = stretched(60.0)
FORM = "multipart/form-data; boundary=x"


def fill(where: Path | str, experiment: str = "study") -> None:
    """A record with every agent on every case; the later an agent's name, the better its scores."""
    with ResultStore(where) as store:
        store.record_all(
            TrialRecord(experiment, agent, case, Outcome.FAILURE, execution=float(20 * skill + 7 * number % 31))
            for skill, agent in enumerate(AGENTS)
            for number, case in enumerate(CASES)
        )


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A run's directory with a record."""
    (tmp_path / "secret_place").mkdir()
    fill(tmp_path / "secret_place" / "results.sqlite")
    return tmp_path / "secret_place"


def archive_of(record: Path, agent: str = "servo", manufacturer: str = "Acme") -> bytes:
    """A submission of what the record holds of an agent."""
    with ResultStore(record / "results.sqlite", read_only=True) as store:
        return packing.make_submission(store, agent, manufacturer, "1.0", NO_WEIGHTS, dataset="study")


def client(app: FastAPI) -> TestClient:
    """Asks the app under a name it goes by; a fault of the server is an answer, as for any client."""
    return TestClient(app, base_url="http://localhost:8080", raise_server_exceptions=False)


@pytest.fixture
def served(record: Path) -> TestClient:
    """The board of `record`, which is not watched: tests say when it is looked at."""
    return client(create_app(record, now=lambda: NOVEMBER))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """The same for tests that add nothing to the record but attempts to submit."""
    folder = tmp_path_factory.mktemp("secret_place")
    fill(folder / "results.sqlite")
    return client(create_app(folder, now=lambda: NOVEMBER))


@contextmanager
def watched(app: FastAPI) -> Iterator[TestClient]:
    """The app as a server runs it, with the record watched in the background."""
    with client(app) as asking:
        yield asking


def submit(asking: TestClient, archive: bytes, **options: Any) -> Any:
    """The API's answer to a submission."""
    return asking.post("/api/submissions", files={"archive": ("submission.zip", archive)}, **options)


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask again and again until it holds."""
    until(holds, PATIENCE_S)


# what is shown


def test_the_served_files_are_those_of_the_site(shown: TestClient) -> None:
    published = shown.app.state.publisher.current  # type: ignore[attr-defined]
    assert {"index.html", "board.json", "assets/site.css", "agents/servo.html"} <= set(published.files)
    for name, file in published.files.items():
        answer = shown.get(f"/{name}")
        assert (answer.status_code, answer.content) == (200, file.read_bytes()), name
    assert shown.get("/").content == published.files["index.html"].read_bytes()
    assert 'href="submit"' in shown.get("/").text
    assert shown.get("/assets/site.css").headers["content-type"].startswith("text/css")


def test_unknown_addresses_are_a_404_and_no_other_file_can_be_reached(shown: TestClient) -> None:
    for path in (
        "/nothing.html",
        "/agents/",
        "/agents",
        "/%2e%2e/results.sqlite",
        "/..%2fresults.sqlite",
        "//etc/passwd",
    ):
        answer = shown.get(path)
        assert answer.status_code == 404, path
        assert "secret_place" not in answer.text
    assert 'href="../assets/site.css"' in shown.get("/agents/nobody.html").text


def test_the_board_is_the_snapshot(shown: TestClient) -> None:
    answer = shown.get("/api/board").json()
    snapshot = shown.get("/board.json").content
    assert answer["snapshot_sha256"] == hashlib.sha256(snapshot).hexdigest()
    whole = json.loads(snapshot)
    assert answer["agents"] == whole["agents"]
    for part in ("boards", "swaps", "window", "warnings"):
        assert answer[part] == whole[part]
    assert (answer["cases"], answer["matches"]) == (len(CASES), len(CASES) * len(AGENTS))
    assert shown.get("/api/agents/servo").json() == next(row for row in whole["agents"] if row["id"] == "servo")
    assert shown.get(f"/api/cases/{CASES[0].id}").json()["id"] == CASES[0].id


@pytest.mark.parametrize("path", ["/api/cases", "/api/matches", "/api/matches?agent=hold"])
def test_the_parts_of_a_list_are_the_list(shown: TestClient, path: str) -> None:
    separator = "&" if "?" in path else "?"
    whole = shown.get(f"{path}{separator}limit=1000").json()
    assert whole["next"] is None
    found: list[Any] = []
    address: str | None = f"{path}{separator}limit=4"
    while address:
        part = shown.get(address).json()
        assert part["offset"] == len(found)
        assert part["total"] == whole["total"] == len(whole["items"])
        found += part["items"]
        address = part["next"]
    assert found == whole["items"]


def test_matches_can_be_narrowed(shown: TestClient) -> None:
    whole = shown.get("/api/matches?limit=1000").json()["items"]
    assert len(whole) == len(CASES) * len(AGENTS)
    case = CASES[4].id
    of_agent = shown.get("/api/matches?agent=plunge&limit=1000").json()["items"]
    assert of_agent == [match for match in whole if match["agent"] == "plunge"]
    of_case = shown.get(f"/api/matches?case={case}").json()["items"]
    assert of_case == [match for match in whole if match["case"] == case]
    both = shown.get(f"/api/matches?case={case}&agent=plunge").json()["items"]
    assert both == [match for match in of_case if match["agent"] == "plunge"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/agents/nobody", 404, "no agent of that id"),
        ("/api/cases/nothing", 404, "no test case of that id"),
        ("/api/matches?agent=nobody", 404, "no agent of that id"),
        ("/api/matches?case=nothing", 404, "no test case of that id"),
        ("/api/nothing", 404, "no such operation"),
        ("/api/cases?limit=0", 422, "limit:"),
        ("/api/cases?limit=1001", 422, "limit:"),
        ("/api/cases?offset=-1", 422, "offset:"),
        ("/api/cases?offset=many", 422, "offset:"),
    ],
)
def test_a_wrong_question_gets_one_sentence(shown: TestClient, path: str, status: int, said: str) -> None:
    answer = shown.get(path)
    assert answer.status_code == status
    assert list(answer.json()) == ["detail"]
    assert said in answer.json()["detail"]


@pytest.mark.parametrize(
    "path", ["/api/board", "/api/agents/servo", "/api/cases", "/api/submissions", "/", "/board.csv"]
)
def test_an_answer_that_the_client_has_is_not_sent_again(shown: TestClient, path: str) -> None:
    first = shown.get(path)
    tag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{64}"', tag)
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = shown.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert shown.get(path, headers={"If-None-Match": '"other"'}).content == first.content


def test_a_new_snapshot_has_a_new_tag(served: TestClient, record: Path) -> None:
    tag = served.get("/api/board").headers["etag"]
    assert tag == f'"{served.get("/api/board").json()["snapshot_sha256"]}"'
    publisher = served.app.state.publisher  # type: ignore[attr-defined]
    assert not publisher.refresh()
    fill(record / "results.sqlite", "another")
    assert publisher.refresh()
    answer = served.get("/api/board", headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert answer.json()["experiments"] == ["another", "study"]


def test_every_field_and_operation_is_described(shown: TestClient) -> None:
    document = shown.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    for name, schema in document["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            known = name.startswith("Page_") and field == "items"
            # the parts of Table 2's diagnostics carry their meaning in the text of their class
            assert described.get("description") or known or schema.get("description"), f"{name}.{field}"
    text = shown.get("/api").text
    for path, methods in document["paths"].items():
        assert path in text
        assert all(operation["description"] for operation in methods.values())
    agent = document["components"]["schemas"]["AgentRow"]["properties"]
    assert "0..100" in agent["execution_distorted"]["description"]


def test_no_page_requests_anything_from_another_host(shown: TestClient) -> None:
    for path in ("/", "/api", "/submit", "/nothing", "/cases.html"):
        text = shown.get(path).text
        loaded = re.findall(r"(?:src|href|action)=\"([^\"]+)\"", text)
        assert loaded, path
        assert not [address for address in loaded if "//" in address], path
        assert "<script>" not in text
        assert " style=" not in text
    assert shown.get("/docs").status_code == shown.get("/redoc").status_code == 404


def test_every_answer_carries_the_headers(shown: TestClient) -> None:
    for path in ("/", "/api/board", "/submit", "/nothing", "/api/agents/nobody"):
        headers = shown.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'; ")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"


# who may ask


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "[::1", "127.0.0.1.evil.example:8080"])
def test_a_foreign_host_name_is_refused(shown: TestClient, host: str) -> None:
    answer = shown.get("/api/board", headers={"Host": host})
    assert answer.status_code == 421
    assert "agents" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "192.0.2.7"])
def test_requests_to_addresses_and_known_names_are_answered(shown: TestClient, host: str) -> None:
    assert shown.get("/api/board", headers={"Host": host}).status_code == 200


def test_a_name_can_be_added(record: Path) -> None:
    asking = client(create_app(record, names=["Board.lab.example"]))
    assert asking.get("/", headers={"Host": "board.lab.example"}).status_code == 200
    assert asking.get("/", headers={"Host": "lab.example"}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "elsewhere"),
    [
        ({}, False),  # no browser
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:8080"}, True),
        ({"origin": "http://localhost:8080"}, False),
        ({"origin": "https://localhost:8080"}, False),  # behind a proxy that speaks TLS
        ({"origin": "http://localhost:8081"}, True),
        ({"origin": "http://evil.example"}, True),
        ({"origin": "null"}, True),
    ],
)
def test_forms_of_other_sites_are_recognised(shown: TestClient, headers: dict[str, str], elsewhere: bool) -> None:
    assert is_from_elsewhere(Headers({"host": "localhost:8080", **headers})) is elsewhere
    for path in ("/submit", "/api/submissions"):
        answer = shown.post(path, headers=headers, files={"archive": b"no archive"})
        assert answer.status_code == (403 if elsewhere else 422)
    assert shown.post("/api/board", headers=headers).status_code == (403 if elsewhere else 405)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("lab", False)],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


# submissions


def test_a_submission_is_accepted_once_a_month(served: TestClient, record: Path) -> None:
    first = submit(served, archive_of(record))
    assert first.status_code == 201
    receipt = first.json()
    assert (receipt["manufacturer"], receipt["month"], receipt["window"]) == ("Acme", "2026-11", "2026-11-30")
    again = submit(served, archive_of(record))
    assert (again.status_code, again.json()) == (200, {**receipt, "repeated": True})
    other = submit(served, archive_of(record, "hold", "ACME "[:4]))
    assert other.status_code == 409
    assert "2026-12-01" in other.json()["detail"]
    assert submit(served, archive_of(record, "hold", "Other")).status_code == 201
    served.app.state.publisher.refresh()  # type: ignore[attr-defined]
    listed = served.get("/api/submissions").json()["items"]
    assert [row["manufacturer"] for row in listed] == ["Acme", "Other"]
    assert {**listed[0], "evaluation": receipt["evaluation"]} == receipt  # the window may have begun since
    tries = served.get("/api/attempts").json()["items"]
    assert [row["accepted"] for row in tries] == [True, False, False, True]
    assert "Acme" in served.get("/submissions.html").text


def test_the_form_answers_with_the_verdict(served: TestClient, record: Path) -> None:
    page = served.get("/submit").text
    assert 'enctype="multipart/form-data"' in page
    assert 'name="token"' not in page
    accepted = served.post("/submit", files={"archive": archive_of(record)})
    assert accepted.status_code == 201
    assert "<h1>Accepted</h1>" in accepted.text
    assert "2026-11-30" in accepted.text
    assert "<bdi>2026-12-01</bdi>" in accepted.text  # the day by which it is evaluated
    listed = served.get("/submissions.html").text  # at once, while the board is still the one before
    assert "pending until 2026-11-30" in listed
    assert served.get("/api/submissions").json()["total"] == 0
    refused = served.post("/submit", files={"archive": archive_of(record, "hold")})
    assert refused.status_code == 409
    assert "<h1>Refused</h1>" in refused.text
    assert "one a calendar month" in refused.text
    assert refused.headers["cache-control"] == "no-store"


def test_the_form_says_what_is_sent_and_offers_an_example_that_no_board_takes(record: Path) -> None:
    app = create_app(record, now=lambda: NOVEMBER, title="Our board")
    asking = client(app)
    page = asking.get("/submit").text
    assert 'href="submissions.html#rules"' in page
    assert 'id="rules"' in asking.get("/submissions.html").text
    assert "Our board" in page
    assert "<h1><bdi>Our board</bdi></h1>" in asking.get("/").text
    example = asking.get("/example-submission.zip")
    assert example.headers["content-type"] == "application/zip"
    assert example.content == example_submission()
    assert asking.post("/submit", files={"archive": example.content}).status_code == 422


def test_foreign_text_is_escaped_in_pages(served: TestClient, record: Path) -> None:
    hostile = archive_of(record).replace(b'"Acme"', b'"<i>x"')
    answer = served.post("/submit", files={"archive": ('<script>"', hostile)})
    assert answer.status_code == 422
    assert "<i>" not in answer.text
    assert "<script>" not in answer.text


def part(about: str, content: bytes) -> bytes:
    """A form of one part."""
    return b"--x\r\nContent-Disposition: form-data" + about.encode() + b"\r\n\r\n" + content + b"\r\n--x--\r\n"


def chunks(size: int) -> Iterator[bytes]:
    """A form without a Content-Length."""
    yield b'--x\r\nContent-Disposition: form-data; name="archive"; filename="a"\r\n\r\n'
    for _ in range(size // 2**18):
        yield bytes(2**18)
    yield b"\r\n--x--\r\n"


def test_a_body_that_is_too_large_is_refused_before_it_is_read(shown: TestClient) -> None:
    multipart = {"Content-Type": FORM}
    for length in (str(10**12), "9" * 5000, "-1", "many"):
        announced = shown.post("/api/submissions", content=b"", headers={**multipart, "Content-Length": length})
        assert announced.status_code == 413
    unannounced = shown.post("/api/submissions", content=chunks(2 * MAX_UPLOAD_BYTES), headers=multipart)
    assert unannounced.status_code == 413
    assert "16 MiB" in unannounced.json()["detail"]
    for method, path in (("POST", "/submit/"), ("GET", "/api/board"), ("POST", "/api/board"), ("GET", "/")):
        assert shown.request(method, path, content=bytes(100_000)).status_code == 413, path


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{}", "application/json", 415),
        (b"", "multipart/form-data", 400),
        (b"junk", FORM, 400),
        (b"--x--\r\n", FORM, 422),
        (part('; name="archive"', b"text"), FORM, 422),
        (part('; name="archive"; filename="a"', b"").replace(b"--x--", b"") * 2 + b"--x--\r\n", FORM, 400),
        (part("", b"text"), FORM, 400),
        (part('; name="token"', bytes(5000)), FORM, 400),
    ],
)
def test_a_broken_form_is_refused(shown: TestClient, content: bytes, kind: str, status: int) -> None:
    answer = shown.post("/api/submissions", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert list(answer.json()) == ["detail"]


def test_a_bomb_is_refused_and_logged(served: TestClient) -> None:
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.yaml", bytes(2**26))
    answer = submit(served, packed.getvalue())
    assert answer.status_code == 413
    served.app.state.publisher.refresh()  # type: ignore[attr-defined]
    assert served.get("/api/attempts").json()["total"] == 1


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    """Acme's token is "right", Other's "theirs"."""
    path = tmp_path / "tokens.yaml"
    hashes = {
        name: hashlib.sha256(token.encode()).hexdigest() for name, token in (("ACME", "right"), ("Other", "theirs"))
    }
    path.write_text("tokens:\n" + "".join(f"  {name}: {digest}\n" for name, digest in hashes.items()))
    return path


def test_a_token_speaks_for_its_manufacturer_alone(record: Path, tokens: Path) -> None:
    asking = client(create_app(record, tokens=tokens, now=lambda: NOVEMBER))
    assert 'name="token"' in asking.get("/submit").text
    archive = archive_of(record)
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic cmlnaHQ="},
        {"Authorization": "Bearer"},
    ):
        answer = submit(asking, archive, headers=headers)
        assert answer.status_code == 401, headers
        assert answer.headers["www-authenticate"] == "Bearer"
    assert submit(asking, archive, headers={"Authorization": "Bearer theirs"}).status_code == 403
    form = {"files": {"archive": archive}}
    assert asking.post("/submit", **form, data={"token": "wrong"}).status_code == 401
    assert asking.post("/submit", **form, data={"token": " right "}).status_code == 201
    assert (
        submit(asking, archive_of(record, manufacturer="Other"), headers={"Authorization": "Bearer theirs"}).status_code
        == 201
    )


@pytest.mark.parametrize(
    "text", ["", "tokens: {}\n", "tokens:\n  Acme: plain\n", "tokens:\n  Acme: &a x\n  Other: *a\n"]
)
def test_a_wrong_file_of_tokens_is_refused_with_a_sentence(record: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"tokens\.yaml"):
        create_app(record, tokens=path)


def test_a_closed_server_refuses_submissions(record: Path) -> None:
    asking = client(create_app(record, closed="this server takes no submissions"))
    assert "takes no submissions" in asking.get("/submit").text
    assert "<form method" not in asking.get("/submit").text
    assert submit(asking, archive_of(record)).status_code == 403


@pytest.mark.parametrize(
    ("host", "names", "open_to_all"),
    [("127.0.0.1", (), True), ("localhost", (), True), ("0.0.0.0", (), False), ("127.0.0.1", ("lab.example",), False)],
)
def test_only_loopback_is_open_without_tokens(
    record: Path, monkeypatch: pytest.MonkeyPatch, host: str, names: tuple[str, ...], open_to_all: bool
) -> None:
    made: list[FastAPI] = []

    class Hall(serving.Hall):
        def __init__(self, app: Any, most: int, **options: Any) -> None:
            made.append(app)
            super().__init__(app, most, **options)

        def run(self, sockets: Any = None) -> None:
            """Serve nothing."""

    monkeypatch.setattr(serving, "Hall", Hall)
    said: list[str] = []
    app_module.run(record, host, 0, names=names, say=said.append)
    assert (made[0].state.uploads.closed is None) is open_to_all
    assert ("--tokens" in said[-1]) is not open_to_all


def test_a_port_in_use_is_refused_with_a_sentence(record: Path) -> None:
    with access.listening("127.0.0.1", 0) as listening:
        listening.listen()
        with pytest.raises(InputError, match=r"cannot listen on 127\.0\.0\.1 port"):
            app_module.run(record, port=listening.getsockname()[1])


def test_of_many_at_once_one_is_accepted(record: Path) -> None:
    with watched(create_app(record, now=lambda: NOVEMBER)) as asking:
        archives = [archive_of(record, agent) for agent in AGENTS]
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda number: submit(asking, archives[number % 3]).status_code, range(24)))
        # the same archive again is no second submission, and what found the server busy may come again
        assert found.count(201) == 1
        assert set(found) <= {200, 201, 409, 429}
        asking.app.state.publisher.refresh()  # type: ignore[attr-defined]
        assert asking.get("/api/submissions").json()["total"] == 1


def test_a_flood_of_submissions_is_refused(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, inside = threading.Event(), threading.Semaphore(0)
    real = uploads_module.Uploads._checked_submit

    def slow(self: Any, archive: Any, manufacturer: str | None) -> Any:
        inside.release()
        assert go_on.wait(PATIENCE_S)
        return real(self, archive, manufacturer)

    monkeypatch.setattr(uploads_module.Uploads, "_checked_submit", slow)
    with watched(create_app(record, now=lambda: NOVEMBER)) as asking, ThreadPoolExecutor(AT_ONCE) as pool:
        archive = archive_of(record)
        waiting = [pool.submit(submit, asking, archive) for _ in range(AT_ONCE)]
        try:
            assert all(inside.acquire(timeout=PATIENCE_S) for _ in waiting)
            turned_away = submit(asking, archive)
            assert turned_away.status_code == 429
            assert int(turned_away.headers["retry-after"]) > 0
            assert asking.get("/").status_code == 200  # readers do not notice
        finally:
            go_on.set()
        assert sorted(answer.result().status_code for answer in waiting) == [200] * (AT_ONCE - 1) + [201]
        assert submit(asking, archive).status_code == 200


def test_a_client_that_sends_nothing_times_out(served: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "UPLOAD_DEADLINE_S", 0.05)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = {"host": "localhost", "content-type": FORM, "content-length": "1000"}
    scope = {
        "type": "http", "method": "POST", "path": "/api/submissions", "raw_path": b"/api/submissions",
        "query_string": b"", "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "http_version": "1.1", "scheme": "http", "server": ("localhost", 80), "client": None, "root_path": "",
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(served.app(scope, receive, send), PATIENCE_S))
    assert sent[0]["status"] == 408
    assert submit(served, b"junk").status_code == 422  # its place is free again


# when the record changes, and when it breaks


def test_no_request_waits_for_a_snapshot(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(record, now=lambda: NOVEMBER)
    begun, go_on = threading.Event(), threading.Event()
    real = publisher_module.snapshots.take

    def slow(*arguments: Any, **named: Any) -> Any:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return real(*arguments, **named)

    monkeypatch.setattr(publisher_module.snapshots, "take", slow)
    monkeypatch.setattr(publisher_module, "CHECK_PERIOD_S", 0.01)
    monkeypatch.setattr(publisher_module, "worker_pool", ThreadPoolExecutor)  # another process would not know of `slow`
    monkeypatch.setattr(publisher_module, "stop_workers", ThreadPoolExecutor.shutdown)
    with watched(app) as asking:
        old = asking.get("/api/board").json()["snapshot_sha256"]
        fill(record / "results.sqlite", "another")
        assert begun.wait(PATIENCE_S)
        assert asking.get("/api/board").json()["snapshot_sha256"] == old
        assert asking.get("/").status_code == 200
        assert submit(asking, archive_of(record)).status_code == 201
        go_on.set()
        wait_until(lambda: asking.get("/api/board").json()["snapshot_sha256"] != old)
        assert asking.get("/api/board").json()["experiments"] == ["another", "study"]
        wait_until(lambda: asking.get("/api/submissions").json()["total"] == 1)


def still_served(asking: TestClient, old: str, problem: str) -> None:
    """The old board is shown, and /health says that it is old."""
    assert asking.get("/api/board").json()["snapshot_sha256"] == old
    assert asking.get("/").status_code == 200
    health = asking.get("/health").json()
    assert (health["status"], health["problem"], health["snapshot_sha256"]) == ("stale", problem, old)
    assert "secret_place" not in asking.get("/health").text


@pytest.mark.parametrize("fault", ["garbage", "cut off", "gone", "score"])
def test_when_the_record_breaks_the_old_board_is_served(served: TestClient, record: Path, fault: str) -> None:
    publisher = served.app.state.publisher  # type: ignore[attr-defined]
    old = served.get("/api/board").json()["snapshot_sha256"]
    database = record / "results.sqlite"
    content = database.read_bytes()
    for rest in record.glob("results.sqlite-*"):
        rest.unlink()
    if fault == "gone":
        database.unlink()
    elif fault == "score":  # what no writer of ours would store
        database.write_bytes(content.replace(b"gaussian_blur", b"gaussian\xffblur"))
    else:
        database.write_bytes(b"garbage" * 1000 if fault == "garbage" else content[: len(content) // 2])
    assert not publisher.refresh()
    still_served(served, old, "the record cannot be read")
    with pytest.raises((InputError, InfrastructureError)):
        create_app(record)
    answer = submit(served, b"junk")
    assert answer.status_code == (422 if fault == "score" else 503)
    assert "secret_place" not in answer.text
    database.unlink(missing_ok=True)
    database.write_bytes(content)
    publisher.refresh()
    assert served.get("/health").json()["status"] == "ok"


def test_when_the_disk_is_full_the_old_board_is_served(
    served: TestClient, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = served.app.state.publisher  # type: ignore[attr-defined]
    old = served.get("/api/board").json()["snapshot_sha256"]
    fill(record / "results.sqlite", "another")

    def full(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        assert not publisher.refresh()
        still_served(served, old, "the pages cannot be written")
        with pytest.raises(InfrastructureError, match="No space left"):
            create_app(record)
    assert publisher.refresh()
    assert served.get("/health").json()["status"] == "ok"


def test_a_submission_that_cannot_be_stored_does_not_count(
    served: TestClient, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: Any) -> None:
        raise InfrastructureError(f"the result store {record} failed: disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(app_module.rules, "submit", failing)
        answer = submit(served, archive_of(record))
    assert answer.status_code == 503
    assert "does not count" in answer.json()["detail"]
    assert "secret_place" not in answer.text
    assert submit(served, archive_of(record)).status_code == 201


def test_removed_pages_are_written_again(served: TestClient) -> None:
    publisher = served.app.state.publisher  # type: ignore[attr-defined]
    for file in publisher.current.files.values():
        file.unlink()
    assert served.get("/").status_code == 503
    assert publisher.refresh()
    assert served.get("/").status_code == 200


def test_old_pages_go_when_new_ones_are_there(served: TestClient, record: Path) -> None:
    publisher = served.app.state.publisher  # type: ignore[attr-defined]
    old = publisher.current.files["index.html"]
    fill(record / "results.sqlite", "another")
    assert publisher.refresh()
    assert not old.exists()
    assert publisher.current.files["index.html"].exists()


def test_a_stored_snapshot_is_served_if_none_can_be_taken(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ResultStore(record / "results.sqlite") as store:
        kept = publisher_module.snapshots.take(store)
        publisher_module.snapshots.store_snapshot(store, kept)

    def failing(*arguments: Any, **named: Any) -> None:
        raise InfrastructureError("the disk fails")

    monkeypatch.setattr(publisher_module.snapshots, "take", failing)
    asking = client(create_app(record))
    assert asking.get("/api/board").json()["inputs_sha256"] == kept.inputs_sha256
    assert asking.get("/health").json()["problem"] == "the record cannot be read"
    assert [item["inputs_sha256"] for item in asking.get("/api/snapshots").json()["items"]] == [kept.inputs_sha256]


def test_the_snapshot_of_another_process_is_the_same(record: Path) -> None:
    publisher = publisher_module.Publisher(str(record))
    old = publisher.current
    publisher.check_now(force=True)
    assert publisher.refresh(publisher._made_in_process)
    assert publisher.current is not old
    assert publisher.current.sha256 == old.sha256
    assert (publisher.current.snapshot.metric, publisher.current.snapshot.name) == (
        "success",
        "leaderboard",
    )
    assert sorted(publisher.current.files) == sorted(old.files)


def test_no_record_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no result store"):
        create_app(tmp_path / "nothing.sqlite")
    assert not (tmp_path / "nothing.sqlite").exists()


def test_a_record_on_a_server_is_watched_too() -> None:
    where = new_database()
    fill(where)
    app = create_app(where, now=lambda: NOVEMBER)
    asking, publisher = client(app), app.state.publisher
    assert len(asking.get("/api/board").json()["agents"]) == len(AGENTS)
    wait_until(lambda: not publisher.refresh())  # the server counts a little late
    fill(where, "another")
    wait_until(publisher.refresh)
    assert asking.get("/api/board").json()["experiments"] == ["another", "study"]


def test_a_package_that_is_missing_is_named() -> None:
    code = "import sys; sys.modules['uvicorn'] = None; import merton.leaderboard.serve"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingDependencyError" in ended.stderr
    assert "merton[serve]" in ended.stderr
