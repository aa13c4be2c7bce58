"""Absolute category rating with hidden reference: quality of a picture from 1 to 5 (ITU-T P.910, ITU-R BT.500)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from merton.config import Model
from merton.results.csv_writer import write_csv
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.opinions import HUMAN, opinions, write_opinions, write_raters
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.ratings import ratings_of
from merton_studies.people.screening import screen
from merton_studies.people.sheets import first_answers

WORDS = {5: "Excellent", 4: "Good", 3: "Fair", 2: "Poor", 1: "Bad"}
"""The five grades of absolute category rating (ITU-T P.910)."""


class QualityAnswer(Model):
    """An opinion of a picture: 1 (bad) to 5 (excellent)."""

    score: Annotated[int, Field(ge=1, le=5)]


class Quality(Protocol):
    """A picture or video at a time; undistorted references are among them, and look like any other item.

    Items have one medium, "image", and the facts `image`, `reference` (id of the item with the reference picture, ""
    for a reference itself and where there is none), `distortion` and `level`; of a dataset also `reference_id`.
    """

    name: ClassVar[str] = "quality"
    title: ClassVar[str] = "Quality of pictures"
    roles: ClassVar[tuple[str, ...]] = ("image",)
    criteria: ClassVar[Mapping[str, Scale]] = {"quality": "interval"}
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {"quality": (1.0, 5.0)}

    @property
    def answer(self) -> type[Model]:
        return QualityAnswer

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`question`, and `grades`: number and word of each, best first."""
        return {"question": "How good is this picture?", "grades": [[grade, word] for grade, word in WORDS.items()]}

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"quality": float(answer["score"])}

    def is_right(self, item: Item, answer: Mapping[str, Any]) -> bool:
        """Whether the grade is at most 1 off the known one. Ours: careful people differ by 1, careless ones by more."""
        assert item.gold is not None
        return abs(int(answer["score"]) - int(item.gold["score"])) <= 1

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`quality.csv`: each opinion; `raters.csv`: the screening of BT.500; `human.csv`: the means of the others."""
        by_id = {item.id: item for item in items}
        rows = []
        for answer in first_answers(answers):
            item = by_id[answer.item]
            facts = (item.facts.get(key, "") for key in ("image", "reference_id", "distortion", "level"))
            rows.append((*facts, item.scene, names[answer.rater], answer.answer["score"]))
        header = ("image", "reference_id", "distortion", "level", "scene", "rater", "score")
        ratings = ratings_of(items, self, answers)
        screened = screen(ratings, self.criteria)
        rejected = {one.rater for one in screened if one.rejection is not None and one.rejection.rejected}
        return [
            write_csv(out / "quality.csv", header, rows),
            write_raters(screened, names, out / "raters.csv"),
            write_opinions(opinions(items, ratings, rejected), out / HUMAN),
        ]
