"""The servo: finds an object on the table, moves above it, locates it again from there, and does the task.

A classical policy without learning: the fixed camera "top" finds the object, "wrist" corrects. It sees outlines: the
patches that edges enclose, the hue of each, and their positions by the aligned depth. `describe` thresholds colours
instead, so the two do not fail together. Distortion affects the colour image alone, faults of depth the positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.decision.models.base import Policy
from merton.errors import InputError
from merton.models.blobs import LIT, smallest_rectangle_angle
from merton.world.action import ActionChunk, checked_chunk
from merton.world.geometry import transform
from merton.world.motion import (
    APPROACH_HEIGHT_M,
    GRASP_HEIGHT_M,
    LIFT_HEIGHT_M,
    RELEASE_ABOVE_M,
    STEP_S,
    Motion,
    finger_yaw,
)
from merton.world.nouns import noun
from merton.world.observation import CameraView, Image, Observation
from merton.world.tasks import COLORS, TASKS, Command, Poses, parse

VERBS = ("reach", "push", "pick", "place")
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
"""Box of possible points on an object; others are ignored."""
_EDGES = (60, 120)
"""Thresholds of Canny's edges: the gradient at which one goes on, and begins. Ours: chosen on undistorted pictures."""
_EIGHT = np.ones((3, 3), np.uint8)
"""A pixel with its eight neighbours."""
_LARGEST_SHARE = 0.1
"""Share of the picture above which a patch is no thing: the table, a wall."""
_TOP_M = 0.008
"""Largest depth of a point of an object's top below the highest one."""
_FEWEST_POINTS = 15
_THING_M = 0.05
"""Horizontal distance within which patches of a colour belong to one thing."""
_LEAST_CHROMA = 15.0
"""CIELAB distance from grey below which a patch has no colour. Ours: the things' own are 60 and more, the table's 3."""
_HELD = (0.10, 0.90)
"""Fingers open by a share between these hold an object: the tasks only open or close them."""

Patch = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows and columns of the pixels of a patch."""


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
            InputError: an unknown instruction, a task that it cannot do, a thing that is named by more than colour and
                shape, or a camera without a view or depth.
        """
        command = parse(observation.instruction)
        if command.verb not in VERBS:
            raise InputError(f"servo cannot {command.verb}; it can: {', '.join(VERBS)}")
        if not noun(command.object).is_plain:
            raise InputError(f"servo finds a thing by its colour, and so cannot tell which is the {command.object}")
        camera = FINDER if observation.step == 0 else CORRECTOR
        view = observation.views.get(camera)
        if view is None:
            raise InputError(f"servo needs the view of camera {camera!r}")
        hand = Motion(observation.tool, observation.opened)
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
        return checked_chunk(deltas, STEP_S, model=self.name, done=done)


def look_from_above(hand: Motion) -> NDArray[np.float64]:
    """Go to the lookout; one delta of zeros if the hand is there."""
    deltas = hand.move(LOOKOUT_M, LOOKOUT_YAW_RAD).deltas
    return deltas if len(deltas) else np.array([[0.0] * 6 + [hand.gripper_open]])


def approach(hand: Motion, thing: Sighting) -> NDArray[np.float64]:
    """Go above an object, the fingers square to it."""
    yaw_rad = finger_yaw(hand.base_from_tcp, thing.yaw_rad)
    return hand.move((*thing.top[:2], LOOK_HEIGHT_M), yaw_rad).deltas


def perform(command: Command, hand: Motion, thing: Sighting) -> NDArray[np.float64]:
    """Do the task with an object below the hand; of "place" the first half, the pick."""
    task = TASKS["pick" if command.verb == "place" else command.verb]
    return task.motion(hand, Poses(transform(thing.center), thing.yaw_rad, direction=command.direction)).deltas


def set_down(hand: Motion, mat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Put the held object on the mat at (x, y, ...), release it and leave."""
    over, lowest = mat[:2], GRASP_HEIGHT_M + RELEASE_ABOVE_M
    hand.move((*over, LIFT_HEIGHT_M)).move((*over, lowest)).grip(1.0)
    return hand.move((*over, APPROACH_HEIGHT_M)).deltas


def locate(view: CameraView, name: str) -> Sighting | None:
    """The thing "<color> <shape>" on the table, which is the largest outlined patch of that colour, or None.

    The yaw is None unless the shape is "cube". Raises InputError for a view without depth.
    """
    if view.depth_m is None:
        raise InputError(f"servo needs aligned depth from camera {view.camera!r}")
    color, shape = name.split()
    colors = _lab(view.color)
    patches = [_on_table(view, view.depth_m, one) for one in outlined(view.color) if _named(colors[one]) == color]
    if not (patches := [patch for patch in patches if len(patch)]):
        return None
    middle = np.median(patches[0][:, :2], axis=0)  # its sides are patches of their own
    found = np.vstack([one for one in patches if np.hypot(*(np.median(one[:, :2], axis=0) - middle)) < _THING_M])
    if len(found) < _FEWEST_POINTS:
        return None
    top = found[found[:, 2] > np.percentile(found[:, 2], 90) - _TOP_M]
    return Sighting(top.mean(axis=0), smallest_rectangle_angle(top[:, :2]) if shape == "cube" else None)


def outlined(image: Image) -> list[Patch]:
    """The patches that edges (Canny's, of any colour channel) enclose, largest first."""
    edges = np.maximum.reduce([cv2.Canny(channel, *_EDGES) for channel in cv2.split(image)])
    edges = cv2.morphologyEx(edges, cv2.MORPH_CLOSE, _EIGHT)  # gaps of a pixel or two
    _, labels, statistics, _ = cv2.connectedComponentsWithStats((edges == 0).astype(np.uint8), connectivity=4)
    areas, patches = statistics[:, cv2.CC_STAT_AREA], []
    for label in np.argsort(-areas[1:], kind="stable") + 1:
        if _FEWEST_POINTS <= areas[label] <= _LARGEST_SHARE * edges.size:
            left, top, width, height = statistics[label, :4]
            row, column = max(top - 1, 0), max(left - 1, 0)  # its edge belongs to it
            patch = labels[row : top + height + 1, column : left + width + 1] == label
            rows, columns = np.nonzero(cv2.dilate(patch.astype(np.uint8), _EIGHT))
            patches.append((rows + row, columns + column))
    return patches


def _on_table(view: CameraView, depth_m: NDArray[np.float32], patch: Patch) -> NDArray[np.float64]:
    """Points (n, 3) [m] in `base_link` of the pixels of a patch that have depth and lie on the table."""
    rows, columns = patch
    in_camera = view.lens.deproject(columns, rows, depth_m[patch])
    points = in_camera @ view.pose[:3, :3].T + view.pose[:3, 3]
    there = (in_camera[:, 2] > 0) & ((points > _TABLE_MIN_M) & (points < _TABLE_MAX_M)).all(axis=1)
    return np.asarray(points[there])


def _lab(image: Image) -> NDArray[np.float32]:
    """CIELAB (height, width, 3) of RGB: lightness 0 .. 100, a and b 0 for grey."""
    return np.asarray(cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)


def _named(colors: NDArray[np.float32]) -> str:
    """The one of `COLORS` whose hue is nearest to that of the median of (n, 3) in CIELAB; empty if that is grey."""
    middle = np.median(colors, axis=0)
    if np.hypot(*middle[1:]) < _LEAST_CHROMA:
        return ""
    away = np.abs((_hue_rad(middle) - _HUES_RAD + math.pi) % (2 * math.pi) - math.pi)
    return COLORS[int(away.argmin())]


def _hue_rad(colors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(np.arctan2(colors[..., 2], colors[..., 1]))


_LIT = np.asarray(cv2.cvtColor(np.array([[LIT[color] for color in COLORS]], np.uint8), cv2.COLOR_HSV2RGB), np.uint8)
_HUES_RAD = _hue_rad(_lab(_LIT)[0])
"""Hue angle in CIELAB of each of `COLORS`, lit from above."""
