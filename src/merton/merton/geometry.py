"""Rigid transforms as (4, 4) float64 matrices, named `target_from_source`.

`point_in_base = base_from_camera @ point_in_camera`. Metres and radians; quaternions are (x, y, z, w) as in ROS.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

Matrix = NDArray[np.float64]


def transform(position_m: ArrayLike = (0.0, 0.0, 0.0), rotation: Rotation | None = None) -> Matrix:
    """The (4, 4) transform with the given translation [m] and rotation (identity if None)."""
    matrix = np.eye(4)
    matrix[:3, 3] = position_m
    if rotation is not None:
        matrix[:3, :3] = rotation.as_matrix()
    return matrix


def from_quaternion(position_m: ArrayLike, quaternion_xyzw: ArrayLike) -> Matrix:
    """The (4, 4) transform from a position [m] and a quaternion (x, y, z, w), normalised on the way."""
    return transform(position_m, Rotation.from_quat(quaternion_xyzw))


def from_rpy(position_m: ArrayLike, roll_pitch_yaw_rad: ArrayLike) -> Matrix:
    """The (4, 4) transform from a position [m] and URDF's fixed-axis roll, pitch, yaw [rad]."""
    return transform(position_m, Rotation.from_euler("xyz", roll_pitch_yaw_rad))


def quaternion_of(matrix: Matrix) -> NDArray[np.float64]:
    """The rotation of a (4, 4) transform as a quaternion (x, y, z, w) with w >= 0."""
    return Rotation.from_matrix(matrix[:3, :3]).as_quat(canonical=True)


def rotation_vector_of(matrix: Matrix) -> NDArray[np.float64]:
    """The rotation of a (4, 4) transform as a rotation vector [rad], shape (3,)."""
    return Rotation.from_matrix(matrix[:3, :3]).as_rotvec()


def inverse(matrix: Matrix) -> Matrix:
    """The inverse of a rigid (4, 4) transform."""
    result = np.eye(4)
    result[:3, :3] = matrix[:3, :3].T
    result[:3, 3] = -matrix[:3, :3].T @ matrix[:3, 3]
    return result
