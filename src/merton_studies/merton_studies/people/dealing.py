"""The choice of a rater's next item. Every decision follows from the record, the seed and the clock alone.

So a server that is killed and started again decides as before. A person shows a sign of life by being handed an item
and by answering; one without for longer than the lease is silent, and others may take the items that only they had.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from merton_studies.people.item import Item
from merton_studies.people.ledger import Kind, Slot
from merton_studies.people.project import Project
from merton_studies.people.protocol import Protocol
from merton_studies.people.state import Person, State

Next = tuple[str, Kind]
"""The id of an item, and the kind of its slot: the reason why it is asked about."""


class Dealer(ABC):
    """Chooses items. Not safe to share between threads: `Desk` holds its lock.

    Args:
        project, items, protocol: of the study.
        state: of its record.
        is_closed: whether a person is asked no more.
    """

    def __init__(
        self,
        project: Project,
        items: Sequence[Item],
        protocol: Protocol,
        state: State,
        is_closed: Callable[[Person], bool],
    ) -> None:
        self.project, self.protocol, self.state = project, protocol, state
        self.items: Mapping[str, Item] = {item.id: item for item in items}
        self.order = tuple(items)
        self.ratings = protocol.ratings or project.ratings
        self.lease = timedelta(minutes=project.lease_min)
        self.is_closed = is_closed
        self._seats: tuple[tuple[str, ...], dict[int, Person]] = ((), {})
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Make the design, once."""

    @abstractmethod
    def next(self, person: Person, now: datetime) -> Next | None:
        """The next item for a person, beyond those already handed out; None if there is none now."""

    @abstractmethod
    def left(self, person: Person, now: datetime) -> int:
        """Number of items that this person will be asked about besides those handed out, as far as is known."""

    @abstractmethod
    def waits(self, person: Person) -> int:
        """Number of items that may still come to this person once others have done their part."""

    def open(self, person: Person) -> list[Slot]:
        """The slots that this person can answer now, by number."""
        return [
            slot for number, slot in sorted(person.slots.items()) if number not in person.standing and self.holds(slot)
        ]

    def holds(self, slot: Slot) -> bool:
        """Whether an open slot is still its rater's to answer."""
        return True

    def is_silent(self, person: Person | None, now: datetime, since: datetime | None = None) -> bool:
        """Whether a person has shown no sign of life for longer than the lease.

        Args:
            person: None: one that never came.
            now: the time.
            since: the lease does not end before it has run from then; by default from the start of the study.
        """
        if person is not None and (person.saving or self.is_closed(person)):
            return not person.saving
        seen = None if person is None else person.seen
        times = [time for time in (since or self.state.start, seen) if time is not None]
        return now - max(times, default=now) > self.lease

    def seats(self) -> dict[int, Person]:
        """Seat in the design to its rater: the place of a name in the project, or the order of registration.

        The seat of one who withdrew goes to one who came after all seats were taken.
        """
        people = tuple(self.state.people)
        if self._seats[0] != people:
            self._seats = people, self._seated()
        return self._seats[1]

    def _seated(self) -> dict[int, Person]:
        raters = [person for person in self.state.people.values() if person.rater.role == "rater"]
        named = self.project.raters
        if not isinstance(named, int):
            return {named.index(person.rater.name): person for person in raters if person.rater.name in named}
        seats = {int(person.id[1:]) - 1: person for person in raters}
        free = [seat for seat in range(named) if seat not in seats]
        late = [seat for seat in sorted(seats) if seat >= named]
        for seat, new in zip(late, free, strict=False):
            seats[new] = seats[seat]
        return {seat: person for seat, person in seats.items() if seat < named}

    def seat_of(self, person: Person) -> int | None:
        """The seat of a person; None without one."""
        return next((seat for seat, one in self.seats().items() if one is person), None)
