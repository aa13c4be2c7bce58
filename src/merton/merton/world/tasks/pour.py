"""Pour the beads of a cup into a bowl."""

from __future__ import annotations

import math

import numpy as np

from merton.world.cell import CellConfig, Vessel
from merton.world.geometry import inverse
from merton.world.motion import CARRY_M, GENTLE_TRANSLATION_M, Motion, aligned_yaw, finger_yaw, yaw_of
from merton.world.shapes import Part
from merton.world.tasks.prop import Prop
from merton.world.tasks.room import Stand
from merton.world.tasks.situation import Remaining, Situation, shortfall
from merton.world.tasks.task import Command, Poses, Task

POURED_SHARE = 0.75
_HEIGHT_M = 0.30
"""Height of the tool centre point while pouring. Ours: lower, the arm folds into itself; higher is out of reach."""
_TILT_RAD = math.radians(108)
_AHEAD_M = 0.035
"""The beads leave the cup this much nearer to the robot than the hand."""
_STEP_RAD = 0.11
_WAIT_STEPS = 5
_SIDES = 8


def _vessel(size: Vessel, mass_kg: float) -> list[Part]:
    share, inner, half_height = mass_kg / (_SIDES + 1), size.inner_width / 2, size.height / 2
    middle = inner + size.wall / 2
    half_side = (inner + size.wall) * math.tan(math.pi / _SIDES)
    walls = [
        Part(
            "box",
            (size.wall / 2, half_side, half_height),
            (middle * math.cos(angle), middle * math.sin(angle), half_height),
            mass_kg=share,
            yaw_rad=angle,
        )
        for angle in (2 * math.pi / _SIDES * side for side in range(_SIDES))
    ]
    floor = (inner * 1.04, size.wall / 2)  # out to the corners of the octagon, nearly
    return [*walls, Part("cylinder", floor, (0.0, 0.0, size.wall / 2), mass_kg=share)]


# Ours: tilting a cup above a bowl that is nearer would fold the arm into itself, and it is tilted high above the bowl.
CUP = Prop(
    "cup",
    lambda sizes: _vessel(sizes.cup, sizes.cup.mass),
    plain=Stand(0.09),
    varied=Stand(0.080, x_m=(-math.inf, 0.62), far_m=0.68),
    decoy_scales=(0.75, 1.15),
)
BOWL = Prop(
    "bowl",
    lambda sizes: _vessel(sizes.bowl, 0.1),
    fixed=True,
    plain=Stand(0.12, x_m=(0.50, 0.62)),
    varied=Stand(0.110, x_m=(0.50, 0.62), far_m=0.66),
)


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    props = cell.objects.props
    within = [
        (np.hypot(spots[:, 0], spots[:, 1]) <= vessel.inner_width / 2 + vessel.wall)
        & (spots[:, 2] >= 0)
        & (spots[:, 2] <= vessel.height)
        for vessel, name in ((props.bowl, str(command.target)), (props.cup, command.object))
        for spots in [(np.c_[situation.beads, np.ones(len(situation.beads))] @ inverse(situation.now[name]).T)[:, :3]]
    ]
    return Remaining(shortfall(int(np.count_nonzero(within[0] & ~within[1])), POURED_SHARE * props.beads.number))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Grasp the cup from above, tilt it over the bowl towards the robot, hold it upright again."""
    center, grasp_m = poses.thing[:2, 3], poses.sizes.cup.height - 0.016
    hand.grip(1.0)
    yaw = finger_yaw(hand.base_from_tcp, yaw_of(poses.thing))
    hand.move((*center, grasp_m + CARRY_M), yaw).move((*center, grasp_m)).grip(0.0)
    hand.move((*center, _HEIGHT_M), max_translation_m=GENTLE_TRANSLATION_M)
    # With the fingers square to the direction away from the robot, the tilt needs the wrist alone.
    bowl = poses.target[:2, 3]
    away = bowl / np.linalg.norm(bowl)
    square = math.atan2(away[1], away[0]) + math.pi / 2
    over = (*(bowl + _AHEAD_M * away), _HEIGHT_M)
    hand.move(over, aligned_yaw(hand.base_from_tcp, square), max_translation_m=GENTLE_TRANSLATION_M)
    tilt = -_TILT_RAD * np.array([-away[1], away[0], 0.0])
    hand.turn(tilt, max_rotation_rad=_STEP_RAD).wait(_WAIT_STEPS)
    return hand.turn(-tilt, max_rotation_rad=_STEP_RAD)


TASK = Task(
    name="pour",
    template="pour the {object} into the {target}",
    description="at least three quarters of the beads end in the bowl, out of the cup",
    remaining=_remaining,
    motion=_motion,
    plan="grasp it, tilt over {target}",
    objects=(CUP.name,),
    targets=(BOWL.name,),
    props=(CUP, BOWL),
    beads=True,
    kit="lid and cup",
    use=(CUP.name, "pour beads out of it"),
    goal="the white beads are in {target}",
)
