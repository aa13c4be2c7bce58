"""The contract of a protocol: views for its raters, valid answers, and the values and files made of the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from merton.config import Model
from merton.errors import InputError
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Slot

Scale = Literal["nominal", "ordinal", "interval"]


class Protocol(ABC):
    """One kind of study. Its page is `serve/page/protocols/NAME.js`; everything else of it is in its class.

    Attributes:
        name: in the project file, such as "quality".
        title: on pages.
        roles: of the media that each item must have.
        criteria: name of each value of an answer to its scale; statistics go by it.
        ranges: least and greatest value of each criterion on an ordered scale.
        ordered: True if raters answer an item one after the other and see what was said before: an `OrderedProtocol`.
        reviewed: True if an expert answers an item once its raters have finished it.
        ratings: of an item, where the protocol fixes the number in place of the project; None: the project's.
        panel_raters: raters among whom the items of one `panel` are dealt, and no others may answer them; None: any.
        panel_items: the most items of one panel that one rater may answer, repeats not counted; None: any number.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    roles: ClassVar[tuple[str, ...]] = ()
    criteria: ClassVar[Mapping[str, Scale]]
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    ordered: ClassVar[bool] = False
    reviewed: ClassVar[bool] = False
    ratings: ClassVar[int | None] = None
    panel_raters: ClassVar[int | None] = None
    panel_items: ClassVar[int | None] = None

    @property
    @abstractmethod
    def answer(self) -> type[Model]:
        """The pydantic model of a rater's answer; its validators know the item only by `checked`."""

    @property
    def review(self) -> type[Model]:
        """The model of an expert's answer, of a protocol with `reviewed`."""
        return self.answer

    def shown(self, item: Item, slot: Slot, seed: int) -> Item:
        """The item as one slot shows it: with sides exchanged, for instance. By default the item itself.

        Media, `view` and `checked` get the item that this returns; `values` and `export` the item of the project, so
        `checked` must undo in the answer what was exchanged here.

        Args:
            item: of the project.
            slot: that it is shown in; same slot and seed, same result.
            seed: of the project.
        """
        return item

    @abstractmethod
    def view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """The view of an item on the page, besides its media: plain JSON without any of `Item.facts` or `Item.id`.

        Args:
            item: asked about.
            said: the answers of others that stand (only of a protocol with `ordered` or `reviewed`), in their order.
            blind: as the project says.
        """

    def checked(self, item: Item, answer: Model, said: Sequence[Answer]) -> Model:
        """The answer to be stored, if it is one to this item (as `shown`).

        Raises:
            InputError: it is not; a sentence for the rater.
        """
        return answer

    def review_view(self, item: Item, said: Sequence[Answer], blind: bool = True) -> dict[str, Any]:
        """Like `view`, for the expert (slots of the kind "review"); `said` has the answers of raters and of reviews."""
        return self.view(item, said, blind)

    def check_items(self, items: Sequence[Item]) -> None:  # noqa: B027 (most protocols take any items)
        """Raises InputError if these items cannot be asked about together; by default they can."""

    def panel(self, item: Item) -> str | None:
        """Items with the same text are dealt among the same `panel_raters` raters; None: among all (the default)."""
        return None

    def check_panels(self, items: Sequence[Item], ratings: int, raters: int) -> None:
        """Raises InputError if a panel has more items than its raters may answer.

        Args:
            items: of the project; gold items are not counted.
            ratings: of an item.
            raters: of the project.
        """
        if self.panel_raters is None or self.panel_items is None:
            return
        if ratings > self.panel_raters:
            raise InputError(f"ratings is {ratings}, but {self.name} takes at most {self.panel_raters} raters")
        most = min(self.panel_raters, raters) * self.panel_items // ratings
        sizes = Counter(self.panel(item) for item in items if item.gold is None)
        for panel, size in sizes.items():
            if panel is not None and size > most:
                raise InputError(
                    f"{', '.join(panel.splitlines())} has {size} items, but in {self.name} {most} at most with "
                    f"ratings: {ratings} and {min(self.panel_raters, raters)} raters of {self.panel_items} items each; "
                    "leave some out, or ask for fewer ratings"
                )

    @abstractmethod
    def values(self, item: Item, answer: Mapping[str, Any]) -> dict[str, float | str]:
        """Criterion to value of an answer that stands; without those the answer leaves open."""

    def is_right(self, item: Item, answer: Mapping[str, Any]) -> bool:
        """Whether an answer to a gold item is the known one. By default: all values are equal."""
        assert item.gold is not None
        return self.values(item, answer) == self.values(item, item.gold)

    @abstractmethod
    def export(
        self, items: Sequence[Item], answers: Sequence[Answer], out: Path, names: Mapping[str, str]
    ) -> list[Path]:
        """Write what the rest of Merton reads, such as ratings.csv or tags.yaml, into a folder.

        Args:
            items: of the project.
            answers: that stand, by rater and number; repeats and gold items are among them (`Answer.kind`).
            out: the folder, there already.
            names: pseudonym to the name to be written; the pseudonyms themselves unless names were asked for.

        Returns:
            The files.
        """


class OrderedProtocol(Protocol):
    """A kind of study in which raters answer an item one after the other, with turns in place of a design (tasks)."""

    ordered: ClassVar[bool] = True

    @abstractmethod
    def next_turn(self, item: Item, said: Sequence[Answer]) -> int | Literal["review"] | None:
        """The turn of an item of the protocol: a rater's, the expert's, or none.

        Args:
            item: asked about.
            said: all answers to it that stand, reviews among them, in the order in which they were saved.

        Returns:
            The place in the item's order of raters, from 0, whose rater writes next (a place can come again after a
            review sent the item back); "review": the expert; None: the item is finished.
        """
