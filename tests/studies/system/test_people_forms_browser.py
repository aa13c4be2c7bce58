"""The forms of tasks and episodes in a browser, without a server: they let through what the rules say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import merton_studies.people
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocols.episodes import DEFECTS, Episodes, suggested
from merton_studies.people.protocols.tasks import Tasks
from merton_studies.people.protocols.tasks_chain import cleaned, handled, task_fault

pytest.importorskip("playwright.sync_api", reason="playwright is not installed (make develop)")


PAGE = Path(merton_studies.people.__file__).parent / "serve" / "page"
HERE = "http://forms.test"
TAGS = {"domain": "real", "perspective": "third_person", "object": "block", "background": "table"}
HOSTILE = "Pick the <img src=x onerror=window.harmed=1> cube"
TASKS = (
    "Push the red cube to the left",
    HOSTILE,
    "Place the cup on the mat",
    "Cover the peg with the lid",
    "Pour the bottle into the bowl",
)
TEXTS = (
    *TASKS,
    "Press and hold the button",
    "Pull the drawer open",
    "Pick up a Ball from under the table",
    "Grab the cube",
    "Pick cube",
    "Pick " + "very " * 15 + "high cube",
    "Push  the\tcube",
    "",
)
SHOW = """async ([name, make, view]) => {
  const form = await import(`/protocols/${name}.js`);
  const root = document.createElement("section");
  root.className = "question";
  document.body.replaceChildren(root);
  const player = (parent) => parent.append(document.createElement("canvas"));
  const tools = { changed() {}, submit() {}, say() {}, player, image: () => new Image() };
  const medium = { kind: "image" };
  const media = { image: medium, reference: { kind: "reel" }, video: { kind: "reel" } };
  window.form = form[make](root, { number: 1, view, media }, tools);
}"""


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    """An empty page that finds the modules of the forms."""
    page = browser.new_page()

    def answer(route: Any) -> None:
        name = route.request.url.removeprefix(HERE).lstrip("/")
        if name:
            route.fulfill(path=PAGE / name, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><title>forms</title>", content_type="text/html")

    page.route(f"{HERE}/**", answer)
    page.goto(f"{HERE}/")
    yield page
    page.close()


def said(count: int) -> list[Answer]:
    answers = [{"tags": TAGS, "task": task, "reason": "", "flag": None} for task in TASKS[:count]]
    return [
        Answer(f"a{place}", f"R{place}", 1, "a.png", "turn", answer, 1.0, f"2026-11-01T10:00:0{place}Z")
        for place, answer in enumerate(answers)
    ]


def read(page: Any) -> Any:
    return page.evaluate("form.read()")


ITEM = Item("a.png", "a", facts={"file": "a.png"})


def test_the_page_and_the_server_have_the_same_rules(page: Any) -> None:
    view = Tasks().view(ITEM, said(0))
    of_page = """async ([view, texts]) => {
      const rules = await import("/protocols/tasks_rules.js");
      return texts.map((text) => [Object.values(rules.handled(text)), rules.fault(view, rules.cleaned(text), [])]);
    }"""
    found = page.evaluate(of_page, [view, list(TEXTS)])
    assert found == [[list(handled(text)), task_fault(cleaned(text)) or ""] for text in TEXTS]
    cases = [(same, list(some)) for same in (True, False) for n in range(5) for some in combinations(DEFECTS, n)]
    of_page = """async (cases) => {
      const { suggested } = await import("/protocols/episodes.js");
      return cases.map(([same, defects]) => suggested(same, defects));
    }"""
    assert page.evaluate(of_page, cases) == [suggested(same, defects) for same, defects in cases]


def test_a_task_is_written_by_keys_and_others_are_shown_as_text(page: Any) -> None:
    page.evaluate(SHOW, ["tasks", "show", Tasks().view(ITEM, said(2))])
    assert page.locator(".so-far li").all_inner_texts() == list(TASKS[:2])
    assert page.evaluate("window.harmed") is None
    page.locator("[name=flag-1]").first.focus()
    page.keyboard.press("9")
    page.keyboard.type("the red cube away")
    assert read(page) is None, "the same verb and thing need a reason"
    page.get_by_label("Why it is another task").fill("it is further")
    answer = {"task": "Push the red cube away", "reason": "it is further", "tags": TAGS, "flag": None}
    assert read(page) == answer
    page.get_by_label("Task 3").fill("pour the cup into the bowl")
    assert read(page) == {**answer, "task": "Pour the cup into the bowl", "reason": ""}
    page.get_by_label("Task 3").fill(TASKS[0])
    assert read(page) is None, "it is there already"
    page.get_by_label("No further, harder task").check()
    assert read(page) == {"tags": None, "task": "", "reason": "", "flag": "no_task"}


def test_the_expert_orders_by_digits_arrows_and_dragging_and_edits(page: Any) -> None:
    page.evaluate(SHOW, ["tasks", "review", Tasks().review_view(ITEM, said(5))])
    assert read(page) is None, "nothing is decided yet"
    page.locator(".handle").first.focus()
    page.keyboard.press("3")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("a")
    places = [task["place"] for task in read(page)["tasks"]]
    assert places == [1, 0, 2, 3, 4]
    last, first = (page.locator(".handle").nth(place).bounding_box() for place in (4, 0))
    page.mouse.move(last["x"] + 5, last["y"] + 5)
    page.mouse.down()
    page.mouse.move(first["x"] + 5, first["y"] - 5, steps=20)
    page.mouse.up()
    page.locator(".ranking textarea").first.fill("Pour the bottle into the small bowl")
    tasks = read(page)["tasks"]
    assert [task["place"] for task in tasks] == [4, 1, 0, 2, 3]
    assert tasks[0]["text"] == "Pour the bottle into the small bowl"
    assert f"as “{TASKS[4]}”" in page.locator(".ranking li").first.inner_text()
    assert page.evaluate("window.harmed") is None


def test_the_expert_sends_back_named_tasks_with_a_reason(page: Any) -> None:
    page.evaluate(SHOW, ["tasks", "review", Tasks().review_view(ITEM, said(5))])
    page.locator(".handle").first.focus()
    page.keyboard.press("b")
    page.get_by_label("Why (the subjects read it)").fill("too far away")
    assert read(page) is None, "no task is named"
    page.get_by_label("Task 2: write it again").check()
    found = read(page)
    assert (found["decision"], found["places"], found["reason"]) == ("back", [1], "too far away")


def test_what_is_seen_suggests_a_score_that_the_annotator_decides(page: Any) -> None:
    item = Item("t", "t", texts={"instruction": HOSTILE}, facts={"team": "t", "task": "task1", "video": "v"})
    page.evaluate(SHOW, ["episodes", "show", Episodes().view(item, ())])
    assert HOSTILE in page.locator(".question").inner_text()
    page.locator("[name=outcome-1]").first.focus()
    for key in "nm":
        page.keyboard.press(key)
    assert "suggests 0" in page.locator(".beside-videos").inner_text()
    assert read(page) is None, "a suggestion is no score"
    page.keyboard.press("1")
    assert read(page) == {"score": 1, "same_outcome": False, "defects": ["other_motion"]}
    assert page.evaluate("window.harmed") is None
