"""The answers of people in the record: written once, never overwritten, on the disk before they are acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Role = Literal["rater", "expert"]
Kind = Literal["design", "repeat", "gold", "top_up", "turn", "review"]


@dataclass(frozen=True)
class Rater:
    """A person of a project.

    Attributes:
        id: pseudonym, "R01" or "E01" and so on; all pages, exports and statistics use it.
        name: as given; leaves the record only if asked for.
        role: "rater" or "expert".
        token_sha256: of the token that opens this person's work; None where the file of tokens has it.
        registered_utc: ISO 8601.
    """

    id: str
    name: str
    role: Role
    token_sha256: str | None
    registered_utc: str


@dataclass(frozen=True)
class Slot:
    """An item handed to a rater.

    Attributes:
        rater: pseudonym.
        number: from 1, in the order in which this rater is asked; the browser knows a slot by it alone.
        item: id of the item.
        kind: why: by the design, as a planted repeat, as a gold item, to top up an item, as a turn, as a review.
        issued_utc: ISO 8601.
    """

    rater: str
    number: int
    item: str
    kind: Kind
    issued_utc: str


@dataclass(frozen=True)
class Answer:
    """An answer as it was saved.

    Attributes:
        id: that the browser made, so that a second sending of it is known as such.
        rater, number, item, kind: of its slot.
        answer: as the protocol's model has it, plain JSON.
        seconds: from the moment the page showed the item until the answer, without pauses.
        saved_utc: ISO 8601.
        undone: True if the rater took it back; the slot is open again.
    """

    id: str
    rater: str
    number: int
    item: str
    kind: Kind
    answer: Mapping[str, Any]
    seconds: float
    saved_utc: str
    undone: bool = False


class Ledger:
    """Raters, slots and answers of one project in a record. Safe to share between threads.

    Args:
        where: the record, as `merton.results.database.Database` takes it.
        project: name of the project.
        definition: canonical JSON of it.

    Raises:
        InputError: the record has answers of a project of this name with another definition.
        InfrastructureError: the record cannot be opened.
    """

    def __init__(self, where: Path | str, project: str, definition: str) -> None:
        raise NotImplementedError

    def register(self, name: str, role: Role = "rater", token_sha256: str | None = None) -> Rater:
        """Store a person, or return the one of this name and role."""
        raise NotImplementedError

    def raters(self) -> tuple[Rater, ...]:
        """All persons in the order of registration; without those who withdrew."""
        raise NotImplementedError

    def hand_out(self, slots: Sequence[Slot]) -> None:
        """Store that items were handed to raters; durable at return."""
        raise NotImplementedError

    def slots(self) -> tuple[Slot, ...]:
        """All slots, by rater and number."""
        raise NotImplementedError

    def save(self, answer: Answer) -> bool:
        """Store an answer; at return it is on the disk. Answers that arrive together share a transaction.

        Returns:
            False if this answer was saved before: nothing changes.

        Raises:
            InputError: its id is known with other content, its slot was not handed out, or has an answer that stands.
            InfrastructureError: the record refuses; nothing was stored.
        """
        raise NotImplementedError

    def undo(self, rater: str, answer_id: str, undo_id: str) -> bool:
        """Take an answer back: a row of its own, so that nothing is overwritten; False if it was undone before."""
        raise NotImplementedError

    def answers(self, undone: bool = False) -> tuple[Answer, ...]:
        """Answers that stand, by rater and number; with `undone` also those that were taken back."""
        raise NotImplementedError

    def withdraw(self, rater: str) -> int:
        """Remove a person's name, slots and answers from the record; returns the number of answers removed.

        Raises:
            UnknownNameError: there is no such rater.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the record, after all answers are on the disk."""
        raise NotImplementedError
