"""Ratings: the answers of a study, one value a row, as all statistics see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from merton.errors import InputError
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import Protocol
from merton_studies.people.rating import ItemRating

INDEPENDENT = ("design", "turn")
"""Kinds of slots whose ratings tell of agreement. Not repeats, in which raters agree with themselves; not gold items,
which are chosen for being clear; not top-ups, which are asked for where raters disagree."""


def ratings_of(items: Sequence[Item], protocol: Protocol, answers: Iterable[Answer]) -> tuple[ItemRating, ...]:
    """Every value of every rater's answer, by item, rater, number and criterion; experts' reviews are none.

    Args:
        items: of the project.
        protocol: says which values an answer has.
        answers: that stand, as `Ledger.answers` gives them.

    Raises:
        InputError: an answer to an item that the project does not have.
    """
    by_id = {item.id: item for item in items}
    found = []
    for answer in answers:
        if answer.kind == "review":
            continue
        item = by_id.get(answer.item)
        if item is None:
            raise InputError(f"rater {answer.rater} answered an item {answer.item!r} that the project does not have")
        for criterion, value in protocol.values(item, answer.answer).items():
            found.append(
                ItemRating(item.id, item.scene, answer.rater, criterion, value, answer.number, answer.kind,
                       answer.seconds, answer.saved_utc)
            )  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.item, one.rater, one.number, one.criterion)))


def independent(ratings: Iterable[ItemRating]) -> tuple[ItemRating, ...]:
    """The ratings that agreement is computed from, see `INDEPENDENT`."""
    return tuple(rating for rating in ratings if rating.kind in INDEPENDENT)
