"""Twist a knob to a side, by the bar on it, which lies along x of its frame."""

from __future__ import annotations

import math

from merton.world.cell import CellConfig, Props
from merton.world.motion import CARRY_M, TIP_M, Motion, aligned_yaw, yaw_of
from merton.world.shapes import Part
from merton.world.tasks.prop import Joint, MovingPart, Prop
from merton.world.tasks.room import Stand
from merton.world.tasks.situation import Remaining, Situation, shortfall
from merton.world.tasks.task import Command, Poses, Task

TWISTED_RAD = math.radians(45)
_TWIST_RAD = math.radians(62)
_STEP_RAD = 0.12
_PLINTH_SHARE = 0.4


def _plinth(sizes: Props) -> list[Part]:
    plinth = _PLINTH_SHARE * sizes.knob.height
    return [Part("cylinder", (sizes.knob.diameter / 2, plinth / 2), (0.0, 0.0, plinth / 2), "plain")]


def _disc(sizes: Props) -> MovingPart:
    size = sizes.knob
    plinth = _PLINTH_SHARE * size.height
    disc = (size.diameter / 2, (size.height - plinth) / 2)
    grip = (size.grip_width / 2, size.grip_thickness / 2, (size.grip_height - size.height) / 2)
    parts = (
        Part("cylinder", disc, (0.0, 0.0, (size.height + plinth) / 2), mass_kg=0.05),
        Part("box", grip, (0.0, 0.0, (size.grip_height + size.height) / 2), mass_kg=0.05),
    )
    joint = Joint("hinge", axis=(0.0, 0.0, 1.0), limits=(-size.turn, size.turn), damping=0.02, friction=size.friction)
    return MovingPart(parts, joint)


KNOB = Prop("knob", _plinth, fixed=True, moving=_disc, plain=Stand(0.085), varied=Stand(0.080, far_m=0.73))


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    turn = situation.start[command.object][:3, :3].T @ situation.now[command.object][:3, :3]
    left = math.atan2(turn[1, 0], turn[0, 0])
    return Remaining(shortfall(left if command.direction == "left" else -left, TWISTED_RAD))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Grasp the bar, turn it by 62 degrees."""
    x, y = poses.thing[:2, 3]
    height = poses.sizes.knob.height + TIP_M + 0.01
    hand.grip(1.0)
    yaw = aligned_yaw(hand.base_from_tcp, yaw_of(poses.thing) + math.pi / 2)
    hand.move((x, y, height + CARRY_M), yaw).move((x, y, height)).grip(0.0)
    turn = _TWIST_RAD if poses.direction == "left" else -_TWIST_RAD
    return hand.turn((0.0, 0.0, turn), max_rotation_rad=_STEP_RAD)


TASK = Task(
    name="twist",
    template="twist the {object} to the {direction}",
    description="the knob ends turned by at least 45 degrees, right being clockwise as seen from above",
    remaining=_remaining,
    motion=_motion,
    plan="grasp grip, turn it {direction}",
    objects=(KNOB.name,),
    props=(KNOB,),
    kit="knob and peg",
    use=(KNOB.name, "twist it"),
)
