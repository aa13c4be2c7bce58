"""Place an object on a mat."""

from __future__ import annotations

import numpy as np

from merton.world.cell import CellConfig
from merton.world.motion import (
    APPROACH_HEIGHT_M,
    GENTLE_TRANSLATION_M,
    GRASP_HEIGHT_M,
    LIFT_HEIGHT_M,
    RELEASE_ABOVE_M,
    Motion,
)
from merton.world.tasks.situation import Remaining, Situation, excess
from merton.world.tasks.task import MAT, Command, Poses, Task

CLEAR_M = 0.04


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    position = situation.now[command.object][:3, 3]
    aside = np.linalg.norm((position - situation.now[str(command.target)][:3, 3])[:2])
    way = excess(aside, cell.objects.mat_radius) + situation.off_table(command.object)
    clear = np.linalg.norm(situation.tcp - position) > CLEAR_M and situation.is_released(command.object)
    return Remaining(way, bool(clear))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Pick the object, set it down on the middle of the mat, release it, leave."""
    over = poses.target[:2, 3]
    hand.pick(poses.thing[:3, 3], poses.yaw_rad)
    hand.move((*over, LIFT_HEIGHT_M)).move((*over, GRASP_HEIGHT_M + 3 * RELEASE_ABOVE_M))
    hand.move((*over, GRASP_HEIGHT_M + RELEASE_ABOVE_M), max_translation_m=GENTLE_TRANSLATION_M)
    return hand.grip(1.0).move((*over, APPROACH_HEIGHT_M))


TASK = Task(
    name="place",
    template="place the {object} on the {target}",
    description="the object ends on the mat, released, gripper clear of it",
    remaining=_remaining,
    motion=_motion,
    plan="grasp it, set on {target}",
    targets=(MAT,),
    kit="objects",
    unfit=("ball",),
    use=(MAT, "set something down on it"),
    goal="{object} stands on {target}",
)
