"""The statistics of a study in a browser: the operator's page, and the page as a file, without a barrier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from merton_studies.people.ledger import Answer, Slot
from merton_studies.people.statistics import summary
from merton_studies.people.statistics_page import write_page
from merton_studies.people.study import Study, open_study

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")

WHEN = "2026-05-03T10:00:00+00:00"
WINDOWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
TITLE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    """Sixteen pictures by three raters, one of whom always says the same."""
    from small_study import make_project

    path = make_project(tmp_path_factory.mktemp("people"), pictures=16, raters=3, title=TITLE)
    study = open_study(path)
    for who in range(3):
        rater = study.ledger.register(f"rater {who}").id
        study.ledger.hand_out([Slot(rater, n, item.id, "design", WHEN) for n, item in enumerate(study.items, 1)])
        for n, item in enumerate(study.items, 1):
            said = {"score": 3 if who == 2 else 1 + n % 5}
            study.ledger.save(Answer(f"{who}-{n}", rater, n, item.id, "design", said, 1.0 + who, WHEN))
    yield study
    study.close()


def barriers(page: Any) -> list[tuple[str, list[str]]]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe (make develop)").Axe()
    found = axe.run(page).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def test_the_operator_sees_the_statistics(browser: Any, study: Study) -> None:
    from small_study import client

    asking = client(study)
    page = browser.new_page(**WINDOWS["desktop"])
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))

    def answered(route: Any) -> None:
        reply = asking.get(urlsplit(route.request.url).path, headers=route.request.headers)
        route.fulfill(status=reply.status_code, headers=dict(reply.headers), body=reply.content)

    page.route("**/*", answered)
    page.goto("http://localhost:8100/operator")
    page.get_by_role("heading", name="Agreement").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == TITLE
    assert page.title() == f"Statistics of {TITLE} · Merton"
    assert page.get_by_text("always the same answer").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_text("Pairs of raters by quality").click()
    assert barriers(page) == []
    page.set_viewport_size(WINDOWS["phone"]["viewport"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert wrong == []
    page.close()


def test_the_page_as_a_file_has_no_barrier(browser: Any, study: Study, tmp_path: Path) -> None:
    found = summary(study.project, study.items, study.protocol, study.ledger.answers(), study.sha256)
    write_page(found, tmp_path / "statistics.html")
    page = browser.new_page(**WINDOWS["phone"])
    page.goto((tmp_path / "statistics.html").as_uri())
    assert page.get_by_role("heading", level=1).inner_text() == TITLE
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert barriers(page) == []
    page.close()
