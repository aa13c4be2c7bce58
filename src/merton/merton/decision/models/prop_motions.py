"""Motions of the hand for tasks with two objects, or with an object that has a joint; conventions as in `motions`.

Poses are (4, 4) in `base_link`, as in `merton.world.observation.SceneObject`; sizes are those of `config/cell.yaml`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from merton.decision.models.motions import (
    APPROACH_HEIGHT_M,
    GENTLE_TRANSLATION_M,
    GRASP_HEIGHT_M,
    RELEASE_ABOVE_M,
    Motion,
    finger_yaw,
)
from merton.world.cell import Button, Cup, Drawer, Knob, Lid, Peg
from merton.world.geometry import Matrix
from merton.world.tasks import DIRECTIONS

TIP_M = 0.008
"""The fingers end this far below the tool centre point."""
CLEAR_M = 0.015
"""Distance of the finger tips above the surface below a handle."""
CARRY_M = 0.085
"""Lift of a carried object, over others of 0.06 m."""
BESIDE_M = 0.09
"""Distance between the centres of neighbouring objects."""
PRESS_SHARE = 0.95
PULL_M = 0.085
TWIST_RAD = math.radians(62)
_TWIST_STEP_RAD = 0.12
POUR_HEIGHT_M = 0.30
"""Height of the tool centre point while pouring. Ours: lower, the arm folds into itself; higher is out of reach."""
POUR_TILT_RAD = math.radians(108)
POUR_AHEAD_M = 0.035
"""The beads leave the cup this much nearer to the robot than the hand."""
_POUR_STEP_RAD = 0.11
_POUR_WAIT_STEPS = 5


def move(
    base_from_tcp: Matrix, gripper_open: float, thing: Matrix, yaw_rad: float | None, target: Matrix, direction: str
) -> NDArray[np.float64]:
    """Put an object, its sides at `yaw_rad`, to the "left" or "right" of a target; deltas (n, 7)."""
    goal = target[:2, 3] + BESIDE_M * np.array(DIRECTIONS[direction])
    # For the release the fingers open along x, away from the target.
    return _carried(base_from_tcp, gripper_open, thing, yaw_rad, goal, GRASP_HEIGHT_M, let_go_yaw_rad=0.0)


def cover(
    base_from_tcp: Matrix, gripper_open: float, thing: Matrix, base_from_lid: Matrix, lid: Lid
) -> NDArray[np.float64]:
    """Take a lid by its handle and put it over an object; deltas (n, 7)."""
    grasp_m = lid.height + CLEAR_M
    return _carried(base_from_tcp, gripper_open, base_from_lid, _yaw(base_from_lid), thing[:2, 3], grasp_m)


def insert(
    base_from_tcp: Matrix, gripper_open: float, base_from_peg: Matrix, base_from_socket: Matrix, peg: Peg
) -> NDArray[np.float64]:
    """Take a peg near its upper end and lower it into a socket; deltas (n, 7)."""
    grasp_m = peg.height - 0.02
    return _carried(base_from_tcp, gripper_open, base_from_peg, None, base_from_socket[:2, 3], grasp_m)


def press(base_from_tcp: Matrix, gripper_open: float, base_from_button: Matrix, button: Button) -> NDArray[np.float64]:
    """Close the hand, press a button down from above and stay; the pose is that of its cap's top; deltas (n, 7)."""
    x, y, top = base_from_button[:3, 3]
    motion = Motion(base_from_tcp, gripper_open).grip(0.0).move((x, y, APPROACH_HEIGHT_M))
    motion.move((x, y, top + TIP_M + CLEAR_M))
    down = top + TIP_M - PRESS_SHARE * button.travel
    return motion.move((x, y, down), max_translation_m=0.3 * GENTLE_TRANSLATION_M).deltas


def pull(base_from_tcp: Matrix, gripper_open: float, base_from_drawer: Matrix, drawer: Drawer) -> NDArray[np.float64]:
    """Take a drawer by its handle and pull it open, towards -x of its frame; deltas (n, 7)."""
    opens = -base_from_drawer[:2, 0]
    handle = base_from_drawer[:2, 3] + opens * (drawer.depth + drawer.handle_thickness) / 2
    height = drawer.height + CLEAR_M + TIP_M
    along = math.atan2(opens[1], opens[0])
    motion = Motion(base_from_tcp, gripper_open).grip(1.0)
    yaw = _straight(motion.base_from_tcp, along)
    motion.move((*handle, height + CARRY_M), yaw).move((*handle, height)).grip(0.0)
    return motion.move((*(handle + PULL_M * opens), height), max_translation_m=0.7 * GENTLE_TRANSLATION_M).deltas


def twist(
    base_from_tcp: Matrix, gripper_open: float, base_from_knob: Matrix, direction: str, knob: Knob
) -> NDArray[np.float64]:
    """Take a knob by its bar, which lies along x of its frame, and turn it; deltas (n, 7)."""
    x, y = base_from_knob[:2, 3]
    height = knob.height + TIP_M + 0.01
    motion = Motion(base_from_tcp, gripper_open).grip(1.0)
    yaw = _straight(motion.base_from_tcp, _yaw(base_from_knob) + math.pi / 2)
    motion.move((x, y, height + CARRY_M), yaw).move((x, y, height)).grip(0.0)
    left = TWIST_RAD if direction == "left" else -TWIST_RAD
    return motion.turn((0.0, 0.0, left), max_rotation_rad=_TWIST_STEP_RAD).deltas


def pour(
    base_from_tcp: Matrix, gripper_open: float, base_from_cup: Matrix, base_from_bowl: Matrix, cup: Cup
) -> NDArray[np.float64]:
    """Take a cup from above, tilt it over a bowl towards the robot, and hold it upright again; deltas (n, 7)."""
    center, grasp_m = base_from_cup[:2, 3], cup.height - 0.016
    motion = Motion(base_from_tcp, gripper_open).grip(1.0)
    yaw = finger_yaw(motion.base_from_tcp, _yaw(base_from_cup))
    motion.move((*center, grasp_m + CARRY_M), yaw).move((*center, grasp_m)).grip(0.0)
    motion.move((*center, POUR_HEIGHT_M), max_translation_m=GENTLE_TRANSLATION_M)
    # With the fingers square to the direction away from the robot, the tilt needs the wrist alone.
    bowl = base_from_bowl[:2, 3]
    away = bowl / np.linalg.norm(bowl)
    square = math.atan2(away[1], away[0]) + math.pi / 2
    over = (*(bowl + POUR_AHEAD_M * away), POUR_HEIGHT_M)
    motion.move(over, _straight(motion.base_from_tcp, square), max_translation_m=GENTLE_TRANSLATION_M)
    tilt = -POUR_TILT_RAD * np.array([-away[1], away[0], 0.0])
    motion.turn(tilt, max_rotation_rad=_POUR_STEP_RAD).wait(_POUR_WAIT_STEPS)
    return motion.turn(-tilt, max_rotation_rad=_POUR_STEP_RAD).deltas


def _carried(
    base_from_tcp: Matrix,
    gripper_open: float,
    thing: Matrix,
    yaw_rad: float | None,
    goal: NDArray[np.float64],
    grasp_m: float,
    *,
    let_go_yaw_rad: float | None = None,
) -> NDArray[np.float64]:
    """Grasp an object at a height, carry it to a goal (x, y), set it down, release it and leave; deltas (n, 7)."""
    center, above = thing[:2, 3], grasp_m + CARRY_M
    motion = Motion(base_from_tcp, gripper_open).grip(1.0)
    motion.move((*center, above), finger_yaw(motion.base_from_tcp, yaw_rad)).move((*center, grasp_m)).grip(0.0)
    motion.move((*center, above))
    turned = None if let_go_yaw_rad is None else _straight(motion.base_from_tcp, let_go_yaw_rad)
    motion.move((*goal, above), turned).move((*goal, grasp_m + GENTLE_TRANSLATION_M))
    motion.move((*goal, grasp_m + RELEASE_ABOVE_M), max_translation_m=GENTLE_TRANSLATION_M)
    return motion.grip(1.0).move((*goal, above)).deltas


def _yaw(pose: Matrix) -> float:
    return math.atan2(pose[1, 0], pose[0, 0])


def _straight(base_from_tcp: Matrix, direction_rad: float) -> float:
    """The nearest yaw of the hand at which the fingers open along a direction, either way round."""
    now = _yaw(base_from_tcp)
    return now + (direction_rad - now + math.pi / 2) % math.pi - math.pi / 2
