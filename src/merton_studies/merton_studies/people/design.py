"""Designs: which raters judge which items in which order, all from a seed.

Every item goes to the same number of raters, raters have equally many items (+-1 without panels), and pairs of raters
share items about equally often: a balanced incomplete block design, made greedily (ours, because exact designs exist
for few sizes only). Each rating of an item has a position, 0 .. ratings - 1; an item takes every position once and a
rater takes every position equally often (+-1): an equitable colouring of the edges between items and raters, which
exists for every such design (Koenig 1916; de Werra 1971). In an ordered protocol the position is the turn, and with as
many raters as ratings this is a Latin square after another. In any other it is the part of the rater's sequence that
the item comes in, so that no item is judged by tired raters only.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.errors import InputError
from merton.seeding import generator
from merton_studies.people.item import Item
from merton_studies.people.ledger import Kind

FARTHEST_REPEAT = 10
"""Least number of items between an item and its repeat; half of a sequence that has fewer than twice as many."""
_EXCHANGES = 20_000
"""Exchanges of two raters between items that are tried, at most, to make pairs of raters share items equally often."""


@dataclass(frozen=True)
class Place:
    """One place in a rater's sequence: the index of an item, and the kind of its slot."""

    item: int
    kind: Kind


@dataclass(frozen=True)
class AssignmentDesign:
    """The assignment of items to raters.

    Attributes:
        turns: for each item the seats of its raters in the order of their positions; empty for gold items.
        sequences: for each seat its places in order; empty in an ordered protocol.
    """

    turns: tuple[tuple[int, ...], ...]
    sequences: tuple[tuple[Place, ...], ...]


def turns(
    items: int,
    raters: int,
    ratings: int,
    seed: object,
    panels: Sequence[Hashable] | None = None,
    panel_raters: int | None = None,
) -> tuple[tuple[int, ...], ...]:
    """For each item the seats (0 .. raters - 1) of its raters, in the order of their positions.

    Args:
        items: their number.
        raters: seats.
        ratings: of an item, at most `raters`.
        seed: of the design; the same arguments give the same design.
        panels: of each item; items of one panel are dealt among the same raters. Each item by itself if not given.
        panel_raters: raters of a panel, as far as there are so many; by default as many as ratings, who all have the
            same items. Of more raters each has a part of the items, equally many (+-1).

    Raises:
        InputError: more ratings than raters.
    """
    if ratings > raters:
        raise InputError(f"an item cannot have {ratings} ratings by different raters: there are {raters} raters")
    random = generator("design", seed, items, raters, ratings)
    groups: dict[Hashable, list[int]] = {}
    for item in range(items):
        groups.setdefault(item if panels is None else panels[item], []).append(item)
    order = random.permutation(len(groups))
    members = sorted((list(groups.values())[group] for group in order), key=len, reverse=True)
    blocks: list[tuple[int, ...]] = [()] * items
    seats = max(ratings, min(raters, panel_raters or ratings))
    for group, block in zip(members, _blocks([len(group) for group in members], raters, seats, random), strict=True):
        dealt = [block] * len(group) if seats == ratings else _dealt(len(group), block, ratings, random)
        for item, among in zip(group, dealt, strict=True):
            blocks[item] = among
    return _positions(blocks, raters, ratings, random)


def design(
    items: Sequence[Item],
    raters: int,
    ratings: int,
    repeats: float,
    seed: object,
    panels: Sequence[Hashable] | None = None,
    ordered: bool = False,
    panel_raters: int | None = None,
) -> AssignmentDesign:
    """The design of a project.

    Args:
        items: of the project; those with a known answer (`Item.gold`) go to every rater, spread over the sequence.
        raters, ratings, panels, panel_raters: see `turns`; gold items stand outside of it.
        repeats: share of a rater's items that come a second time.
        seed: of everything random.
        ordered: True if there are turns in place of sequences; then no item is gold.

    Raises:
        InputError: more ratings than raters.
    """
    asked = [index for index, item in enumerate(items) if ordered or item.gold is None]
    gold = [index for index in range(len(items)) if index not in set(asked)] if len(asked) < len(items) else []
    asked_panels = None if panels is None else [panels[index] for index in asked]
    places: list[tuple[int, ...]] = [()] * len(items)
    for index, seats in zip(asked, turns(len(asked), raters, ratings, seed, asked_panels, panel_raters), strict=True):
        places[index] = seats
    if ordered:
        return AssignmentDesign(tuple(places), ())
    parts: list[list[list[int]]] = [[[] for _ in range(ratings)] for _ in range(raters)]
    for index, seats in enumerate(places):
        for position, seat in enumerate(seats):
            parts[seat][position].append(index)
    scenes = [item.scene for item in items]
    sequences = (
        _sequence(parts[seat], gold, scenes, repeats, generator("sequence", seed, seat)) for seat in range(raters)
    )
    return AssignmentDesign(tuple(places), tuple(sequences))


def _blocks(sizes: Sequence[int], raters: int, seats: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """For each group of items its raters: those with the fewest items first, then pairs that shared the fewest."""
    load: NDArray[np.int64] = np.zeros(raters, dtype=np.int64)
    together: NDArray[np.int64] = np.zeros((raters, raters), dtype=np.int64)
    blocks: list[list[int]] = []
    for size in sizes:
        ties = random.random(raters)
        block: list[int] = []
        for _ in range(seats):
            order = np.lexsort((ties, together[:, block].sum(axis=1), load))
            block.append(next(int(seat) for seat in order if seat not in block))
        load[block] += size
        together[np.ix_(block, block)] += size
        blocks.append(block)
    if seats < raters:
        _even_out(blocks, sizes, together, random)
    return [tuple(block) for block in blocks]


def _dealt(items: int, block: tuple[int, ...], ratings: int, random: np.random.Generator) -> list[tuple[int, ...]]:
    """For each item of a panel `ratings` of the raters in `block`, dealt in turn: each has equally many items (+-1)."""
    dealt: list[tuple[int, ...]] = [()] * items
    for place, item in enumerate(random.permutation(items)):
        dealt[item] = tuple(block[(place * ratings + rating) % len(block)] for rating in range(ratings))
    return dealt


def _even_out(
    blocks: list[list[int]], sizes: Sequence[int], together: NDArray[np.int64], random: np.random.Generator
) -> None:
    """Exchange raters between groups of equal size where that makes the pairs more equal; loads stay."""
    pairs = np.triu_indices(len(together), 1)
    if np.ptp(together[pairs]) <= 1:
        return
    for one, other in random.integers(len(blocks), size=(min(_EXCHANGES, 100 * len(blocks)), 2)).tolist():
        size = sizes[one]
        leaving = [seat for seat in blocks[one] if seat not in blocks[other]]
        coming = [seat for seat in blocks[other] if seat not in blocks[one]]
        if size != sizes[other] or not leaving:
            continue
        out, into = leaving[random.integers(len(leaving))], coming[random.integers(len(coming))]
        stay, theirs = [s for s in blocks[one] if s != out], [s for s in blocks[other] if s != into]
        gain = together[into, stay] - together[out, stay]
        loss = together[out, theirs] - together[into, theirs]
        both = [seat for seat in stay if seat in theirs]
        change = int(gain.sum() + loss.sum()) + size * (len(stay) + len(theirs) - 2 * len(both))
        if change < 0:
            for seats, old, new in ((stay, out, into), (theirs, into, out)):
                together[old, seats] -= size
                together[seats, old] -= size
                together[new, seats] += size
                together[seats, new] += size
            blocks[one], blocks[other] = [*stay, into], [*theirs, out]
            if np.ptp(together[pairs]) <= 1:
                return


def _positions(
    blocks: Sequence[tuple[int, ...]], raters: int, ratings: int, random: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """The seats of each block in the order of their positions.

    The items of a seat are cut into lots of as many as there are ratings, and the edges between items and lots are
    coloured such that no two at an item or a lot are alike: each lot, and so each seat, has every position once.
    """
    seats_of: list[list[int]] = [[] for _ in range(raters)]
    for item, block in enumerate(blocks):
        for seat in block:
            seats_of[seat].append(item)
    at_item = [[-1] * ratings for _ in blocks]
    at_lot: list[list[int]] = []
    owner: list[int] = []
    for seat, mine in enumerate(seats_of):
        for place, index in enumerate(random.permutation(len(mine))):
            if place % ratings == 0:
                at_lot.append([-1] * ratings)
                owner.append(seat)
            _colour(mine[index], len(at_lot) - 1, at_item, at_lot, random)
    return tuple(tuple(owner[lot] for lot in lots) for lots in at_item)


def _colour(
    item: int, lot: int, at_item: list[list[int]], at_lot: list[list[int]], random: np.random.Generator
) -> None:
    """Colour the edge between an item and a lot; exchange two colours along a path of others where that is needed."""
    free_item = [colour for colour, other in enumerate(at_item[item]) if other < 0]
    free_lot = [colour for colour, other in enumerate(at_lot[lot]) if other < 0]
    both = [colour for colour in free_item if colour in free_lot]
    colour = both[random.integers(len(both))] if both else free_item[0]
    if not both:
        other = free_lot[0]
        path, sides, side, node, now = [], (at_lot, at_item), 0, lot, colour
        while (end := sides[side][node][now]) >= 0:
            path.append((end, node, now) if side == 0 else (node, end, now))
            side, node, now = 1 - side, end, other if now == colour else colour
        for of_item, of_lot, now in path:
            at_item[of_item][now] = at_lot[of_lot][now] = -1
        for of_item, of_lot, now in path:
            turned = other if now == colour else colour
            at_item[of_item][turned], at_lot[of_lot][turned] = of_lot, of_item
    at_item[item][colour], at_lot[lot][colour] = lot, item


def _sequence(
    parts: Sequence[Sequence[int]],
    gold: Sequence[int],
    scenes: Sequence[str],
    repeats: float,
    random: np.random.Generator,
) -> tuple[Place, ...]:
    """The places of one seat: its items part by part, repeats at a distance, gold items spread."""
    mine = _apart([[part[index] for index in random.permutation(len(part))] for part in parts], scenes)
    places = [Place(item, "design") for item in mine]
    gap = min(FARTHEST_REPEAT, len(mine) // 2)
    sources = random.choice(len(mine) - gap, round(repeats * len(mine)), replace=False) if repeats and mine else ()
    inserts = [(int(random.integers(source + gap, len(mine))) + 1, Place(mine[source], "repeat")) for source in sources]
    ends = np.linspace(0, len(mine), len(gold) + 1).astype(int)
    for part, index in enumerate(random.permutation(len(gold))):
        inserts.append((int(random.integers(ends[part], ends[part + 1] + 1)), Place(gold[index], "gold")))
    for before, place in sorted(inserts, key=lambda insert: insert[0], reverse=True):
        places.insert(before, place)
    return tuple(places)


def _apart(parts: Sequence[Sequence[int]], scenes: Sequence[str]) -> list[int]:
    """The items part by part, one scene never twice in a row where its part has another (as ITU-R BT.500-14 asks)."""
    found: list[int] = []
    for part in parts:
        left = list(part)
        while left:
            last = scenes[found[-1]] if found else None
            found.append(left.pop(next((at for at, item in enumerate(left) if scenes[item] != last), 0)))
    return found
