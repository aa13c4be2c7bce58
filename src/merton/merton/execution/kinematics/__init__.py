"""Forward and inverse kinematics of the UR family."""

from merton.execution.kinematics.universal_robot import (
    BASE_LINK_FROM_BASE,
    BRANCHES,
    ROBOTS,
    IkResult,
    UniversalRobot,
    base_from_tcp,
    kinematics_of,
)

__all__ = [
    "BASE_LINK_FROM_BASE",
    "BRANCHES",
    "ROBOTS",
    "IkResult",
    "UniversalRobot",
    "base_from_tcp",
    "kinematics_of",
]
