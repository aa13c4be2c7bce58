"""The servo: finds what the instruction names by its colour in the wrist camera, goes there, looks again, and acts.

A classical policy without learning. Colour decides which pixels belong to an object, the aligned depth says where they
are. It sees whatever a distortion leaves of the colour image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.decision.action import ActionChunk, checked_chunk
from merton.decision.models import motions
from merton.decision.models.base import example_observation
from merton.decision.models.motions import Motion
from merton.errors import InputError
from merton.observation import CameraView, Observation
from merton.tasks import Command, parse
from merton.vision import Blob, enclosing_rectangle, find_blobs

CAMERA = "wrist"
LOOK_HEIGHT_M = 0.20
"""Height of the tool centre point at which an object below it is looked at again."""
LOOKOUT_M = (0.38, 0.0, 0.45)
LOOKOUT_YAW_RAD = -math.pi / 2
"""Where the wrist camera has the whole table in view and the fingers hide nothing of it."""

NEAR_M = 0.03
"""So close above an object, what is seen of it is good enough to act on."""
_TABLE_MIN_M, _TABLE_MAX_M = (0.25, -0.40, -0.02), (0.80, 0.40, 0.09)
"""Where an object's surface can be; anything else of its colour is something else."""
_TOP_M = 0.008
"""Points this far below the highest still belong to an object's top."""
_FEW_POINTS = 15
_HELD = (0.10, 0.90)
"""A hand that wanted to close and is this far open has something in it."""


@dataclass(frozen=True)
class Sighting:
    """An object as it is seen: centre of its top (x, y, z) [m] in `base_link`, and the yaw of a cube's sides [rad]."""

    top: NDArray[np.float64]
    yaw_rad: float

    @property
    def center(self) -> NDArray[np.float64]:
        """Its centre (3,) [m], given that it stands on the table (z = 0)."""
        return self.top * (1.0, 1.0, 0.5)


class Servo:
    """Looks, approaches, looks again, acts; what it does next follows from what it sees and where its hand is."""

    name = "servo"
    cameras: tuple[str, ...] = (CAMERA,)
    needs_scene = False

    def act(self, observation: Observation, rng: np.random.Generator) -> ActionChunk:
        """The next motion; done with the last one, or when the object is nowhere to be seen from the lookout either.

        Raises:
            InputError: an instruction it cannot understand, or no wrist view with depth.
        """
        command = parse(observation.instruction)
        view = observation.views.get(CAMERA)
        if view is None or view.depth_m is None:
            raise InputError(f"servo needs the view of camera {CAMERA!r} with its aligned depth")
        hand = Motion(observation.base_from_tcp, observation.gripper_open)
        holding = command.verb == "place" and _HELD[0] < observation.gripper_open < _HELD[1]
        sought = str(command.target) if holding else command.object
        sighting = locate(view, sought.split()[0])
        if sighting is None:
            done = _look_from_above(hand)
        elif holding:
            done = _set_down(hand, sighting)
        elif np.linalg.norm(sighting.top[:2] - hand.base_from_tcp[:2, 3]) > NEAR_M:
            done = _approach(hand, sighting, command)
        else:
            return self._act_on(hand, sighting, command)
        return self._chunk(hand.deltas, done)

    def _act_on(self, hand: Motion, sighting: Sighting, command: Command) -> ActionChunk:
        """Carry out the task on an object below the hand; for place, as far as to where the mat can be seen."""
        now = (hand.base_from_tcp, hand.gripper_open)
        yaw_rad = _yaw_of(sighting, command)
        if command.verb == "reach":
            return self._chunk(motions.reach(*now, sighting.center), True)
        if command.verb == "push":
            return self._chunk(motions.push(*now, sighting.center, str(command.direction)), True)
        deltas = motions.pick(*now, sighting.center, yaw_rad)
        if command.verb == "pick":
            return self._chunk(deltas, True)
        lifted = Motion(_end_of_pick(hand, sighting, yaw_rad), 0.0)
        _look_from_above(lifted)
        return self._chunk(np.vstack((deltas, lifted.deltas)), False)

    def _chunk(self, deltas: NDArray[np.float64], done: bool) -> ActionChunk:
        return checked_chunk(deltas, motions.STEP_S, model=self.name, done=done)

    def make_example(self) -> Observation:
        """A grey image, in which there is nothing to pick up."""
        return example_observation("pick up the red cube", self.cameras)


def locate(view: CameraView, color: str) -> Sighting | None:
    """The largest patch of a colour that lies on the table, or None."""
    for blob in find_blobs(view.color, color):
        points = _points(view, blob)
        inside = ((points > _TABLE_MIN_M) & (points < _TABLE_MAX_M)).all(axis=1)
        if inside.sum() >= _FEW_POINTS:
            points = points[inside]
            top = points[points[:, 2] > np.percentile(points[:, 2], 90) - _TOP_M]
            return Sighting(top.mean(axis=0), enclosing_rectangle(top[:, :2])[0])
    return None


def _points(view: CameraView, blob: Blob) -> NDArray[np.float64]:
    """What a blob's pixels show, (n, 3) [m] in `base_link`; pixels without depth are left out."""
    assert view.depth_m is not None
    rows, columns = np.nonzero(blob.mask & (view.depth_m > 0))
    depth = view.depth_m[rows, columns].astype(np.float64)
    i = view.intrinsics
    in_camera = np.column_stack(((columns - i.cx) / i.fx * depth, (rows - i.cy) / i.fy * depth, depth))
    return np.asarray(in_camera @ view.base_from_camera[:3, :3].T + view.base_from_camera[:3, 3])
