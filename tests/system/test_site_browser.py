"""The leaderboard's pages in a browser, straight from the disk: sorting, filtering, keyboard, themes, a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.leaderboard.site import write_site
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.compute import compute
from merton.leaderboard.snapshot.inputs import Inputs
from merton.results.records import ForeignScore
from merton.results.store import open_record
from merton.study.report import write_report
from patience import stretched

AGENTS = ("oracle", "servo", "blobs", "hold")
KINDS = (
    *(
        "index",
        "boards",
        "boards/task",
        "../matrix/boards",
        "agents/servo",
        "cases",
        "cases/pick.0.jpeg.5",
        "ratings",
        "history",
    ),
    *("submissions", "methods", "downloads", "../run/report", "../run/compare-with-other"),
)
"""A page of every kind, the report of the run, and its comparison with another."""


@pytest.fixture(scope="module")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of the pages of an invented run with an earlier snapshot; its report lies in the run beside them."""
    from fake_run import make_fake_run

    folder = tmp_path_factory.mktemp("browser")
    make_fake_run(folder / "run", agents=AGENTS, distortions=("gaussian_blur", "jpeg"), tasks=("pick", "push"))
    write_report(folder / "run")
    make_fake_run(folder / "other", agents=AGENTS, distortions=("jpeg", "white_noise"), tasks=("pick", "push"))
    CliRunner().invoke(app, ["compare", str(folder / "other"), str(folder / "run")], catch_exceptions=False)
    with open_record(folder / "run") as store:
        snapshots.store_snapshot(store, snapshots.of_trials(store.records()))
        site = write_site(snapshots.take(store), folder / "site", store).parent.as_uri()
    # an imported matrix beside it, with long names that differ at their ends
    scores = [
        ForeignScore(
            "mteb", f"jinaai__jina-embeddings-v5-text-nano-{agent:02d}", f"LongNameOfClassification{case}", score
        )
        for agent in range(40)
        for case in range(28)
        if (score := (7 * agent + 13 * case) % 101 / 100) < 0.97
    ]
    write_site(compute(Inputs([], scores), "mteb", 3), folder / "matrix")
    return site


class Visit:
    """A browser window of its own with its requests and errors; no request leaves the machine."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(stretched(60_000))
        self.context.route(lambda address: not is_local(address), lambda route: route.abort())
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def check(self) -> None:
        assert [address for address in self.requests if not is_local(address)] == []
        assert self.complaints == []


def is_local(address: str) -> bool:
    return address.startswith(("file:", "data:", "about:", "http://127.0.0.1:", "http://localhost:"))


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """A window of a desktop; the test fails if a request left the machine."""
    visit = Visit(browser, viewport={"width": 1280, "height": 900})
    yield visit
    visit.check()
    visit.context.close()


def names(page: Any) -> list[str]:
    """The row headings of the page's main table that can be seen, without their marks, from top to bottom."""
    seen = page.locator("table[data-filtered] tbody tr:visible > th").all()
    return [cell.inner_text().split("\n")[0].removesuffix(" floor") for cell in seen]


def unfold(page: Any) -> None:
    """Open everything that is folded away, so that it is looked at too."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


def test_a_request_that_leaves_the_machine_would_be_noticed(browser: Any) -> None:
    visit = Visit(browser)
    visit.page.set_content('<img src="http://192.0.2.1/pixel.png">', wait_until="load")
    with pytest.raises(AssertionError, match="pixel"):
        visit.check()
    visit.context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_page_opens_without_a_complaint_and_fits_a_phone(browser: Any, site: str, kind: str) -> None:
    for scheme in ("light", "dark"):
        visit = Visit(browser, viewport={"width": 360, "height": 740}, color_scheme=scheme)
        visit.page.goto(f"{site}/{kind}.html")
        unfold(visit.page)
        width = visit.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert width[0] <= width[1], f"{kind} is {width[0]} px wide"
        beyond = visit.page.evaluate(
            """() => [...document.querySelectorAll('main *')].filter((item) => innerWidth + 1
            < item.getBoundingClientRect().right && !item.closest('.scroll, .formula, .unseen')).length"""
        )
        assert beyond == 0
        paper = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(20, 22, 26)")
        assert all(visit.page.locator("img").evaluate_all("items => items.map(item => item.complete)"))
        visit.check()
        visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(browser: Any, site: str, scheme: str) -> None:
    """axe-core's rules on a page of every kind: wide and light, narrow and dark."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe (make develop)").Axe()
    narrow = scheme == "dark"
    visit = Visit(browser, viewport={"width": 360 if narrow else 1280, "height": 740}, color_scheme=scheme)
    for kind in KINDS:
        visit.page.goto(f"{site}/{kind}.html")
        unfold(visit.page)
        for opener in visit.page.locator("table.trials button.open").all()[:1]:
            opener.click()
        options = {"preload": False, "resultTypes": ["violations"]}  # other results: one node each, which is faster
        found = axe.run(visit.page, options=options).response["violations"]
        assert [(kind, item["id"], item["nodes"][0]["html"][:200]) for item in found] == []
    visit.check()
    visit.context.close()


def test_the_report_answers_on_the_first_screen_and_leads_to_pictures(browser: Any, site: str) -> None:
    """On a phone and without a script: rank and drop of every agent, and from the costliest distortion to its trial."""
    visit = Visit(browser, viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page = visit.page
    page.goto(f"{site}/../run/report.html")
    table = page.get_by_role("region", name="The agents")
    assert table.locator("tbody tr").count() == len(AGENTS)
    assert table.locator("tbody td:nth-child(3)").first.bounding_box()["y"] < 844
    assert page.locator("details[open]").count() <= 2, "the first cards alone"
    page.get_by_role("link", name="pictures of gaussian blur").click()
    card = page.get_by_role("article", name="gaussian blur, level 5")
    assert card.get_by_role("img", name="top camera, distorted image").is_visible(), "a link opens what it leads to"
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height < 14_000, f"{height} px to scroll"
    visit.check()
    visit.context.close()


def test_the_report_finds_a_failure(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/../run/report.html")
    count = page.locator("#trial-count").inner_text()
    assert re.match(r"\d+ of \d+, the first 25 are shown", count)
    page.get_by_label("Find").fill("no such thing")
    assert page.locator("#trial-count").inner_text().startswith("0 of ")
    page.get_by_label("Find").fill("servo.pick.0.jpeg.5")
    page.locator("table.trials button.open").focus()
    page.keyboard.press("Enter")
    picture = page.get_by_role("img", name="top camera, distorted, step 1").last
    picture.scroll_into_view_if_needed()
    page.wait_for_function("item => item.naturalWidth > 0", arg=picture.element_handle())
    page.locator("table.trials").get_by_role("button", name="level").click()
    assert page.locator("table.trials th[aria-sort]").inner_text() == "level"
    assert page.locator("table.trials tr.opened").count() == 0


def test_columns_sort_both_ways_and_the_address_remembers(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/index.html")
    ranked = names(page)
    assert page.locator("th[aria-sort]").inner_text() == "rank"
    signs = page.locator("table[data-filtered] thead button").evaluate_all(
        "items => items.map(item => getComputedStyle(item, '::before').content.replace(/[^↕↑↓]/g, '')[0])"
    )
    assert signs == ["↑", *"↕" * (len(signs) - 1)]
    assert sorted(ranked) == sorted(AGENTS)
    heading = page.locator("table[data-filtered]").get_by_role("columnheader", name="agent", exact=True)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert names(page) == sorted(AGENTS)
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert names(page) == sorted(AGENTS, reverse=True)
    assert page.locator("[aria-sort]").count() == 1
    page.reload()
    assert names(page) == sorted(AGENTS, reverse=True)
    rating = page.get_by_role("columnheader", name="rating", exact=True)
    rating.get_by_role("button").click()
    assert names(page) == ranked  # the best first
    rating.get_by_role("button").click()
    assert names(page) == ranked[::-1]  # numbers, not texts


def test_a_screen_shows_twenty_rows_and_a_phone_the_first(browser: Any, site: str) -> None:
    visit = Visit(browser, viewport={"width": 1440, "height": 900})
    ends = """() => [...document.querySelectorAll('table[data-filtered] tbody tr')].map(
        row => row.getBoundingClientRect().bottom)"""
    visit.page.goto(f"{site}/../matrix/index.html")
    assert sum(end <= 900 for end in visit.page.evaluate(ends)) >= 20
    visit.page.set_viewport_size({"width": 390, "height": 844})
    assert visit.page.evaluate(ends)[0] <= 844 / 2
    shown = visit.page.locator("table[data-filtered] tbody th").evaluate_all(
        "items => items.map(item => [item.innerText, item.scrollWidth <= item.clientWidth])"
    )
    assert len({name for name, _ in shown}) == 40
    assert all(is_whole for _, is_whole in shown)
    visit.page.goto(f"{site}/../matrix/boards.html")
    before = names(visit.page)
    visit.page.get_by_role("columnheader", name="LongNameOfClassification7", exact=True).get_by_role("button").click()
    assert names(visit.page) != before
    column = visit.page.locator("table[data-filtered] thead th").all_inner_texts().index("LongNameOfClassification7")
    best = visit.page.locator("table[data-filtered] tbody tr").first.locator("th, td").nth(column).inner_text()
    assert float(best) >= 90.0
    visit.check()
    visit.context.close()


def test_what_is_missing_stays_last_either_way(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/history.html")
    page.evaluate("""() => { const cell = document.querySelector('table[data-filtered] tbody tr td');
        cell.dataset.value = ''; cell.closest('tr').querySelector('th').textContent = 'missing'; }""")
    button = page.locator("table[data-filtered] thead th").nth(1).get_by_role("button")
    for _ in range(2):
        button.click()
        assert names(page)[-1] == "missing"


def test_cases_are_filtered_by_text_task_and_family(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/cases.html")
    everything = names(page)
    assert len(everything) == 22
    page.get_by_label("Task").select_option("pick")
    assert len(names(page)) == 11
    page.get_by_label("Distortion").select_option("blur")
    assert all(name.startswith("pick.0.gaussian_blur.") for name in names(page))
    page.get_by_label("Find").fill("BLUR.5")
    assert names(page) == ["pick.0.gaussian_blur.5"]
    assert page.get_by_role("status").inner_text() == "1 of 22 shown"
    page.reload()
    assert names(page) == ["pick.0.gaussian_blur.5"]
    assert page.get_by_label("Find").input_value() == "BLUR.5"
    page.get_by_role("button", name="Show all").click()
    assert names(page) == everything
    assert "#" not in page.url


def test_an_agent_and_a_case_are_found_by_keyboard_alone(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/index.html")
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    reach(page, "agent")
    page.keyboard.press("Enter")
    heading = page.locator("table[data-filtered]").get_by_role("columnheader", name="agent", exact=True)
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert names(page) == sorted(AGENTS, reverse=True)
    reach(page, "servo")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/servo.html")
    assert page.get_by_role("heading", level=1).inner_text() == "servo"
    reach(page, "push.0.jpeg.5")
    page.keyboard.press("Enter")
    page.wait_for_url("**/cases/push.0.jpeg.5.html")
    assert page.get_by_role("img", name="top camera, distorted image").is_visible()
    reach(page, "Ratings", back=True)
    page.keyboard.press("Enter")
    page.wait_for_url("**/ratings.html")
    reach(page, "The same as a table")
    page.keyboard.press("Enter")
    assert page.get_by_role("group", name="Histogram by likelihood").is_visible()


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.innerText || ''")).strip()


def reach(page: Any, text: str, back: bool = False) -> None:
    """Press Tab until the focus is on that text."""
    for _ in range(150):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if focused(page) == text:
            return
    raise AssertionError(f"Tab never came to {text!r}")


def test_the_theme_is_chosen_kept_and_told(visit: Visit, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/index.html")
    button = page.get_by_role("button", name="Dark mode")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.get_by_role("link", name="Methods", exact=True).first.click()
    page.wait_for_url("**/methods.html")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_role("button", name="Dark mode").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_without_scripts_the_pages_are_complete(browser: Any, site: str) -> None:
    visit = Visit(browser, java_script_enabled=False)
    visit.page.goto(f"{site}/cases.html")
    assert visit.page.locator("tbody tr").count() == 22
    assert not visit.page.locator("form.controls").is_visible()
    assert not visit.page.locator("#theme").is_visible()
    visit.page.locator("tbody th a").first.click()
    visit.page.wait_for_url("**/cases/*.html")
    visit.check()
    visit.context.close()


def test_colour_and_motion_are_not_needed(browser: Any, site: str) -> None:
    visit = Visit(browser, reduced_motion="reduce", forced_colors="active")
    visit.page.goto(f"{site}/cases/pick.0.jpeg.5.html")
    assert visit.page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    outcomes = visit.page.locator(".outcome").all_inner_texts()
    assert len(outcomes) == len(AGENTS)
    assert all(any(word in text for word in ("success", "failure", "stop", "fault")) for text in outcomes)
    visit.check()
    visit.context.close()
