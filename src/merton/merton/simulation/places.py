"""Places for the things of a varied scene: all can be grasped, and each task has the room that it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from merton.world.geometry import Array
from merton.world.tasks import MAT, PLAIN_OBJECT, VARIED_OBJECT, Neighbour, Site, Stand, Task, prop_of

Spot = tuple[float, float, float]
"""x, y [m] and yaw [rad] in `base_link`."""

AREA_M = ((0.35, -0.33), (0.68, 0.33))
"""Corners (x, y) of the area in which the middles of things stand. Ours: the hand reaches all of it upright."""
MAX_YAW_RAD = math.radians(30)
_ROUND = ("cylinder", "ball", "bottle", "spool", "cone", MAT)
_MATS = {True: Stand(0.09), False: Stand(0.085, far_m=0.73)}
_TRIES = 150
"""Spots that are tried for a thing before the layout is given up."""


def stand_of(kind: str, *, plain: bool) -> Stand:
    """The limits on the place of a kind of thing, in a plain scene or in one of a split; "" is any object."""
    if kind == MAT:
        return _MATS[plain]
    if prop := prop_of(kind):
        return prop.plain if plain else prop.varied
    return PLAIN_OBJECT if plain else VARIED_OBJECT


def is_round(kind: str) -> bool:
    """Whether a kind of thing looks the same at any yaw, so that scenes do not turn it."""
    prop = prop_of(kind)
    return kind in _ROUND if prop is None else prop.round


class Need(NamedTuple):
    """A task of a scene that needs room: the numbers of its thing and target, and its direction (2,)."""

    task: Task
    thing: int
    target: int | None
    along: Array | None


class Placing:
    """Spots for things of some kinds, drawn one after the other, those that need the most room first.

    Attributes:
        spots: in the order of the kinds, or None if they found no room.
    """

    def __init__(self, rng: np.random.Generator, kinds: Sequence[str], needs: Sequence[Need]) -> None:
        self.kinds, self.needs = kinds, needs
        self.yaws = [0.0 if is_round(kind) else float(rng.uniform(-MAX_YAW_RAD, MAX_YAW_RAD)) for kind in kinds]
        self.stands = [stand_of(kind, plain=False) for kind in kinds]
        room = [stand.room_m for stand in self.stands]
        placed: dict[int, Array] = {}
        self.spots: list[Spot] | None = None
        for number in sorted(range(len(kinds)), key=lambda number: (-room[number], number)):
            tries = rng.uniform(*AREA_M, size=(_TRIES, 2))
            fit = self.stands[number].allows(tries)
            for other, at in placed.items():
                fit = fit & (np.hypot(*(tries - at).T) >= room[number] + room[other])
            spot = next((spot for spot in tries[fit] if self._free({**placed, number: spot})), None)
            if spot is None:
                return
            placed[number] = spot
        self.spots = [
            (float(placed[number][0]), float(placed[number][1]), self.yaws[number]) for number in range(len(kinds))
        ]

    def _free(self, now: dict[int, Array]) -> bool:
        """Whether the tasks have room with the things that have places."""
        return all(need.task.room is None or need.task.room(self._site(need, now)) for need in self.needs)

    def _site(self, need: Need, now: dict[int, Array]) -> Site:
        others = [
            Neighbour(at, self.stands[number].room_m)
            for number, at in now.items()
            if number not in (need.thing, need.target) and self.kinds[number] != MAT
        ]
        return Site(
            thing=now.get(need.thing),
            yaw_rad=self.yaws[need.thing],
            target=None if need.target is None else now.get(need.target),
            along=need.along,
            others=others,
            area=(np.array(AREA_M[0]), np.array(AREA_M[1])),
            far_m=VARIED_OBJECT.far_m,
            plain=False,
        )

    @staticmethod
    def clutter(rng: np.random.Generator) -> tuple[tuple[str, Spot], ...]:
        """Kind and spot of 2 to 5 things without names, beyond and beside the area where nothing moves."""
        things: list[tuple[str, Spot]] = []
        for _ in range(int(rng.integers(2, 6))):
            kind = str(rng.choice(CLUTTER))
            beside = rng.random() < 0.5
            x = rng.uniform(0.30, 0.92) if beside else rng.uniform(0.84, 0.94)
            y = rng.choice([-1.0, 1.0]) * rng.uniform(0.48, 0.62) if beside else rng.uniform(-0.55, 0.55)
            spot = (float(x), float(y), float(rng.uniform(-math.pi, math.pi)))
            if all(math.dist(spot[:2], other[:2]) > 0.13 for _, other in things):
                things.append((kind, spot))
        return tuple(things)


CLUTTER = ("rod", "slab", "ring", "tray", "post")
"""Kinds of things without names."""
