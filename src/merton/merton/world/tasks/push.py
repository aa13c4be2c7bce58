"""Push an object to a side."""

from __future__ import annotations

import math

from merton.world.cell import CellConfig
from merton.world.motion import APPROACH_HEIGHT_M, GENTLE_TRANSLATION_M, GRASP_HEIGHT_M, Motion, finger_yaw
from merton.world.tasks.room import Site
from merton.world.tasks.situation import Remaining, Situation, shortfall
from merton.world.tasks.task import Command, Poses, Task

PUSHED_M = 0.06
PUSH_M = 0.09
_HAND_HALF_M = 0.013
"""Half the thickness of the closed fingers, across the direction in which they open."""
_OBJECT_HALF_M = 0.0225
_BEHIND_M = 0.065


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    moved = situation.moved(command.object)[:2] @ command.along
    return Remaining(shortfall(float(moved), PUSHED_M), situation.stands(command.object))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Close the hand, come down behind the object, push it 9 cm."""
    along, center = poses.along, poses.thing[:2, 3]
    behind = center - _BEHIND_M * along
    ahead = center + (PUSH_M - _OBJECT_HALF_M - _HAND_HALF_M) * along
    # Square to the push the closed fingers are 48 mm wide, so that a round object does not roll off to the side.
    yaw = finger_yaw(hand.base_from_tcp, math.atan2(along[1], along[0])) + math.pi / 2
    hand.grip(0.0).move((*behind, APPROACH_HEIGHT_M), yaw).move((*behind, GRASP_HEIGHT_M))
    return hand.move((*ahead, GRASP_HEIGHT_M), max_translation_m=GENTLE_TRANSLATION_M)


def _room(site: Site) -> bool:
    """Behind the object the closed gripper comes down, ahead of it the object slides."""
    return site.along is None or site.lane_is_free(site.along, half_m=0.09, behind_m=0.15, ahead_m=0.24)


TASK = Task(
    name="push",
    template="push the {object} to the {direction}",
    description="the object ends at least 6 cm further that way, upright on the table",
    remaining=_remaining,
    motion=_motion,
    plan="close gripper, push {direction}",
    room=_room,
    kit="objects",
    unfit=("ball", "bottle"),
)
