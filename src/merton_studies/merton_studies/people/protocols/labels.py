"""Labels that say whether a question needs a capability: yes or no, blind and balanced (A2Eval, appendix D)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from merton.config import Model
from merton.results.csv_writer import write_csv
from merton_studies.curation.people import VERIFICATION
from merton_studies.curation.sheet import sheet_id
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.sheets import first_answers

TEXTS = ("title", "definition", "situation", "question", "choices")
"""Texts: title and definition of the dimension; situation, question and choices (one a line), which may be ""."""


class LabelAnswer(Model):
    """A verdict: "yes", the question needs the dimension, or "no"."""

    verdict: Literal["yes", "no"]


class Labels(Protocol):
    """A question with its pictures, beside the definition of a dimension.

    Items have the texts `TEXTS`, any number of media in the order of their roles, and the facts `question` and
    `dimension`. Nothing on the page tells the assignment, the benchmark, or how many are assigned.
    """

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Which capability a question needs"
    criteria: ClassVar[Mapping[str, Scale]] = {"verdict": "nominal"}

    @property
    def answer(self) -> type[Model]:
        return LabelAnswer

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`TEXTS`, with the choices as a list."""
        found: dict[str, Any] = {name: item.texts.get(name, "") for name in TEXTS}
        found["choices"] = [line for line in found["choices"].split("\n") if line]
        return found

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"verdict": str(answer["verdict"])}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`verification.csv`, as `merton curate agreement` reads it."""
        facts = {item.id: item.facts for item in items}
        rows = sorted(
            (sheet_id(facts[one.item]["question"]), facts[one.item]["dimension"], names[one.rater],
             one.answer["verdict"])
            for one in first_answers(answers)
        )  # fmt: skip
        return [write_csv(out / "verification.csv", VERIFICATION, rows)]
