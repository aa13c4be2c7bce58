"""The compiled formulas of a calibrated arm: any chain of six joints, and Newton's steps to a pose of it.

`chain` is always the poses (6, 4, 4) of the links in the one before at joint angle 0, the first in UR's `base`; each
joint turns its link about z. Metres and radians, poses in `base`. Nothing here is of `closed_form`: numba's cache on
disk notices only changes of the file a function is in.
"""

from __future__ import annotations

from math import atan2, cos, pi, sin, sqrt

import numpy as np
from numba import njit

from merton.world.geometry import Array

REACHED_M, REACHED_RAD = 1e-10, 1e-10
"""A pose this near is reached. Ours: ten times below what `merton.execution.kinematics` promises."""

MOST_STEPS = 60
"""Newton needs three or four steps from the closed form's solution, and more of them near a singularity alone."""

_LONGEST_STEP_RAD = 0.3


@njit(cache=True)
def frames_of(joints: Array, chain: Array, frames: Array) -> None:
    """Fill frames (7, 4, 4): `base`, then those of the links, for joints (6,)."""
    frames[:] = 0.0
    for i in range(7):
        frames[i, 3, 3] = 1.0
    for i in range(3):
        frames[0, i, i] = 1.0
    for n in range(6):
        s, c = sin(joints[n]), cos(joints[n])
        for i in range(3):
            x, y, z, at = 0.0, 0.0, 0.0, frames[n, i, 3]
            for k in range(3):
                part = frames[n, i, k]
                x += part * chain[n, k, 0]
                y += part * chain[n, k, 1]
                z += part * chain[n, k, 2]
                at += part * chain[n, k, 3]
            frames[n + 1, i, 0], frames[n + 1, i, 1] = c * x + s * y, c * y - s * x
            frames[n + 1, i, 2], frames[n + 1, i, 3] = z, at


@njit(cache=True)
def frames_batch(joints: Array, chain: Array) -> Array:
    """Frames (n, 7, 4, 4) for joints (n, 6)."""
    frames = np.empty((joints.shape[0], 7, 4, 4))
    for n in range(joints.shape[0]):
        frames_of(joints[n], chain, frames[n])
    return frames


@njit(cache=True)
def _jacobian(frames: Array, jacobian: Array) -> None:
    """Fill the geometric Jacobian (6, 6) of the last of the frames, rows linear [m/rad] then angular."""
    for j in range(6):
        ax, ay, az = frames[j + 1, 0, 2], frames[j + 1, 1, 2], frames[j + 1, 2, 2]
        rx = frames[6, 0, 3] - frames[j + 1, 0, 3]
        ry = frames[6, 1, 3] - frames[j + 1, 1, 3]
        rz = frames[6, 2, 3] - frames[j + 1, 2, 3]
        jacobian[0, j], jacobian[1, j], jacobian[2, j] = ay * rz - az * ry, az * rx - ax * rz, ax * ry - ay * rx
        jacobian[3, j], jacobian[4, j], jacobian[5, j] = ax, ay, az


@njit(cache=True)
def jacobian_batch(joints: Array, chain: Array) -> Array:
    """Geometric Jacobians (n, 6, 6) for joints (n, 6)."""
    frames, jacobians = np.empty((7, 4, 4)), np.empty((joints.shape[0], 6, 6))
    for n in range(joints.shape[0]):
        frames_of(joints[n], chain, frames)
        _jacobian(frames, jacobians[n])
    return jacobians


@njit(cache=True)
def errors(pose: Array, target: Array, error: Array) -> tuple[float, float]:
    """Fill the way (6,) from a pose to the target, [m] and a rotation vector [rad]: its two lengths."""
    turn = np.empty((3, 3))
    for i in range(3):
        error[i] = target[i, 3] - pose[i, 3]
        for j in range(3):
            turn[i, j] = 0.0
            for k in range(3):
                turn[i, j] += target[i, k] * pose[j, k]
    x, y, z = turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]
    twice_sine = sqrt(x * x + y * y + z * z)
    angle = atan2(twice_sine, turn[0, 0] + turn[1, 1] + turn[2, 2] - 1.0)
    scale = angle / twice_sine if twice_sine > 1e-12 else 0.5
    error[3], error[4], error[5] = scale * x, scale * y, scale * z
    return sqrt(error[0] * error[0] + error[1] * error[1] + error[2] * error[2]), angle


@njit(cache=True)
def refine(joints: Array, target: Array, chain: Array) -> tuple[float, float]:
    """Move joints (6,) to the target (4, 4): distance [m] and angle [rad] that are left.

    Steps are those of Levenberg and Marquardt, with a damping that falls with the square of the error: Newton's near
    the solution, and short ones where the arm is singular.
    """
    frames, jacobian, error = np.empty((7, 4, 4)), np.empty((6, 6)), np.empty(6)
    best = joints.copy()
    frames_of(joints, chain, frames)
    gap, angle = errors(frames[6], target, error)
    damping = 1.0
    for _ in range(MOST_STEPS):
        if (gap < REACHED_M and angle < REACHED_RAD) or not np.isfinite(gap + angle):
            break
        _jacobian(frames, jacobian)
        square = gap * gap + angle * angle
        normal = jacobian.T @ jacobian
        for i in range(6):
            normal[i, i] += damping * square + 1e-18
        step = np.linalg.solve(normal, jacobian.T @ error)
        longest = np.abs(step).max()
        if longest > _LONGEST_STEP_RAD:
            step *= _LONGEST_STEP_RAD / longest
        frames_of(best + step, chain, frames)
        new_gap, new_angle = errors(frames[6], target, error)
        if new_gap * new_gap + new_angle * new_angle < square:
            best += step
            gap, angle = new_gap, new_angle
            damping = max(damping / 5.0, 1e-3)
        else:
            damping *= 10.0
            if damping > 1e12:
                break
            frames_of(best, chain, frames)
            gap, angle = errors(frames[6], target, error)
    joints[:] = best
    return gap, angle


@njit(cache=True)
def refine_batch(joints: Array, targets: Array, chain: Array) -> None:
    """Move joints (n, m, 6), m starts for each of the targets (n, 4, 4), in place; NaN where none is reached.

    Angles end in [-pi, pi].
    """
    for n in range(joints.shape[0]):
        for m in range(joints.shape[1]):
            if np.isnan(joints[n, m, 0]):
                continue
            gap, angle = refine(joints[n, m], targets[n], chain)
            if not (gap < 10 * REACHED_M and angle < 10 * REACHED_RAD):
                joints[n, m] = np.nan
                continue
            for i in range(6):
                joints[n, m, i] -= 2.0 * pi * np.round(joints[n, m, i] / (2.0 * pi))
