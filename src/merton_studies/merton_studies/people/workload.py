"""The work that a project asks of its raters, before the first of them has answered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from merton.results.text import counted
from merton_studies.people.item import Item
from merton_studies.people.project import Project
from merton_studies.people.protocol import Protocol

SECONDS = {
    "tasks": 60.0,
    "episodes": 20.0,
    "trials": 8.0,
    "labels": 20.0,
    "likert": 120.0,
    "pairs": 6.0,
    "quality": 6.0,
}
"""Time of an answer, beside watching its videos once [s]. Ours, a guess until raters have answered: the page then tells
the time left from each rater's own pace."""


@dataclass(frozen=True)
class Workload:
    """Counts of a project.

    Attributes:
        items: without gold items.
        gold: items with a known answer, which every rater gets.
        scenes: of all items; the unit of every interval.
        ratings: of an item by different raters.
        raters: who share the work.
        answers: of a rater, on average, with gold items and repeats.
        seconds: that a rater needs, on average.
        suggested: items with an agent's suggestion, which raters correct.
    """

    items: int
    gold: int
    scenes: int
    ratings: int
    raters: int
    answers: float
    seconds: float
    suggested: int


def workload(project: Project, protocol: Protocol, items: Sequence[Item]) -> Workload:
    """Counts of a project and of a rater's work."""
    gold = sum(item.gold is not None for item in items)
    ordinary = len(items) - gold
    ratings = protocol.ratings or project.ratings
    answers = ordinary * ratings / project.most_raters * (1.0 + project.repeats) + gold  # gold items come once
    watching = sum(_duration_s(item) for item in items) / len(items)
    return Workload(
        ordinary,
        gold,
        len({item.scene for item in items}),
        ratings,
        project.most_raters,
        answers,
        answers * (SECONDS[project.protocol] + watching),
        sum("suggestion" in item.facts for item in items),
    )


def sentences(work: Workload) -> list[str]:
    """A workload in words."""
    gold = f", and {counted(work.gold, 'gold item')}" if work.gold else ""
    answers, minutes = math.ceil(work.answers), max(1, math.ceil(work.seconds / 60))
    told = [
        f"{counted(work.items, 'item')} in {counted(work.scenes, 'scene')}{gold}",
        f"{counted(work.ratings, 'rating')} of an item by {counted(work.raters, 'rater')}: "
        f"about {counted(answers, 'answer')} of each",
        f"about {minutes} min of a rater's time, by a guess of ours of the time for an answer",
    ]
    return [*told, f"{counted(work.suggested, 'item')} with a suggestion"] if work.suggested else told


def _duration_s(item: Item) -> float:
    """Duration of the longest video of an item [s]: those beside each other are watched together."""
    return max((medium.frames / medium.rate_hz for medium in item.media.values() if medium.rate_hz), default=0.0)
