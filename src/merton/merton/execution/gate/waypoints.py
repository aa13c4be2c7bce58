"""From deltas to waypoints: the check that they are an action, and the joint angles after each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import ErrorCode
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.kinematics import base_from_tcp, kinematics_of
from merton.world.action import DIMENSIONS, chunk_fault
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix, inverse, rotation_of_vector

LONGEST_CHUNK = 256
"""A chunk has at most this many deltas, which bounds the time and memory of a check."""

SHORTEST_STEP_S, LONGEST_STEP_S = 1e-3, 10.0
"""An arm takes no commands faster than the first; a step slower than the second is no motion."""

WORKSPACE_TOLERANCE_M = 0.001
"""Largest distance of a waypoint outside the workspace [m]: arms do not stop exactly where they were sent."""


def checked_actions(deltas: ArrayLike, step_s: float, frame: str, limits: Limits) -> tuple[Array, Verdict | None]:
    """The deltas as (n, 7), and the verdict if they are no action; arguments as of `planner.plan`. Never raises."""
    nothing = np.empty((0, DIMENSIONS))

    def invalid(message: str, index: int = -1) -> tuple[Array, Verdict]:
        return nothing, Verdict(ErrorCode.INVALID_ACTION, message, index)

    try:
        given = np.asarray(deltas)
        actions = np.asarray(given, np.float64) if given.dtype.kind in "biuf" else None
        step = float(step_s)
    except Exception:  # a model's output may raise any error when it is converted
        actions = None
    if actions is None:
        return invalid("the action is not numeric")
    if actions.shape == (0,):  # an empty list
        actions = nothing
    if len(actions.shape) > 0 and len(actions) > LONGEST_CHUNK:
        return invalid(f"an action may have at most {LONGEST_CHUNK} deltas, got {len(actions)}")
    if (fault := chunk_fault(actions, step, frame)) is not None:
        return invalid(*fault)
    if not SHORTEST_STEP_S <= step <= LONGEST_STEP_S:
        return invalid(f"the step of an action must take {SHORTEST_STEP_S:g} .. {LONGEST_STEP_S:g} s, got {step:g} s")
    for index, action in enumerate(actions):
        # each component alone: the norm of 1e300 overflows
        translation, rotation = np.abs(action[:3]).max(), np.abs(action[3:6]).max()
        if translation > limits.absurd_factor * limits.step_translation_m:
            return invalid(f"delta {index} asks for {translation:g} m in one step", index)
        if rotation > limits.absurd_factor * limits.step_rotation_rad:
            return invalid(f"delta {index} asks for {rotation:g} rad in one step", index)
    return actions, None


def waypoints(
    start: Array, actions: Array, step_s: float, frame: str, cell: CellConfig, limits: Limits
) -> tuple[Array, Verdict]:
    """Joint angles (k, 6) from the start on, as far as steps, speeds and kinematics allow; and the verdict.

    A waypoint outside the workspace is included as the last one, so that a collision on the way to it is found.
    """
    arm, tcp_from_tool0 = kinematics_of(cell), inverse(cell.tool0_from_tcp)
    pose = base_from_tcp(start, cell)
    outside_at_start = cell.workspace.outside_m(pose[:3, 3])
    joints = [start]
    for index, action in enumerate(actions):

        def cut(code: ErrorCode, message: str, index: int = index) -> tuple[Array, Verdict]:
            return np.array(joints), Verdict(code, f"delta {index} {message}", index)

        translation, rotation = np.linalg.norm(action[:3]), np.linalg.norm(action[3:6])
        if translation > limits.step_translation_m:
            return cut(ErrorCode.STEP_LIMIT, f"moves {translation:.3f} m, limit {limits.step_translation_m:g} m")
        if rotation > limits.step_rotation_rad:
            return cut(ErrorCode.STEP_LIMIT, f"turns {rotation:.3f} rad, limit {limits.step_rotation_rad:g} rad")
        if translation / step_s > limits.tcp_speed_m_s:
            return cut(
                ErrorCode.SPEED_LIMIT, f"moves at {translation / step_s:.3g} m/s, limit {limits.tcp_speed_m_s:g} m/s"
            )
        pose = compose(pose, action, frame)
        found = arm.solve(pose @ tcp_from_tool0, joints[-1])
        if not found.success:
            return cut(ErrorCode.UNREACHABLE, f"is out of reach: {found.why}")
        turn = np.abs(found.joints - joints[-1]).max()
        if turn > limits.joint_step_rad:
            return cut(ErrorCode.BRANCH_FLIP, f"turns a joint by {turn:.2f} rad, limit {limits.joint_step_rad:g} rad")
        if turn / step_s > limits.joint_speed_rad_s:
            return cut(
                ErrorCode.SPEED_LIMIT,
                f"turns a joint at {turn / step_s:.3g} rad/s, limit {limits.joint_speed_rad_s:g} rad/s",
            )
        joints.append(found.joints)
        outside = cell.workspace.outside_m(pose[:3, 3])
        if outside > max(WORKSPACE_TOLERANCE_M, outside_at_start):
            return cut(ErrorCode.WORKSPACE, f"leaves the workspace by {outside:.3f} m")
    return np.array(joints), Verdict()


def compose(base_from_tcp: Matrix, delta: Array, frame: str) -> Matrix:
    """The pose (4, 4) after one delta (at least 6 numbers), see `planner.plan`."""
    turn = rotation_of_vector(delta[3:6])
    result = base_from_tcp.copy()
    if frame == "tcp":
        result[:3, 3] += base_from_tcp[:3, :3] @ delta[:3]
        result[:3, :3] = base_from_tcp[:3, :3] @ turn
    else:
        result[:3, 3] += delta[:3]
        result[:3, :3] = turn @ base_from_tcp[:3, :3]
    return result
