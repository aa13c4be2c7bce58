"""Kinematics of an arm as it was built: the chain of its calibration, the closed form as a start, Newton's steps.

The axes of a built arm are neither exactly parallel nor exactly at right angles, and such a chain has no closed form.
Its solutions lie near those of the arm as drawn: each of the eight is moved to the pose by Newton's steps (`newton`).
Near a singularity the drawn arm may lack a branch that the built one has, or put its wrist elsewhere; there the search
starts from poses around the wanted one, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import cos, sin

import numpy as np
from numpy.typing import ArrayLike

from merton.execution.kinematics import closed_form, newton
from merton.execution.kinematics.universal_robot import (
    BRANCHES,
    NEAR_SINGULAR,
    IkResult,
    UniversalRobot,
    flat_joints,
    flat_poses,
    side_of,
)
from merton.world.geometry import Array, Matrix, rotation_of_vector
from merton.world.kinematic_calibration import KinematicCalibration

STARTS, START_M, START_RAD = 32, 0.012, 0.015
"""Poses around the wanted one to start from, and how far away they are: standard deviations per axis.

Ours: the size of a calibration's effect on the tool. In 3,000 random postures the true one is among the solutions in
100 % of those whose starts agree, and in 99.7 % of all; docs/reference/kinematics.md."""

NEAR_WRIST = 0.05
"""|sin(joint 5)| below which the drawn arm's joints 4 and 6 say little about those of the built one."""

SAME_RAD = 1e-6
"""Solutions nearer than this in every joint are one."""


@dataclass(frozen=True)
class CalibratedRobot(UniversalRobot):
    """A robot with the joints of its calibration; methods as of `UniversalRobot`, whose lengths are those as drawn.

    `inverse` has at most eight solutions: each in the row of the branch that led to it, or, where several came from one
    near a singularity, in a row that is free. `IkResult.singular` tells that the arm is singular, and names the joint
    that is nearest to it.
    """

    calibration: KinematicCalibration

    @cached_property
    def _chain(self) -> Matrix:
        return np.ascontiguousarray(self.calibration.parent_from_link)

    def forward(self, joints: ArrayLike, *, frame: str = "base_link") -> Matrix:
        return np.ascontiguousarray(self.link_frames(joints, frame=frame)[..., 6, :, :])

    def link_frames(self, joints: ArrayLike, *, frame: str = "base_link") -> Matrix:
        side, (flat, shape) = side_of(frame), flat_joints(joints)
        frames = newton.frames_batch(flat, self._chain)
        frames[:, :, :2] *= side
        return (frames + 0.0).reshape(*shape, 7, 4, 4)  # + 0.0: no negative zero

    def jacobian(self, joints: ArrayLike, *, frame: str = "base_link") -> Array:
        side, (flat, shape) = side_of(frame), flat_joints(joints)
        jacobians = newton.jacobian_batch(flat, self._chain)
        jacobians[:, [0, 1, 3, 4]] *= side
        return jacobians.reshape(*shape, 6, 6)

    def inverse(self, pose: ArrayLike, free_joint_6_rad: float = 0.0, *, frame: str = "base_link") -> Array:
        side, (flat, shape) = side_of(frame), flat_poses(pose)
        poses = _in_base(flat, side)
        starts = self._drawn(poses, free_joint_6_rad)
        solutions = starts.copy()
        newton.refine_batch(solutions, poses, self._chain)
        for n in range(len(poses)):
            around = self._drawn(poses[n] @ _around(), free_joint_6_rad)
            if _doubtful(starts[n], solutions[n], around):
                solutions[n] = self._searched(solutions[n], around, poses[n])
        return solutions.reshape(*shape, 8, 6)

    def _solved(self, target: Matrix, start: Array, side: float) -> IkResult:
        """`start` is a start of its own: the branch that a motion is on is followed through singularities."""
        pose = _in_base(target[None], side)
        rows = np.concatenate([self._drawn(pose, float(start[5]))[0], start[None]])[None]
        newton.refine_batch(rows, pose, self._chain)
        result = self._nearest(rows[0], start, pose[0])
        if result is None and np.isfinite(pose).all():
            around = self._drawn(pose[0] @ _around(), float(start[5]))
            result = self._nearest(self._searched(rows[0, :8], around, pose[0]), start, pose[0])
        if result is not None:
            return result
        return IkResult(False, np.full(6, np.nan), -1, np.nan, np.nan, why=self._why_not(pose[0]))

    def _nearest(self, rows: Array, start: Array, pose: Matrix) -> IkResult | None:
        """The solution of rows (n, 6) nearest to `start` within the limits; those of more than eight have no branch."""
        if len(rows) > 8 and (np.abs(_wrapped(rows[:8] - rows[8])).max(axis=1) < SAME_RAD).any():
            rows = rows[:8]
        rows = np.array(rows)  # which `nearest` turns into the limits
        row = closed_form.nearest(rows, start, self._limits)
        if row < 0:
            return None
        joints = rows[row].copy()
        frames = newton.frames_batch(joints[None], self._chain)[0]
        gap, angle = newton.errors(frames[6], pose, np.empty(6))
        return IkResult(True, joints, row if row < 8 else self._branch(joints), gap, angle, self._singular(joints))

    def _drawn(self, poses: Matrix, free_joint_6_rad: float) -> Array:
        """Solutions (n, 8, 6) of the arm as drawn for poses (n, 4, 4) in `base`."""
        return closed_form.inverse_batch(poses, self._lengths, free_joint_6_rad, 1.0)

    def _searched(self, solutions: Array, around: Array, pose: Matrix) -> Array:
        """Distinct solutions (8, 6) for one pose: those known, then those from the starts `around` (n, 8, 6)."""
        found = np.ascontiguousarray(around.reshape(1, -1, 6))
        newton.refine_batch(found, pose[None], self._chain)
        result = np.full((8, 6), np.nan)
        rows = [*range(8), *(list(range(8)) * len(around))]
        for row, joints in zip(rows, [*solutions, *found[0]], strict=True):
            if np.isnan(joints[0]) or (np.abs(_wrapped(result - joints)).max(axis=1) < SAME_RAD).any():
                continue
            free = [other for other in (row, *range(8)) if np.isnan(result[other, 0])]
            if free:
                result[free[0]] = joints
        return result

    def _along_m(self, joints: Array) -> float:
        """How far the wrist centre lies before the shoulder, in the arm's plane, as drawn [m]."""
        along = self.lengths.a2 * cos(joints[1]) + self.lengths.a3 * cos(joints[1] + joints[2])
        return along + self.lengths.d5 * sin(joints[1] + joints[2] + joints[3])

    def _branch(self, joints: Array) -> int:
        signs = (self._along_m(joints), sin(joints[4]), sin(joints[2]))
        return BRANCHES.index(tuple(1 if sign >= 0 else -1 for sign in signs))

    def _singular(self, joints: Array) -> str:
        if np.linalg.svd(self.jacobian(joints), compute_uv=False)[-1] >= NEAR_SINGULAR:
            return ""
        near = {"wrist": sin(joints[4]), "elbow": sin(joints[2]), "shoulder": self._along_m(joints)}
        return min(near, key=lambda name: abs(near[name]))

    def _why_not(self, pose: Matrix) -> str:
        """As of the arm as drawn, but for a pose that only the built one does not reach."""
        if np.isfinite(pose).all():
            beyond = np.max(np.abs(self.inverse(pose, frame="base")) - self._limits, axis=-1)
            if np.isfinite(beyond).any():
                return f"every solution turns a joint beyond its limit, by at least {np.nanmin(beyond):.3g} rad"
            if np.isfinite(self._drawn(pose[None], 0.0)).any():
                return "the pose is within reach of the arm as drawn, but not of this one with its calibration"
        return super()._why_not(pose)


@cache
def calibrated(robot: UniversalRobot, calibration: KinematicCalibration) -> CalibratedRobot:
    """A robot with a calibration."""
    return CalibratedRobot(robot.name, robot.lengths, robot.joint_limits_rad, calibration)


@cache
def _around() -> Matrix:
    """Displacements (`STARTS`, 4, 4) in the tool's frame, the same in every process."""
    random = np.random.default_rng(0)
    displaced = np.tile(np.eye(4), (STARTS, 1, 1))
    for pose in displaced:
        pose[:3, 3] = random.normal(scale=START_M, size=3)
        pose[:3, :3] = rotation_of_vector(random.normal(scale=START_RAD, size=3))
    return displaced


def _in_base(poses: Matrix, side: float) -> Matrix:
    """Poses (n, 4, 4) of the frame of `side` in `base`."""
    return np.ascontiguousarray(poses * np.array([[side], [side], [1.0], [1.0]]))


def _doubtful(starts: Array, solutions: Array, around: Array) -> bool:
    """Whether a pose is near a singularity, from its starts and solutions (8, 6) and the starts around it (n, 8, 6)."""
    exists = ~np.isnan(starts[:, 0])
    if (exists != ~np.isnan(around[:, :, 0])).any() or (exists & np.isnan(solutions[:, 0])).any():
        return True
    return bool((np.abs(np.sin(around[:, exists, 4])) < NEAR_WRIST).any())


def _wrapped(angles_rad: Array) -> Array:
    """The same directions in [-pi, pi]."""
    return angles_rad - 2 * np.pi * np.round(angles_rad / (2 * np.pi))
