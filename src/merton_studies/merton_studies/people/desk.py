"""The choice of each rater's next item: designs, turns, leases, repeats, gold items and top-ups over the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from statistics import median
from threading import Lock
from typing import Any, Literal

from merton.config import validated
from merton.errors import InputError, UnknownNameError
from merton_studies.people.attention import care
from merton_studies.people.dealing import Dealer
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Ledger, Slot
from merton_studies.people.project import Project
from merton_studies.people.protocol import OrderedProtocol, Protocol
from merton_studies.people.shares import Shares
from merton_studies.people.state import Person, State
from merton_studies.people.turns import Turns

PACE_ANSWERS = 20
"""Number of a rater's last answers whose median time is the rater's pace."""
_PACE_AFTER = 3
_FOLLOWED_S = 5.0
"""Period of the search for raters who withdrew [s]."""


@dataclass(frozen=True)
class Work:
    """The state of one rater's work.

    Attributes:
        state: "working", "waiting" (all that is left waits for others), "done", or "closed" (deadline, or attention
            rules ended the work).
        reason: one sentence for the rater where the state is not "working".
        slots: the slot to be answered now and those after it, for preloading.
        said: for each of `slots`, the answers to its item that the protocol shows, in the order in which they were
            saved; empty if the protocol is not ordered.
        last: the rater's last answer that stands, which undo takes back; None without one.
        done, total: slots answered, and all that are known so far.
        seconds_left: estimate from the rater's own pace; None before the first answers.
    """

    state: Literal["working", "waiting", "done", "closed"]
    reason: str
    slots: tuple[Slot, ...]
    said: tuple[tuple[Answer, ...], ...]
    last: Answer | None
    done: int
    total: int
    seconds_left: float | None


class Desk:
    """Deals items to raters. Safe to share between threads; no rater ever waits for the lock of another's answer.

    Args:
        project, items, protocol: of the study.
        ledger: its record.
        now: the clock (UTC).
    """

    def __init__(
        self,
        project: Project,
        items: Sequence[Item],
        protocol: Protocol,
        ledger: Ledger,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._project, self._protocol, self._ledger = project, protocol, ledger
        self._now = now or (lambda: datetime.now(timezone.utc))
        self._items = {item.id: item for item in items}
        self._lock = Lock()
        self._state = State(ledger)
        self._cared: dict[str, tuple[tuple[int, datetime | None] | None, bool]] = {}
        self._followed: datetime | None = None
        kind = Turns if isinstance(protocol, OrderedProtocol) else Shares
        self._dealer: Dealer = kind(project, items, protocol, self._state, self._is_closed)

    def work(self, rater: str, ahead: int = 2) -> Work:
        """The rater's work; hands out slots where that is needed.

        Raises:
            UnknownNameError: there is no such rater.
        """
        person = self._person(rater)
        with self._lock:
            closed = self._why_closed(person)
        if closed is None:
            with person.dealing:
                self._hand_out(person, 1 + (min(ahead, 1) if self._protocol.ordered else ahead))
        with self._lock:
            slots = () if closed else tuple(self._dealer.open(person)[: ahead + 1])
            said = tuple(self._said(slot) for slot in slots)
            left = 0 if closed else len(self._dealer.open(person)) + self._dealer.left(person, self._stamp())
            done, waits = len(person.standing), self._dealer.waits(person)
            times = [answer.seconds for answer in person.standing.values()][-PACE_ANSWERS:]
            seconds = median(times) * left if len(times) >= _PACE_AFTER else None
            last = person.last
        if closed:
            return Work("closed", closed, (), (), last, done, done, None)
        if slots:
            return Work("working", "", slots, said, last, done, done + left, seconds)
        if waits:
            items = "1 item waits" if waits == 1 else f"{waits} items wait"
            return Work("waiting", f"{items} for the answers of others.", (), (), last, done, done + waits, None)
        return Work("done", "You have answered everything. Thank you.", (), (), last, done, done, None)

    def answer(self, rater: str, number: int, answer_id: str, answer: Mapping[str, Any], seconds: float) -> bool:
        """Save an answer to a slot of this rater; durable at return. False if it was saved before.

        Raises:
            InputError: no such slot, an answer that the protocol refuses, or one that contradicts what is stored.
            InfrastructureError: the record refuses; nothing was stored.
        """
        person = self._person(rater)
        slot = self._slot(person, number)
        with self._lock:
            said = self._said(slot)
            known = self._state.answers.get(answer_id)
            if known is None and (closed := self._why_closed(person)):
                raise InputError(closed)
        kind = self._protocol.review if slot.kind == "review" else self._protocol.answer
        given = self._protocol.checked(self.shown(slot), validated(kind, json.dumps(dict(answer)), "answer"), said)
        content = given.model_dump(mode="json")
        with self._lock:
            if known is None and not self._dealer.holds(slot):
                raise InputError(
                    f"item {number} went to another rater, as there was no answer for {self._project.lease_min:g} min"
                )
            person.saving.add(number)
            saved = Answer(answer_id, rater, number, slot.item, slot.kind, content, seconds, _text(self._stamp()))
        try:
            new = self._ledger.save(saved)
            if new:
                with self._lock:
                    self._state.save(saved)
        finally:
            with self._lock:
                person.saving.discard(number)
        return new

    def undo(self, rater: str, undo_id: str) -> bool:
        """Take back the rater's last answer that stands; False if there is none, or the same undo was done before.

        Raises:
            InputError: another person has the item already and sees the answer, or the work has ended.
        """
        person = self._person(rater)
        with person.dealing:
            with self._lock:
                last = person.last
                if last is None:
                    return False
                if closed := self._why_closed(person):
                    raise InputError(closed)
                if self._protocol.ordered and self._state.handed[last.item][-1] != person.slots[last.number]:
                    raise InputError("your last answer is before the next person already and can no longer be undone")
                self._state.take_back(last)
            undone = False
            try:
                undone = self._ledger.undo(rater, last.id, undo_id)
            finally:
                if not undone:
                    with self._lock:
                        self._state.save(last)
        return undone

    def shown(self, slot: Slot) -> Item:
        """The item of a slot as this slot shows it (`Protocol.shown`); media and views are of it."""
        return self._protocol.shown(self._items[slot.item], slot, self._project.seed)

    def item_of(self, rater: str, number: int) -> Item:
        """The item of a slot of this rater, as `shown`; raises InputError if it was not handed out."""
        return self.shown(self._slot(self._person(rater), number))

    def _hand_out(self, person: Person, wanted: int) -> None:
        """Hand out slots until so many are open, or nothing is left; others see them as taken from the choice on."""
        with self._lock:
            new: list[Slot] = []
            while len(self._dealer.open(person)) < wanted and (chosen := self._dealer.next(person, self._stamp())):
                number = max(person.slots, default=0) + 1
                new.append(Slot(person.id, number, *chosen, _text(self._stamp())))
                self._state.hand_out(new[-1])
        if new:
            try:
                self._ledger.hand_out(new)
            except BaseException:
                with self._lock:
                    self._state.drop(new)
                raise

    def _stamp(self) -> datetime:
        """The time; later than all times in the record, so that these give an order even if the clock goes back."""
        latest = self._state.latest
        now = self._now()
        return now if latest is None else max(now, latest + timedelta(microseconds=1))

    def _said(self, slot: Slot) -> tuple[Answer, ...]:
        """The answers to the item of a slot that its rater sees: those saved before an answer to the slot stood."""
        if not self._protocol.ordered:
            return ()
        said = self._state.said(slot.item)
        own = next((at for at, one in enumerate(said) if (one.rater, one.number) == (slot.rater, slot.number)), None)
        return said[:own]

    def _is_closed(self, person: Person) -> bool:
        """Whether attention rules ended this person's work."""
        rules, standing = self._project.attention, person.standing
        if not rules.ends or len(standing) < rules.after or person.rater.role != "rater":
            return False
        state = (len(standing), person.seen)
        if self._cared.get(person.id, (None, False))[0] != state:
            found = care(rules, self._protocol, self._items, standing.values())
            self._cared[person.id] = (state, any(one.is_marked for one in found.values()))
        return self._cared[person.id][1]

    def _why_closed(self, person: Person) -> str | None:
        """The sentence that tells a person that no answers are taken any more; None while they are."""
        deadline = self._project.deadline
        if deadline is not None and self._now() > deadline:
            return f"The study ended at {deadline:%Y-%m-%d %H:%M} UTC. Thank you for your work."
        if self._is_closed(person):
            return "Your part of the study has ended. Thank you for your work."
        return None

    def _person(self, rater: str) -> Person:
        """A person of the record, which is read again for an unknown one, and every `_FOLLOWED_S` for withdrawals."""
        now = self._now()
        with self._lock:
            stale = self._followed is None or abs((now - self._followed).total_seconds()) > _FOLLOWED_S
            known = rater in self._state.people
        if stale or not known:
            raters = self._ledger.raters()
            with self._lock:
                self._followed = now
                self._state.follow(raters)
        with self._lock:
            if (person := self._state.people.get(rater)) is None:
                raise UnknownNameError("rater", rater, self._state.people)
            return person

    def _slot(self, person: Person, number: int) -> Slot:
        with self._lock:
            if (slot := person.slots.get(number)) is None:
                raise InputError(f"item {number} was not handed out")
            return slot


def _text(time: datetime) -> str:
    return time.astimezone(timezone.utc).isoformat(timespec="microseconds")
