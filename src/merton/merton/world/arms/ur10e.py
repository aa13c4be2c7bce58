"""The UR10e of the e-Series."""

from __future__ import annotations

from math import radians

from merton.world.arms.arm import ONE_TURN, Arm, Capsule, Lengths, register

# Universal Robots, "DH parameters for calculations of kinematics and dynamics"; the same in `ur_description`.
_LENGTHS = Lengths(d1=0.1807, a2=-0.6127, a3=-0.57155, d4=0.17415, d5=0.11985, d6=0.11655)

_UPPER_ARM_Z, _FOREARM_Z = 0.1762, 0.0393
"""Offsets of the links along axis 2 and 3: `ur_description`, shoulder_offset and elbow_offset of the UR10e."""

# Radii. Ours: a base of 190 mm (the data sheet); joints of 330, 150 and 56 N m (the maker's torques), which the data
# sheet's drawing shows about 150, 120 and 94 mm wide.
_CAPSULES = (
    Capsule("base_link", 0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.09), 0.090, meets_table=False),
    Capsule("shoulder_link", 2, (0.0, 0.0, -0.040), (0.0, 0.0, 0.217), 0.080, meets_table=False),
    Capsule("upper_arm_link", 2, (0.0, 0.0, _UPPER_ARM_Z), (_LENGTHS.a2, 0.0, _UPPER_ARM_Z), 0.065, meets_table=False),
    Capsule("upper_arm_link", 3, (0.0, 0.0, 0.008), (0.0, 0.0, 0.210), 0.064),
    Capsule("forearm_link", 3, (0.0, 0.0, _FOREARM_Z), (_LENGTHS.a3, 0.0, _FOREARM_Z), 0.052),
    Capsule("wrist_1_link", 4, (0.0, 0.0, -0.166), (0.0, 0.0, 0.026), 0.051),
    Capsule("wrist_2_link", 5, (0.0, 0.0, -_LENGTHS.d5), (0.0, 0.0, 0.026), 0.051),
    Capsule("wrist_3_link", 6, (0.0, 0.0, -_LENGTHS.d6), (0.0, 0.0, 0.0), 0.050),
)

_SLOW, _FAST = radians(120), radians(180)

register(
    Arm(
        "UR10e",
        _LENGTHS,
        joint_limits_rad=ONE_TURN,
        joint_speeds_rad_s=(_SLOW, _SLOW, _FAST, _FAST, _FAST, _FAST),  # the manual
        home_joints_rad=(-0.3974, -2.0290, 2.1671, -1.7088, -1.5708, -0.3974),
        capsules=_CAPSULES,
        ur_type="ur10e",
        control_rate_hz=500,
    )
)
