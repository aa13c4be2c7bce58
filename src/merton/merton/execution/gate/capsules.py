"""The shape of arm, gripper and wrist camera as capsules.

Ours: the capsules enclose the primitives of `urdf/` to within the stopping margin; a test compares the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from merton.world.arms import Capsule
from merton.world.cell import CellConfig
from merton.world.geometry import Array

TIP_BEYOND_TCP_M = 0.008
"""Distance of the finger tips beyond the tool centre point, along z of `tool0` [m]."""


_GRIPPER_BASE = (
    Capsule("gripper_base_link", 6, (0.0, 0.0, 0.0), (0.0, 0.0, 0.070), 0.050),
    Capsule("gripper_base_link", 6, (-0.09, 0.0, 0.095), (0.09, 0.0, 0.095), 0.026),
)


def _finger(side: str, sign: int, tip_z: float) -> tuple[Capsule, ...]:
    """A closed finger: root, shank, and a tip of two thin capsules side by side; a thick one would be too round."""
    link = f"gripper_{side}_finger"
    tip = 0.008
    return (
        Capsule(link, 6, (sign * 0.012, 0.0, 0.116), (sign * 0.030, 0.0, 0.116), 0.020, slide=sign),
        Capsule(link, 6, (sign * 0.0155, 0.0, 0.121), (sign * 0.0155, 0.0, 0.190), 0.014, slide=sign),
        *(
            Capsule(link, 6, (sign * tip, y, 0.190), (sign * tip, y, tip_z - tip), tip, slide=sign)
            for y in (-0.006, 0.006)
        ),
    )


def _camera(name: str, tool0_from_camera: Array) -> Capsule:
    """The 124 mm long housing of a D455, across the line of sight and behind the lens."""
    start, end = (tool0_from_camera @ (x, 0.0, -0.0165, 1.0) for x in (-0.050, 0.050))
    return Capsule(f"camera_{name}_link", 6, tuple(start[:3].tolist()), tuple(end[:3].tolist()), 0.024)


def capsules_of(cell: CellConfig) -> tuple[Capsule, ...]:
    """The whole arm, with the gripper closed and the cameras on the tool."""
    tip_z = cell.tool.tcp_from_tool0_z + TIP_BEYOND_TCP_M
    riding = {name: camera for name, camera in cell.cameras.named.items() if camera.parent == "tool0"}
    cameras = tuple(_camera(name, camera.parent_from_camera) for name, camera in riding.items())
    return cell.arm.capsules + _GRIPPER_BASE + cameras + _finger("left", 1, tip_z) + _finger("right", -1, tip_z)


def self_pairs(capsules: tuple[Capsule, ...]) -> NDArray[np.intp]:
    """Pairs of capsules (pairs, 2) of one arm that can meet: not neighbours, nor parts fixed to one another."""
    tool = sorted({capsule.link for capsule in capsules if capsule.frame == 6 and capsule.link != "wrist_3_link"})
    can_meet = {
        "base_link": ("forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link", *tool),
        "shoulder_link": ("forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link", *tool),
        "upper_arm_link": ("wrist_1_link", "wrist_2_link", "wrist_3_link", *tool),
        "forearm_link": ("wrist_3_link", *tool),
        "wrist_1_link": tuple(tool),
    }
    return np.array(
        [
            (one, other)
            for one, inner in enumerate(capsules)
            for other, outer in enumerate(capsules)
            if outer.link in can_meet.get(inner.link, ())
        ]
    )
