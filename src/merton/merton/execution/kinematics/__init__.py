"""Forward and inverse kinematics of the UR family."""

from merton.execution.kinematics.calibrated_robot import CalibratedRobot
from merton.execution.kinematics.cell_arm import base_from_tcp, kinematics_of
from merton.execution.kinematics.universal_robot import (
    BASE_LINK_FROM_BASE,
    BRANCHES,
    ROBOTS,
    IkResult,
    UniversalRobot,
)

__all__ = [
    "BASE_LINK_FROM_BASE",
    "BRANCHES",
    "ROBOTS",
    "CalibratedRobot",
    "IkResult",
    "UniversalRobot",
    "base_from_tcp",
    "kinematics_of",
]
