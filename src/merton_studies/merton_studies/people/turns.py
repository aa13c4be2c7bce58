"""Items of protocols whose raters answer one after the other, each seeing earlier answers, and an expert at the end."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from merton.seeding import derive_seed, generator
from merton_studies.people.dealing import Dealer, Next
from merton_studies.people.design import design
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Slot
from merton_studies.people.protocol import OrderedProtocol
from merton_studies.people.state import Person


class Turns(Dealer):
    """The raters of an item have an order by the design, in which each takes every position equally often.

    The turn passes to the next of the order once a rater is silent for longer than the lease after the turn came to
    them; who missed a turn gets a later one. The protocol says whether a rater or the expert goes on
    (`OrderedProtocol.next_turn`); its place in the order counts those who wrote already first, then those to come.
    """

    protocol: OrderedProtocol

    def _prepare(self) -> None:
        project = self.project
        seats = range(project.most_raters)
        turns = design(self.order, len(seats), self.ratings, 0.0, project.seed, ordered=True).turns
        self.turns: dict[str, tuple[int, ...]] = {}
        self._orders: dict[str, list[Item]] = {}
        self._going: dict[str, tuple[list[str], int | Literal["review"] | None]] = {}
        for item, first in zip(self.order, turns, strict=True):
            rest = generator("standby", project.seed, item.id).permutation(
                [seat for seat in seats if seat not in first]
            )
            self.turns[item.id] = (*first, *(int(seat) for seat in rest))

    def next(self, person: Person, now: datetime) -> Next | None:
        """See `Dealer.next`."""
        for item in self._order(person):
            said = self.state.said(item.id)
            turn = self._turn(item, said)
            if turn is None or not self._is_free(item, person, said, now):
                continue
            if turn == "review":
                if person.rater.role == "expert":
                    return item.id, "review"
            elif person.rater.role == "rater" and self._may_write(item, person, turn, said, now):
                return item.id, "turn"
        return None

    def left(self, person: Person, now: datetime) -> int:
        """See `Dealer.left`."""
        return self.waits(person)

    def waits(self, person: Person) -> int:
        """See `Dealer.waits`."""
        seat = self.seat_of(person)
        return sum(self._may_come(item, person, seat) for item in self.order)

    def holds(self, slot: Slot) -> bool:
        """An open slot is its rater's until the item is handed to another person."""
        return self.state.handed[slot.item][-1] == slot and self.state.is_open(slot)

    def _order(self, person: Person) -> list[Item]:
        """The items in this person's own random order."""
        if person.id not in self._orders:
            key = {item.id: derive_seed("order", self.project.seed, person.id, item.id) for item in self.order}
            self._orders[person.id] = sorted(self.order, key=lambda item: key[item.id])
        return self._orders[person.id]

    def _turn(self, item: Item, said: tuple[Answer, ...]) -> int | Literal["review"] | None:
        """`OrderedProtocol.next_turn`, which is asked once for the same answers."""
        ids = [answer.id for answer in said]
        if self._going.get(item.id, (None, None))[0] != ids:
            self._going[item.id] = (ids, self.protocol.next_turn(item, said))
        return self._going[item.id][1]

    def _may_come(self, item: Item, person: Person, seat: int | None) -> bool:
        """Whether an item that is not before a person should come to them by the design."""
        said = self.state.said(item.id)
        turn = self._turn(item, said)
        if turn is None or any(slot.rater == person.id and self.holds(slot) for slot in self._last(item)):
            return False
        if turn == "review" or person.rater.role == "expert":
            return person.rater.role == "expert"
        writers = _writers(said)
        if turn < len(writers):
            return writers[turn] == person.id
        return person.id not in writers and seat in self.turns[item.id][: self.ratings]

    def _last(self, item: Item) -> list[Slot]:
        """The slot that the item was handed out in last."""
        return self.state.handed.get(item.id, [])[-1:]

    def _since(self, item: Item, said: tuple[Answer, ...]) -> datetime | None:
        """Time at which the turn of an item began: its last answer, or else the start of the study."""
        return datetime.fromisoformat(said[-1].saved_utc) if said else self.state.start

    def _is_free(self, item: Item, person: Person, said: tuple[Answer, ...], now: datetime) -> bool:
        """Whether an item is before no other person, or before one who went silent over it."""
        for slot in self._last(item):
            if self.state.is_open(slot):
                return slot.rater != person.id and self.is_silent(
                    self.state.people[slot.rater], now, self._since(item, said)
                )
        return True

    def _may_write(self, item: Item, person: Person, turn: int, said: tuple[Answer, ...], now: datetime) -> bool:
        """Whether the turn of an item is this rater's."""
        writers, since = _writers(said), self._since(item, said)
        if turn < len(writers):  # sent back by the expert
            if writers[turn] == person.id:
                return True
            if not self.is_silent(self.state.people[writers[turn]], now, since):
                return False
        if person.id in writers:
            return False
        seats = self.seats()
        for seat in self.turns[item.id]:
            before = seats.get(seat)
            if before is person:
                return True
            if (before is None or before.id not in writers) and not self.is_silent(before, now, since):
                return False
        return True


def _writers(said: tuple[Answer, ...]) -> list[str]:
    """The raters of an item in the order in which they first wrote."""
    return list(dict.fromkeys(answer.rater for answer in said if answer.kind == "turn"))
