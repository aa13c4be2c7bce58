"""Each protocol of `merton people` done end to end in Chromium by scripted raters, and its numbers computed twice.

    python tools/studies/people_trial.py OUT [--items 100] [--protocol quality ...]

Five raters of different skill work at once, each in a browser of their own: one closes it in the middle and comes back,
one sends answers twice and works in two tabs, one takes answers back, one is careless. They see the page alone; the
script knows the truth of an item from the record, by rater and number, and writes down each answer that it gave.

At the end every answer is in the record once, and the agreement that `merton people stats` states is compared with one
that is computed here from the script's own list: Krippendorff's alpha by its definition, over all pairs of ratings.
OUT/trial.json has the numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

from trial_material import MATERIAL

from merton.progress import unseen
from merton.seeding import generator
from merton_studies.people.item import Item
from merton_studies.people.ledger import Ledger, Slot
from merton_studies.people.project import read_project
from merton_studies.people.protocols import protocol_named
from merton_studies.people.sources import items_of
from merton_studies.people.statistics import summary

SKILLS = {"Ada": 0.95, "Ben": 0.9, "Cyd": 0.85, "Dan": 0.8, "Eve": 0.0}
"""Rater to the share of answers that are the truth; the others are drawn. Eve is careless."""
LEAVES, TWICE, TAKES_BACK, CARELESS = "Ben", "Cyd", "Dan", "Eve"
LIMIT_S = 60.0
NUMBER = "performance.getEntriesByName('merton-shown').at(-1)?.detail ?? 0"
READY = f"""last => {{
  const [work, title] = ['work', 'message-title'].map(id => document.getElementById(id));
  if (work.hidden) return ['Done', 'This study has ended for you'].includes(title.textContent) && 'done';
  return !document.getElementById('form').inert && ({NUMBER}) !== last && ({NUMBER});
}}"""


@dataclass
class Script:
    """The answers that the script gave: (rater, number) to the plain answer; times between items [ms]; pseudonyms."""

    given: dict[tuple[str, int], Any] = field(default_factory=dict)
    waits_ms: list[float] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)


class Truth:
    """The truth of what a rater sees, from the record."""

    def __init__(self, project: Path) -> None:
        loaded = read_project(project)
        self.project = loaded.project
        self.protocol = protocol_named(loaded.project.protocol)
        self.items = {item.id: item for item in items_of(loaded, unseen)}
        self.record = loaded.record
        self._slots: dict[tuple[str, int], Slot] = {}

    def slot(self, rater: str, number: int) -> Slot:
        if (rater, number) not in self._slots:
            with Ledger(self.record, self.project.name) as ledger:
                self._slots = {(slot.rater, slot.number): slot for slot in ledger.slots()}
        return self._slots[rater, number]

    def item(self, rater: str, number: int) -> Item:
        """As the rater's page shows it."""
        slot = self.slot(rater, number)
        return self.protocol.shown(self.items[slot.item], slot, self.project.seed)


async def rate(name: str, browser: Any, address: str, truth: Truth, script: Script, fill: Any, items: int) -> None:
    """One rater's work from registration to the page that says it is done."""
    rng = generator("trial", name)
    context = await browser.new_context(viewport={"width": 390 if name == "Cyd" else 1280, "height": 900})
    page = await arrive(context, address, name)
    rater = (await page.locator("#who").inner_text()).removeprefix("You are ")
    script.ids[name] = rater
    last, left, count = 0, False, 0
    while True:
        began = time.monotonic()
        found = await until(page, READY, last)
        if found == "done":
            break
        script.waits_ms.append((time.monotonic() - began) * 1000)
        last, count = int(found), count + 1
        if name == LEAVES and not left and count > items // 4:
            await context.close()  # in the middle of an item
            context, left = await browser.new_context(), True
            page, last = await arrive(context, address, name), 0
            continue
        item = truth.item(rater, last)
        knows = rng.random() < SKILLS.get(name, 1.0)
        answer = await fill(page, item, knows, rng, name)
        if name == TWICE and count % 7 == 0:
            await page.keyboard.press("Enter")
            await page.keyboard.press("Enter")
        else:
            await page.keyboard.press("Enter")
        script.given[rater, last] = answer
        if name == TAKES_BACK and count % 20 == 0 and not truth.protocol.ordered:  # there the next person has seen it
            await until(page, READY, last)
            await page.locator("#undo").click()
            await until(page, f"number => ({NUMBER}) === number", last)
            script.given[rater, last] = await fill(page, item, knows, rng, name)
            await page.keyboard.press("Enter")
        if name == TWICE and count == items // 3:
            page = await arrive(context, address, name)  # the first tab stays open
            last = 0
    await context.close()


async def until(page: Any, expression: str, argument: Any = None) -> Any:
    """The first true value of a JavaScript function; playwright's own wait is refused by the page's security policy."""
    end_s = time.monotonic() + LIMIT_S
    while not (value := await page.evaluate(expression, argument)):
        assert time.monotonic() < end_s, f"{await page.locator('body').inner_text()}\nnothing came of {expression}"
        await asyncio.sleep(0.005)
    return value


async def arrive(context: Any, address: str, name: str) -> Any:
    page = await context.new_page()
    await page.goto(address)
    await until(page, "() => document.getElementById('message-title').textContent !== 'Loading'")
    if await page.locator("#register").is_visible():
        await page.locator("#name").fill(name)
        await page.locator("#register button").click()
    await until(
        page, "() => !document.getElementById('work').hidden || !document.getElementById('message-buttons').hidden"
    )
    if await page.locator("#begin").is_visible():
        await page.locator("#begin").click()
    return page


def alpha(table: Sequence[Sequence[Any]], distance: Callable[[Any, Any], float]) -> float:
    """Krippendorff's alpha by its definition: 1 - observed / expected disagreement of all pairs of ratings."""
    rated = [row for row in table if len(row) > 1]
    values = [value for row in rated for value in row]
    observed = sum(distance(a, b) / (len(row) - 1) for row in rated for a, b in permutations(row, 2)) / len(values)
    expected = sum(distance(a, b) for a, b in permutations(values, 2)) / (len(values) * (len(values) - 1))
    return 1.0 - observed / expected


def checked(folder: Path, truth: Truth, script: Script) -> dict[str, Any]:
    """The record against the script's list, and the stated alpha of each criterion against one computed here."""
    with Ledger(truth.record, truth.project.name) as ledger:
        stored = {(one.rater, one.number): one for one in ledger.answers()}
        slots = {(slot.rater, slot.number): slot for slot in ledger.slots()}
    values = {key: plain(truth, truth.items[slots[key].item], one.answer) for key, one in stored.items()}
    wrong = [key for key in stored.keys() | script.given.keys() if values.get(key) != script.given.get(key)]
    with Ledger(truth.record, truth.project.name) as ledger:
        text = summary(truth.project, list(truth.items.values()), truth.protocol, ledger.answers()).as_json()
    (folder / "stats.json").write_text(text)
    stats = json.loads(text)
    found: dict[str, Any] = {
        "items": len(truth.items), "answers": len(stored), "given": len(script.given), "not as given": len(wrong),
        "careless": script.ids[CARELESS],
        "marked": [one["rater"] for one in stats["raters"] if one["marks"]], "alpha": {},
    }  # fmt: skip
    for agreement in stats["agreements"]:
        criterion, rows = agreement["criterion"], defaultdict(list)
        for key in sorted(script.given):
            if slots[key].kind in ("design", "turn") and criterion in script.given[key]:
                rows[slots[key].item].append(script.given[key][criterion])
        distance = DISTANCES[agreement["scale"]](rows)
        own = alpha(list(rows.values()), distance) if any(len(row) > 1 for row in rows.values()) else None
        found["alpha"][criterion] = {"stated": agreement["alpha"]["value"], "own": own}
    return found


def plain(truth: Truth, item: Item, answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as the script writes it down: its values, or the texts of a task or of a review."""
    if "tasks" in answer:
        return {"tasks": [task["text"] for task in answer["tasks"]]}
    return {"task": answer["task"]} if "task" in answer else truth.protocol.values(item, answer)


def _ordinal(rows: Mapping[str, Sequence[float]]) -> Callable[[Any, Any], float]:
    """Krippendorff's ordinal distance: the ratings that lie between two values, the ends by half, squared."""
    counts: dict[float, int] = defaultdict(int)
    for row in rows.values():
        for value in row if len(row) > 1 else ():
            counts[value] += 1

    def distance(a: float, b: float) -> float:
        low, high = min(a, b), max(a, b)
        between = sum(count for value, count in counts.items() if low <= value <= high)
        return float((between - (counts[low] + counts[high]) / 2) ** 2)

    return distance


DISTANCES: dict[str, Callable[[Any], Callable[[Any, Any], float]]] = {
    "nominal": lambda rows: lambda a, b: float(a != b),
    "ordinal": _ordinal,
    "interval": lambda rows: lambda a, b: (a - b) ** 2,
}
MERTON = [sys.executable, "-m", "merton"]


async def run(protocol: str, folder: Path, items: int) -> dict[str, Any]:
    """The trial of one protocol."""
    from playwright.async_api import async_playwright

    project, fill = MATERIAL[protocol](folder, items)
    subprocess.run([*MERTON, "people", "check", str(project)], check=True, stdout=subprocess.DEVNULL)
    truth, script = Truth(project), Script()
    server = subprocess.Popen(
        [*MERTON, "people", "serve", str(project), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = next(line for line in server.stdout if "http://" in line).split()[-1]
        began = time.monotonic()
        async with async_playwright() as driver:
            names = [*SKILLS, *truth.project.experts]
            path = shutil.which("chromium")
            browser = await driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
            await asyncio.gather(*(rate(name, browser, address, truth, script, fill, items) for name in names))
            await browser.close()
        took_s = time.monotonic() - began
    finally:
        server.terminate()
        server.wait()
    waits = sorted(script.waits_ms)
    return {
        "protocol": protocol,
        **checked(folder, truth, script),
        "seconds": round(took_s, 1),
        "next item, median ms": round(waits[len(waits) // 2], 1),
    }


def main() -> int:
    """Run the trials; exit code 1 if an answer is missing, doubled or altered, or an alpha differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--items", type=int, default=100, help="of each protocol, about")
    parser.add_argument("--protocol", action="append", choices=sorted(MATERIAL), help="by default all")
    arguments = parser.parse_args()
    found = []
    for protocol in arguments.protocol or sorted(MATERIAL):
        found.append(asyncio.run(run(protocol, arguments.out / protocol, arguments.items)))
        print(json.dumps(found[-1]), flush=True)
    (arguments.out / "trial.json").write_text(json.dumps(found, indent=1) + "\n")
    bad = [
        one for one in found
        if one["not as given"]
        or any(pair["own"] is not None and abs(pair["own"] - pair["stated"]) > 1e-9 for pair in one["alpha"].values())
    ]  # fmt: skip
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
