"""The record of a project, in memory: persons, their slots, the answers that stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from merton_studies.people.ledger import Answer, Ledger, Rater, Slot


@dataclass
class Person:
    """A rater or expert at work.

    Attributes:
        rater: of the record.
        slots: that were handed out, by number.
        standing: number of a slot to its answer that stands.
        seen: last sign of life in the record: a slot handed out, or an answer; None before the first.
        saving: numbers of slots whose answer is on its way to the disk.
        dealing: held while slots are handed out to this person.
    """

    rater: Rater
    slots: dict[int, Slot] = field(default_factory=dict)
    standing: dict[int, Answer] = field(default_factory=dict)
    seen: datetime | None = None
    saving: set[int] = field(default_factory=set)
    dealing: Lock = field(default_factory=Lock)

    @property
    def id(self) -> str:
        """The pseudonym."""
        return self.rater.id

    @property
    def last(self) -> Answer | None:
        """The answer that stands and was saved last."""
        return max(self.standing.values(), key=lambda answer: answer.saved_utc, default=None)


class State:
    """A mirror of the ledger. It decides nothing; `Desk` guards it with a lock."""

    def __init__(self, ledger: Ledger) -> None:
        self.people: dict[str, Person] = {rater.id: Person(rater) for rater in ledger.raters()}
        self.answers: dict[str, Answer] = {}
        """All answers by id, also those that were taken back."""
        self.on_item: dict[str, list[Answer]] = {}
        """The answers to an item that stand, in the order in which they were saved."""
        self.handed: dict[str, list[Slot]] = {}
        """The slots of an item, in the order in which they were handed out."""
        self.begun: datetime | None = None
        """Time at which the first slot was handed out; None before it."""
        self.latest: datetime | None = None
        """The latest time in the record."""
        for slot in sorted(ledger.slots(), key=lambda slot: slot.issued_utc):
            self.hand_out(slot)
        for answer in sorted(ledger.answers(undone=True), key=lambda answer: answer.saved_utc):
            self.save(answer)

    @property
    def start(self) -> datetime | None:
        """Start of the study: the time of the first slot, or else of the first registration; None before both."""
        came = [person.rater.registered_utc for person in self.people.values() if person.rater.registered_utc]
        return self.begun or min((datetime.fromisoformat(time) for time in came), default=None)

    def hand_out(self, slot: Slot) -> None:
        """Add a slot that is (about to be) in the record."""
        if person := self.people.get(slot.rater):
            issued = datetime.fromisoformat(slot.issued_utc)
            person.slots[slot.number] = slot
            self._live(person, issued)
            self.handed.setdefault(slot.item, []).append(slot)
            self.begun = self.begun or issued

    def drop(self, slots: Sequence[Slot]) -> None:
        """Remove slots that could not be stored."""
        for slot in slots:
            if person := self.people.get(slot.rater):
                del person.slots[slot.number]
                self.handed[slot.item].remove(slot)
        self._find_beginning()

    def save(self, answer: Answer) -> None:
        """Add an answer that is in the record."""
        if person := self.people.get(answer.rater):
            self.answers[answer.id] = answer
            self._live(person, datetime.fromisoformat(answer.saved_utc))
            if not answer.undone:
                person.standing[answer.number] = answer
                self.on_item.setdefault(answer.item, []).append(answer)

    def take_back(self, answer: Answer) -> None:
        """Remove an answer that was undone from those that stand."""
        if (person := self.people.get(answer.rater)) and person.standing.get(answer.number) is answer:
            del person.standing[answer.number]
            self.on_item[answer.item].remove(answer)

    def follow(self, raters: Sequence[Rater]) -> None:
        """Add the persons who registered since, and remove those who withdrew."""
        for rater in raters:
            self.people.setdefault(rater.id, Person(rater))
        withdrawn = self.people.keys() - {rater.id for rater in raters}
        for gone in withdrawn:
            del self.people[gone]
            self.answers = {id: answer for id, answer in self.answers.items() if answer.rater != gone}
            for item, answers in self.on_item.items():
                self.on_item[item] = [answer for answer in answers if answer.rater != gone]
            for item, slots in self.handed.items():
                self.handed[item] = [slot for slot in slots if slot.rater != gone]
        if withdrawn:
            self._find_beginning()

    def said(self, item: str) -> tuple[Answer, ...]:
        """The answers to an item that stand, in the order in which they were saved."""
        return tuple(self.on_item.get(item, ()))

    def is_open(self, slot: Slot) -> bool:
        """Whether a slot has no answer that stands."""
        person = self.people.get(slot.rater)
        return person is not None and slot.number not in person.standing

    def _find_beginning(self) -> None:
        """`begun` by the slots that are left, as a server that is started again finds it."""
        issued = (slot.issued_utc for slots in self.handed.values() for slot in slots)
        self.begun = min(map(datetime.fromisoformat, issued), default=None)

    def _live(self, person: Person, time: datetime) -> None:
        person.seen = time if person.seen is None else max(person.seen, time)
        self.latest = time if self.latest is None else max(self.latest, time)
