"""The linkage of the Robotiq 2F-140: opening between the pads, angle of its joint, height of the fingertips.

Each finger hangs on a parallelogram, so that it keeps its direction, and its tip runs on an arc: the tips of the open
gripper lie 23 mm nearer to the flange than those of the closed one. With the crank's angle q from the plane across the
tool axis, opening / 2 = OVERHANG_M + CRANK_M cos q, and the tip's height is a constant + CRANK_M sin q.

Sources. Stroke 140 mm, overall length 232.8 mm closed and 209.8 mm open: Robotiq, 2F-85 and 2F-140 instruction manual,
mechanical dimensions (as public texts quote them; the drawing itself was not at hand). Crank 100.0 mm, from the pivot
30.6 mm beside and 54.7 mm above the base to the finger's own: Robotiq's URDF and simulation model of the 2F-140.
`OVERHANG_M` is ours: the value that joins the two ends of the drawing; the pivots of Robotiq's model give 5.3 mm
instead, and with it an open length that is 0.6 mm less.

Not known: the drawing's tolerance, hence +-0.6 mm for heights; other fingertips than the flat ones; the fingers' turn
in an encompassing grip, in which they are not parallel; whether the position register is linear in the opening, as
`merton.execution.robots.gripper` takes it to be, or in the joint's angle: at half way the two differ by 4 mm of
opening and 0.7 mm of height. Robotiq's ROS driver takes the second, and calls the closed gripper 0.695 rad; the angle
that the drawing needs is `CLOSED_RAD`.
"""

from __future__ import annotations

from math import acos, cos, inf, sqrt

from merton.errors import InputError

STROKE_M = 0.140
CRANK_M = 0.100
OVERHANG_M = 0.006
"""Distance of a closed pad beyond the pivot of its crank, across the tool axis."""
CLOSED_LENGTH_M = 0.2328
"""From the base of the gripper to its tips, closed."""
JOINT = "finger_joint"
"""Name of the driven joint, as in Robotiq's ROS driver: the left crank [rad], 0 open, `CLOSED_RAD` closed."""
MIMICS = {
    "left_inner_knuckle_joint": -1,
    "left_inner_finger_joint": 1,
    "right_outer_knuckle_joint": -1,
    "right_inner_knuckle_joint": -1,
    "right_inner_finger_joint": 1,
}
"""The other joints, named as Robotiq's, with their ratios to `JOINT`."""


def joint_rad(opening_m: float) -> float:
    """Position of `JOINT` [rad] from the opening between the pads [m]; raises InputError if no angle reaches it."""
    return acos(_across(opening_m) / CRANK_M) - _OPEN_RAD


def opening_m(position_rad: float) -> float:
    """Opening between the pads [m] from the position of `JOINT` [rad], 0 .. `CLOSED_RAD`.

    Raises InputError for an angle more than 0.1 rad outside, which is no measurement of this joint.
    """
    if not -0.1 <= position_rad <= CLOSED_RAD + 0.1:  # NaN fails too
        raise InputError(f"{JOINT} must be in 0 (open) .. {CLOSED_RAD:.3f} rad (closed), got {position_rad!r}")
    return 2 * (OVERHANG_M + CRANK_M * cos(position_rad + _OPEN_RAD))


def joint_positions(opening_m: float) -> dict[str, float]:
    """Positions [rad] of all joints of the linkage, by name, from the opening [m]; raises as `joint_rad`."""
    driven_rad = joint_rad(opening_m)
    return {JOINT: driven_rad} | {name: ratio * driven_rad for name, ratio in MIMICS.items()}


def tip_behind_m(opening_m: float) -> float:
    """Distance of the tips behind those of the closed gripper, along the tool axis [m]: 0 closed, 0.023 open.

    Least at 12 mm, where the crank stands upright: -0.0002. Raises InputError as `joint_rad`.
    """
    return _height(0.0) - _height(opening_m)


def tip_height_m(opening_m: float) -> float:
    """Distance of the tips from the base of the gripper [m]: 0.2328 closed, 0.2098 open; raises as `joint_rad`."""
    return CLOSED_LENGTH_M - tip_behind_m(opening_m)


def _across(opening_m: float) -> float:
    """Reach of the crank across the tool axis [m]."""
    across_m = opening_m / 2 - OVERHANG_M
    if not (-inf < opening_m < inf and abs(across_m) <= CRANK_M):
        raise InputError(f"the opening of the gripper must be in 0 .. {STROKE_M:g} m, got {opening_m!r}")
    return across_m


def _height(opening_m: float) -> float:
    """Reach of the crank along the tool axis [m]."""
    across_m = _across(opening_m)
    return sqrt(CRANK_M * CRANK_M - across_m * across_m)


_OPEN_RAD = acos(_across(STROKE_M) / CRANK_M)
CLOSED_RAD = joint_rad(0.0)
"""Position of `JOINT` with the pads in contact: 0.755 rad."""
