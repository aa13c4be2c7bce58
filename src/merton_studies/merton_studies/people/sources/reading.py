"""The items of a project, read from its source; their media are prepared on the way.

Beside its scene, media and texts each item has facts, by which exports and statistics know it:

    quality    image, reference (id of the item with the reference picture, "" for itself), distortion, level; of a
               dataset also reference_id, which together with distortion and level is the key of its other tables
    pairs      a, b: the contenders; case: what both had to do or show; of a run also run
    labels     question, dimension, assigned (yes or no); with an agent's suggestion also suggestion, hidden
    likert     model, scenario
    trials     run, trial, agent, task, recorded (success, failure, or "" for a trial without a verdict)
    episodes   team, task, video, real_videos (of the task); of a run also run, of videos planted: the known score of
               a planted defect, or ""
    tasks      file
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, RootModel

from merton.config import load, validated
from merton.errors import InputError
from merton.progress import OnProgress, unseen
from merton_studies.people.item import Item
from merton_studies.people.media.sizes import make_alike
from merton_studies.people.project import Loaded
from merton_studies.people.protocol import Protocol
from merton_studies.people.protocols import protocol_named


class GoldAnswers(RootModel[Annotated[dict[str, dict[str, Any]], Field(min_length=1)]]):
    """The file of gold items: id of an item to its right answer."""


def items_of(loaded: Loaded, on_progress: OnProgress = unseen) -> tuple[Item, ...]:
    """All items of a project in a fixed order, with unique ids; media are prepared once and then found again.

    Args:
        loaded: of `read_project`.
        on_progress: called with (done, total) while media are prepared.

    Raises:
        InputError: a file that is missing, unreadable or not of its kind, nothing to ask about, or items that the
            protocol does not take; the sentence names it.
        MissingDependencyError: the source needs a package that is not installed.
    """
    chosen = loaded.project.items
    module = import_module(f"merton_studies.people.sources.{chosen.source}")
    items: tuple[Item, ...] = tuple(module.items_of(loaded, getattr(chosen, chosen.source), on_progress))
    if not items:
        raise InputError(f"{loaded.path}: the source {chosen.source} has nothing to ask about")
    protocol = protocol_named(loaded.project.protocol)
    known: set[str] = set()
    for item in items:
        if item.id in known:
            raise InputError(f"{loaded.path}: two items have the id {item.id!r}")
        lacking = [role for role in protocol.roles if role not in item.media]
        if lacking:
            raise InputError(f"{loaded.path}: item {item.id!r} has no {lacking[0]}, which {protocol.name} shows")
        known.add(item.id)
    items = items if chosen.gold is None else _with_gold(loaded.place(chosen.gold), items, protocol)
    protocol.check_items(items)
    protocol.check_panels(items, protocol.ratings or loaded.project.ratings, loaded.project.most_raters)
    make_alike(medium for item in items for medium in item.media.values())
    return items


def check_still_there(loaded: Loaded, items: Sequence[Item], asked: Iterable[str]) -> None:
    """Raise InputError if raters were asked about items (ids) that the project's source does not have any more."""
    lost = sorted(set(asked) - {item.id for item in items})
    if lost:
        more = f" and {len(lost) - 1} others" if len(lost) > 1 else ""
        raise InputError(
            f"{loaded.path}: raters were asked about {lost[0]!r}{more}, which the source {loaded.project.items.source} "
            "does not have any more: put it back, or give the project another name"
        )


def items_sha256(items: Sequence[Item]) -> str:
    """A hash, in hex, of all that the items show and are: prepared media have names by their content."""
    shown = [
        [item.id, item.scene, {role: medium.file.name for role, medium in item.media.items()}, dict(item.texts),
         dict(item.facts), item.gold and dict(item.gold)]
        for item in items
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def _with_gold(file: Path, items: Sequence[Item], protocol: Protocol) -> tuple[Item, ...]:
    answers = json.loads(load(file, GoldAnswers).model_dump_json())  # with lists, as answers of raters have them
    for name, answer in answers.items():
        validated(protocol.answer, json.dumps(answer), f"{file}: {name}")
    stray = sorted(set(answers) - {item.id for item in items})
    if stray:
        raise InputError(f"{file}: there is no item {stray[0]!r}; ids are like {items[0].id!r}")
    return tuple(replace(item, gold=answers[item.id]) if item.id in answers else item for item in items)
