"""Studies of every protocol whose items have names that must stay on the server, and texts that look like markup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from merton_studies.people.desk import Desk
from merton_studies.people.item import Item, Medium
from merton_studies.people.ledger import Ledger
from merton_studies.people.media.image import prepare_image
from merton_studies.people.media.reel import reel_of_pictures
from merton_studies.people.project import Project
from merton_studies.people.protocols import protocol_named
from merton_studies.people.study import Study

SECRET = "grasp-o-matic"
"""In each id, fact, file and folder of these studies."""
NAMES = ("Grace Hopper", "Katherine Johnson", "Mary Shaw")
HOSTILE = "<img src=x onerror=alert(1)>\u202e'; DROP TABLE x; -- "
"""At the beginning of each text that raters see."""
SOURCES: dict[str, dict[str, Any]] = {
    "quality": {"images": {"folder": SECRET}},
    "pairs": {"images": {"folder": SECRET}},
    "tasks": {"images": {"folder": SECRET}},
    "labels": {"curation": {"folder": SECRET}},
    "likert": {"outputs": {"table": f"{SECRET}.csv"}},
    "episodes": {"videos": {"folder": SECRET}},
    "trials": {"run": {"run": SECRET}},
}
KINDS = {
    "quality": {"image": "image"},
    "pairs": {"a": "image", "b": "image"},
    "tasks": {"image": "image"},
    "labels": {"image": "image"},
    "likert": {"video": "reel"},
    "episodes": {"reference": "reel", "video": "reel"},
    "trials": {"video": "reel"},
}
FACTS = ("agent", "assigned", "case", "dimension", "distortion", "file", "image", "model", "question", "recorded")
FACTS += ("reference", "run", "scenario", "task", "team", "trial", "video")
TEXTS = ("definition", "instruction", "plan", "question", "title")


def secret_study(folder: Path, protocol: str) -> Study:
    """Six items of three scenes for three raters, with prepared media of its own."""
    place = folder / SECRET
    rules = protocol_named(protocol)
    tasks = protocol == "tasks"
    project = Project(
        name="blind",
        title=f"{HOSTILE} title",
        protocol=protocol,  # type: ignore[arg-type]
        items=SOURCES[protocol],  # type: ignore[arg-type]
        raters=5 if tasks else 3,
        ratings=5 if tasks else 3,
        instructions=f"{HOSTILE} instructions",
        contact=f"{HOSTILE} contact",
    )
    items = [_item(place, KINDS[protocol], number) for number in range(6)]
    place.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(place / "people.sqlite", project.name, "{}")
    desk = Desk(project, items, rules, ledger)
    return Study(project, place, "{}", "0" * 64, tuple(items), rules, ledger, desk)


def _item(place: Path, kinds: dict[str, str], number: int) -> Item:
    media = {role: _medium(place, role, kind, 10 * number + at) for at, (role, kind) in enumerate(kinds.items())}
    facts = {name: f"{SECRET} {name} {number % 2}" for name in FACTS} | {"real_videos": "4"}
    texts = {name: f"{HOSTILE} {name} {number}" for name in TEXTS}
    return Item(f"{SECRET}/{number}.png", f"{SECRET} scene {number // 2}", media, texts, facts)


def _medium(place: Path, role: str, kind: str, seed: int) -> Medium:
    picture = np.random.default_rng(seed).integers(0, 256, (24, 32, 3), np.uint8)
    if kind == "image":
        return Medium(role, "image", *prepare_image(picture, place))
    reel = reel_of_pictures([picture, picture[::-1].copy()], 10.0, place)
    return Medium(role, "reel", reel.file, reel.width_px, reel.height_px, reel.frames, reel.rate_hz)
