"""Studies with raters whose skill is known: for tests and for tools/studies/people_coverage.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from merton.config import Model
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import Protocol, Scale

WHEN = "2026-05-03T10:00:00+00:00"


class Marks(Model):
    """A number, and a word."""

    score: int = Field(ge=1, le=5)
    word: str = ""


class Plain(Protocol):
    """One score, perhaps with a word."""

    name: ClassVar[str] = "quality"
    title: ClassVar[str] = "Plain"
    criteria: ClassVar[Mapping[str, Scale]] = {"score": "ordinal"}

    @property
    def answer(self) -> type[Model]:
        return Marks

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        return {}

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"score": float(answer["score"])}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        (out / "plain.csv").write_text("".join(f"{names[one.rater]},{one.item}\n" for one in answers))
        return [out / "plain.csv"]


class Words(Plain):
    """One word."""

    criteria: ClassVar[Mapping[str, Scale]] = {"word": "nominal"}

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"word": str(answer["word"])}


def items(n: int, a_scene: int = 1, **facts: str) -> tuple[Item, ...]:
    """Items, so many of each scene."""
    return tuple(Item(f"i{place:04}", f"s{place // a_scene:04}", facts=facts) for place in range(n))


def answers(of_rater: Mapping[str, Sequence[float | None]], kind: Any = "design", first: int = 1) -> list[Answer]:
    """An answer of each rater to each item, None without one; odd scores are the word "odd"."""
    return [
        Answer(f"{rater}-{kind}-{place}", rater, first + place, f"i{place:04}", kind,
               {"score": score, "word": "odd" if int(score) % 2 else "even"}, 2.0 + place % 3, WHEN)
        for rater, scores in sorted(of_rater.items())
        for place, score in enumerate(scores)
        if score is not None
    ]  # fmt: skip


def graded(n: int, raters: int, seed: int, noise: float = 0.6) -> dict[str, list[float | None]]:
    """Scores 1 to 5 of careful raters."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(3, 1.2, n)
    table = np.clip(np.round(worth + rng.normal(0, noise, (raters, n))), 1, 5)
    return {f"R{place + 1:02}": row for place, row in enumerate(table.tolist())}
