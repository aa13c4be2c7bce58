"""Families about where things are and how much there is of them: SpatGeo and QuantNum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from merton.world.nouns import COLORS
from merton_studies.curation.cell.fact import CellScene, Fact, Item, Shot, choice, number, the, yes_no

_ASIDE = 0.07
"""Ours: a thing counts as further left if it lies so much of the picture's width further left."""
_CLEARLY_M, _NEARER_M, _TALLER_M = 0.05, 0.07, 0.012
_TURN_RAD = math.radians(6)
"""Left of another is further along y and in a direction further to the left of the base: two readings that agree."""
_SUPPORTS = ("mat", "bowl", "socket")
_FIT_INTO = {"socket": ("peg",), "bowl": ("ball", "cube", "cylinder", "brick", "cone")}
"""Kinds that may be in a bowl or a socket: of others a reader knows without looking that they are not."""
_STAND_ON = ("cube", "cylinder", "mug", "bottle", "brick", "spool", "cone", "peg")
"""Kinds that may stand on a mat or on another thing."""
_FAR_OUT = ("drawer", "bowl")
"""Kinds that never stand near to the robot, so that a reader would know their distance without looking."""


def placing(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    """Facts of SpatGeo in a picture."""
    named = scene.named(shot)
    for one, other in _ordered_pairs(named, rng):
        yield from _two(shot, one, other)
    yield from _supports(scene, shot, named)
    for picked in _groups(named, 4, rng):
        yield from _of_four(shot, picked)
    for item in named:
        yield from _region(shot, item)
        others = [other for other in named if other is not item]
        gaps = sorted((float(np.hypot(*(other.middle - item.middle)[:2])), other.name) for other in others)
        if len(gaps) >= 4 and gaps[1][0] - gaps[0][0] > _CLEARLY_M / 2:
            offered = [name for _, name in gaps[:4]]
            yield choice("neighbour", "SpatGeo", item.name, gaps[0][1], offered, {"x": the(item.name)}, shot, "")


def _ordered_pairs(items: list[Item], rng: np.random.Generator) -> Iterator[tuple[Item, Item]]:
    """Each pair once, in a random order of the two, so that no relation is more often true."""
    for one, other in combinations(items, 2):
        yield (one, other) if rng.random() < 0.5 else (other, one)


def _groups(items: list[Item], size: int, rng: np.random.Generator) -> Iterator[list[Item]]:
    for _ in range(3):
        if len(items) >= size:
            yield [items[index] for index in rng.permutation(len(items))[:size]]


def _apart(one: Item, other: Item) -> bool:
    """Whether neither stands on or in the other."""
    return other.name not in (one.on, one.inside) and one.name not in (other.on, other.inside)


def _two(shot: Shot, one: Item, other: Item) -> Iterator[Fact]:
    words, subject = {"x": the(one.name), "y": the(other.name)}, f"{one.name}/{other.name}"
    if not _apart(one, other):
        return
    (x, y), (u, v) = shot.seen[one.name].middle, shot.seen[other.name].middle
    if abs(x - u) > _ASIDE:
        side = "left" if x < u else "right"
        yield choice("picture_side", "SpatGeo", subject, side, ("left", "right"), words, shot)
        yield yes_no("picture_left", "SpatGeo", subject, x < u, words, shot)
    ahead, left = (one.middle - other.middle)[:2]
    turn = math.atan2(one.middle[1], one.middle[0]) - math.atan2(other.middle[1], other.middle[0])
    if abs(left) > _CLEARLY_M and turn * left > 0 and abs(turn) > _TURN_RAD:
        side = "left" if left > 0 else "right"
        yield choice("robot_side", "SpatGeo", subject, side, ("left", "right"), words, shot)
    away = float(np.hypot(*one.middle[:2]) - np.hypot(*other.middle[:2]))
    anywhere = one.kind not in _FAR_OUT and other.kind not in _FAR_OUT
    if anywhere and abs(away) > _CLEARLY_M:
        nearer = one if away < 0 else other
        first = "first" if nearer is one else "second"
        yield choice("robot_nearer", "SpatGeo", subject, nearer.name, (one.name, other.name), words, shot, first)
    depth = shot.seen[one.name].distance_m - shot.seen[other.name].distance_m
    if abs(depth) > _NEARER_M and abs(y - v) > 0.05:
        yield yes_no("camera_nearer", "SpatGeo", subject, depth < 0, words, shot)
    if anywhere and abs(ahead) > _CLEARLY_M:
        yield yes_no("robot_behind", "SpatGeo", subject, bool(ahead > 0), words, shot)


def _supports(scene: CellScene, shot: Shot, named: list[Item]) -> Iterator[Fact]:
    for base in named:
        if base.kind not in _SUPPORTS and not any(item.on == base.name for item in named):
            continue
        guests = scene.guests(base.name)
        for item in named:
            if item.loose and item is not base and item.kind in _FIT_INTO.get(base.kind, _STAND_ON):
                words = {"x": the(item.name), "y": the(base.name)}
                family = "inside" if base.kind in ("bowl", "socket") else "on_top"
                yield yes_no(family, "SpatGeo", f"{item.name}/{base.name}", item in guests, words, shot)
        fit = [item for item in named if item.loose and item.kind in _FIT_INTO.get(base.kind, _STAND_ON)]
        others = [item.name for item in fit if item not in guests and item is not base]
        if len(guests) == 1 and guests[0] in named and len(others) >= 3:
            offered = (guests[0].name, *others[:3])
            yield choice("what_on", "SpatGeo", base.name, guests[0].name, offered, {"y": the(base.name)}, shot, "")


def _of_four(shot: Shot, picked: list[Item]) -> Iterator[Fact]:
    """Facts about the outermost of four: the leftmost, the rightmost, the nearest to the robot, the furthest."""
    names = [item.name for item in picked]
    subject = "/".join(sorted(names))
    rules: dict[str, tuple[Callable[[Item], float], float]] = {
        "leftmost": (lambda item: shot.seen[item.name].middle[0], _ASIDE / 2),
        "rightmost": (lambda item: -shot.seen[item.name].middle[0], _ASIDE / 2),
        "nearest_robot": (lambda item: float(np.hypot(*item.middle[:2])), _CLEARLY_M / 2),
        "furthest_robot": (lambda item: -float(np.hypot(*item.middle[:2])), _CLEARLY_M / 2),
    }
    for family, (rule, margin) in rules.items():
        if family.endswith("robot") and any(item.kind in _FAR_OUT for item in picked):
            continue
        ranked = sorted(picked, key=rule)
        if rule(ranked[1]) - rule(ranked[0]) > margin:
            yield choice(family, "SpatGeo", subject, ranked[0].name, names, {}, shot, "")


def _region(shot: Shot, item: Item) -> Iterator[Fact]:
    x, y = shot.seen[item.name].middle
    if min(abs(x - 0.5), abs(y - 0.5)) > 0.06:
        part = f"{'upper' if y < 0.5 else 'lower'} {'left' if x < 0.5 else 'right'}"
        offered = ("upper left", "upper right", "lower left", "lower right")
        yield choice("region", "SpatGeo", item.name, part, offered, {"x": the(item.name)}, shot)


# QuantNum -------------------------------------------------------------------------------------------------------------


def measuring(scene: CellScene, shot: Shot, rng: np.random.Generator) -> Iterator[Fact]:
    """Facts of QuantNum in a picture."""
    yield from _counts(scene, shot)
    named = [item for item in scene.named(shot) if not item.on and not item.inside]
    for one, other in _ordered_pairs(named, rng):
        words, subject = {"x": the(one.name), "y": the(other.name)}, f"{one.name}/{other.name}"
        gap = float(np.hypot(*(one.middle - other.middle)[:2]))
        yield number("distance", subject, gap, words, shot, unit="m", balance=f"{gap:.1f}")
    for one, other in _ordered_pairs([item for item in scene.alone(shot) if not item.on and not item.inside], rng):
        difference = one.height_m - other.height_m
        if abs(difference) > _TALLER_M:
            colors = (one.color, other.color)
            words = {"x": f"the {one.color} thing", "y": f"the {other.color} thing"}
            taller = one.color if difference > 0 else other.color
            yield choice("taller", "QuantNum", "/".join(colors), taller, colors, words, shot)
    for item in scene.alone(shot):
        words = {"color": item.color}
        if item.kind != "mat" and not item.on and not item.inside:
            tall = item.height_m
            yield number("height", item.color, tall, words, shot, unit="m", balance=f"{tall:.2f}")
        away = float(np.hypot(*item.middle[:2]))
        yield number("from_base", item.color, away, words, shot, unit="m", balance=f"{away:.1f}")


def _counts(scene: CellScene, shot: Shot) -> Iterator[Fact]:
    items = scene.items.values()
    mats = {item.color for item in items if item.kind == "mat"}
    for color in COLORS:
        found = [item for item in items if item.color == color]
        if color not in mats and all(shot.shows(item.name) for item in found):
            count, words = len(found), {"color": color}
            yield number("count_colour", color, count, words, shot, balance=str(count))
    for kind in ("cube", "ball", "mug", "bottle", "button", "drawer", "cylinder", "cone"):
        found = [item for item in items if item.kind == kind]
        like = [item for item in items if item.kind in _MISTAKEN.get(kind, ())]
        if not like and all(shot.shows(item.name) for item in found):
            count, words = len(found), {"kind": f"{kind}s"}
            yield number("count_kind", kind, count, words, shot, balance=str(count))
    fallen = [item for item in items if item.kind in ("cylinder", "bottle", "peg", "spool", "mug")]
    if fallen and all(shot.shows(item.name) for item in fallen):
        count = sum(item.upright is False for item in fallen)
        yield number("count_lying", "lying", count, {}, shot, balance=str(count))
    if all(shot.shows(item.name) for item in items):
        yield number("count_all", "all", len(items), {}, shot, balance=str(len(items)))


_MISTAKEN = {
    "cylinder": ("peg", "spool", "mug", "cup"),
    "mug": ("cup",),
    "cube": ("brick", "lid"),
    "button": ("knob",),
}
"""Kinds that a reader may count among another: it is not counted where they are."""
