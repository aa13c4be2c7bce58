"""The served leaderboard in a browser: the real process on a port of this machine, from the board to a refusal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patience import stretched

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")

AGENTS = ("oracle", "servo", "blobs", "hold")
WIDTHS = {"desktop": 1280, "phone": 360}
END_S = 30.0


def merton(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command, until it has ended."""
    command = [sys.executable, "-m", "merton", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=stretched(120), **options)


@pytest.fixture(scope="module")
def run(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An invented run with pictures and answers."""
    from fake_run import make_fake_run

    folder = tmp_path_factory.mktemp("served")
    make_fake_run(folder / "run", agents=AGENTS, distortions=("gaussian_blur", "jpeg"), tasks=("pick", "push"))
    for agent in ("servo", "blobs"):
        out = ("--out", folder / f"{agent}.zip")
        who = ("--agent", agent, "--manufacturer", "Acme Robotics", "--version", "1.0", "--weights-sha256", "none")
        packed = merton("submission", "pack", folder / "run", *who, *out)
        assert packed.returncode == 0, packed.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    """Where `merton leaderboard serve` listens; Ctrl-C ends it as it ends every command."""
    command = [sys.executable, "-m", "merton", "leaderboard", "serve", str(run), "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        try:
            assert server.stdout is not None
            said = "".join(server.stdout.readline() for _ in range(2))
            found = re.search(r"http://127\.0\.0\.1:\d+/", said)
            assert found, said
            yield found[0]
            server.send_signal(signal.SIGINT)
            assert server.wait(stretched(END_S)) == 130
        finally:
            server.kill()


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: Any, address: str) -> Iterator[Any]:
    """A window; the test fails if anything in it asks another machine, or complains."""
    context = browser.new_context(viewport={"width": WIDTHS[request.param], "height": 800})
    asked: list[str] = []
    complaints: list[str] = []
    context.on("request", lambda asking: asked.append(asking.url))
    context.route(lambda url: not url.startswith(address), lambda route: route.abort())
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert asked, "nothing was asked for"
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    # a browser also complains of a page whose status says that something was refused
    assert [text for text in complaints if "the server responded with a status of 4" not in text] == []


def fits(page: Any) -> bool:
    """Whether nothing sticks out of the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def names(page: Any) -> list[str]:
    """The agents or cases that can be seen, without their marks, in the page's main table, from top to bottom."""
    heads = page.locator("table[data-filtered] tbody tr:visible > th").all()
    return [head.inner_text().split("\n")[0].removesuffix(" floor") for head in heads]


def test_from_the_board_to_a_case(page: Any, address: str) -> None:
    page.goto(address)
    assert fits(page)
    ranked = names(page)
    assert sorted(ranked) == sorted(AGENTS)
    rank = page.get_by_role("button", name=re.compile("^rank"))
    rank.click()
    if names(page) == ranked:
        rank.click()
    assert names(page) == ranked[::-1]
    page.get_by_label("Find").fill("serv")
    assert names(page) == ["servo"]
    page.get_by_role("link", name="servo").click()
    page.wait_for_url("**/agents/servo.html")
    assert page.get_by_role("heading", level=1).inner_text() == "servo"
    page.get_by_role("link", name="Cases", exact=True).click()
    page.wait_for_url("**/cases.html")
    case = names(page)[0]
    page.get_by_role("link", name=case, exact=True).click()
    page.wait_for_url("**/cases/*.html")
    assert page.get_by_role("heading", level=1).inner_text() == case
    pictures = page.locator("main img")
    assert pictures.count() == 2
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        playwright.expect(picture).to_have_js_property("complete", True)
    assert all(pictures.evaluate_all("items => items.map((item) => item.naturalWidth > 0)"))
    assert fits(page)


def send(page: Any, address: str, archive: Path) -> str:
    """Send an archive with the form; the heading of the answer."""
    page.goto(address)
    page.get_by_role("link", name="Submit", exact=True).click()
    page.get_by_label("Archive").set_input_files(archive)
    page.get_by_role("button", name="Submit", exact=True).click()
    verdict = str(page.get_by_role("heading", name=re.compile("Accepted|Refused")).inner_text())
    assert fits(page)
    return verdict


def test_a_submission_is_accepted_and_the_second_refused(page: Any, address: str, run: Path) -> None:
    # The second window sends the archive of the first one again: that is no second submission.
    assert send(page, address, run.parent / "servo.zip") == "Accepted"
    assert "Acme Robotics" in page.get_by_role("main").inner_text()
    assert send(page, address, run.parent / "blobs.zip") == "Refused"
    assert "one a calendar month is accepted" in page.get_by_role("main").inner_text()
    page.goto(address)
    page.get_by_role("link", name="Submissions", exact=True).click()
    listed = page.get_by_role("main").get_by_text("one a calendar month is accepted").first
    for _ in range(100):  # the pages are written again in the background
        if listed.is_visible():
            break
        page.wait_for_timeout(200)
        page.reload()
    assert listed.is_visible()


def test_an_archive_that_is_too_large_is_refused_on_a_page(page: Any, address: str, tmp_path: Path) -> None:
    (tmp_path / "large.zip").write_bytes(bytes(40 * 2**20))
    assert send(page, address, tmp_path / "large.zip") == "Refused"
    assert "16 MiB" in page.get_by_role("main").inner_text()


@pytest.fixture
def used_up(address: str, run: Path) -> None:
    """Acme's month."""
    sent = merton("submission", "send", address, run.parent / "servo.zip")
    assert sent.returncode == 0, sent.stderr
    assert "Acme Robotics" in sent.stdout


@pytest.mark.usefixtures("used_up")
def test_without_scripts_the_form_works_too(browser: Any, address: str, run: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}submit")
    page.get_by_label("Archive").set_input_files(run.parent / "blobs.zip")
    page.get_by_role("button", name="Submit", exact=True).click()
    page.get_by_role("heading", name="Refused").wait_for()
    context.close()


@pytest.mark.usefixtures("used_up")
def test_the_command_sends_to_a_server(address: str, run: Path) -> None:
    sent = merton("submission", "send", address, run.parent / "blobs.zip")
    assert sent.returncode == 2
    assert "one a calendar month is accepted" in sent.stderr
    assert "Traceback" not in sent.stderr
    unreachable = merton("submission", "send", "http://127.0.0.1:9", run.parent / "servo.zip")
    assert unreachable.returncode == 1
    assert "cannot reach" in unreachable.stderr
