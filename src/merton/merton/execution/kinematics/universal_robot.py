"""Forward and inverse kinematics of the UR5 and its siblings, in `base_link` or in UR's own `base`.

The link frames are those of Craig's modified Denavit-Hartenberg convention, which Table 3 of Embodied-IQA (arXiv
2505.16815) and the public URDF use: frame i turns about its own z axis by joint angle i, and frame 6 is `tool0`. The
paper multiplies matrices of the *other* convention with these numbers and solves a spherical wrist that a UR5 does not
have; docs/reference/kinematics.md shows the error. The inverse below is the closed form of the robot as it is built
(`closed_form`).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property
from math import cos, hypot, inf, pi, sin

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import InputError, UnknownNameError
from merton.execution.kinematics import closed_form
from merton.registry import Registry
from merton.world.arms import ARMS, ONE_TURN, Lengths, Six
from merton.world.geometry import Array, Matrix

BASE_LINK_FROM_BASE: Matrix = np.diag([-1.0, -1.0, 1.0, 1.0])
"""ROS's `base_link` (x forward) from UR's `base`: a half turn about z."""

_SIDES = {"base_link": -1.0, "base": 1.0}
"""Frames of poses, and the factor of their x and y against `base`: the half turn changes only signs."""

BRANCHES = tuple((shoulder, wrist, elbow) for shoulder in (1, -1) for wrist in (1, -1) for elbow in (1, -1))
"""The branches in the eight rows of `inverse`: the root taken at the shoulder, at the wrist (the sign of sin(joint 5))
and at the elbow (the sign of sin(joint 3))."""

NEAR_SINGULAR = 1e-6
"""Distance from a singularity below which a solution is reported as singular (relative, see `IkResult.singular`)."""

FARTHEST_START_RAD = 1e6
"""Joint angles beyond this are no state of a robot, and too large for an accuracy of 1e-9 rad."""


@dataclass(frozen=True)
class IkResult:
    """Result of `solve`.

    Attributes:
        success: whether a solution within the joint limits exists.
        joints: (6,) [rad]; NaN without success.
        branch: row of `inverse` (see `BRANCHES`), -1 without success.
        residual_m, residual_rad: distance and angle between the target and the pose of the joints.
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


@dataclass(frozen=True)
class UniversalRobot:
    """A six-axis arm of Universal Robots' build: axes 2, 3, 4 parallel, the wrist offset.

    Poses are those of `tool0` in `base_link`, or with `frame="base"` in UR's own base, which the controller shows;
    any other frame raises UnknownNameError.

    Attributes:
        name: as in `ROBOTS`.
        lengths: Denavit-Hartenberg lengths [m].
        joint_limits_rad: each joint may turn by plus or minus this [rad]; infinite where it may turn without end.
    """

    name: str
    lengths: Lengths
    joint_limits_rad: Six

    @cached_property
    def _lengths(self) -> Array:
        return np.array(astuple(self.lengths))

    @cached_property
    def _limits(self) -> Array:
        return np.array(self.joint_limits_rad)

    def forward(self, joints: ArrayLike, *, frame: str = "base_link") -> Matrix:
        """Pose of `tool0`: (..., 6) [rad] -> (..., 4, 4)."""
        array = np.ascontiguousarray(joints, dtype=np.float64)
        if array.shape == (6,):
            pose: Matrix = np.empty((4, 4))
            closed_form.forward_one(array, self._lengths, side_of(frame), pose)
            return pose
        flat, shape = flat_joints(array)
        return closed_form.forward_batch(flat, self._lengths, side_of(frame)).reshape(*shape, 4, 4)

    def link_frames(self, joints: ArrayLike, *, frame: str = "base_link") -> Matrix:
        """All frames: (..., 6) [rad] -> (..., 7, 4, 4): `base`, then link frames 1 .. 6 (6 is `tool0`)."""
        flat, shape = flat_joints(joints)
        return closed_form.frames_batch(flat, self._lengths, side_of(frame)).reshape(*shape, 7, 4, 4)

    def jacobian(self, joints: ArrayLike, *, frame: str = "base_link") -> Array:
        """Geometric Jacobian of `tool0`: (..., 6) [rad] -> (..., 6, 6), rows linear [m/rad] then angular."""
        flat, shape = flat_joints(joints)
        return closed_form.jacobian_batch(flat, self._lengths, side_of(frame)).reshape(*shape, 6, 6)

    def inverse(self, pose: ArrayLike, free_joint_6_rad: float = 0.0, *, frame: str = "base_link") -> Array:
        """All joint angles that reach a pose of `tool0`: (..., 4, 4) -> (..., 8, 6) [rad] in [-pi, pi].

        Rows follow `BRANCHES`; a branch that does not exist is NaN. Where the wrist is singular
        (`|sin(joint 5)| < 1e-11`), joint 6 is free, and is the angle nearest to `free_joint_6_rad` with which the arm
        reaches. A pose up to 1e-9 m beyond the reach has the solution of the stretched arm. The rotation must be
        orthonormal.
        """
        flat, shape = flat_poses(pose)
        solutions = closed_form.inverse_batch(flat, self._lengths, float(free_joint_6_rad), side_of(frame))
        return solutions.reshape(*shape, 8, 6)

    def solve(self, pose: ArrayLike, near: ArrayLike, *, frame: str = "base_link") -> IkResult:
        """The joint angles that reach one pose (4, 4) of `tool0`, nearest to `near` (6,) within the limits.

        Every joint of every branch is taken at the image (plus or minus whole turns) nearest to `near`; the branch with
        the least sum of squared joint differences wins. No pose raises: `why` explains a failure in figures.

        Raises:
            InputError: wrong shapes.
        """
        target = np.ascontiguousarray(pose, dtype=np.float64)
        start = np.ascontiguousarray(near, dtype=np.float64)
        if target.shape != (4, 4) or start.shape != (6,):
            raise InputError(f"solve takes a pose (4, 4) and joints (6,), got {target.shape} and {start.shape}")
        if not np.abs(start).max() <= FARTHEST_START_RAD:  # NaN included
            why = f"the joint angles to start from are not within +-{FARTHEST_START_RAD:g} rad"
            return IkResult(False, np.full(6, np.nan), -1, np.nan, np.nan, why=why)
        return self._solved(target, start, side_of(frame))

    def _solved(self, target: Matrix, start: Array, side: float) -> IkResult:
        branch, joints, gap, angle = closed_form.solve(target, start, self._lengths, self._limits, side)
        if branch < 0:
            base_from_tool0 = target * np.array([[side], [side], [1.0], [1.0]])
            return IkResult(False, joints, -1, gap, angle, why=self._why_not(base_from_tool0))
        return IkResult(True, joints, branch, gap, angle, singular=self._singular(joints))

    def _singular(self, joints: Array) -> str:
        if abs(sin(joints[4])) < NEAR_SINGULAR:
            return "wrist"
        if abs(sin(joints[2])) < NEAR_SINGULAR:
            return "elbow"
        # The shoulder is singular where the wrist centre lies straight above or below axis 2's own line.
        along = self.lengths.a2 * cos(joints[1]) + self.lengths.a3 * cos(joints[1] + joints[2])
        along += self.lengths.d5 * sin(joints[1] + joints[2] + joints[3])
        return "shoulder" if abs(along) < NEAR_SINGULAR else ""

    def _why_not(self, pose: Matrix) -> str:
        """One sentence on a pose in `base`.

        A distance beyond the reach is how far the pose would have to move within the arm's plane.
        """
        if not np.isfinite(pose).all():
            return "the pose is not finite"
        # Joint 6 matters only where the wrist is singular: the angles that `solve` tries.
        solutions, gaps = np.empty((24, 8, 6)), np.empty((24, 4))
        for i in range(24):
            closed_form.inverse(pose, self._lengths, i * pi / 12.0, solutions[i], gaps[i])
        if (gaps == 0.0).any():
            beyond = np.nanmin(np.max(np.abs(solutions) - self._limits, axis=-1))
            return f"every solution turns a joint beyond its limit, by at least {beyond:.3g} rad"
        radius = hypot(pose[0, 3] - self.lengths.d6 * pose[0, 2], pose[1, 3] - self.lengths.d6 * pose[1, 2])
        if radius < self.lengths.d4:
            return f"the wrist centre is {_millimetres(self.lengths.d4 - radius)} mm too close to the axis of joint 1"
        if not np.isfinite(gaps).all():
            return "the pose is too large to compute with"
        gap = gaps.flat[np.argmin(np.abs(gaps))]
        side = "beyond the reach" if gap > 0 else "too close to the shoulder"
        return f"in this orientation the pose is {_millimetres(abs(gap))} mm {side}"


def side_of(frame: str) -> float:
    """The factor of x and y of poses in a frame against `base`; raises UnknownNameError."""
    try:
        return _SIDES[frame]
    except KeyError:
        raise UnknownNameError("frame", frame, _SIDES) from None


def _millimetres(length_m: float) -> str:
    return f"{length_m * 1000:.3g}"


def flat_joints(joints: ArrayLike) -> tuple[Array, tuple[int, ...]]:
    """Joints (..., 6) as (n, 6), and the shape before; raises InputError."""
    array = np.ascontiguousarray(joints, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 6:
        raise InputError(f"joint angles must have shape (..., 6), got {array.shape}")
    return array.reshape(-1, 6), array.shape[:-1]


def flat_poses(poses: ArrayLike) -> tuple[Matrix, tuple[int, ...]]:
    """Poses (..., 4, 4) as (n, 4, 4), and the shape before; raises InputError."""
    array = np.ascontiguousarray(poses, dtype=np.float64)
    if array.shape[-2:] != (4, 4):
        raise InputError(f"a pose must have shape (..., 4, 4), got {array.shape}")
    return array.reshape(-1, 4, 4), array.shape[:-2]


_ENDLESS_JOINT_6 = (*ONE_TURN[:5], inf)

ROBOTS: Registry[UniversalRobot] = Registry("robot")
"""The kinematics of every arm in `merton.world.arms`, and of four more of UR's that no cell can have yet."""
for _arm in ARMS.values():
    ROBOTS.add(_arm.name, UniversalRobot(_arm.name, _arm.lengths, _arm.joint_limits_rad))
# Lengths: published as those of the arms. No limit for joint 6 of the two smallest.
for _robot in (
    UniversalRobot("UR3", Lengths(0.1519, -0.24365, -0.21325, 0.11235, 0.08535, 0.0819), _ENDLESS_JOINT_6),
    UniversalRobot("UR10", Lengths(0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922), ONE_TURN),
    UniversalRobot("UR3e", Lengths(0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921), _ENDLESS_JOINT_6),
    UniversalRobot("UR16e", Lengths(0.1807, -0.4784, -0.36, 0.17415, 0.11985, 0.11655), ONE_TURN),
):
    if _robot.name not in ARMS:
        ROBOTS.add(_robot.name, _robot)
