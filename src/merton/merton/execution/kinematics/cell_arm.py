"""The kinematics of the arm of a cell."""

from __future__ import annotations

from numpy.typing import ArrayLike

from merton.execution.kinematics.calibrated_robot import calibrated
from merton.execution.kinematics.universal_robot import ROBOTS, UniversalRobot
from merton.world.cell import CellConfig
from merton.world.geometry import Matrix


def kinematics_of(cell: CellConfig) -> UniversalRobot:
    """The kinematics of the arm of a cell: with its calibration, if the cell has one."""
    robot, calibration = ROBOTS[cell.robot.model], cell.kinematic_calibration
    return robot if calibration is None else calibrated(robot, calibration)


def base_from_tcp(joints: ArrayLike, cell: CellConfig) -> Matrix:
    """Pose of the tool centre point of a cell's arm in `base_link`: joints (..., 6) [rad] -> (..., 4, 4)."""
    return kinematics_of(cell).forward(joints) @ cell.tool0_from_tcp
