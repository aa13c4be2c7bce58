"""Pull a drawer open. It opens towards -x of its frame."""

from __future__ import annotations

import math

import numpy as np

from merton.world.cell import CellConfig, Props
from merton.world.motion import CARRY_M, CLEAR_M, GENTLE_TRANSLATION_M, TIP_M, Motion, aligned_yaw
from merton.world.shapes import Part
from merton.world.tasks.prop import Joint, MovingPart, Prop
from merton.world.tasks.room import Site, Stand
from merton.world.tasks.situation import Remaining, Situation, shortfall
from merton.world.tasks.task import Command, Poses, Task

PULLED_M = 0.06
_PULL_M = 0.085
_WALL_M = 0.004
_FOOT_M = 0.008


def _rails(sizes: Props) -> list[Part]:
    size = sizes.drawer
    half_depth, half_width, half_height = size.depth / 2, size.width / 2, size.height / 2
    rail = (half_depth, _WALL_M, half_height)
    back = (_WALL_M, half_width + 3 * _WALL_M, half_height)
    return [
        *(Part("box", rail, (0.0, side * (half_width + 2 * _WALL_M), half_height), "plain") for side in (1, -1)),
        Part("box", back, (half_depth + _WALL_M, 0.0, half_height), "plain"),
    ]


def _tray(sizes: Props) -> MovingPart:
    """Its sides are lower than its front, so that it is seen to be open."""
    size, wall = sizes.drawer, _WALL_M
    half_depth, half_width, half_height = size.depth / 2, size.width / 2, size.height / 2
    low, handle = 0.6 * half_height, size.handle_thickness / 2
    at_front = -half_depth - handle
    floor = Part("box", (half_depth - wall, half_width, wall), (0.0, 0.0, _FOOT_M), mass_kg=0.05)
    panel = (half_depth - wall, wall / 2, low)
    sides = [Part("box", panel, (0.0, side * (half_width - wall / 2), _FOOT_M + low)) for side in (1, -1)]
    front = Part(
        "box", (handle, half_width + 3 * wall, half_height - wall), (at_front, 0.0, half_height + wall), mass_kg=0.05
    )
    upright = (handle, size.handle_width / 2, (size.handle_height - size.height) / 2)
    grip = Part("box", upright, (at_front, 0.0, (size.handle_height + size.height) / 2), mass_kg=0.03)
    joint = Joint("slide", axis=(-1.0, 0.0, 0.0), limits=(0.0, size.travel), damping=5.0, friction=size.friction)
    return MovingPart((floor, *sides, front, grip), joint)


DRAWER = Prop(
    "drawer",
    _rails,
    fixed=True,
    moving=_tray,
    plain=Stand(0.11, x_m=(0.50, math.inf)),
    varied=Stand(0.125, x_m=(0.52, math.inf), far_m=0.73),
    decoy_scales=(1.12,),
)


def _remaining(command: Command, situation: Situation, cell: CellConfig) -> Remaining:
    opens = -situation.start[command.object][:3, 0]
    return Remaining(shortfall(float(situation.moved(command.object) @ opens), PULLED_M))


def _motion(hand: Motion, poses: Poses) -> Motion:
    """Grasp the handle from above and pull."""
    drawer = poses.sizes.drawer
    opens = -poses.thing[:2, 0]
    handle = poses.thing[:2, 3] + opens * (drawer.depth + drawer.handle_thickness) / 2
    height = drawer.height + CLEAR_M + TIP_M
    hand.grip(1.0)
    yaw = aligned_yaw(hand.base_from_tcp, math.atan2(opens[1], opens[0]))
    hand.move((*handle, height + CARRY_M), yaw).move((*handle, height)).grip(0.0)
    return hand.move((*(handle + _PULL_M * opens), height), max_translation_m=0.7 * GENTLE_TRANSLATION_M)


def _room(site: Site) -> bool:
    """The drawer opens towards the robot, and the hand goes with it."""
    opening = -np.array([math.cos(site.yaw_rad), math.sin(site.yaw_rad)])
    half_m, ahead_m = (0.14, 0.29) if site.plain else (0.115, 0.25)
    return site.lane_is_free(opening, half_m, 0.0, ahead_m)


TASK = Task(
    name="pull",
    template="pull the {object} open",
    description="the drawer ends at least 6 cm further open",
    remaining=_remaining,
    motion=_motion,
    plan="grasp handle, pull it open",
    objects=(DRAWER.name,),
    props=(DRAWER,),
    room=_room,
    kit="button and drawer",
    use=(DRAWER.name, "pull it open"),
    goal="{object} is open",
)
