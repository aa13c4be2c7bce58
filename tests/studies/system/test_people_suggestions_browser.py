"""A suggestion in a browser: chosen already, marked, corrected by a key; and nothing is chosen where it is hidden."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from merton_studies.people.examples import write_example
from merton_studies.people.study import open_study
from patience import stretched, until

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")


def test_a_suggestion_is_kept_by_enter_and_corrected_by_a_key(browser: Any, tmp_path: Path) -> None:
    from merton.web.acceptor import Acceptor
    from merton.web.access import listening
    from merton.web.hall import Hall
    from merton_studies.people.serve import create_app

    file = write_example("labels", tmp_path / "study")
    source = "suggestions: {file: questions, hidden: 0.5}, per_dimension: 4}"
    file.write_text(file.read_text().replace("per_dimension: 8}", source))
    study = open_study(file)
    bound = listening("127.0.0.1", 0)
    hall = Hall(create_app(study), 50, ws="none", timeout_graceful_shutdown=1)
    acceptor = Acceptor(bound, (hall,), lambda head: (hall, False))
    serving = threading.Thread(target=hall.run, daemon=True)
    serving.start()
    acceptor.start()
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(stretched(8_000))
    expected: list[tuple[str, str, bool]] = []
    try:
        page.goto(f"http://127.0.0.1:{bound.getsockname()[1]}/")
        page.get_by_label("Your name").fill("Ada")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Begin").click()
        page.locator("#form:not([inert]) > [data-number='1']").wait_for()
        for number in range(1, study.desk.work("R01").total + 1):
            page.locator(f"#form:not([inert]) > [data-number='{number}']").wait_for()
            until(lambda number=number: study.desk.work("R01").slots[0].number == number, 15.0,
                  meanwhile=lambda: page.wait_for_timeout(10))  # fmt: skip
            slot = study.desk.work("R01").slots[0]
            item = study.desk.shown(slot)
            suggestion = item.texts.get("suggestion", "")
            checked = page.locator("input:checked")
            assert checked.count() == bool(suggestion)
            assert page.locator("label.suggested").count() == bool(suggestion)
            assert page.locator("#save").is_enabled() == bool(suggestion)
            verdict = suggestion or "yes"
            if suggestion:
                said = {"yes": "Yes", "no": "No"}[suggestion]
                assert said in page.locator("label:has(:checked)").inner_text()
                assert f"suggests {said}" in page.locator(".hint").inner_text()
            if number % 2 and suggestion:
                verdict = {"yes": "no", "no": "yes"}[suggestion]
            if verdict != suggestion:
                page.keyboard.press(verdict[0])
            page.keyboard.press("Enter")
            expected.append((verdict, item.facts["suggestion"], bool(suggestion)))
        page.get_by_role("heading", name="Done").wait_for()
        saved = [(one.answer["verdict"], one.answer["suggestion"], one.answer["shown"])
                 for one in study.ledger.answers()]  # fmt: skip
    finally:
        page.close()
        acceptor.end()
        hall.should_exit = True
        serving.join(stretched(10))
        study.close()
    assert saved == expected
    assert {shown for _, _, shown in saved} == {True, False}
    assert {verdict == suggestion for verdict, suggestion, shown in saved if shown} == {True, False}
