"""Answers as the tables of exports count them."""

from __future__ import annotations

from collections.abc import Iterable

from merton_studies.people.ledger import Answer


def first_answers(answers: Iterable[Answer]) -> list[Answer]:
    """Each rater's first answer to each item, without gold items.

    Repeats tell how far a rater agrees with themselves, gold items how well they look; neither is another opinion.
    """
    found: dict[tuple[str, str], Answer] = {}
    for answer in sorted(answers, key=lambda one: (one.rater, one.number)):
        if answer.kind not in ("repeat", "gold", "review"):
            found.setdefault((answer.rater, answer.item), answer)
    return list(found.values())
