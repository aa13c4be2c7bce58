"""Material of known truth for `people_trial.py`, and how its scripted raters fill in each form by keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from merton.config import dumps
from merton.perception.distortion import distort
from merton.perception.images import encode_image
from merton.results.csv_writer import write_csv
from merton.seeding import generator
from merton_studies.people.examples import labels as label_material
from merton_studies.people.examples import run as run_material
from merton_studies.people.examples.drawing import Motion, episode, table
from merton_studies.people.item import Item

Rng = np.random.Generator
CONTENDERS = {"coarse": 4, "plain": 0, "soft": 2}
"""Name of a picture to its level of blur; the better one comes first in some pairs, and second in others."""
OF_RATER = {"Ada": "Pick the red", "Ben": "Push the green", "Cyd": "Pull the blue", "Dan": "Press the yellow",
            "Eve": "Cover the small"}  # fmt: skip
"""Rater to the beginning of the tasks that it writes, so that no two of an image are alike."""
OF_SCORE: tuple[tuple[Motion, str], ...] = (("wild", "nm"), ("elsewhere", "n"), ("stretched", "yd"), ("right", "y"))
"""Of each score the motion that deserves it, and the keys that say what was seen."""
SCENARIOS = ("Household", "Grocery", "School", "Office", "Warehouse", "Hospital", "Workshop", "Laboratory")


def write_project(folder: Path, protocol: str, items: dict[str, Any], **more: Any) -> Path:
    """The project file; returns it."""
    about = {
        "name": f"trial-{protocol}", "title": f"Trial of {protocol}", "protocol": protocol, "items": items,
        "raters": 5, "ratings": 3, "repeats": 0.1, "seed": 7, "instructions": "As the script says.",
        "attention": {"least_s": 0.0}, **more,  # a script needs no time to think
    }  # fmt: skip
    (folder / "project.yaml").write_text(dumps(about))
    return folder / "project.yaml"


def picture(file: Path, image: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_image(image))


def noisy(seed: int, level: int) -> Any:
    """A drawn table; level 0 is undistorted."""
    image = table(seed)
    return distort(image, "gaussian_blur", level, generator("trial", seed)) if level else image


def quality(folder: Path, items: int) -> tuple[Path, Any]:
    for seed in range(items // 5):
        for level in range(5):
            picture(folder / "pictures" / f"scene-{seed:03d}" / f"level-{level}.png", noisy(seed, level))
    project = write_project(folder, "quality", {"images": {"folder": "pictures"}})

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        level = int(item.id.rsplit("level-", 1)[1][0])
        score = 5 - level if knows else int(rng.integers(1, 6))
        await page.keyboard.press(str(score))
        return {"quality": float(score)}

    return project, fill


def pairs(folder: Path, items: int) -> tuple[Path, Any]:
    for seed in range(-(-items // 3)):
        for name, level in CONTENDERS.items():
            picture(folder / "pictures" / f"scene-{seed:03d}" / f"{name}.png", noisy(seed, level))
    project = write_project(folder, "pairs", {"images": {"folder": "pictures"}})

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        better = min(("a", "b"), key=lambda side: CONTENDERS[item.facts[side].removesuffix(".png")])
        choice = better if knows else str(rng.choice(["a", "b", "tie", "both_bad"]))
        left = item.facts["left"]
        await page.keyboard.press({"tie": "3", "both_bad": "4"}.get(choice) or ("1" if choice == left else "2"))
        return {"choice": choice}

    return project, fill


def labels(folder: Path, items: int) -> tuple[Path, Any]:
    label_material.SCENES = each = -(-items // 6)
    label_material.write_labels(folder / "questions")
    project = write_project(folder, "labels", {"curation": {"folder": "questions", "per_dimension": 2 * each}})

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        right = item.facts["question"].startswith(item.facts["dimension"].lower())
        verdict = ("yes" if right else "no") if knows else str(rng.choice(["yes", "no"]))
        await page.keyboard.press(verdict[0])
        return {"verdict": verdict}

    return project, fill


def likert(folder: Path, items: int) -> tuple[Path, Any]:
    rows = []
    for place, scenario in enumerate(SCENARIOS):
        film(folder / "videos" / scenario, episode(place, "right"))
        for model in range(-(-items // len(SCENARIOS))):
            plan = f"1. Look. 2. Do step {model} of the plan for {scenario}."
            rows.append((f"model-{model:02d}", scenario, f"videos/{scenario}", "Tidy up.", plan))
    write_csv(folder / "outputs.csv", ("model", "scenario", "video", "instruction", "plan"), rows)
    project = write_project(folder, "likert", {"outputs": {"table": "outputs.csv"}})

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        true = 1 + int(item.facts["model"].rsplit("-", 1)[1]) * 5 * len(SCENARIOS) // (items + len(SCENARIOS))
        names = await page.evaluate(
            "[...document.querySelectorAll('#form .criterion')].map(box => box.querySelector('input').name)"
        )
        marks = [min(true, 5) if knows else int(rng.integers(1, 6)) for _ in names]
        for mark in marks:
            await page.keyboard.press(str(mark))
        return {name.rsplit("-", 1)[0]: float(mark) for name, mark in zip(names, marks, strict=True)}

    return project, fill


def tasks(folder: Path, items: int) -> tuple[Path, Any]:
    for seed in range(items):
        picture(folder / "pictures" / f"table-{seed:03d}.png", table(seed))
    more = {"experts": ["Expert"], "ratings": 5, "repeats": 0.0}
    project = write_project(folder, "tasks", {"images": {"folder": "pictures"}}, **more)

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        if name == "Expert":
            first = page.locator(".ranking .handle").first
            await first.press("ArrowDown")  # the first two tasks change places
            await page.keyboard.press("a")
            texts = await page.locator(".ranking .task > :first-child").evaluate_all("all => all.map(one => one.value)")
            return {"tasks": texts}
        for tag in ("domain", "perspective", "object", "background"):
            choice = page.locator(f"#form select[name^={tag}-]")
            if not await choice.input_value():
                await choice.select_option(index=1)
        task = f"{OF_RATER[name]} block beside the bowl"
        await page.locator("#form .writer input").first.fill(task)
        return {"task": task}

    return project, fill


def episodes(folder: Path, items: int) -> tuple[Path, Any]:
    known = {}
    for task in range(1, 9):
        for video in range(-(-items // 16)):
            seed, name = 100 * task + video, f"video-{video:02d}"
            film(folder / "videos" / "reference" / f"task{task}" / name, episode(seed, "right"))
            for number, team in enumerate(("alpha", "beta")):
                known[team, f"task{task}", name] = score = (video + task * (1 + number)) % 4
                film(folder / "videos" / team / f"task{task}" / name, episode(seed, OF_SCORE[score][0]))
    project = write_project(folder, "episodes", {"videos": {"folder": "videos"}})

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        score = known[item.facts["team"], item.facts["task"], item.facts["video"]]
        if not knows:
            score = int(rng.integers(4))
        keys = OF_SCORE[score][1]
        for key in f"{keys}{score}":
            await page.keyboard.press(key)
        return {"score": float(score), "outcome": "same" if keys.startswith("y") else "other"}

    return project, fill


def trials(folder: Path, items: int) -> tuple[Path, Any]:
    scenes = -(-items // 2)
    motions = ("right", "elsewhere", "right", "still")
    run_material.AGENTS = {"servo": (motions * scenes)[:scenes], "hold": ("still",) * scenes}
    folder.mkdir(parents=True, exist_ok=True)
    run_material.write_run(folder / "run")
    project = write_project(folder, "trials", {"run": {"run": "run", "rate_hz": 5.0}})

    async def fill(page: Any, item: Item, knows: bool, rng: Rng, name: str) -> Any:
        verdict = item.facts["recorded"] if knows else str(rng.choice(["success", "failure"]))
        await page.keyboard.press({"success": "1", "failure": "2"}[verdict])
        return {"success": verdict}

    return project, fill


def film(folder: Path, pictures: list[Any]) -> None:
    for number, image in enumerate(pictures):
        picture(folder / f"{number:02d}.png", image)


MATERIAL: dict[str, Callable[[Path, int], tuple[Path, Any]]] = {
    "episodes": episodes,
    "labels": labels,
    "likert": likert,
    "pairs": pairs,
    "quality": quality,
    "tasks": tasks,
    "trials": trials,
}
"""Protocol to a function that writes a project into a folder, and returns it with the function that fills in a form."""
