"""Who is asked what next: designs, turns, leases, repeats, gold items and top-ups over the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from merton.people.item import Item
from merton.people.ledger import Answer, Ledger, Slot
from merton.people.project import Project
from merton.people.protocol import Protocol


@dataclass(frozen=True)
class Work:
    """The state of one rater's work.

    Attributes:
        state: "working", "waiting" (all that is left waits for others), "done", or "closed" (deadline, or attention
            rules ended the work).
        reason: one sentence for the rater where the state is not "working".
        slots: the slot to be answered now and those after it, for preloading.
        said: for each of `slots`, the answers of others that the protocol shows.
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
        raise NotImplementedError

    def work(self, rater: str, ahead: int = 2) -> Work:
        """The rater's work; hands out slots where that is needed.

        Raises:
            UnknownNameError: there is no such rater.
        """
        raise NotImplementedError

    def answer(self, rater: str, number: int, answer_id: str, answer: Mapping[str, Any], seconds: float) -> bool:
        """Save an answer to a slot of this rater; durable at return. False if it was saved before.

        Raises:
            InputError: no such slot, an answer that the protocol refuses, or one that contradicts what is stored.
        """
        raise NotImplementedError

    def undo(self, rater: str, undo_id: str) -> bool:
        """Take back the rater's last answer that stands; False if there is none, or the same undo was done before."""
        raise NotImplementedError

    def shown(self, slot: Slot) -> Item:
        """The item of a slot as this slot shows it (`Protocol.shown`); media and views are of it."""
        raise NotImplementedError

    def item_of(self, rater: str, number: int) -> Item:
        """The item of a slot of this rater, as `shown`; raises InputError if it was not handed out."""
        raise NotImplementedError
