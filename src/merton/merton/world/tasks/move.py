"""Move an object to a side of another one."""

from __future__ import annotations

import numpy as np

from merton.world.cell import CellConfig
from merton.world.motion import GRASP_HEIGHT_M, Motion
from merton.world.nouns import SHAPES
from merton.world.tasks.room import PLAIN_OBJECT, Neighbour, Site
from merton.world.tasks.situation import Remaining, Situation, excess, shortfall
from merton.world.tasks.task import Command, Poses, Task

LEAST_M, MOST_M, ASIDE_M = 0.05, 0.13, 0.03
UNDISTURBED_M = 0.02
BESIDE_M = 0.09
"""Distance between the centres of the two afterwards."""
_VARIED_ROOM_M = 0.065


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    target = str(command.target)
    offset = (situation.now[command.object] - situation.now[target])[:2, 3]
    beyond = float(offset @ command.along)
    way = (
        shortfall(beyond, LEAST_M)
        + excess(beyond, MOST_M)
        + excess(abs(offset[0]), ASIDE_M)
        + excess(np.linalg.norm(situation.moved(target)), UNDISTURBED_M)
        + situation.off_table(command.object)
    )
    return Remaining(way, situation.is_upright(command.object) and situation.is_released(command.object))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Carry it there; for the release the fingers open along x, away from the target."""
    goal = poses.target[:2, 3] + BESIDE_M * poses.along
    return hand.carry(poses.thing, poses.yaw_rad, goal, GRASP_HEIGHT_M, release_yaw_rad=0.0)


def _room(site: Site) -> bool:
    """The goal is on the table, and free; in a plain scene the object itself stands elsewhere, too."""
    if site.target is None or site.along is None:
        return True
    goal = site.target + BESIDE_M * site.along
    others, room_m = list(site.others), _VARIED_ROOM_M
    if site.plain and site.thing is not None:
        others.append(Neighbour(site.thing, PLAIN_OBJECT.room_m))
        room_m = PLAIN_OBJECT.room_m
    return site.contains(goal) and all(np.hypot(*(at - goal)) >= own_m + room_m for at, own_m in others)


TASK = Task(
    name="move",
    template="move the {object} to the {direction} of the {target}",
    description="the object ends 5 to 13 cm to that side of the other and at most 3 cm before or behind it, upright on "
    "the table, released, the other within 2 cm of where it was",
    remaining=_remaining,
    motion=_motion,
    plan="grasp it, set {direction} of {target}",
    targets=SHAPES,
    room=_room,
    kit="objects",
    unfit=("ball",),
)
