"""The way home, as deltas that pass the gate like those of any policy: open the gripper, rise, go home."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from merton.execution.kinematics import base_from_tcp
from merton.world.cell import CellConfig
from merton.world.geometry import Array, rotation_vector_of

STEP_S = 0.2
STEP_M, STEP_RAD = 0.03, 0.15
"""Largest delta: 0.15 m/s, below the speed limit of every mode."""

TOLERANCE_RAD = 0.03
"""The arm is at home if every joint is this near; servos miss their target slightly."""


def is_home(joints_rad: ArrayLike, cell: CellConfig) -> bool:
    """Whether the joints (6,) [rad] are those of `robot.home_joints` of the cell."""
    return bool(np.abs(np.asarray(joints_rad) - cell.home_joints).max() < TOLERANCE_RAD)


def deltas_home(joints_rad: ArrayLike, cell: CellConfig) -> Array:
    """Deltas (n, 7) in `base_link`, `STEP_S` each: straight up to the height of home, then straight there, open.

    They begin at `joints_rad` (6,) and end in the pose of home. The joints are then those of home too, unless the arm
    began in another branch of its kinematics: then a person has to jog it home.
    """
    here, home = (base_from_tcp(np.asarray(j, dtype=np.float64), cell) for j in (joints_rad, cell.home_joints))
    rise = np.array([0.0, 0.0, max(0.0, home[2, 3] - here[2, 3])])
    across = home[:3, 3] - here[:3, 3] - rise
    turn = rotation_vector_of(home[:3, :3] @ here[:3, :3].T)
    return np.concatenate([_steps(rise, np.zeros(3)), _steps(across, turn)])


def _steps(translation_m: Array, rotation_rad: Array) -> Array:
    """Equal deltas (n, 7) with the gripper open that add up to a translation and a rotation vector."""
    count = ceil(max(np.linalg.norm(translation_m) / STEP_M, np.linalg.norm(rotation_rad) / STEP_RAD) - 1e-9)
    whole = np.concatenate([translation_m, rotation_rad])
    return np.column_stack([np.tile(whole / max(count, 1), (count, 1)), np.ones(count)])
