"""From a chunk of 7-DoF deltas to a motion of the arm that stays within every limit.

The deltas are composed open loop from the pose the arm starts in (Embodied-IQA, Appendix B). The motion is a cubic
Hermite spline through one waypoint per delta, which is how a joint trajectory controller executes positions with
velocities; it is checked where that spline goes, not along straight lines between the waypoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from merton.cell import CellConfig
from merton.errors import InputError
from merton.execution.kinematics import BASE_LINK_FROM_BASE, UR5, base_from_tcp
from merton.execution.safety import Code, Guard, Limits, Verdict
from merton.geometry import Matrix, inverse

Array = NDArray[np.float64]

FRAMES = ("base_link", "tcp")
"""Frames a delta may be given in."""

LONGEST_CHUNK = 256
"""More deltas than this are no chunk; it keeps the time and memory of a check bounded."""

GRIPPER_CHANGE = 0.02
"""A gripper value this close to the last command is no new one: a policy's ripple must not stop the arm every step."""

TOOL_SPACING_M = 0.01
JOINT_SPACING_RAD = 0.02
"""Collisions are checked at least this densely: the joint spacing moves no point of the arm further than about 2 cm."""

WORKSPACE_TOLERANCE_M = 0.001
"""How far outside the workspace a waypoint may be, for arms that do not stop exactly where they were sent."""

CREEP_M = 0.0005
"""Closer than the stopping margin already, the arm may leave, or stay within this."""


@dataclass(frozen=True)
class MotionPlan:
    """The part of a chunk that may be executed: k = executed + 1 waypoints, the first being where the arm stands.

    Attributes:
        times_s: (k,) [s], from 0 in steps of the chunk.
        joints_rad: (k, 6) [rad].
        velocities_rad_s: (k, 6) [rad/s]: central differences, zero at both ends and wherever the gripper changes.
        gripper_open: (k,) 0 closed .. 1 open, wanted while moving to that waypoint; the first is the value at the
            start, NaN if unknown.
        base_from_tcp: (k, 4, 4) poses of the tool centre point in `base_link`.
        executed: how many deltas that is.
        verdict: OK, or why the plan ends before the chunk does.
    """

    times_s: Array
    joints_rad: Array
    velocities_rad_s: Array
    gripper_open: Array
    base_from_tcp: Matrix
    executed: int
    verdict: Verdict


@dataclass(frozen=True)
class Segment:
    """A motion under one gripper command.

    Attributes:
        gripper: opening 0..1 to be reached before the motion starts, or None to leave the gripper alone.
        times_s: (k,) [s] from 0; empty if the arm does not move.
        joints_rad: (k, 6) [rad].
        velocities_rad_s: (k, 6) [rad/s], zero at both ends.
    """

    gripper: float | None
    times_s: Array
    joints_rad: Array
    velocities_rad_s: Array

    @property
    def moves(self) -> bool:
        """True if there is a trajectory to execute."""
        return len(self.times_s) > 0


def plan(
    start_joints: ArrayLike,
    deltas: ArrayLike,
    step_s: float,
    frame: str,
    cell: CellConfig,
    limits: Limits | None = None,
    start_gripper: float | None = None,
) -> MotionPlan:
    """Turn deltas into the longest motion that keeps every limit. Whatever the model produced, this returns.

    Args:
        start_joints: (6,) joint angles now [rad].
        deltas: (n, 7): translation [m], rotation vector [rad], gripper (0 closed .. 1 open, absolute). In frame
            "base_link" the translation is added in `base_link` and the rotation is applied from the left, about the
            tool centre point; in frame "tcp" the whole delta is applied from the right.
        step_s: time per delta [s].
        frame: one of `FRAMES`.
        cell: geometry of the cell.
        limits: defaults to `Limits()`.
        start_gripper: how far the gripper is open now, 0..1; None if unknown, then the first value is always commanded.

    Raises:
        InputError: `start_joints` is not six finite numbers; that is the caller's doing and no model's.
    """
    start = np.array(start_joints, dtype=np.float64)
    if start.shape != (6,) or not np.isfinite(start).all():
        raise InputError(f"the start must be six finite joint angles, got {start_joints!r}")
    limits = limits or Limits()
    opened = np.nan if start_gripper is None else float(start_gripper)
    actions, fault = _checked(deltas, step_s, frame, limits)
    if fault is not None:
        return _motion(start[None], np.array([opened]), 1.0, cell, fault)

    joints, verdict = _waypoints(start, actions, step_s, frame, cell, limits)
    gripper = np.concatenate([[opened], actions[: len(joints) - 1, 6]])
    guard = Guard(cell)
    here = start[None], _openings(gripper[:1], cell)
    clearances = guard.clearances(*here)[0].distance_m, guard.self_clearances(*here)[0].distance_m
    margins = tuple(max(0.0, min(limits.stopping_margin_m, clearance - CREEP_M)) for clearance in clearances)
    least = clearances[0]
    # Cutting a motion lets it end at rest earlier, which bends its last piece: so what is left is checked again.
    while len(joints) > 1:
        hit, least = _first_hit(joints, gripper, step_s, cell, guard, margins)
        if hit is not None:
            verdict = hit
        elif verdict.code is not Code.WORKSPACE or len(joints) == verdict.index + 1:
            break
        joints, gripper = joints[: verdict.index + 1], gripper[: verdict.index + 1]
    if verdict.code not in (Code.COLLISION, Code.SELF_COLLISION):
        verdict = replace(verdict, clearance_m=least if len(joints) > 1 else clearances[0])
    return _motion(joints, gripper, step_s, cell, verdict)


def segments(motion: MotionPlan) -> list[Segment]:
    """Split a plan where the gripper changes; a gripper command is to be completed before the motion of its segment.

    Segments in which the arm stands still have no trajectory; one that commands nothing at all is left out.
    """
    parts = []
    for first, last, gripper in _parts(motion.gripper_open):
        joints = motion.joints_rad[first : last + 1]
        if np.abs(joints - joints[0]).max() > 1e-9:
            times = motion.times_s[first : last + 1] - motion.times_s[first]
            parts.append(Segment(gripper, times, joints, motion.velocities_rad_s[first : last + 1]))
        elif gripper is not None:
            parts.append(Segment(gripper, np.empty(0), np.empty((0, 6)), np.empty((0, 6))))
    return parts


def _checked(deltas: ArrayLike, step_s: float, frame: str, limits: Limits) -> tuple[Array, Verdict | None]:
    """The deltas as (n, 7), and what is wrong with them as a whole. Not finite comes first: NaN passes comparisons."""
    nothing = np.empty((0, 7))

    def invalid(message: str, index: int = -1) -> tuple[Array, Verdict]:
        return nothing, Verdict(Code.INVALID_ACTION, message, index)

    try:
        actions = np.array(deltas, dtype=np.float64)
        step = float(step_s)
    except (TypeError, ValueError, OverflowError):
        return invalid("the action is not numeric")
    if actions.size == 0:
        actions = nothing
    if actions.ndim != 2 or actions.shape[1] != 7:
        return invalid(f"an action must have shape (n, 7), got {actions.shape}")
    if len(actions) > LONGEST_CHUNK:
        return invalid(f"an action may have at most {LONGEST_CHUNK} deltas, got {len(actions)}")
    if not (np.isfinite(step) and step > 0):
        return invalid(f"the step of an action must be a positive time, got {step_s!r} s")
    if frame not in FRAMES:
        return invalid(f"unknown action frame {frame!r}; choose one of: {', '.join(FRAMES)}")
    for index, action in enumerate(actions):
        if not np.isfinite(action).all():
            return invalid(f"delta {index} is not finite", index)
        if not 0 <= action[6] <= 1:
            return invalid(f"the gripper of delta {index} must be in 0 .. 1, got {action[6]:g}", index)
        # Each component first: the norm of 1e300 overflows.
        translation, rotation = np.abs(action[:3]).max(), np.abs(action[3:6]).max()
        if translation > limits.absurd_factor * limits.step_translation_m:
            return invalid(f"delta {index} asks for {translation:g} m in one step", index)
        if rotation > limits.absurd_factor * limits.step_rotation_rad:
            return invalid(f"delta {index} asks for {rotation:g} rad in one step", index)
    return actions, None


def _waypoints(
    start: Array, actions: Array, step_s: float, frame: str, cell: CellConfig, limits: Limits
) -> tuple[Array, Verdict]:
    """Joint angles (k, 6) from the start on, as far as steps, speeds and kinematics allow, and why they end.

    A waypoint outside the workspace is the last one included, so that a collision on the way to it is found.
    """
    tcp_from_tool0 = inverse(cell.tool0_from_tcp)
    pose = base_from_tcp(start, cell.tool0_from_tcp)
    outside_at_start = cell.workspace.outside_m(pose[:3, 3])
    joints = [start]
    for index, action in enumerate(actions):

        def cut(code: Code, message: str, index: int = index) -> tuple[Array, Verdict]:
            return np.array(joints), Verdict(code, f"delta {index} {message}", index)

        translation, rotation = np.linalg.norm(action[:3]), np.linalg.norm(action[3:6])
        if translation > limits.step_translation_m:
            return cut(Code.STEP_LIMIT, f"moves {translation:.3f} m, limit {limits.step_translation_m:g} m")
        if rotation > limits.step_rotation_rad:
            return cut(Code.STEP_LIMIT, f"turns {rotation:.3f} rad, limit {limits.step_rotation_rad:g} rad")
        if translation / step_s > limits.tcp_speed_m_s:
            return cut(Code.SPEED_LIMIT, f"moves at {translation / step_s:.3g} m/s, limit {limits.tcp_speed_m_s:g} m/s")
        pose = compose(pose, action, frame)
        found = UR5.solve(BASE_LINK_FROM_BASE @ pose @ tcp_from_tool0, joints[-1])
        if not found.success:
            return cut(Code.UNREACHABLE, f"is out of reach: {found.why}")
        turn = np.abs(found.joints - joints[-1]).max()
        if turn > limits.joint_step_rad:
            return cut(Code.BRANCH_FLIP, f"turns a joint by {turn:.2f} rad, limit {limits.joint_step_rad:g} rad")
        if turn / step_s > limits.joint_speed_rad_s:
            return cut(
                Code.SPEED_LIMIT,
                f"turns a joint at {turn / step_s:.3g} rad/s, limit {limits.joint_speed_rad_s:g} rad/s",
            )
        joints.append(found.joints)
        outside = cell.workspace.outside_m(pose[:3, 3])
        if outside > max(WORKSPACE_TOLERANCE_M, outside_at_start):
            return cut(Code.WORKSPACE, f"leaves the workspace by {outside:.3f} m")
    return np.array(joints), Verdict()


def compose(base_from_tcp: Matrix, delta: Array, frame: str) -> Matrix:
    """The pose (4, 4) after one delta (at least 6 numbers), see `plan`."""
    turn = Rotation.from_rotvec(delta[3:6]).as_matrix()
    result = base_from_tcp.copy()
    if frame == "tcp":
        result[:3, 3] += base_from_tcp[:3, :3] @ delta[:3]
        result[:3, :3] = base_from_tcp[:3, :3] @ turn
    else:
        result[:3, 3] += delta[:3]
        result[:3, :3] = turn @ base_from_tcp[:3, :3]
    return result


def _parts(gripper: Array) -> Iterator[tuple[int, int, float | None]]:
    """Stretches of waypoints (first, last, gripper command or None) between which the arm must rest for the gripper."""
    commanded, first, command = gripper[0], 0, None
    for index in range(1, len(gripper)):
        if not abs(gripper[index] - commanded) <= GRIPPER_CHANGE:  # NaN, unknown, is a change
            if index > 1:
                yield first, index - 1, command
            commanded, first, command = gripper[index], index - 1, float(gripper[index])
    if len(gripper) > 1:
        yield first, len(gripper) - 1, command


def _velocities(joints: Array, gripper: Array, step_s: float) -> Array:
    """(k, 6) [rad/s]: central differences, zero wherever a stretch begins or ends."""
    velocities = np.zeros_like(joints)
    velocities[1:-1] = (joints[2:] - joints[:-2]) / (2 * step_s)
    for first, last, _ in _parts(gripper):
        velocities[[first, last]] = 0.0
    return velocities


def _openings(gripper: Array, cell: CellConfig) -> Array:
    """Opening of the fingers [m] while moving to each waypoint; fully open where unknown, which takes the most room."""
    return np.nan_to_num(gripper, nan=1.0) * cell.gripper.stroke


def _first_hit(
    joints: Array, gripper: Array, step_s: float, cell: CellConfig, guard: Guard, margins_m: tuple[float, ...]
) -> tuple[Verdict | None, float]:
    """The first predicted collision along the spline, or None, and the least clearance to table and walls [m].

    `margins_m` is the distance to keep from table and walls, and that of the arm from itself.
    """
    velocities = _velocities(joints, gripper, step_s)
    turns = np.abs(np.diff(joints, axis=0)).max(axis=1)
    travel = np.linalg.norm(np.diff(base_from_tcp(joints, cell.tool0_from_tcp)[:, :3, 3], axis=0), axis=1)
    counts = np.ceil(1.5 * np.maximum(turns / JOINT_SPACING_RAD, travel / TOOL_SPACING_M)).astype(int) + 1
    piece = np.repeat(np.arange(len(counts)), counts)
    phase = np.concatenate([np.arange(1, count + 1) / count for count in counts])[:, None]
    # Cubic Hermite basis; the spline's speed peaks at 1.5 times its mean, hence the 1.5 above.
    spline = (
        (2 * phase**3 - 3 * phase**2 + 1) * joints[piece]
        + (phase**3 - 2 * phase**2 + phase) * step_s * velocities[piece]
        + (3 * phase**2 - 2 * phase**3) * joints[piece + 1]
        + (phase**3 - phase**2) * step_s * velocities[piece + 1]
    )
    openings = _openings(gripper, cell)[piece + 1]
    around, within = guard.clearances(spline, openings), guard.self_clearances(spline, openings)
    for index, surroundings, itself in zip(piece.tolist(), around, within, strict=True):
        for code, clearance, margin in zip(
            (Code.COLLISION, Code.SELF_COLLISION), (surroundings, itself), margins_m, strict=True
        ):
            if clearance.distance_m < margin:
                one, other, distance = clearance.link_a, clearance.link_b, clearance.distance_m
                message = f"delta {index} would bring {one} within {distance * 1000:.1f} mm of {other}"
                return Verdict(code, message, index, one, other, distance), distance
    return None, min(clearance.distance_m for clearance in around)


def _motion(joints: Array, gripper: Array, step_s: float, cell: CellConfig, verdict: Verdict) -> MotionPlan:
    return MotionPlan(
        times_s=np.arange(len(joints), dtype=np.float64) * step_s,
        joints_rad=joints,
        velocities_rad_s=_velocities(joints, gripper, step_s),
        gripper_open=gripper,
        base_from_tcp=base_from_tcp(joints, cell.tool0_from_tcp),
        executed=len(joints) - 1,
        verdict=verdict,
    )
