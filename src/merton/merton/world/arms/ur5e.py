"""The UR5e of the e-Series."""

from __future__ import annotations

from math import pi

from merton.world.arms.arm import ONE_TURN, Arm, Capsule, Lengths, register

# Universal Robots, "DH parameters for calculations of kinematics and dynamics"; the same in `ur_description`.
_LENGTHS = Lengths(d1=0.1625, a2=-0.425, a3=-0.3922, d4=0.1333, d5=0.0997, d6=0.0996)

_UPPER_ARM_Z, _FOREARM_Z = 0.138, 0.007
"""Offsets of the links along axis 2 and 3: `ur_description`, shoulder_offset and elbow_offset of the UR5e."""

# Radii. Ours: its joints are of the sizes of the UR5's (the maker's torques: three of 150 N m, three of 28 N m) on a
# base of the same 149 mm, so they are the UR5's; the lengths along the axes follow from the offsets.
_CAPSULES = (
    Capsule("base_link", 0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.09), 0.070, meets_table=False),
    Capsule("shoulder_link", 2, (0.0, 0.0, -0.03), (0.0, 0.0, 0.168), 0.060, meets_table=False),
    Capsule("upper_arm_link", 2, (0.0, 0.0, _UPPER_ARM_Z), (_LENGTHS.a2, 0.0, _UPPER_ARM_Z), 0.058, meets_table=False),
    Capsule("upper_arm_link", 3, (0.0, 0.0, -0.018), (0.0, 0.0, 0.168), 0.055),
    Capsule("forearm_link", 3, (0.0, 0.0, _FOREARM_Z), (_LENGTHS.a3, 0.0, _FOREARM_Z), 0.045),
    Capsule("wrist_1_link", 4, (0.0, 0.0, -0.153), (0.0, 0.0, 0.020), 0.042),
    Capsule("wrist_2_link", 5, (0.0, 0.0, -_LENGTHS.d5), (0.0, 0.0, 0.020), 0.042),
    Capsule("wrist_3_link", 6, (0.0, 0.0, -_LENGTHS.d6), (0.0, 0.0, 0.0), 0.042),
)

register(
    Arm(
        "UR5e",
        _LENGTHS,
        joint_limits_rad=ONE_TURN,
        joint_speeds_rad_s=(pi, pi, pi, pi, pi, pi),  # the manual: 180 degrees a second
        home_joints_rad=(-0.3007, -1.7095, 1.5786, -1.4399, -1.5708, -0.3007),
        capsules=_CAPSULES,
        ur_type="ur5e",
        control_rate_hz=500,
    )
)
