"""The better one of two: A, B, a tie, or both bad; for pictures and for runs (RoboArena's double-blind A/B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from merton.config import Model
from merton.errors import InputError
from merton.leaderboard.preferences import Preference, write_board, write_matrix
from merton.results.csv_writer import write_csv
from merton.seeding import derive_seed
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Slot
from merton_studies.people.protocol import Protocol, Scale
from merton_studies.people.sheets import first_answers

LEFT = "left"
"""The fact of an item as shown that says which contender is on the left."""
_OTHER = {"a": "b", "b": "a"}


class PairAnswer(Model):
    """A choice: of the page the sides, as stored the contenders.

    Attributes:
        choice: "left" or "right" as the page sends it, which become "a" or "b" as stored; "tie"; "both_bad".
        left: the contender that was on the left; the page cannot know it.
    """

    choice: Literal["left", "right", "a", "b", "tie", "both_bad"]
    left: Literal["a", "b"] | None = None


class Pairs(Protocol):
    """Two pictures or two videos side by side.

    Items have the media "a" and "b", the facts `a` and `b` (names of the contenders) and `case` (what both had to do
    or show), and perhaps the text "instruction": of videos the task, of pictures the question. Which contender is on
    the left is drawn for each rater and item; a repeat has the sides exchanged, so that its agreement also tells of a
    preference for a side.
    """

    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "Which is better"
    roles: ClassVar[tuple[str, ...]] = ("a", "b")
    criteria: ClassVar[Mapping[str, Scale]] = {"choice": "nominal"}

    @property
    def answer(self) -> type[Model]:
        return PairAnswer

    def shown(self, item: Item, slot: Slot, seed: int) -> Item:
        """The item with the contender that is on the left as "a", whichever it is in the project."""
        left = "ab"[(derive_seed("sides", seed, slot.rater, item.id) + (slot.kind == "repeat")) % 2]
        right = _OTHER[left]
        media = {
            **item.media,
            "a": replace(item.media[left], role="a"),
            "b": replace(item.media[right], role="b"),
        }
        return replace(item, media=media, facts={**item.facts, LEFT: left})

    def check_items(self, items: Sequence[Item]) -> None:
        """Raise InputError if the known answer of a gold item is a side: sides differ from rater to rater."""
        for item in items:
            if item.gold is not None and item.gold["choice"] in ("left", "right"):
                raise InputError(
                    f"the gold item {item.id!r} has the choice {item.gold['choice']!r}; it must be a "
                    f"({item.facts['a']}), b ({item.facts['b']}), tie or both_bad"
                )

    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """`question`, and `task`, what the two had to do (empty for pictures)."""
        instruction = item.texts.get("instruction", "")
        if any(medium.kind == "reel" for medium in item.media.values()):
            return {"question": "Which did better?", "task": instruction}
        return {"question": instruction or "Which looks better?", "task": ""}

    def checked(self, item: Item, answer: Model, said: Sequence[Answer]) -> Model:
        """The choice with the contender in place of the side; raises InputError if it names a contender already."""
        assert isinstance(answer, PairAnswer)
        if answer.choice in _OTHER:
            raise InputError(f"choice is {answer.choice!r}; choose one of: left, right, tie, both_bad")
        left = item.facts[LEFT]
        of_side = {"left": left, "right": _OTHER[left]}
        return PairAnswer.model_validate({"choice": of_side.get(answer.choice, answer.choice), "left": left})

    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        return {"choice": str(answer["choice"])}

    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """`pairs.csv`: each choice; and of the contenders `ranking.csv`, `ranking.json` and `matrix.csv`."""
        by_id = {item.id: item for item in items}
        rows, found = [], []
        for answer in first_answers(answers):
            item, choice, left = by_id[answer.item], answer.answer["choice"], answer.answer["left"]
            a, b = item.facts["a"], item.facts["b"]
            rows.append((item.scene, item.facts["case"], a, b, names[answer.rater], choice, left))
            found.append(Preference(a, b, choice, left, item.scene))
        files = [write_csv(out / "pairs.csv", ("scene", "case", "a", "b", "rater", "choice", "left"), rows)]
        if found:
            files += [*write_board(found, out), write_matrix(found, out / "matrix.csv")]
        return files
