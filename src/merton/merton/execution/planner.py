"""The gate: from a chunk of 7-DoF deltas to a motion of the arm that stays within every limit.

The deltas are composed open loop from the pose the arm starts in (Embodied-IQA, Appendix B). The motion is a cubic
Hermite spline through one waypoint per delta, which is how a joint trajectory controller executes positions with
velocities; it is checked where that spline goes, not along straight lines between the waypoints. A motion that would
be too fast or too abrupt is slowed down as a whole: the path, and with it what is measured, stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from merton.cell import CellConfig
from merton.errors import InfrastructureError, InputError
from merton.execution.collision import HeldObject
from merton.execution.kinematics import BASE_LINK_FROM_BASE, UR5, base_from_tcp
from merton.execution.prediction import Predictor
from merton.execution.safety import Code, Limits, Verdict
from merton.execution.spline import Peaks, parts, peaks, velocities
from merton.execution.trajectory import JointSpline
from merton.geometry import Matrix, inverse

Array = NDArray[np.float64]

FRAMES = ("base_link", "tcp")
"""Frames a delta may be given in."""

LONGEST_CHUNK = 256
"""More deltas than this are no chunk; it keeps the time and memory of a check bounded."""

SHORTEST_STEP_S, LONGEST_STEP_S = 1e-3, 10.0
"""Faster than this no arm takes commands, and slower than this nothing is a motion."""

DETOUR_STEP_S, DETOUR_TOLERANCE_RAD = 0.05, 1e-3
"""Waypoints of another planner's way: so far apart at most; and so near to where it must begin and end."""

WORKSPACE_TOLERANCE_M = 0.001
"""How far outside the workspace a waypoint may be, for arms that do not stop exactly where they were sent."""


@dataclass(frozen=True)
class MotionPlan:
    """The part of a chunk that may be executed: k = executed + 1 waypoints, the first being where the arm stands.

    Attributes:
        times_s: (k,) [s], from 0 in steps of the chunk times `slowdown`.
        joints_rad: (k, 6) [rad].
        velocities_rad_s: (k, 6) [rad/s]: see `merton.execution.spline.velocities`; zero at both ends and wherever
            the gripper changes.
        gripper_open: (k,) 0 closed .. 1 open, wanted while moving to that waypoint; the first is the value at the
            start, NaN if unknown.
        base_from_tcp: (k, 4, 4) poses of the tool centre point in `base_link`.
        executed: how many deltas that is.
        verdict: OK, or why the plan ends before the chunk does.
        slowdown: how many times slower than asked for the motion is, to keep the peak limits; 1 if it need not be.
    """

    times_s: Array
    joints_rad: Array
    velocities_rad_s: Array
    gripper_open: Array
    base_from_tcp: Matrix
    executed: int
    verdict: Verdict
    slowdown: float = 1.0


@dataclass(frozen=True)
class Segment:
    """A motion under one gripper command.

    Attributes:
        gripper: opening 0..1 to be reached before the motion starts, or None to leave the gripper alone.
        times_s: (k,) [s] from 0; empty if the arm does not move.
        joints_rad: (k, 6) [rad].
        velocities_rad_s: (k, 6) [rad/s], zero at both ends.
        deltas: how many deltas of the chunk it carries out.
        first: index of its first waypoint in the plan.
    """

    gripper: float | None
    times_s: Array
    joints_rad: Array
    velocities_rad_s: Array
    deltas: int
    first: int

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
    held: HeldObject | None = None,
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
        held: what the gripper holds now; it may be set down, but not pressed into the table nor swept into a wall.
            It counts until the gripper opens wider than it is.

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

    joints, verdict = _waypoints(start, actions, float(step_s), frame, cell, limits)
    gripper = np.concatenate([[opened], actions[: len(joints) - 1, 6]])
    return _longest_safe(joints, gripper, float(step_s), verdict, cell, limits, held)


def plan_again(
    motion: MotionPlan, first: int, held: HeldObject, cell: CellConfig, limits: Limits | None = None
) -> MotionPlan:
    """The same plan after its gripper has taken hold of something, which nobody could know when it was made.

    Args:
        motion: what `plan` returned.
        first: the waypoint the arm is at: `Segment.first` of the segment whose gripper command has just been done.
        held: what is held from there on.
        cell, limits: as given to `plan`.

    Returns:
        `motion` itself if all the rest of it may be carried out, else one that ends earlier, with the reason.
    """
    if first >= motion.executed:
        return motion
    step_s = float(motion.times_s[1]) / motion.slowdown
    joints, gripper = motion.joints_rad, motion.gripper_open
    rest = _longest_safe(joints[first:], gripper[first:], step_s, Verdict(), cell, limits or Limits(), held, first)
    if rest.verdict.ok:
        return motion
    end = first + rest.executed + 1
    return _motion(joints[:end], gripper[:end], step_s, cell, rest.verdict, rest.slowdown)


def segments(motion: MotionPlan) -> list[Segment]:
    """Split a plan where the gripper changes; a gripper command is to be completed before the motion of its segment.

    Segments in which the arm stands still have no trajectory; one that commands nothing at all is left out.
    """
    found = []
    for first, last, gripper in parts(motion.gripper_open):
        joints = motion.joints_rad[first : last + 1]
        if np.abs(joints - joints[0]).max() > 1e-9:
            times = motion.times_s[first : last + 1] - motion.times_s[first]
            found.append(
                Segment(gripper, times, joints, motion.velocities_rad_s[first : last + 1], last - first, first)
            )
        elif gripper is not None:
            found.append(Segment(gripper, np.empty(0), np.empty((0, 6)), np.empty((0, 6)), last - first, first))
    return found


def detour(
    segment: Segment,
    way: JointSpline,
    cell: CellConfig,
    limits: Limits,
    opened: float,
    held: HeldObject | None = None,
) -> Segment:
    """A segment on another way to the same joints, which some other planner has found, checked like any motion.

    Args:
        segment: what has passed the gate already, and says from where to where.
        way: the other way.
        cell, limits: as given to `plan`.
        opened: how far the gripper is open, 0..1.
        held: what it holds.

    Raises:
        InfrastructureError: the way begins or ends elsewhere, leaves the workspace, comes too near to something, or
            would have to be slowed down too much. That is the other planner's doing and no model's.
    """

    def refuse(why: str) -> InfrastructureError:
        return InfrastructureError(f"the planned way was refused: it {why}")

    count = max(1, ceil(way.duration_s / DETOUR_STEP_S))
    step_s = way.duration_s / count
    joints, speeds = (np.array(rows) for rows in zip(*map(way.at, np.arange(count + 1) * step_s), strict=True))
    speeds[[0, -1]] = 0.0
    if not way.duration_s > 0 or np.abs(joints[[0, -1]] - segment.joints_rad[[0, -1]]).max() > DETOUR_TOLERANCE_RAD:
        raise refuse("does not lead from where the arm is to where it is to go")
    joints[[0, -1]] = segment.joints_rad[[0, -1]]
    outside = [cell.workspace.outside_m(pose[:3, 3]) for pose in base_from_tcp(joints, cell.tool0_from_tcp)]
    if max(outside) > max(WORKSPACE_TOLERANCE_M, outside[0], outside[-1]):
        raise refuse(f"leaves the workspace by {max(outside):.3f} m")
    peak = peaks(joints, speeds, step_s, cell.tool0_from_tcp)
    hit, slowdown = _too_abrupt(peak, limits)
    if hit is None:
        gripper = np.full(count + 1, opened)
        predictor = Predictor(joints[0], gripper, cell, limits.stopping_margin_m, held)
        hit, _ = predictor.first_hit(joints, gripper, speeds, step_s, peak)
    if hit is not None:
        raise refuse(hit.message)
    times: Array = np.arange(count + 1, dtype=np.float64) * (step_s * slowdown)
    return replace(segment, times_s=times, joints_rad=joints, velocities_rad_s=speeds / slowdown)


def _checked(deltas: ArrayLike, step_s: float, frame: str, limits: Limits) -> tuple[Array, Verdict | None]:
    """The deltas as (n, 7), and what is wrong with them as a whole. Not finite comes first: NaN passes comparisons."""
    nothing = np.empty((0, 7))

    def invalid(message: str, index: int = -1) -> tuple[Array, Verdict]:
        return nothing, Verdict(Code.INVALID_ACTION, message, index)

    try:
        given = np.asarray(deltas)
        actions = given.astype(np.float64) if given.dtype.kind in "biuf" else None
        step = float(step_s)
    except Exception:  # what a model hands over may raise whatever it likes when it is converted
        actions = None
    if actions is None:
        return invalid("the action is not numeric")
    if actions.size == 0:
        actions = nothing
    if actions.ndim != 2 or actions.shape[1] != 7:
        return invalid(f"an action must have shape (n, 7), got {actions.shape}")
    if len(actions) > LONGEST_CHUNK:
        return invalid(f"an action may have at most {LONGEST_CHUNK} deltas, got {len(actions)}")
    if not SHORTEST_STEP_S <= step <= LONGEST_STEP_S:  # NaN fails too
        return invalid(f"the step of an action must take {SHORTEST_STEP_S:g} .. {LONGEST_STEP_S:g} s, got {step:g} s")
    if not isinstance(frame, str) or frame not in FRAMES:
        return invalid(f"unknown action frame {str(frame)[:40]!r}; choose one of: {', '.join(FRAMES)}")
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


def _longest_safe(
    joints: Array,
    gripper: Array,
    step_s: float,
    verdict: Verdict,
    cell: CellConfig,
    limits: Limits,
    held: HeldObject | None,
    first: int = 0,
) -> MotionPlan:
    """The longest beginning of the waypoints that can be followed slowly enough and without a collision.

    `verdict` says why there are no more waypoints; `first` is the number of the delta after the first of them.
    """
    predictor = Predictor(joints[0], gripper, cell, limits.stopping_margin_m, held)
    least, slowdown = predictor.clearance_m, 1.0
    # Cutting a motion lets it end at rest earlier, which bends its last piece: so what is left is checked again.
    while len(joints) > 1:
        speeds = velocities(joints, gripper, step_s)
        peak = peaks(joints, speeds, step_s, cell.tool0_from_tcp)
        hit, slowdown = _too_abrupt(peak, limits)
        if hit is None:
            hit, least = predictor.first_hit(joints, gripper, speeds, step_s, peak)
        if hit is not None:
            index = first + hit.index
            if verdict.stops and not hit.stops:  # what was about to happen is not undone by stopping even earlier
                verdict = replace(verdict, index=index)
            else:
                verdict = replace(hit, index=index, message=f"delta {index} {hit.message}")
        elif verdict.code is not Code.WORKSPACE or len(joints) == verdict.index + 1:
            break
        kept = verdict.index - first + 1
        joints, gripper = joints[:kept], gripper[:kept]
    if len(joints) == 1:
        least, slowdown = predictor.clearance_m, 1.0
    if verdict.code not in (Code.COLLISION, Code.SELF_COLLISION):
        verdict = replace(verdict, clearance_m=least)
    return _motion(joints, gripper, step_s, cell, verdict, slowdown)


def _too_abrupt(peak: Peaks, limits: Limits) -> tuple[Verdict | None, float]:
    """How much slower the motion has to be for the peak limits, 1 if not at all; a verdict if that is too much.

    As in `Predictor.first_hit`, the verdict's message is the end of a sentence on the delta it names.
    """
    speed = np.maximum(
        peak.joint_speed / limits.peak_joint_speed_rad_s,
        peak.tcp_speed / limits.peak_tcp_speed_m_s,
    )
    # Slowing down by a factor takes its square off the acceleration.
    acceleration = np.sqrt(
        np.maximum(
            peak.joint_acceleration / limits.peak_joint_acceleration_rad_s2,
            peak.tcp_acceleration / limits.peak_tcp_acceleration_m_s2,
        )
    )
    needed = np.maximum(speed, acceleration)
    index = int((needed > limits.most_slowdown).argmax())
    if needed[index] > limits.most_slowdown:
        code = Code.SPEED_LIMIT if speed[index] >= acceleration[index] else Code.ACCELERATION_LIMIT
        much = f"would have to be {needed[index]:.3g} times slower, limit {limits.most_slowdown:g}"
        return Verdict(code, much, index), 1.0
    return None, max(1.0, float(needed.max()))


def _motion(
    joints: Array, gripper: Array, step_s: float, cell: CellConfig, verdict: Verdict, slowdown: float = 1.0
) -> MotionPlan:
    return MotionPlan(
        times_s=np.arange(len(joints), dtype=np.float64) * (step_s * slowdown),
        joints_rad=joints,
        velocities_rad_s=velocities(joints, gripper, step_s * slowdown),
        gripper_open=gripper,
        base_from_tcp=base_from_tcp(joints, cell.tool0_from_tcp),
        executed=len(joints) - 1,
        verdict=verdict,
        slowdown=slowdown,
    )
