"""Rigid transforms as (4, 4) float64 matrices, named `target_from_source`.

`point_in_base = base_from_camera @ point_in_camera`. Metres and radians; quaternions are (x, y, z, w) as in ROS.

Ours: every process needs these conversions and nothing else of scipy, and the import of scipy would take longer than
the rest of most nodes' start. Results equal scipy's for a single rotation, bit for bit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

Array = NDArray[np.float64]
"""Float64 numbers of any shape."""
Matrix = Array
"""Rigid transforms: (..., 4, 4)."""

_SMALL_RAD = 1e-3
"""Below it a series in the angle is exact to the last digit, and the quotient of two small numbers is not."""


def transform(position_m: ArrayLike = (0.0, 0.0, 0.0), rotation: Rotation | None = None) -> Matrix:
    """The (4, 4) transform with the given translation [m] and rotation (identity if None)."""
    return _placed(position_m, None if rotation is None else rotation.as_matrix())


def from_quaternion(position_m: ArrayLike, quaternion_xyzw: ArrayLike) -> Matrix:
    """The (4, 4) transform from a position [m] and a quaternion (x, y, z, w), normalised on the way.

    Raises InputError for a quaternion of zeros.
    """
    x, y, z, w = np.asarray(quaternion_xyzw, dtype=np.float64).tolist()
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    if norm == 0:
        raise InputError("a quaternion of zeros is no rotation")
    return _placed(position_m, _matrix(x / norm, y / norm, z / norm, w / norm))


def from_rpy(position_m: ArrayLike, roll_pitch_yaw_rad: ArrayLike) -> Matrix:
    """The (4, 4) transform from a position [m] and URDF's fixed-axis roll, pitch, yaw [rad]."""
    halves = np.asarray(roll_pitch_yaw_rad, dtype=np.float64) / 2
    (sr, sp, sy), (cr, cp, cy) = map(math.sin, halves.tolist()), map(math.cos, halves.tolist())
    x, y, z, w = sr * cp, cr * sp, -(sr * sp), cr * cp  # roll, then pitch
    return _placed(position_m, _matrix(cy * x - sy * y, cy * y + sy * x, cy * z + sy * w, cy * w - sy * z))


def quaternion_of(matrix: Matrix) -> Array:
    """The rotation of a (4, 4) transform as a quaternion (x, y, z, w) with w >= 0."""
    return np.array(_quaternion(matrix))


def as_transported(pose: Matrix) -> Matrix:
    """A pose rounded as by a message: a position and a quaternion."""
    return from_quaternion(pose[:3, 3], quaternion_of(pose))


def rotation_vector_of(matrix: Matrix) -> Array:
    """The rotation of a (4, 4) transform, or of a (3, 3) matrix, as a rotation vector [rad], shape (3,)."""
    x, y, z, w = _quaternion(matrix)
    norm = math.sqrt(x * x + y * y + z * z)
    angle = 2 * math.atan2(norm, w)
    square = angle * angle
    per_sine = 2 + square / 12 + 7 * square * square / 2880 if angle <= _SMALL_RAD else angle / math.sin(angle / 2)
    return np.array([per_sine * x, per_sine * y, per_sine * z])


def rotation_of_vector(rotation_vector_rad: ArrayLike) -> Array:
    """The (3, 3) matrix of a rotation vector (3,) [rad]."""
    x, y, z = np.asarray(rotation_vector_rad, dtype=np.float64).tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    square = angle * angle
    sine = 0.5 - square / 48 + square * square / 3840 if angle <= _SMALL_RAD else math.sin(angle / 2) / angle
    return _matrix(sine * x, sine * y, sine * z, math.cos(angle / 2))


def inverse(matrix: Matrix) -> Matrix:
    """The inverse of a rigid (4, 4) transform."""
    result = np.eye(4)
    result[:3, :3] = matrix[:3, :3].T
    result[:3, 3] = -matrix[:3, :3].T @ matrix[:3, 3]
    return result


def _placed(position_m: ArrayLike, rotation: Array | None) -> Matrix:
    matrix = np.eye(4)
    matrix[:3, 3] = position_m
    if rotation is not None:
        matrix[:3, :3] = rotation
    return matrix


def _matrix(x: float, y: float, z: float, w: float) -> Array:
    """The (3, 3) matrix of a unit quaternion."""
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    xy, zw, xz, yw, yz, xw = x * y, z * w, x * z, y * w, y * z, x * w
    return np.array(
        [
            [xx - yy - zz + ww, 2 * (xy - zw), 2 * (xz + yw)],
            [2 * (xy + zw), -xx + yy - zz + ww, 2 * (yz - xw)],
            [2 * (xz - yw), 2 * (yz + xw), -xx - yy + zz + ww],
        ]
    )


def _quaternion(matrix: Matrix) -> tuple[float, float, float, float]:
    """The unit quaternion with w >= 0 of a rotation: from the largest of its four numbers (Shepperd 1978)."""
    m = matrix.tolist()
    sizes = [m[0][0], m[1][1], m[2][2], m[0][0] + m[1][1] + m[2][2]]
    largest = sizes.index(max(sizes))
    if largest == 3:
        quaternion = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1], 1 + sizes[3]]
    else:
        i, j, k = largest, (largest + 1) % 3, (largest + 2) % 3
        quaternion = [0.0, 0.0, 0.0, m[k][j] - m[j][k]]
        quaternion[i] = 1 - sizes[3] + 2 * m[i][i]
        quaternion[j] = m[j][i] + m[i][j]
        quaternion[k] = m[k][i] + m[i][k]
    x, y, z, w = quaternion
    norm = math.copysign(math.sqrt(x * x + y * y + z * z + w * w), w)
    return x / norm, y / norm, z / norm, w / norm
