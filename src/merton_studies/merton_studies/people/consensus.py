"""Agreement of the raters of one item, which decides whether the item is rated again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import fmean

from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer
from merton_studies.people.protocol import Protocol


def consensus(protocol: Protocol, item: Item, answers: Sequence[Answer], width: Callable[[str], float]) -> float | None:
    """Agreement of the answers to one item, 0..1: the mean over criteria and pairs of answers. Ours.

    A pair of values on a nominal scale agrees (1) or not (0). On an ordered scale it counts 1 - |a - b| / width, so
    that neighbours on a scale of five agree by 0.75.

    Args:
        protocol: gives the values of answers and their scales.
        item: rated.
        answers: to it, one a rater.
        width: of the scale of a criterion: its greatest less its least value; 0 if not known.

    Returns:
        None without two values by one criterion.
    """
    values = [protocol.values(item, answer.answer) for answer in answers]
    pairs = []
    for criterion, scale in protocol.criteria.items():
        for one, other in combinations([value[criterion] for value in values if criterion in value], 2):
            if one == other:
                pairs.append(1.0)
            elif scale == "nominal" or isinstance(one, str) or isinstance(other, str):
                pairs.append(0.0)
            else:
                span = max(width(criterion), abs(one - other))
                pairs.append(1.0 - abs(one - other) / span)
    return fmean(pairs) if pairs else None
