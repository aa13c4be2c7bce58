"""The UR5 of the CB3 series."""

from __future__ import annotations

from math import pi

from merton.world.arms.arm import ONE_TURN, Arm, Capsule, Lengths, register

# Universal Robots, "DH parameters for calculations of kinematics and dynamics"; the same in `ur_description`.
_LENGTHS = Lengths(d1=0.089159, a2=-0.425, a3=-0.39225, d4=0.10915, d5=0.09465, d6=0.0823)

_UPPER_ARM_Z, _FOREARM_Z = 0.13585, 0.0165
"""The upper arm passes beside the shoulder, the forearm comes back towards the middle (offsets along axis 2 and 3)."""

_CAPSULES = (
    # The base stands on the table. Shoulder and upper arm can meet it only with the elbow, which has its own capsule.
    Capsule("base_link", 0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.03), 0.070, meets_table=False),
    Capsule("shoulder_link", 2, (0.0, 0.0, -0.03), (0.0, 0.0, 0.165), 0.060, meets_table=False),
    Capsule("upper_arm_link", 2, (0.0, 0.0, _UPPER_ARM_Z), (_LENGTHS.a2, 0.0, _UPPER_ARM_Z), 0.058, meets_table=False),
    Capsule("upper_arm_link", 3, (0.0, 0.0, -0.010), (0.0, 0.0, 0.165), 0.055),
    Capsule("forearm_link", 3, (0.0, 0.0, _FOREARM_Z), (_LENGTHS.a3, 0.0, _FOREARM_Z), 0.045),
    Capsule("wrist_1_link", 4, (0.0, 0.0, -0.120), (0.0, 0.0, 0.020), 0.042),
    Capsule("wrist_2_link", 5, (0.0, 0.0, -_LENGTHS.d5), (0.0, 0.0, 0.020), 0.042),
    Capsule("wrist_3_link", 6, (0.0, 0.0, -_LENGTHS.d6), (0.0, 0.0, 0.0), 0.042),
)

register(
    Arm(
        "UR5",
        _LENGTHS,
        joint_limits_rad=ONE_TURN,
        joint_speeds_rad_s=(pi, pi, pi, pi, pi, pi),  # the manual: 180 degrees a second
        home_joints_rad=(-0.2450, -1.6559, 1.3857, -1.3006, -1.5708, -0.2450),
        capsules=_CAPSULES,
        ur_type="ur5",
        control_rate_hz=125,
    )
)
