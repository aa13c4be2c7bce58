"""Motions of the hand, as deltas in `base_link`: what the oracle and the rule-based policies are built of.

Translations are added in `base_link`, rotation vectors are applied from the left, the gripper value is absolute.
Lengths are in metres, angles in radians.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.world.action import DIMENSIONS
from merton.world.geometry import Matrix, rotation_of_vector, rotation_vector_of

STEP_S = 0.2
"""Time one delta takes [s]."""
MAX_TRANSLATION_M = 0.06
MAX_ROTATION_RAD = 0.25
GENTLE_TRANSLATION_M = 0.03
"""Translation of one delta in contact with an object or close to it."""

GRASP_HEIGHT_M = 0.022
"""Height of the tool centre point when it grasps or pushes: the fingers end 14 mm above the table."""
APPROACH_HEIGHT_M = 0.14
"""Height at which the hand passes over objects, empty or with one of them."""
LIFT_HEIGHT_M = 0.17
RELEASE_ABOVE_M = 0.003
"""Height of an object above the table at its release, so that it is not pressed into the table."""
TIP_M = 0.008
"""The fingers end this far below the tool centre point."""
CLEAR_M = 0.015
"""Distance of the finger tips above the surface below a handle."""
CARRY_M = 0.085
"""Lift of a carried object, over others of 0.06 m."""


class Motion:
    """A motion under construction: straight lines and gripper commands, one after the other.

    Args:
        base_from_tcp: (4, 4) pose of the tool centre point where the motion starts.
        gripper_open: 0 closed .. 1 open at the start.
    """

    def __init__(self, base_from_tcp: Matrix, gripper_open: float) -> None:
        self.base_from_tcp = base_from_tcp.copy()
        self.gripper_open = min(1.0, max(0.0, float(gripper_open)))
        self._deltas: list[NDArray[np.float64]] = []

    @property
    def deltas(self) -> NDArray[np.float64]:
        """The deltas so far, (n, 7)."""
        return np.vstack(self._deltas) if self._deltas else np.empty((0, DIMENSIONS))

    def move(
        self, position: ArrayLike, yaw_rad: float | None = None, *, max_translation_m: float = MAX_TRANSLATION_M
    ) -> Motion:
        """Go straight to a position (3,) in `base_link`; with a yaw, point down and turn the fingers on the way."""
        target = self.base_from_tcp.copy()
        target[:3, 3] = position
        if yaw_rad is not None:
            target[:3, :3] = pointing_down(yaw_rad)
        self._deltas.append(straight_line(self.base_from_tcp, target, self.gripper_open, max_translation_m))
        self.base_from_tcp = target
        return self

    def turn(self, rotation_vector: ArrayLike, *, max_rotation_rad: float = MAX_ROTATION_RAD) -> Motion:
        """Turn about the tool centre point by a rotation vector (3,) in `base_link` [rad]."""
        target = self.base_from_tcp.copy()
        target[:3, :3] = rotation_of_vector(rotation_vector) @ target[:3, :3]
        line = straight_line(self.base_from_tcp, target, self.gripper_open, max_rotation_rad=max_rotation_rad)
        self._deltas.append(line)
        self.base_from_tcp = target
        return self

    def wait(self, steps: int) -> Motion:
        """Stand still for some steps."""
        self._deltas.append(np.tile([0.0] * 6 + [self.gripper_open], (steps, 1)))
        return self

    def grip(self, gripper_open: float) -> Motion:
        """Open or close in place: a delta without motion, which the arm completes before the next one."""
        self.gripper_open = gripper_open
        self._deltas.append(np.array([[0.0] * 6 + [gripper_open]]))
        return self

    def pick(self, position: ArrayLike, object_yaw_rad: float | None) -> Motion:
        """Open the hand, grasp an object on the table from above and lift it.

        Args:
            position: its centre (3,) in `base_link`, of which x and y count.
            object_yaw_rad: as `finger_yaw`.
        """
        center = np.asarray(position, dtype=np.float64)[:2]
        self.grip(1.0).move((*center, APPROACH_HEIGHT_M), finger_yaw(self.base_from_tcp, object_yaw_rad))
        return self.move((*center, GRASP_HEIGHT_M)).grip(0.0).move((*center, LIFT_HEIGHT_M))

    def carry(
        self,
        thing: Matrix,
        yaw_rad: float | None,
        goal: ArrayLike,
        grasp_m: float,
        *,
        release_yaw_rad: float | None = None,
    ) -> Motion:
        """Grasp a thing, carry it to a place on the table, set it down, release it and leave.

        Args:
            thing: its pose (4, 4), of which x and y count.
            yaw_rad: as `finger_yaw`.
            goal: (x, y) of the place.
            grasp_m: height of the tool centre point while the fingers close and open.
            release_yaw_rad: direction along which the fingers open at the release; that of the grasp if None.
        """
        center, place, above = thing[:2, 3], np.asarray(goal, dtype=np.float64), grasp_m + CARRY_M
        self.grip(1.0).move((*center, above), finger_yaw(self.base_from_tcp, yaw_rad)).move((*center, grasp_m))
        self.grip(0.0).move((*center, above))
        turned = None if release_yaw_rad is None else aligned_yaw(self.base_from_tcp, release_yaw_rad)
        self.move((*place, above), turned).move((*place, grasp_m + GENTLE_TRANSLATION_M))
        self.move((*place, grasp_m + RELEASE_ABOVE_M), max_translation_m=GENTLE_TRANSLATION_M)
        return self.grip(1.0).move((*place, above))


def straight_line(
    base_from_tcp: Matrix,
    target: Matrix,
    gripper_open: float,
    max_translation_m: float = MAX_TRANSLATION_M,
    max_rotation_rad: float = MAX_ROTATION_RAD,
) -> NDArray[np.float64]:
    """Equal deltas (n, 7) from one pose (4, 4) to another, each within the bounds; none if the poses are the same."""
    translation = target[:3, 3] - base_from_tcp[:3, 3]
    turn = rotation_vector_of(target[:3, :3] @ base_from_tcp[:3, :3].T)
    steps = max(np.linalg.norm(translation) / max_translation_m, np.linalg.norm(turn) / max_rotation_rad)
    count = math.ceil(steps - 1e-9)
    delta = np.concatenate((translation, turn)) / max(count, 1)
    return np.tile(np.append(delta, gripper_open), (count, 1))


def pointing_down(yaw_rad: float) -> NDArray[np.float64]:
    """Rotation (3, 3) of a hand that points straight down and opens its fingers (x of the tool) along `yaw_rad`."""
    cosine, sine = math.cos(yaw_rad), math.sin(yaw_rad)
    return np.array([[cosine, sine, 0.0], [sine, -cosine, 0.0], [0.0, 0.0, -1.0]])


def finger_yaw(base_from_tcp: Matrix, object_yaw_rad: float | None) -> float:
    """The nearest yaw [rad] of the hand at which the fingers are square to an object's sides.

    Args:
        base_from_tcp: (4, 4) pose of the hand.
        object_yaw_rad: of an object with four equal sides; None for a round one, for which the hand does not turn.
    """
    now = yaw_of(base_from_tcp)
    if object_yaw_rad is None:
        return now
    quarter = math.pi / 2
    return now + (object_yaw_rad - now + quarter / 2) % quarter - quarter / 2


def aligned_yaw(base_from_tcp: Matrix, direction_rad: float) -> float:
    """The nearest yaw [rad] of the hand at which the fingers open along a direction, either way round."""
    now = yaw_of(base_from_tcp)
    return now + (direction_rad - now + math.pi / 2) % math.pi - math.pi / 2


def yaw_of(pose: Matrix) -> float:
    """Yaw [rad] of the x axis of a pose (4, 4) in `base_link`."""
    return math.atan2(pose[1, 0], pose[0, 0])
