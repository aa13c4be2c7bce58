"""The room that things and tasks need on the table; lengths in metres, places (x, y) in `base_link`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from merton.world.geometry import Array


@dataclass(frozen=True)
class Stand:
    """Limits on the place of a kind of thing.

    Attributes:
        room_m: half the distance between two of the kind; a thing of another kind adds its own.
        x_m: least and greatest x.
        far_m: greatest distance from the robot's base.
    """

    room_m: float
    x_m: tuple[float, float] = (-math.inf, math.inf)
    far_m: float = math.inf

    def allows(self, places: Array) -> NDArray[np.bool_]:
        """Whether the thing may be at places (..., 2); of shape (...)."""
        x, y = places[..., 0], places[..., 1]
        least, most = self.x_m
        return np.asarray((x >= least) & (x <= most) & (np.hypot(x, y) <= self.far_m))


PLAIN_OBJECT = Stand(0.07)
"""Of an object in a plain scene. Ours: open fingers reach 0.095 m to either side, an object's corner 0.032 m."""
VARIED_OBJECT = Stand(0.068, far_m=0.73)
"""Of an object in the scenes of splits: it reaches 0.036 m, and the hand reaches every place upright."""


class Neighbour(NamedTuple):
    """Another thing on the table: its place (2,), and the `room_m` of its kind."""

    at: Array
    room_m: float


@dataclass(frozen=True)
class Site:
    """The places in a scene that is being laid out, as one task sees them; things may have none yet.

    Attributes:
        thing: place (2,) of the command's object, or None.
        yaw_rad: its yaw.
        target: place (2,) of the command's target, or None.
        along: unit vector (2,) of the command's direction, or None.
        others: all other things but mats.
        area: least and greatest corner (2,) of the area for the middles of things.
        far_m: greatest distance of things from the robot's base.
        plain: whether it is a plain scene.
    """

    thing: Array | None
    yaw_rad: float
    target: Array | None
    along: Array | None
    others: Sequence[Neighbour]
    area: tuple[Array, Array]
    far_m: float
    plain: bool

    def lane_is_free(self, along: Array, half_m: float, behind_m: float, ahead_m: float) -> bool:
        """Whether no other thing is in a lane along a unit vector (2,), which starts behind the object and ends ahead.

        Args:
            half_m: half the width of the lane.
            behind_m, ahead_m: where it starts and ends, from the object.
        """
        if self.thing is None:
            return True
        across = np.array((-along[1], along[0]))
        for at, _ in self.others:
            offset = at - self.thing
            if -behind_m < float(offset @ along) < ahead_m and abs(float(offset @ across)) < half_m:
                return False
        return True

    def contains(self, place: Array) -> bool:
        """Whether a place (2,) is in the area, within reach."""
        low, high = self.area
        return bool((place >= low).all() and (place <= high).all() and np.hypot(*place) <= self.far_m)
