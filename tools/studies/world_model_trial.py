"""The world-model track done in Chromium by scripted annotators, and its board beside one that is computed here.

    python tools/studies/world_model_trial.py OUT [--tasks 8] [--videos 10] [--plan same|different]

Three annotators score the videos of two teams at once, each in a browser of their own, one of them in Chinese; the
team beta has not submitted the last video of each task. `same`: all three score the same videos; `different`: each has
videos of its own, so three times as many of a task. The script writes down each score that it gave, and computes the
board from this list alone: task = sum over videos of their mean score / real videos, total = mean of the tasks.
OUT/trial.json has the numbers; exit code 1 if a cell of `merton people board` differs, or an answer.
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
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from people_trial import MERTON, READY, Truth, arrive, until
from trial_material import OF_SCORE, film, write_project

from merton.seeding import generator
from merton_studies.people.examples.drawing import episode
from merton_studies.people.ledger import Ledger

ANNOTATORS = ("Ada", "Ben", "Cyd")
CHINESE = "Cyd"
TASKS = (
    "put the banana in the basket", "stack the bowls", "open the lid", "press the bell", "insert the ear",
    "pull the drawer", "fold the cloth", "pour the beads",
)  # fmt: skip
Given = dict[tuple[str, str], int]
"""(annotator, item) to the score."""


def write_material(folder: Path, tasks: int, videos: int, ratings: int) -> Path:
    """The project of `tasks` tasks with `videos` real videos each; returns its file."""
    for place, task in enumerate(TASKS[:tasks]):
        for video in range(videos):
            name, seed = f"video-{video:02d}", 100 * place + video
            film(folder / "videos" / "reference" / task / name, episode(seed, "right")[::3])
            for number, team in enumerate(("alpha", "beta")):
                if team == "alpha" or video < videos - 1:
                    motion = OF_SCORE[(video + place * (1 + number)) % 4][0]
                    film(folder / "videos" / team / task / name, episode(seed, motion)[::3])
    items = {"videos": {"folder": "videos"}}
    return write_project(folder, "episodes", items, raters=len(ANNOTATORS), ratings=ratings, repeats=0.05)


async def annotate(name: str, browser: Any, address: str, truth: Truth, given: Given) -> None:
    """One annotator's work, from registration to the page that says it is done."""
    rng = generator("world model trial", name)
    page = await arrive(await browser.new_context(viewport={"width": 1280, "height": 900}), address, name)
    rater = (await page.locator("#who").inner_text()).removeprefix("You are ")
    last = 0
    while (found := await until(page, READY, last)) != "done":
        if name == CHINESE and not last:
            await page.locator(".language select").select_option("zh")
            assert "您的评分" in await page.locator("#form").inner_text()
        last, score = int(found), int(rng.integers(4))
        slot = truth.slot(rater, last)
        for key in f"{OF_SCORE[score][1]}{score}":
            await page.keyboard.press(key)
        if slot.kind == "design":  # the first score of a video is the one that counts
            given[rater, slot.item] = score
        await page.keyboard.press("Enter")
    assert name != CHINESE or await page.evaluate("localStorage.getItem('merton-language')") == "zh"
    await page.context.close()


def computed(given: Given, tasks: int, videos: int) -> dict[str, list[Fraction]]:
    """Team to the scores of its tasks, and their mean last."""
    of_video: dict[str, list[int]] = defaultdict(list)
    for (_, item), score in given.items():
        of_video[item].append(score)
    sums: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for item, scores in of_video.items():
        team, task, _ = item.split("/")
        sums[team, task] += Fraction(sum(scores), len(scores))
    found = {team: [sums[team, task] / videos for task in sorted(TASKS[:tasks])] for team in ("alpha", "beta")}
    return {team: [*cells, sum(cells, Fraction()) / tasks] for team, cells in found.items()}


def compared(board: Mapping[str, Any], own: Mapping[str, list[Fraction]]) -> int:
    """Number of cells and totals of the board that differ from those computed here by more than its rounding."""
    stated = {row["agent"]: [*(cell["score"] for cell in row["cells"]), row["total"]["score"]] for row in board["rows"]}
    pairs = [pair for team, cells in own.items() for pair in zip(cells, stated[team], strict=True)]
    return sum(there is None or abs(float(here) - there) > 1e-6 for here, there in pairs)


async def run(out: Path, tasks: int, videos: int, ratings: int) -> dict[str, Any]:
    """The trial: the numbers of trial.json."""
    from playwright.async_api import async_playwright

    project = write_material(out, tasks, videos, ratings)
    subprocess.run([*MERTON, "people", "check", str(project)], check=True)
    truth, given, began = Truth(project), Given(), time.monotonic()
    command = [*MERTON, "people", "serve", str(project), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = next(line for line in server.stdout if "http://" in line).split()[-1]
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            await asyncio.gather(*(annotate(name, browser, address, truth, given) for name in ANNOTATORS))
            await browser.close()
    finally:
        server.terminate()
        server.wait()
    took_s = time.monotonic() - began
    subprocess.run([*MERTON, "people", "board", str(project), "--out", str(out / "board.json")], check=True)
    (board,) = json.loads((out / "board.json").read_bytes())["boards"]
    with Ledger(truth.record, truth.project.name) as ledger:
        stored = {(one.rater, one.item): one.answer["score"] for one in ledger.answers() if one.kind == "design"}
        answers = len(ledger.answers())
    own = computed(given, tasks, videos)
    loads: dict[tuple[str, ...], int] = defaultdict(int)
    for rater, item in given:
        loads[(rater, *item.split("/")[:2])] += 1
    return {
        "tasks": tasks, "videos": videos, "ratings": ratings, "answers": answers, "scores": len(given),
        "not as given": sum(stored.get(key) != given.get(key) for key in stored.keys() | given.keys()),
        "most videos of an annotator, team and task": max(loads.values()),
        "cells that differ": compared(board, own),
        "totals": {team: float(cells[-1]) for team, cells in own.items()},
        "seconds": round(took_s, 1),
    }  # fmt: skip


def main() -> int:
    """Run the trial; exit code 1 if an answer or a cell differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", type=int, default=len(TASKS), choices=range(1, len(TASKS) + 1))
    parser.add_argument("--videos", type=int, default=10, help="of an annotator, team and task")
    parser.add_argument("--plan", choices=("same", "different"), default="same", help="of the three annotators' videos")
    arguments = parser.parse_args()
    different = arguments.plan == "different"
    videos = arguments.videos * (len(ANNOTATORS) if different else 1)
    found = asyncio.run(run(arguments.out, arguments.tasks, videos, 1 if different else len(ANNOTATORS)))
    (arguments.out / "trial.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))
    return int(bool(found["not as given"] or found["cells that differ"]))


if __name__ == "__main__":
    sys.exit(main())
