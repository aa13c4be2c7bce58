"""Items of protocols whose raters answer independently: a share of the design each, then items that lack ratings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from merton.seeding import derive_seed
from merton_studies.people.consensus import consensus
from merton_studies.people.dealing import Dealer, Next
from merton_studies.people.design import design
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Kind, Slot
from merton_studies.people.state import Person

EXPECTED = timedelta(days=7)
"""Time from the start of the study for which the share of a rater who has not begun waits, but no more than half of the
time to its deadline. Ours: raters of a lab come over a week, and the first of them must not get everything."""
_COUNTED = ("design", "top_up")
"""Slots that count as ratings of an item; repeats and gold items do not."""


class Shares(Dealer):
    """A rater gets the places of a seat in the design, in order.

    Then come items that lack ratings because a rater went silent, withdrew or never came (`EXPECTED`), and items on
    which raters disagree (`Project.top_up`). A rater who comes back goes on with the items that the others left.
    """

    def _prepare(self) -> None:
        project, panel = self.project, self.protocol.panel
        self.panels: dict[str, list[Item]] = {}
        for item in self.order:
            self.panels.setdefault(panel(item) or "", []).append(item)
        self.protocol.check_panels(self.order, self.ratings, project.most_raters)
        self._agreement: dict[str, tuple[list[str], float | None]] = {}
        panels = [panel(item) or ("item", item.id) for item in self.order]
        sizes = project.most_raters, self.ratings
        self.design = design(
            self.order, *sizes, project.repeats, project.seed, panels, panel_raters=self.protocol.panel_raters
        )
        self.turns = {item.id: seats for item, seats in zip(self.order, self.design.turns, strict=True)}

    def next(self, person: Person, now: datetime) -> Next | None:
        """See `Dealer.next`."""
        return next(self._coming(person, now), None) or self._missing(person, now)

    def left(self, person: Person, now: datetime) -> int:
        """See `Dealer.left`."""
        return sum(1 for _ in self._coming(person, now))

    def waits(self, person: Person) -> int:
        """0: the items that are left belong to others, and come here only if those go silent."""
        return 0

    def holds(self, slot: Slot) -> bool:
        """An open slot is its rater's unless the panel of its item has got all its raters meanwhile."""
        person = self.state.people.get(slot.rater)
        return person is not None and (slot.kind == "gold" or self._may_join(self.items[slot.item], person))

    def counted(self, item: Item) -> list[Answer]:
        """The answers that count as ratings of an item."""
        return [answer for answer in self.state.said(item.id) if answer.kind in _COUNTED]

    def _coming(self, person: Person, now: datetime) -> Iterator[Next]:
        """Items of the person's share that were not handed out and are still needed, in the order of the share."""
        seat = self.seat_of(person)
        handed = {(slot.item, slot.kind == "repeat") for slot in person.slots.values()}
        first = {item for item, repeat in handed if not repeat}
        for place in () if seat is None else self.design.sequences[seat]:
            item = self.order[place.item]
            if (item.id, place.kind == "repeat") in handed:
                continue
            if place.kind == "design":
                if self._is_full(item, person, now) or not self._may_join(item, person):
                    continue
                first.add(item.id)
            if place.kind != "repeat" or item.id in first:
                yield item.id, place.kind

    def _is_full(self, item: Item, person: Person, now: datetime) -> bool:
        """Whether others give an item all its ratings."""
        enough = len(self.state.handed.get(item.id, ())) >= self.ratings
        return enough and len(self._taken(item, person, now)) >= self.ratings

    def _taken(self, item: Item, person: Person, now: datetime) -> set[str]:
        """Others who rated an item, or have it before them now."""
        taken = {answer.rater for answer in self.counted(item)}
        for slot in self.state.handed.get(item.id, ()):
            if slot.kind in _COUNTED and not self.is_silent(self.state.people.get(slot.rater), now):
                taken.add(slot.rater)
        return taken - {person.id}

    def _missing(self, person: Person, now: datetime) -> Next | None:
        """An item that lacks a rating which none of its raters will give, and this person can."""
        seats = self.seats()
        absent = self._until_absent(now)
        released = {
            seat
            for seat in range(self.project.most_raters)
            if (absent if seat not in seats or seats[seat].seen is None else self.is_silent(seats[seat], now))
        }
        if not released and self.project.top_up is None:
            return None
        found: list[tuple[int, int, Next]] = []
        handed = {slot.item for slot in person.slots.values()}
        for item in self.order:
            rated = self.counted(item)
            whole = len(rated) >= self.ratings and self.project.top_up is None
            if whole or item.gold is not None or item.id in handed:
                continue
            taken = self._taken(item, person, now)
            kind: Kind
            coming = {
                seat
                for seat in self.turns[item.id]
                if seat not in released and self._may_join(item, seats.get(seat))
                if seat not in seats or seats[seat].id not in taken | {person.id}
            }
            if len(rated) < self.ratings:
                kind, needed = "design", len(taken) + len(coming) < self.ratings
            else:
                kind, needed = "top_up", len(taken) <= len(rated) and self._disputed(item, rated)
            if needed and self._fits_panel(item, person, now):
                tie = derive_seed(self.project.seed, person.id, item.id)
                found.append((len(taken), tie, (item.id, kind)))
        return min(found)[2] if found else None

    def _until_absent(self, now: datetime) -> bool:
        """Whether seats whose raters have not begun are given to others."""
        begun, deadline = self.state.begun, self.project.deadline
        if begun is None:
            return False
        waited = EXPECTED if deadline is None else min(EXPECTED, (deadline - begun) / 2)
        return now - begun > max(waited, self.lease)

    def _disputed(self, item: Item, rated: list[Answer]) -> bool:
        """Whether an item that has its ratings needs another one."""
        rule = self.project.top_up
        if rule is None or len(rated) >= rule.most:
            return False
        ids = [answer.id for answer in rated]
        if self._agreement.get(item.id, ([], None))[0] != ids:
            self._agreement[item.id] = (ids, consensus(self.protocol, item, rated, self._width))
        agreement = self._agreement[item.id][1]
        return agreement is not None and agreement < rule.below

    def _width(self, criterion: str) -> float:
        """Width of the scale of a criterion: its greatest less its least value; 0 if not known."""
        least, most = self.protocol.ranges.get(criterion, (0.0, 0.0))
        return most - least

    def _may_join(self, item: Item, person: Person | None) -> bool:
        """Whether the panel of an item has this rater, or fewer raters than it may have."""
        panel, most = self.protocol.panel(item), self.protocol.panel_raters
        if panel is None or most is None:
            return True
        raters = {answer.rater for one in self.panels[panel] for answer in self.counted(one)}
        return len(raters) < most or (person is not None and person.id in raters)

    def _fits_panel(self, item: Item, person: Person, now: datetime) -> bool:
        """Whether a rater may take over an item: beside those who judge its panel now, and within the most items."""
        panel = self.protocol.panel(item)
        if panel is None:
            return True
        items, most_raters, most_items = self.panels[panel], self.protocol.panel_raters, self.protocol.panel_items
        mine = {slot.item for slot in person.slots.values()} & {one.id for one in items}
        if most_items is not None and len(mine) >= most_items:
            return False
        raters = set().union(*(self._taken(one, person, now) for one in items))
        return most_raters is None or len(raters) < most_raters
