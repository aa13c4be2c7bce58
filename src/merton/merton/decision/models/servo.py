"""The servo: finds an object by its colour, moves above it, locates it again from there, and does the task.

A classical policy without learning: the fixed camera "top" finds the object, "wrist" corrects. Pixels of an object are
those of its colour, and the aligned depth gives their positions. Distortion affects the colour image alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.decision.models import motions
from merton.decision.models.base import Policy
from merton.decision.models.motions import Motion
from merton.errors import InputError
from merton.models.blobs import find_blobs, smallest_rectangle_angle
from merton.world.action import ActionChunk, checked_chunk
from merton.world.nouns import noun
from merton.world.observation import CameraView, Observation
from merton.world.tasks import Command, parse

TASKS = ("reach", "push", "pick", "place")
"""The tasks that it can do."""
FINDER, CORRECTOR = "top", "wrist"
"""The cameras of step 0 and of all later steps. Ours: at home the hand hides little from "top"."""

LOOK_HEIGHT_M = 0.20
"""Height of the tool centre point at which an object below it is located again."""
LOOKOUT_M, LOOKOUT_YAW_RAD = (0.38, 0.0, 0.45), -math.pi / 2
"""Pose of the hand in which "wrist" sees all of the table, and the fingers hide none of it."""
NEAR_M = 0.03
"""Within this horizontal distance of an object its measured position is accurate enough for the task."""

_TABLE_MIN_M, _TABLE_MAX_M = (0.25, -0.40, -0.02), (0.80, 0.40, 0.09)
"""Box of possible points on an object; other points of its colour are ignored."""
_TOP_M = 0.008
"""Largest depth of a point of an object's top below the highest one."""
_FEWEST_POINTS = 15
_HELD = (0.10, 0.90)
"""Fingers open by a share between these hold an object: the tasks only open or close them."""


@dataclass(frozen=True)
class Sighting:
    """A located object: centre of its top (x, y, z) [m] in `base_link`; yaw of a cube's sides [rad], else None."""

    top: NDArray[np.float64]
    yaw_rad: float | None

    @property
    def center(self) -> NDArray[np.float64]:
        """Its centre (3,) [m], given that it stands on the table (z = 0)."""
        return self.top * (1.0, 1.0, 0.5)


class Servo(Policy):
    """Each motion follows from the present view and the pose of the hand alone."""

    name = "servo"
    cameras = (FINDER, CORRECTOR)

    def act(self, observation: Observation) -> ActionChunk:
        """The next motion; done with the last one, or if the object is not visible even from the lookout.

        Raises:
            InputError: an unknown instruction, a task that is not in `TASKS`, a thing that is named by more than colour
                and shape, or a camera without a view or depth.
        """
        command = parse(observation.instruction)
        if command.verb not in TASKS:
            raise InputError(f"servo cannot {command.verb}; it can: {', '.join(TASKS)}")
        if not noun(command.object).is_plain:
            raise InputError(f"servo finds a thing by its colour, and so cannot tell which is the {command.object}")
        camera = FINDER if observation.step == 0 else CORRECTOR
        view = observation.views.get(camera)
        if view is None:
            raise InputError(f"servo needs the view of camera {camera!r}")
        hand = Motion(observation.base_from_tcp, observation.gripper_open)
        high = bool(hand.base_from_tcp[2, 3] > LOOKOUT_M[2] - NEAR_M)
        if command.verb == "place" and _HELD[0] < hand.gripper_open < _HELD[1]:
            mat = locate(view, str(command.target)) if high else None
            deltas, done = (set_down(hand, mat.top), True) if mat else (look_from_above(hand), high)
        elif (thing := locate(view, command.object)) is None:
            deltas, done = look_from_above(hand), high
        elif np.linalg.norm(thing.top[:2] - hand.base_from_tcp[:2, 3]) > NEAR_M:
            deltas, done = approach(hand, thing), False
        else:
            deltas, done = perform(command, hand, thing), command.verb != "place"
        return checked_chunk(deltas, motions.STEP_S, model=self.name, done=done)


def look_from_above(hand: Motion) -> NDArray[np.float64]:
    """Go to the lookout; one delta of zeros if the hand is there."""
    deltas = hand.move(LOOKOUT_M, LOOKOUT_YAW_RAD).deltas
    return deltas if len(deltas) else np.array([[0.0] * 6 + [hand.gripper_open]])


def approach(hand: Motion, thing: Sighting) -> NDArray[np.float64]:
    """Go above an object, the fingers square to it."""
    yaw_rad = motions.finger_yaw(hand.base_from_tcp, thing.yaw_rad)
    return hand.move((*thing.top[:2], LOOK_HEIGHT_M), yaw_rad).deltas


def perform(command: Command, hand: Motion, thing: Sighting) -> NDArray[np.float64]:
    """Do the task with an object below the hand; of "place" the first half, the pick."""
    now = (hand.base_from_tcp, hand.gripper_open, thing.center)
    if command.verb == "reach":
        return motions.reach(*now)
    if command.verb == "push":
        return motions.push(*now, str(command.direction))
    return motions.pick(*now, thing.yaw_rad)


def set_down(hand: Motion, mat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the held object on the mat at (x, y, ...), release it and leave."""
    over, lowest = mat[:2], motions.GRASP_HEIGHT_M + motions.RELEASE_ABOVE_M
    hand.move((*over, motions.LIFT_HEIGHT_M)).move((*over, lowest)).grip(1.0)
    return hand.move((*over, motions.APPROACH_HEIGHT_M)).deltas


def locate(view: CameraView, name: str) -> Sighting | None:
    """The object "<color> <shape>" on the table, which is the largest patch of that colour, or None.

    The yaw is None unless the shape is "cube". Raises InputError for a view without depth.
    """
    if view.depth_m is None:
        raise InputError(f"servo needs aligned depth from camera {view.camera!r}")
    color, shape = name.split()
    for blob in find_blobs(view.color, color):
        points = _points(view, blob.mask & (view.depth_m > 0), view.depth_m)
        inside = ((points > _TABLE_MIN_M) & (points < _TABLE_MAX_M)).all(axis=1)
        if inside.sum() >= _FEWEST_POINTS:
            points = points[inside]
            top = points[points[:, 2] > np.percentile(points[:, 2], 90) - _TOP_M]
            yaw_rad = smallest_rectangle_angle(top[:, :2]) if shape == "cube" else None
            return Sighting(top.mean(axis=0), yaw_rad)
    return None


def _points(view: CameraView, mask: NDArray[np.bool_], depth_m: NDArray[np.float32]) -> NDArray[np.float64]:
    """Points (n, 3) [m] in `base_link` of the pixels of a mask (height, width)."""
    rows, columns = np.nonzero(mask)
    depth, i = depth_m[rows, columns].astype(np.float64), view.intrinsics
    in_camera = np.column_stack(((columns - i.cx) / i.fx * depth, (rows - i.cy) / i.fy * depth, depth))
    return np.asarray(in_camera @ view.base_from_camera[:3, :3].T + view.base_from_camera[:3, 3])
