"""Pick an object up."""

from __future__ import annotations

from merton.world.cell import CellConfig
from merton.world.motion import Motion
from merton.world.tasks.situation import Remaining, Situation, shortfall
from merton.world.tasks.task import Command, Poses, Task

LIFTED_M = 0.08


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    lift = situation.moved(command.object)[2]
    return Remaining(shortfall(lift, LIFTED_M), situation.is_held(command.object))


def _motion(hand: Motion, poses: Poses) -> Motion:
    return hand.pick(poses.thing[:3, 3], poses.yaw_rad)


TASK = Task(
    name="pick",
    template="pick up the {object}",
    description="the object ends at least 8 cm higher, held by the gripper",
    remaining=_remaining,
    motion=_motion,
    plan="lower gripper, close, lift",
    kit="objects",
)
