"""Labels that say whether a question needs a capability: yes or no, blind and balanced (A2Eval, appendix D).

With suggestions of an agent the page has its answer chosen already, and the rater corrects it (appendix D.1).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from merton.config import Model
from merton.files import write_file
from merton.results.csv_writer import write_csv
from merton.seeding import generator
from merton_studies.curation.people import SUGGESTED, VERIFICATION
from merton_studies.curation.sheet import sheet_id
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Slot
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.sheets import first_answers

TEXTS = ("title", "definition", "situation", "question", "choices", "suggestion")
"""Texts: title and definition of the dimension; situation, question and choices (one a line), which may be "";
suggestion: "yes" or "no", or "" where the page shows none."""


class LabelAnswer(Model):
    """A verdict: "yes", the question needs the dimension, or "no"."""

    verdict: Literal["yes", "no"]


class SuggestedLabel(LabelAnswer):
    """A verdict on an item with a suggestion, as it is stored.

    Attributes:
        suggestion: the agent's, when the rater answered.
        shown: True if the page showed it.
    """

    suggestion: Literal["yes", "no"]
    shown: bool


class Labels(Protocol):
    """A question with its pictures, beside the definition of a dimension.

    Items have the texts `TEXTS`, any number of media in the order of their roles, and the facts `question` and
    `dimension`; with a suggestion also `suggestion` and `hidden`. Nothing else on the page tells the assignment, the
    benchmark, or how many are assigned. Which answers are given without the suggestion is drawn for each rater and
    item, the same for a repeat.
    """

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Which capability a question needs"
    criteria: ClassVar[Mapping[str, Scale]] = {"verdict": "nominal"}

    @property
    def answer(self) -> type[Model]:
        return LabelAnswer

    def shown(self, item: Item, slot: Slot, seed: int) -> Item:
        """The item without its suggestion, in the share of slots that `hidden` asks for; gold items never have it."""
        if "suggestion" not in item.texts:
            return item
        hidden = generator("suggestions", seed, slot.rater, item.id).random() < float(item.facts["hidden"])
        if not hidden and slot.kind != "gold":
            return item
        return replace(item, texts={name: text for name, text in item.texts.items() if name != "suggestion"})

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`TEXTS`, with the choices as a list."""
        found: dict[str, Any] = {name: item.texts.get(name, "") for name in TEXTS}
        found["choices"] = [line for line in found["choices"].split("\n") if line]
        return found

    def checked(self, item: Item, answer: Model, said: Sequence[Answer]) -> Model:
        """The answer, and the suggestion beside which it was given."""
        if "suggestion" not in item.facts:
            return answer
        about = {"suggestion": item.facts["suggestion"], "shown": "suggestion" in item.texts}
        return SuggestedLabel.model_validate(answer.model_dump() | about)

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"verdict": str(answer["verdict"])}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`verification.csv`, as `merton curate agreement` reads it.

        With suggestions it has the columns `SUGGESTED` besides; `unaided.csv` has the same table of the answers given
        without one in sight, if there are any; `labels.csv` the labels after correction; `suggestions.json` the
        `merton_studies.curation.suggestions.SuggestionEffect` of each dimension.
        """
        by_id, first = {item.id: item for item in items}, first_answers(answers)
        rows = sorted(_row(by_id[one.item], one, names) for one in first)
        if not any("suggestion" in item.facts for item in items):
            return [write_csv(out / "verification.csv", VERIFICATION, [row[: len(VERIFICATION)] for row in rows])]
        columns = (*VERIFICATION, *SUGGESTED)
        files = [write_csv(out / "verification.csv", columns, rows)]
        unaided = [row for row in rows if row[-1] != "yes"]
        if unaided:
            files.append(write_csv(out / "unaided.csv", columns, unaided))
        files.append(write_csv(out / "labels.csv", _LABELS, _labels(by_id, first)))
        return [*files, _write_effects(by_id, first, out / "suggestions.json")]


_LABELS = ("question", "dimension", "suggestion", "yes", "no", "label", "corrected")


def _row(item: Item, one: Answer, names: Mapping[str, str]) -> tuple[str, ...]:
    shown = {True: "yes", False: "no", None: ""}[one.answer.get("shown")]
    question, dimension = sheet_id(item.facts["question"]), item.facts["dimension"]
    return question, dimension, names[one.rater], one.answer["verdict"], one.answer.get("suggestion", ""), shown


def _labels(by_id: Mapping[str, Item], answers: Sequence[Answer]) -> list[tuple[object, ...]]:
    """Of each item its label by majority over all raters, blank if tied, and whether it is not the suggestion."""
    votes: dict[str, Counter[str]] = {}
    for one in answers:
        votes.setdefault(one.item, Counter())[one.answer["verdict"]] += 1
    rows: list[tuple[object, ...]] = []
    for name, count in votes.items():
        facts, yes, no = by_id[name].facts, count["yes"], count["no"]
        label = "" if yes == no else "yes" if yes > no else "no"
        suggestion = facts.get("suggestion", "")
        corrected = "" if not label or not suggestion else "no" if label == suggestion else "yes"
        rows.append((facts["question"], facts["dimension"], suggestion, yes, no, label, corrected))
    return sorted(rows, key=lambda row: row[:2])


def _write_effects(by_id: Mapping[str, Item], answers: Sequence[Answer], path: Path) -> Path:
    from merton_studies.curation.suggestions import SuggestedVerdict, effects

    verdicts = [
        SuggestedVerdict(
            by_id[one.item].facts["question"],
            by_id[one.item].facts["dimension"],
            one.rater,
            by_id[one.item].scene,
            one.answer["suggestion"],
            one.answer["verdict"],
            one.answer["shown"],
        )
        for one in answers
        if "suggestion" in one.answer
    ]
    found = [one.as_json() for one in effects(verdicts)]
    write_file(path, (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
    return path
