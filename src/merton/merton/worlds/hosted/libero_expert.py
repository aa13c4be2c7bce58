"""A scripted expert for LIBERO's tasks of picking a bowl and placing it: the next row from the state alone.

Ours, since LIBERO has none. It keeps the hand as it is turned, fingers along y, so it holds a bowl by its rim.
"""

from __future__ import annotations

import numpy as np

RIM_M = 0.045
"""From the origin of a bowl along y to the point of its rim that is held."""
GRASP_Z_M = 0.012
"""Of the hand above the origin of a bowl that it holds."""
CLEAR_M = 0.12
"""Of the hand above the bowl while it comes, and of the bowl above the place while it is carried."""
HELD_WIDTH_M = 0.02
"""Between the fingers; they are wider apart when they do not hold a rim."""
DRAWER_Z_M = (1.0, 1.1)
"""Of a bowl in the open drawer of the cabinet."""
OUT_Z_M = (1.04, 1.15)
"""Of a bowl that is lifted out of the drawer or off the cabinet, whose side of the table is at negative y."""
HALF_OPEN_M = (0.045, 0.055)
NEAR_M = 0.01
OVER_M = 0.02
STEP_M = 0.05
GAIN = 3.0


def knows(goal: list[list[str]]) -> bool:
    """Whether a goal, as LIBERO parses it, is one black bowl on a plate."""
    return len(goal) == 1 and goal[0][0] == "on" and "black_bowl" in goal[0][1] and "plate" in goal[0][2]


def next_row(hand: np.ndarray, width_m: float, thing: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The row (7,) of tool deltas that comes next.

    Args:
        hand, thing, place: (3,) of the hand, the bowl and its place [m].
        width_m: between the fingers.
    """
    grasp = thing + np.array([0.0, RIM_M, GRASP_Z_M])
    off, over = hand - grasp, np.linalg.norm(thing[:2] - place[:2])
    held = width_m < HELD_WIDTH_M and np.linalg.norm(off[:2]) < 0.03 and off[2] < 0.055
    if over < OVER_M and thing[2] < place[2] + 0.045:
        return _row([0.0, 0.0, STEP_M], gripper=1.0)
    if held:
        sideways = GAIN * (place - thing)[:2]
        too_low = place[2] + CLEAR_M - thing[2]
        if over < 2 * OVER_M:
            return _row([*sideways, -0.04 if over < OVER_M else -0.02], gripper=0.0)
        if (too_low > 0.03 and over > 0.06) or (thing[1] < -0.05 and OUT_Z_M[0] < thing[2] < OUT_Z_M[1]):
            return _row([0.0, 0.0, STEP_M], gripper=0.0)
        return _row([*sideways, np.clip(too_low, 0.0, STEP_M)], gripper=0.0)
    opened = _opened(width_m, thing)
    aside = np.linalg.norm(off[:2])
    sideways = -GAIN * off[:2]
    if aside > 2 * NEAR_M and off[2] < 0.06:
        return _row([0.0, 0.0, STEP_M], gripper=opened)
    if aside > 2 * NEAR_M:
        return _row([*sideways, np.clip(CLEAR_M - off[2], -STEP_M, STEP_M)], gripper=opened)
    if aside > NEAR_M and off[2] < 0.08:
        return _row([*sideways, 0.0], gripper=opened)
    if off[2] > (0.02 if _in_drawer(thing) else 0.008):  # there the palm meets the cabinet
        return _row([*sideways, -max(off[2], 0.02)], gripper=opened)
    return _row([0.0, 0.0, 0.0], gripper=0.0)


def _in_drawer(thing: np.ndarray) -> bool:
    return bool(DRAWER_Z_M[0] < thing[2] < DRAWER_Z_M[1])


def _opened(width_m: float, thing: np.ndarray) -> float:
    """The gripper of a row that opens it: half, to fit between a bowl and the wall of a drawer; else wholly."""
    if not _in_drawer(thing) or width_m < HALF_OPEN_M[0]:
        return 1.0
    return 0.0 if width_m > HALF_OPEN_M[1] else 0.5


def _row(move_m: list[float], gripper: float) -> np.ndarray:
    """Towards a point, at most STEP_M along each axis."""
    return np.array([*np.clip(move_m, -STEP_M, STEP_M), 0.0, 0.0, 0.0, gripper])
