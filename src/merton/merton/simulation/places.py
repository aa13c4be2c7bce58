"""Places for the things of a varied scene: all can be grasped, and each task has the room that it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from merton.world.geometry import Array
from merton.world.tasks import DIRECTIONS

Spot = tuple[float, float, float]
"""x, y [m] and yaw [rad] in `base_link`."""

AREA_M = ((0.35, -0.33), (0.68, 0.33))
"""Corners (x, y) of the area in which the middles of things stand. Ours: the hand reaches all of it upright."""
_ROOM_M = {
    "lid": 0.092,
    "socket": 0.095,
    "cup": 0.080,
    "bowl": 0.110,
    "drawer": 0.125,
    "knob": 0.080,
    "button": 0.082,
    "mat": 0.085,
}
_OBJECT_ROOM_M = 0.068
"""Half the distance between two of a kind. Ours: open fingers reach 0.095 m to either side, an object 0.036 m."""
_MAX_YAW_RAD = math.radians(30)
_ROUND = ("cylinder", "ball", "bottle", "spool", "cone", "peg", "button", "mat")
_TRIES = 150
"""Spots that are tried for a thing before the layout is given up."""
MOVE_M = 0.09
_MOVE_CLEAR_M = 0.13
# The lane of a push and of a drawer, as in plain scenes: half its width, its reach behind and ahead of the thing.
_PUSH_LANE_M = (0.09, 0.15, 0.24)
_DRAWER_LANE_M = (0.115, 0.0, 0.25)
_DRAWER_MIN_X_M = 0.52
_BOWL_X_M = (0.50, 0.62)
_CUP_MAX_X_M = 0.62
_FAR_M = {"": 0.73, "bowl": 0.66, "cup": 0.68}
"""Greatest distance from the robot's base at which a thing stands: a cup is tilted high above a bowl."""


class Placing:
    """Spots for things of some kinds, drawn one after the other, those that need the most room first.

    Attributes:
        spots: in the order of the kinds, or None if they found no room.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        kinds: Sequence[str],
        needs: Sequence[tuple[str, int, int | None, str | None]],
    ) -> None:
        self.kinds, self.needs = kinds, needs
        self.yaws = [0.0 if kind in _ROUND else float(rng.uniform(-_MAX_YAW_RAD, _MAX_YAW_RAD)) for kind in kinds]
        room = np.array([_ROOM_M.get(kind, _OBJECT_ROOM_M) for kind in kinds])
        placed: dict[int, Array] = {}
        self.spots: list[Spot] | None = None
        for number in sorted(range(len(kinds)), key=lambda number: (-room[number], number)):
            tries = rng.uniform(*AREA_M, size=(_TRIES, 2))
            fit = self._in_reach(kinds[number], tries)
            for other, at in placed.items():
                fit = fit & (np.hypot(*(tries - at).T) >= room[number] + room[other])
            spot = next((spot for spot in tries[fit] if self._free(number, spot, placed)), None)
            if spot is None:
                return
            placed[number] = spot
        self.spots = [
            (float(placed[number][0]), float(placed[number][1]), self.yaws[number]) for number in range(len(kinds))
        ]

    def _in_reach(self, kind: str, tries: Array) -> NDArray[np.bool_]:
        low, high = {"drawer": (_DRAWER_MIN_X_M, 1.0), "bowl": _BOWL_X_M, "cup": (0.0, _CUP_MAX_X_M)}.get(
            kind, (0.0, 1.0)
        )
        return (tries[:, 0] >= low) & (tries[:, 0] <= high) & (np.hypot(*tries.T) <= _FAR_M.get(kind, _FAR_M[""]))

    def _free(self, number: int, spot: Array, placed: dict[int, Array]) -> bool:
        """Whether the tasks have room with one more thing at a spot."""
        now = {**placed, number: spot}
        return all(self._has_room(verb, thing, target, direction, now) for verb, thing, target, direction in self.needs)

    def _has_room(
        self, verb: str, thing: int, target: int | None, direction: str | None, now: dict[int, Array]
    ) -> bool:
        """Whether a task can be done with the things that have places; a task whose own things have none, can."""
        others = {other: at for other, at in now.items() if other != thing and self.kinds[other] != "mat"}
        if verb == "push" and thing in now:
            return _clear(now[thing], np.array(DIRECTIONS[str(direction)]), others, _PUSH_LANE_M)
        if verb == "pull" and thing in now:
            opening = -np.array([math.cos(self.yaws[thing]), math.sin(self.yaws[thing])])
            return _clear(now[thing], opening, others, _DRAWER_LANE_M)
        if verb == "move" and target in now:
            goal = now[target] + MOVE_M * np.array(DIRECTIONS[str(direction)])
            inside = (goal >= AREA_M[0]).all() and (goal <= AREA_M[1]).all() and np.hypot(*goal) <= _FAR_M[""]
            apart = all(
                np.hypot(*(at - goal)) >= _ROOM_M.get(self.kinds[other], _OBJECT_ROOM_M) + _MOVE_CLEAR_M / 2
                for other, at in others.items()
                if other != target
            )
            return bool(inside and apart)
        return True

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


def _clear(start: Array, along: Array, others: dict[int, Array], lane_m: tuple[float, float, float]) -> bool:
    """Whether a lane from a place along a direction is empty."""
    half, behind, ahead = lane_m
    for at in others.values():
        way = float((at - start) @ along)
        if -behind < way < ahead and abs(float((at - start) @ (-along[1], along[0]))) < half:
            return False
    return True
