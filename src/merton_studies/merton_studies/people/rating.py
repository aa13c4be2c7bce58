"""A rating: one value of one answer, the form in which all statistics see the work of people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ItemRating:
    """One value that one rater gave one item by one criterion.

    Attributes:
        item: its id.
        scene: of the item; intervals are clustered by it.
        rater: the rater's pseudonym, such as "R03".
        criterion: of the protocol, such as "quality" or "spatial".
        value: a number on an ordinal or interval scale, a text on a nominal one.
        number: which of the rater's slots it is, from 1.
        kind: of the slot: "design", "repeat", "gold", "top_up", "turn" or "review".
        seconds: that the rater spent on the whole answer.
        saved_utc: ISO 8601.
    """

    item: str
    scene: str
    rater: str
    criterion: str
    value: float | str
    number: int
    kind: str
    seconds: float
    saved_utc: str
