"""Eight criteria from 1 to 5 for an anonymous plan, beside its video and instruction (A2Eval, appendix E)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from merton.config import Model
from merton.errors import InputError
from merton.results.csv_writer import write_csv
from merton_studies.curation.people import LEAST, MOST, RATINGS
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.sheets import first_answers

Mark = Annotated[int, Field(ge=LEAST, le=MOST)]


class LikertAnswer(Model):
    """A mark by each criterion, 1 (worst) to 5 (best)."""

    planning: Mark
    scene: Mark
    dynamic: Mark
    grounding: Mark
    physical: Mark
    quantitative: Mark
    spatial: Mark
    temporal: Mark


CRITERIA: dict[str, tuple[str, str]] = {
    "planning": (
        "Planning",
        "Does the plan have all steps that the instruction needs, from the first to the last?",
    ),
    "scene": (
        "Scene understanding",
        "Does it name the places and objects that the video shows, without any that are not there?",
    ),
    "dynamic": (
        "Dynamic consistency",
        "Does each object stay where, and as, the earlier steps left it?",
    ),
    "grounding": (
        "Object grounding",
        "Is each action done to the right object, and not to one that is like it or beside it?",
    ),
    "physical": (
        "Physical reasoning",
        "Can a body do each action to such an object safely, such as opening a door before reaching in?",
    ),
    "quantitative": (
        "Quantitative reasoning",
        "Are the counts and amounts right: how many things, and every one of them?",
    ),
    "spatial": (
        "Spatial reasoning",
        "Are positions and ways right: inside or merely beside, left or right, along a way that can be gone?",
    ),
    "temporal": (
        "Temporal reasoning",
        "Is the order sensible: what must come first does, and one part is finished before the next begins?",
    ),
}
"""Criterion to its title and the question that a mark answers: those of appendix E.5 and Table 13, in our words and for
any scenario, since the paper's are about one household."""
ENDS = ("not at all", "fully")
"""Words of the marks 1 and 5."""


class Likert(Protocol):
    """A video, an instruction and a plan, and eight rows of five marks, which weigh the same.

    Items have the medium "video", the texts "instruction" and "plan", and the facts `model` and `scenario`. The unit
    of intervals is the scenario.
    """

    name: ClassVar[str] = "likert"
    title: ClassVar[str] = "How good is this plan"
    roles: ClassVar[tuple[str, ...]] = ("video",)
    criteria: ClassVar[Mapping[str, Scale]] = dict.fromkeys(CRITERIA, "ordinal")
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = dict.fromkeys(CRITERIA, (1.0, 5.0))

    @property
    def answer(self) -> type[Model]:
        return LikertAnswer

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`instruction`, `plan`, `criteria`: [name, title, question] of each, `marks`, and `ends` in words."""
        return {
            "instruction": item.texts.get("instruction", ""),
            "plan": item.texts["plan"],
            "criteria": [[name, *words] for name, words in CRITERIA.items()],
            "marks": list(range(LEAST, MOST + 1)),
            "ends": list(ENDS),
        }

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {name: float(answer[name]) for name in CRITERIA}

    def is_right(self, item: Item, answer: Mapping[str, Any]) -> bool:
        """Whether the marks are on average within one of the known ones. Ours: careful people differ by one mark."""
        assert item.gold is not None
        return sum(abs(int(answer[name]) - int(item.gold[name])) for name in CRITERIA) <= len(CRITERIA)

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`ratings.csv`, as `merton curate ranking --human` reads it.

        Raises:
            InputError: two items are of one model and scenario; its marks could not be told apart.
        """
        facts = {item.id: item.facts for item in items}
        known: set[tuple[str, str]] = set()
        for of_item in facts.values():
            key = (of_item["model"], of_item["scenario"])
            if key in known:
                raise InputError(f"model {key[0]!r} has two items of scenario {key[1]!r}: name the scenarios apart")
            known.add(key)
        rows = sorted(
            (facts[one.item]["model"], facts[one.item]["scenario"], names[one.rater], name, one.answer[name])
            for one in first_answers(answers)
            for name in CRITERIA
        )
        return [write_csv(out / "ratings.csv", RATINGS, rows)]
