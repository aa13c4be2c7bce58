"""Forward and inverse kinematics of the UR5, in UR's own `base` frame.

The link frames are those of Craig's modified Denavit-Hartenberg convention, which Table 3 of Embodied-IQA (arXiv
2505.16815) and the public URDF use: frame i turns about its own z axis by joint angle i, and frame 6 is `tool0`. The
paper multiplies matrices of the *other* convention with these numbers and solves a spherical wrist that a UR5 does not
have; docs/kinematics.md shows what that costs. The inverse below is the closed form of the robot as it is built.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import atan2, cos, hypot, pi, sin, sqrt

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from merton.errors import InputError
from merton.geometry import Matrix

Array = NDArray[np.float64]

BASE_LINK_FROM_BASE: Matrix = np.diag([-1.0, -1.0, 1.0, 1.0])
"""ROS's `base_link` (x forward) from UR's `base`: a half turn about z."""

BRANCHES = tuple((shoulder, wrist, elbow) for shoulder in (1, -1) for wrist in (1, -1) for elbow in (1, -1))
"""What the eight rows of `inverse` mean: which root is taken at the shoulder, at the wrist (the sign of sin(joint 5))
and at the elbow (the sign of sin(joint 3))."""

SINGULAR_SINE = 1e-11
"""|sin(joint 5)| below which joints 4 and 6 turn about the same line and joint 6 is free."""

ROOT_GUARD = -1e-12
"""A root this little below zero [m2, m4] is rounding at the edge of the reach, not an unreachable pose."""

NEAR_SINGULAR = 1e-6
"""How close to a singularity a solution is reported as singular (relative, see `IkResult.singular`)."""


@dataclass(frozen=True)
class IkResult:
    """What `solve` found.

    Attributes:
        success: a solution within the joint limits exists.
        joints: (6,) [rad]; NaN without success.
        branch: row of `inverse` (see `BRANCHES`), -1 without success.
        residual_m: distance between the pose asked for and the one the joints give [m].
        residual_rad: angle between them [rad].
        singular: "shoulder", "elbow" or "wrist" if the solution is that close to a singularity, else "".
        why: one sentence why there is no solution, else "".
    """

    success: bool
    joints: Array
    branch: int
    residual_m: float
    residual_rad: float
    singular: str = ""
    why: str = ""


@njit(cache=True)
def _frames(q: Array, robot: Array, frames: Array) -> None:
    """Fill frames (7, 4, 4): base and the six link frames. `robot` is d1, a2, a3, d4, d5, d6."""
    d1, a2, a3, d4, d5, d6 = robot
    s1, c1 = sin(q[0]), cos(q[0])
    frames[:] = 0.0
    for i in range(7):
        frames[i, 3, 3] = 1.0
    for i in range(3):
        frames[0, i, i] = 1.0
    frames[1, 0, 0], frames[1, 0, 1], frames[1, 1, 0], frames[1, 1, 1] = c1, -s1, s1, c1
    frames[1, 2, 2], frames[1, 2, 3] = 1.0, d1
    # Axes 2, 3 and 4 are parallel: their frames differ by the angle in the arm's vertical plane.
    angle = 0.0
    along, height, aside = 0.0, d1, 0.0
    for i in range(2, 5):
        if i == 3:
            along, height = a2 * cos(angle), d1 + a2 * sin(angle)
        elif i == 4:
            along, height, aside = along + a3 * cos(angle), height + a3 * sin(angle), d4
        angle += q[i - 1]
        s, c = sin(angle), cos(angle)
        frame = frames[i]
        frame[0, 0], frame[0, 1], frame[0, 2], frame[0, 3] = c1 * c, -c1 * s, s1, c1 * along + s1 * aside
        frame[1, 0], frame[1, 1], frame[1, 2], frame[1, 3] = s1 * c, -s1 * s, -c1, s1 * along - c1 * aside
        frame[2, 0], frame[2, 1], frame[2, 2], frame[2, 3] = s, c, 0.0, height
    s5, c5, s6, c6 = sin(q[4]), cos(q[4]), sin(q[5]), cos(q[5])
    for i in range(3):
        x4, y4, z4 = frames[4, i, 0], frames[4, i, 1], frames[4, i, 2]
        x5, y5, z5 = c5 * x4 + s5 * z4, -s5 * x4 + c5 * z4, -y4
        frames[5, i, 0], frames[5, i, 1], frames[5, i, 2] = x5, y5, z5
        frames[5, i, 3] = frames[4, i, 3] + d5 * z5
        frames[6, i, 0], frames[6, i, 1], frames[6, i, 2] = c6 * x5 - s6 * z5, -s6 * x5 - c6 * z5, y5
        frames[6, i, 3] = frames[5, i, 3] + d6 * y5


@njit(cache=True)
def _frames_batch(joints: Array, robot: Array) -> Array:
    frames = np.empty((joints.shape[0], 7, 4, 4))
    for i in range(joints.shape[0]):
        _frames(joints[i], robot, frames[i])
    return frames


@njit(cache=True)
def _forward_batch(joints: Array, robot: Array) -> Array:
    frames = np.empty((7, 4, 4))
    poses = np.empty((joints.shape[0], 4, 4))
    for i in range(joints.shape[0]):
        _frames(joints[i], robot, frames)
        poses[i] = frames[6]
    return poses


@njit(cache=True)
def _wrapped(angle: float) -> float:
    """The same direction in [-pi, pi]."""
    return angle - 2.0 * pi * np.round(angle / (2.0 * pi))


@njit(cache=True)
def _inverse(pose: Array, robot: Array, free_joint_6: float, solutions: Array) -> None:
    """Fill solutions (8, 6) in the order of BRANCHES; NaN where a branch does not exist."""
    d1, a2, a3, d4, d5, d6 = robot
    solutions[:] = np.nan
    # The wrist centre (origin of frame 5) lies d6 behind the tool, and d4 from the vertical plane that joint 1 turns.
    wx, wy = pose[0, 3] - d6 * pose[0, 2], pose[1, 3] - d6 * pose[1, 2]
    wz = pose[2, 3] - d6 * pose[2, 2]
    root = wx * wx + wy * wy - d4 * d4
    if not root >= ROOT_GUARD:  # NaN included
        return
    root = sqrt(max(root, 0.0))
    bearing = atan2(wy, wx)
    for shoulder in range(2):
        q1 = bearing + atan2(d4, root if shoulder == 0 else -root)
        s1, c1 = sin(q1), cos(q1)
        # The tool's axes along the common direction (s1, -c1, 0) of axes 2, 3, 4 are functions of joints 5 and 6 alone.
        across_x = pose[0, 0] * s1 - pose[1, 0] * c1
        across_y = pose[0, 1] * s1 - pose[1, 1] * c1
        across_z = pose[0, 2] * s1 - pose[1, 2] * c1
        sine5 = hypot(across_x, across_y)
        for wrist in range(2):
            sign5 = 1.0 if wrist == 0 else -1.0
            q5 = atan2(sign5 * sine5, across_z)
            q6 = free_joint_6 if sine5 < SINGULAR_SINE else atan2(-sign5 * across_y, sign5 * across_x)
            s6, c6 = sin(q6), cos(q6)
            # y of frame 4 lies in the arm's plane: it gives the sum of joints 2, 3, 4 and the way to frame 4's origin.
            yx, yy = s6 * pose[0, 0] + c6 * pose[0, 1], s6 * pose[1, 0] + c6 * pose[1, 1]
            yz = s6 * pose[2, 0] + c6 * pose[2, 1]
            y_along = yx * c1 + yy * s1
            q234 = atan2(-y_along, yz)
            along = wx * c1 + wy * s1 + d5 * y_along
            height = wz - d1 + d5 * yz
            reach2 = along * along + height * height
            # 16 times the squared area of the triangle of upper arm, forearm and reach (Heron): no arc cosine needed.
            area2 = ((a2 + a3) ** 2 - reach2) * (reach2 - (a2 - a3) ** 2)
            if not area2 >= ROOT_GUARD:
                continue
            area = sqrt(max(area2, 0.0))
            for elbow in range(2):
                q3 = atan2(area if elbow == 0 else -area, reach2 - a2 * a2 - a3 * a3)
                forward, up = a2 + a3 * cos(q3), a3 * sin(q3)
                q2 = atan2(height * forward - along * up, along * forward + height * up)
                row = solutions[4 * shoulder + 2 * wrist + elbow]
                row[0], row[1], row[2] = _wrapped(q1), q2, q3
                row[3], row[4], row[5] = _wrapped(q234 - q2 - q3), q5, _wrapped(q6)


@njit(cache=True)
def _inverse_batch(poses: Array, robot: Array, free_joint_6: float) -> Array:
    solutions = np.empty((poses.shape[0], 8, 6))
    for i in range(poses.shape[0]):
        _inverse(poses[i], robot, free_joint_6, solutions[i])
    return solutions


@njit(cache=True)
def _nearest(solutions: Array, near: Array, limit: Array) -> int:
    """Move every solution (8, 6) to its image nearest to `near` within +-limit; the row least far from it."""
    best, least = -1, np.inf
    for row in range(8):
        if np.isnan(solutions[row, 0]):
            continue
        distance = 0.0
        for joint in range(6):
            around = min(max(near[joint], -limit[joint]), limit[joint])
            angle = solutions[row, joint]
            angle += 2.0 * pi * np.round((around - angle) / (2.0 * pi))
            while angle > limit[joint]:
                angle -= 2.0 * pi
            while angle < -limit[joint]:
                angle += 2.0 * pi
            solutions[row, joint] = angle
            distance += (angle - near[joint]) ** 2
        if distance < least:
            best, least = row, distance
    return best


@njit(cache=True)
def _residual(joints: Array, pose: Array, robot: Array) -> tuple[float, float]:
    frames = np.empty((7, 4, 4))
    _frames(joints, robot, frames)
    gap2, chord2 = 0.0, 0.0
    for i in range(3):
        gap2 += (frames[6, i, 3] - pose[i, 3]) ** 2
        for j in range(3):
            chord2 += (frames[6, i, j] - pose[i, j]) ** 2
    return sqrt(gap2), 2.0 * np.arcsin(min(1.0, sqrt(chord2 / 8.0)))


@njit(cache=True)
def _solve(pose: Array, near: Array, robot: Array, limit: Array) -> tuple[int, Array, float, float]:
    """Row, joints (6,) and residuals of the solution nearest to `near`; row -1 if there is none."""
    solutions = np.empty((8, 6))
    # At the wrist singularity joint 6 is free, but not every angle is within reach: the current one first, then around.
    for attempt in range(25):
        free_joint_6 = near[5] + (1 - 2 * (attempt % 2)) * ((attempt + 1) // 2) * pi / 12.0
        _inverse(pose, robot, free_joint_6, solutions)
        row = _nearest(solutions, near, limit)
        if row >= 0:
            gap, angle = _residual(solutions[row], pose, robot)
            return row, solutions[row].copy(), gap, angle
    return -1, np.full(6, np.nan), np.nan, np.nan


@njit(cache=True)
def _jacobian_batch(joints: Array, robot: Array) -> Array:
    frames = np.empty((7, 4, 4))
    jacobians = np.empty((joints.shape[0], 6, 6))
    for n in range(joints.shape[0]):
        _frames(joints[n], robot, frames)
        for j in range(6):
            ax, ay, az = frames[j + 1, 0, 2], frames[j + 1, 1, 2], frames[j + 1, 2, 2]
            rx = frames[6, 0, 3] - frames[j + 1, 0, 3]
            ry = frames[6, 1, 3] - frames[j + 1, 1, 3]
            rz = frames[6, 2, 3] - frames[j + 1, 2, 3]
            jacobians[n, 0, j] = ay * rz - az * ry
            jacobians[n, 1, j] = az * rx - ax * rz
            jacobians[n, 2, j] = ax * ry - ay * rx
            jacobians[n, 3, j], jacobians[n, 4, j], jacobians[n, 5, j] = ax, ay, az
    return jacobians


@dataclass(frozen=True)
class UniversalRobot:
    """A six-axis arm of Universal Robots' build: axes 2, 3, 4 parallel, the wrist offset.

    Attributes:
        name: for people.
        d1, a2, a3, d4, d5, d6: Denavit-Hartenberg lengths [m] (a2 and a3 negative, as UR publishes them).
        joint_limits_rad: each joint may turn by plus or minus this [rad].
    """

    name: str
    d1: float
    a2: float
    a3: float
    d4: float
    d5: float
    d6: float
    joint_limits_rad: tuple[float, float, float, float, float, float] = field(
        default=(2 * pi, 2 * pi, pi, 2 * pi, 2 * pi, 2 * pi)
    )

    @cached_property
    def _lengths(self) -> Array:
        return np.array([self.d1, self.a2, self.a3, self.d4, self.d5, self.d6])

    @cached_property
    def _limits(self) -> Array:
        return np.array(self.joint_limits_rad)

    def forward(self, joints: ArrayLike) -> Matrix:
        """Pose of `tool0` in `base`: (..., 6) [rad] -> (..., 4, 4)."""
        flat, shape = _flat_joints(joints)
        return _forward_batch(flat, self._lengths).reshape(*shape, 4, 4)

    def link_frames(self, joints: ArrayLike) -> Matrix:
        """All frames in `base`: (..., 6) [rad] -> (..., 7, 4, 4): base, then link frames 1 .. 6 (6 is `tool0`)."""
        flat, shape = _flat_joints(joints)
        return _frames_batch(flat, self._lengths).reshape(*shape, 7, 4, 4)

    def jacobian(self, joints: ArrayLike) -> Array:
        """Geometric Jacobian of `tool0` in `base`: (..., 6) [rad] -> (..., 6, 6), rows linear [m/rad] then angular."""
        flat, shape = _flat_joints(joints)
        return _jacobian_batch(flat, self._lengths).reshape(*shape, 6, 6)

    def inverse(self, pose: ArrayLike, free_joint_6_rad: float = 0.0) -> Array:
        """All joint angles that reach a pose of `tool0` in `base`: (..., 4, 4) -> (..., 8, 6) [rad] in [-pi, pi].

        Rows follow `BRANCHES`; a branch that does not exist is NaN. `free_joint_6_rad` is joint 6 where the wrist is
        singular and leaves it open (|sin(joint 5)| < 1e-11). The rotation must be orthonormal.
        """
        poses = np.ascontiguousarray(pose, dtype=np.float64)
        if poses.shape[-2:] != (4, 4):
            raise InputError(f"a pose must have shape (..., 4, 4), got {poses.shape}")
        shape = poses.shape[:-2]
        return _inverse_batch(poses.reshape(-1, 4, 4), self._lengths, float(free_joint_6_rad)).reshape(*shape, 8, 6)

    def solve(self, pose: ArrayLike, near: ArrayLike) -> IkResult:
        """The joint angles that reach one pose (4, 4) of `tool0` in `base`, nearest to `near` (6,) within the limits.

        Every joint of every branch is taken at the image (plus or minus whole turns) nearest to `near`; the branch with
        the least sum of squared joint differences wins. No pose raises: an unreachable one says by how much.

        Raises:
            InputError: wrong shapes.
        """
        target = np.ascontiguousarray(pose, dtype=np.float64)
        start = np.ascontiguousarray(near, dtype=np.float64)
        if target.shape != (4, 4) or start.shape != (6,):
            raise InputError(f"solve takes a pose (4, 4) and joints (6,), got {target.shape} and {start.shape}")
        branch, joints, gap, angle = _solve(target, start, self._lengths, self._limits)
        if branch < 0:
            return IkResult(False, joints, -1, gap, angle, why=self._why_not(target))
        return IkResult(True, joints, branch, gap, angle, singular=self._singular(joints))

    def _singular(self, joints: Array) -> str:
        if abs(sin(joints[4])) < NEAR_SINGULAR:
            return "wrist"
        if abs(sin(joints[2])) < NEAR_SINGULAR:
            return "elbow"
        # The shoulder is singular where the wrist centre lies straight above or below axis 2's own line.
        along = self.a2 * cos(joints[1]) + self.a3 * cos(joints[1] + joints[2])
        along += self.d5 * sin(joints[1] + joints[2] + joints[3])
        return "shoulder" if abs(along) < NEAR_SINGULAR else ""

    def _why_not(self, pose: Matrix) -> str:
        if not np.isfinite(pose).all():
            return "the pose is not finite"
        centre = pose[:3, 3] - self.d6 * pose[:3, 2]
        radius = hypot(centre[0], centre[1])
        if radius < self.d4:
            return f"the wrist centre is {_millimetres(self.d4 - radius)} mm too close to the axis of joint 1"
        # Frame 4's origin is somewhere at d5 from the wrist centre; compare that ring with what the long links span.
        span = hypot(sqrt((radius - self.d4) * (radius + self.d4)), centre[2] - self.d1)
        longest, shortest = abs(self.a2 + self.a3), abs(self.a2 - self.a3)
        if span > longest + self.d5:
            return f"the pose is at least {_millimetres(span - longest - self.d5)} mm beyond the reach"
        if span + self.d5 < shortest:
            return f"the pose is at least {_millimetres(shortest - span - self.d5)} mm too close to the shoulder"
        return "the tool's orientation puts the wrist out of reach at this position"


def _millimetres(length_m: float) -> str:
    return f"{length_m * 1000:.3g}"


def _flat_joints(joints: ArrayLike) -> tuple[Array, tuple[int, ...]]:
    array = np.ascontiguousarray(joints, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 6:
        raise InputError(f"joint angles must have shape (..., 6), got {array.shape}")
    return array.reshape(-1, 6), array.shape[:-1]


UR5 = UniversalRobot("UR5", d1=0.089159, a2=-0.425, a3=-0.39225, d4=0.10915, d5=0.09465, d6=0.0823)
"""The CB3 UR5, with the lengths Universal Robots publishes."""


def base_from_tcp(joints: ArrayLike, tool0_from_tcp: Matrix) -> Matrix:
    """Pose of the tool centre point in **`base_link`**: joints (..., 6) [rad] -> (..., 4, 4)."""
    return BASE_LINK_FROM_BASE @ UR5.forward(joints) @ tool0_from_tcp
