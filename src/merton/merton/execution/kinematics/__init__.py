"""Forward and inverse kinematics of the UR family."""

from merton.execution.kinematics.universal_robot import (
    BASE_LINK_FROM_BASE,
    BRANCHES,
    ROBOTS,
    UR3,
    UR5,
    UR10,
    IkResult,
    UniversalRobot,
    UR3e,
    UR5e,
    UR10e,
    UR16e,
    base_from_tcp,
)

__all__ = [
    "BASE_LINK_FROM_BASE",
    "BRANCHES",
    "ROBOTS",
    "UR3",
    "UR5",
    "UR10",
    "IkResult",
    "UR3e",
    "UR5e",
    "UR10e",
    "UR16e",
    "UniversalRobot",
    "base_from_tcp",
]
