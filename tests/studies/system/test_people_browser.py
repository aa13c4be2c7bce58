"""The page of a study's raters in a browser: answers survive lost connections, reloads and second tabs, each once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from merton_studies.people.study import Study, open_study
from patience import stretched, until

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")


WINDOWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
ANSWERS = "**/api/answers"
HOSTILE = "<img src=x onerror=alert(1)> \u202e'; DROP TABLE x; --"


class Server:
    """A study on a port of this machine, which can stop and come back as after a crash."""

    def __init__(self, project: Path) -> None:
        self.project, self.port = project, 0
        self.start()

    def start(self) -> None:
        from merton.web.acceptor import Acceptor
        from merton.web.access import listening
        from merton.web.hall import Hall
        from merton_studies.people.serve import create_app

        self.study: Study = open_study(self.project)
        bound = listening("127.0.0.1", self.port)
        self.port = bound.getsockname()[1]
        self._hall = Hall(create_app(self.study), 50, ws="none", timeout_graceful_shutdown=1)
        self._acceptor = Acceptor(bound, (self._hall,), lambda head: (self._hall, False))
        self._thread = threading.Thread(target=self._hall.run, daemon=True)
        self._thread.start()
        self._acceptor.start()

    def stop(self) -> None:
        self._acceptor.end()
        self._hall.should_exit = True
        self._thread.join(stretched(10))
        self.study.close()

    @property
    def saved(self) -> list[tuple[str, int, Any]]:
        return [(one.rater, one.number, one.answer["score"]) for one in self.study.ledger.answers()]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its pictures are prepared once."""
    from small_study import make_project

    path = make_project(tmp_path_factory.mktemp("people"), pictures=6, raters=20, ratings=20, title=HOSTILE)
    open_study(path).close()
    return path


@pytest.fixture
def server(browser: Any, project: Path) -> Iterator[Server]:
    (project.parent / "people.sqlite").unlink(missing_ok=True)
    server = Server(project)
    yield server
    server.stop()


@pytest.fixture
def visit(browser: Any, server: Server) -> Iterator[Callable[..., Any]]:
    """Opens the page in a browser of its own; a request to another machine or an error of a script fails the test."""
    address, contexts = f"http://127.0.0.1:{server.port}/", []
    errors: list[str] = []
    asked: list[str] = []

    def open_page(window: str = "desktop", context: Any = None, to: str = "") -> Any:
        if context is None:
            context = browser.new_context(**WINDOWS[window])
            context.set_default_timeout(stretched(8_000))
            context.on("request", lambda request: asked.append(request.url))
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
        page.goto(to or address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in asked if not url.startswith((address, "blob:"))] == []


def soon(page: Any, condition: Callable[[], Any]) -> None:
    """Wait on a condition while the page's events are handled."""
    until(condition, 15.0, meanwhile=lambda: page.wait_for_timeout(10))


def begin(page: Any, name: str) -> None:
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Begin").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("radio").first.wait_for()


def rate(page: Any, number: int, score: int) -> None:
    """Answer an item by keys alone, once it is shown."""
    page.locator(f"#form:not([inert]) > [data-number='{number}']").wait_for()
    page.keyboard.press(str(score))
    page.keyboard.press("Enter")


def progress(page: Any, text: str) -> None:
    playwright.expect(page.locator("#progress-text")).to_contain_text(text)


def kept(page: Any) -> int:
    """Operations in the browser's storage that the server has not acknowledged."""
    return int(page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('merton-people')).length"))


@pytest.mark.parametrize("window", WINDOWS)
def test_from_the_name_to_the_end_by_keys_without_barriers(
    visit: Callable[..., Any], server: Server, window: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe (make develop)").Axe()
    page = visit(window)

    def check() -> None:
        options = {"preload": False, "resultTypes": ["violations"]}
        found = axe.run(page, options=options).response["violations"]
        assert [(item["id"], item["nodes"][0]["html"][:200]) for item in found] == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    page.get_by_label("Your name").wait_for()
    check()
    assert page.locator("#title").inner_text() == HOSTILE
    begin(page, HOSTILE)
    check()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    rate(page, 1, 2)
    progress(page, "1 of 6")
    page.keyboard.press("u")
    progress(page, "0 of 6")
    for number in range(6):
        rate(page, number + 1, 1 + number % 5)
        progress(page, f"{number + 1} of 6")
    page.get_by_role("heading", name="Done").wait_for()
    check()
    soon(page, lambda: len(server.saved) == 6)
    assert server.saved == [("R01", number + 1, 1 + number % 5) for number in range(6)]
    assert len(server.study.ledger.answers(undone=True)) <= 7
    assert server.study.ledger.raters()[0].name == HOSTILE.replace("\u202e", "")


def test_answers_given_without_a_connection_are_saved_once_after_a_reload(
    visit: Callable[..., Any], server: Server
) -> None:
    page = visit()
    begin(page, "Ada")
    page.route(ANSWERS, lambda route: route.abort())
    rate(page, 1, 5)
    rate(page, 2, 4)
    playwright.expect(page.locator("#line")).to_contain_text("2 waiting to be saved")
    assert server.saved == []
    page.reload()
    page.get_by_role("radio").first.wait_for()
    assert kept(page) == 2
    playwright.expect(page.locator("#line")).to_contain_text("2 waiting to be saved")
    rate(page, 3, 3)
    page.unroute(ANSWERS)
    progress(page, "3 of 6")
    soon(page, lambda: len(server.saved) == 3)
    assert server.saved == [("R01", 1, 5), ("R01", 2, 4), ("R01", 3, 3)]
    soon(page, lambda: kept(page) == 0)


def test_an_answer_whose_acknowledgement_was_lost_is_not_doubled(visit: Callable[..., Any], server: Server) -> None:
    page = visit()
    begin(page, "Ada")
    times = []

    def lose(route: Any) -> None:
        times.append(route.fetch().json())
        route.abort()

    page.route(ANSWERS, lose, times=2)
    rate(page, 1, 5)
    soon(page, lambda: kept(page) == 0)
    assert times == [{"saved": True}, {"saved": False}]
    assert server.saved == [("R01", 1, 5)]


def test_two_tabs_save_an_answer_once_and_go_on_together(visit: Callable[..., Any], server: Server) -> None:
    first = visit()
    begin(first, "Ada")
    second = visit(context=first.context, to=first.url)
    second.get_by_role("button", name="Begin").click()
    second.get_by_role("radio").first.wait_for()
    first.context.route(ANSWERS, lambda route: route.abort())
    rate(first, 1, 5)
    assert kept(second) == 1
    first.context.unroute(ANSWERS)
    progress(second, "1 of 6")
    rate(second, 2, 2)
    progress(first, "2 of 6")
    assert server.saved == [("R01", 1, 5), ("R01", 2, 2)]
    assert len(server.study.ledger.answers(undone=True)) == 2


def test_a_server_that_was_killed_is_found_again(visit: Callable[..., Any], server: Server) -> None:
    page = visit()
    begin(page, "Ada")
    rate(page, 1, 5)
    soon(page, lambda: len(server.saved) == 1)
    server.stop()
    rate(page, 2, 4)
    playwright.expect(page.locator("#line")).to_contain_text("No connection")
    server.start()
    progress(page, "2 of 6")
    soon(page, lambda: len(server.saved) == 2)
    rate(page, 3, 3)
    soon(page, lambda: len(server.saved) == 3)
    assert server.saved == [("R01", 1, 5), ("R01", 2, 4), ("R01", 3, 3)]


def test_a_refused_answer_is_said_and_its_item_shown_again(visit: Callable[..., Any], server: Server) -> None:
    page = visit()
    begin(page, "Ada")
    refusal = '{"detail": "such an answer is <b>not</b> taken"}'
    page.route(ANSWERS, lambda route: route.fulfill(status=422, body=refusal, content_type="application/json"), times=1)
    rate(page, 1, 5)
    alarm = page.get_by_role("alert")
    playwright.expect(alarm).to_have_text("Not saved: such an answer is <b>not</b> taken")
    assert kept(page) == 0
    progress(page, "0 of 6")
    rate(page, 1, 1)
    progress(page, "1 of 6")
    soon(page, lambda: server.saved == [("R01", 1, 1)])
    assert not alarm.is_visible()


def test_an_answer_that_was_not_sent_yet_is_taken_back_in_the_browser(
    visit: Callable[..., Any], server: Server
) -> None:
    page = visit()
    begin(page, "Ada")
    page.context.set_offline(True)
    rate(page, 1, 5)
    playwright.expect(page.locator("#line")).to_contain_text("1 waiting")
    page.keyboard.press("u")
    soon(page, lambda: kept(page) == 0)
    page.context.set_offline(False)
    rate(page, 1, 2)
    soon(page, lambda: server.saved == [("R01", 1, 2)])
    assert len(server.study.ledger.answers(undone=True)) == 1


def test_the_media_of_the_next_items_are_there_before_they_are_needed(
    visit: Callable[..., Any], server: Server
) -> None:
    page = visit()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/media/" in request.url else None)
    begin(page, "Ada")
    soon(page, lambda: len(asked) == 4)
    page.get_by_role("img").wait_for()
    page.context.set_offline(True)
    for number in (1, 2, 3):
        rate(page, number, number)
        assert page.get_by_role("img").evaluate("(image) => image.naturalWidth > 0")
    page.context.set_offline(False)
    soon(page, lambda: len(server.saved) == 3)
    assert sorted(asked[:4]) == [f"http://127.0.0.1:{server.port}/media/{number}/image" for number in (1, 2, 3, 4)]
