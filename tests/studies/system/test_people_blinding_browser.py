"""The page of every protocol tells a browser nothing of where an item is from, and shows every text as a text."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from merton_studies.people.protocols.catalogue import PROTOCOLS
from patience import stretched

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")


HEADERS = "cache-control connection content-length content-security-policy content-type cross-origin-opener-policy \
cross-origin-resource-policy referrer-policy x-content-type-options x-frame-options"
"""Of every medium, in alphabetical order."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_browser_learns_nothing_of_an_items_source(browser: Any, tmp_path: Path, protocol: str) -> None:
    from secret_study import HOSTILE, NAMES, SECRET, secret_study

    from merton.web.acceptor import Acceptor
    from merton.web.access import listening
    from merton.web.hall import Hall
    from merton_studies.people.serve import create_app

    study = secret_study(tmp_path, protocol)
    for name in NAMES:
        study.desk.work(study.ledger.register(name).id)
    bound = listening("127.0.0.1", 0)
    address = f"http://127.0.0.1:{bound.getsockname()[1]}/"
    hall = Hall(create_app(study), 50, ws="none", timeout_graceful_shutdown=1)
    acceptor = Acceptor(bound, (hall,), lambda head: (hall, False))
    serving = threading.Thread(target=hall.run, daemon=True)
    serving.start()
    acceptor.start()
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(stretched(8_000))
    answers: list[Any] = []
    errors: list[str] = []
    page.on("response", lambda answer: answers.append(answer) if answer.url.startswith("http") else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    try:
        page.goto(address)
        page.get_by_label("Your name").fill(NAMES[0])
        with page.expect_response("**/media/*/*"):
            page.keyboard.press("Enter")
            page.get_by_role("button", name="Begin").click()
        page.locator("#form:not([inert]) > section > *").first.wait_for()
        page.wait_for_load_state("networkidle")
        seen = {
            answer.url: (answer.all_headers(), b"" if answer.status == 204 else answer.body()) for answer in answers
        }
        shown = page.content()
        assert page.locator("img[src=x]").count() == 0
        assert HOSTILE.strip() in page.locator("h1").inner_text() + page.locator("#message-text").text_content()
    finally:
        page.close()
        acceptor.end()
        hall.should_exit = True
        serving.join(stretched(10))
        study.close()
    assert errors == []
    forbidden = [SECRET, str(tmp_path), *NAMES, *(item.id for item in study.items)]
    forbidden += [medium.file.stem for item in study.items for medium in item.media.values()]
    for url, (headers, body) in [*seen.items(), ("page", ({}, shown.encode()))]:
        text = url + str(headers) + body.decode("latin-1")
        assert [one for one in forbidden if one in text] == [], url
    media = [headers for url, (headers, _) in seen.items() if "/media/" in url]
    assert media
    for headers in media:
        headers.pop("date", None)
        assert " ".join(sorted(headers)) == HEADERS
    assert len({tuple(sorted(headers.items())) for headers in media}) == 1, "two media differ in a header or in size"
