"""The gate: from a chunk of 7-DoF deltas to a motion of the arm that stays within every limit.

The deltas are composed open loop from the pose the arm starts in (Embodied-IQA, Appendix B). The motion is a cubic
Hermite spline through one waypoint per delta, which is how a joint trajectory controller executes positions with
velocities; the checks follow that spline, not straight lines between the waypoints. A motion that would be too fast or
too abrupt is slowed down as a whole: the path, and with it every measured pose, stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from merton.errors import ErrorCode, InfrastructureError, InputError
from merton.execution.gate.collision import HeldObject
from merton.execution.gate.peaks import gripper_intervals, needed_slowdown, peaks, velocities
from merton.execution.gate.prediction import Predictor
from merton.execution.gate.safety import Limits, Verdict
from merton.execution.gate.waypoints import WORKSPACE_TOLERANCE_M, checked_actions, waypoints
from merton.execution.kinematics import base_from_tcp
from merton.execution.trajectory import JointSpline
from merton.world.cell import CellConfig
from merton.world.geometry import Array, Matrix

DETOUR_STEP_S, DETOUR_TOLERANCE_RAD = 0.05, 1e-3
"""For another planner's way: longest time between waypoints, and largest distance of its ends from the segment's."""


@dataclass(frozen=True)
class MotionPlan:
    """The part of a chunk that may be executed: k = executed + 1 waypoints, the first being where the arm stands.

    Attributes:
        times_s: (k,) [s], from 0 in steps of the chunk times `slowdown`.
        joints_rad: (k, 6) [rad].
        velocities_rad_s: (k, 6) [rad/s]: see `merton.execution.gate.peaks.velocities`; zero at both ends and wherever
            the gripper changes.
        gripper_open: (k,) 0 closed .. 1 open, commanded on the way to that waypoint; the first is the value at the
            start, NaN if unknown.
        base_from_tcp: (k, 4, 4) poses of the tool centre point in `base_link`.
        executed: number of deltas in the plan.
        verdict: OK, or why the plan ends before the chunk does.
        slowdown: factor by which the motion is slower than the chunk, to keep the peak limits; 1 for none.
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
    *,
    until_contact: bool = False,
) -> MotionPlan:
    """Turn deltas into the longest motion that keeps every limit. Wrong deltas give a verdict, not an error.

    Args:
        start_joints: (6,) joint angles now [rad].
        deltas: (n, 7): translation [m], rotation vector [rad], gripper (0 closed .. 1 open, absolute). In frame
            "base_link" the translation is added in `base_link` and the rotation is applied from the left, about the
            tool centre point; in frame "tcp" the whole delta is applied from the right.
        step_s: time per delta [s].
        frame: one of `merton.world.action.FRAMES`.
        cell: geometry of the cell.
        limits: defaults to `Limits()`.
        start_gripper: opening of the gripper now, 0..1; None if unknown, then the first value is always commanded.
        held: the object in the gripper now; it may be set down, but not pressed into the table nor swept into a wall.
            It counts until the gripper opens wider than it is.
        until_contact: a predicted collision with table or walls does not end the motion, which then leads into them:
            for a simulated cell alone, which stops the arm at the contact.

    Raises:
        InputError: `start_joints` is not six finite numbers: a fault of the caller, not of the model.
    """
    start = np.array(start_joints, dtype=np.float64)
    if start.shape != (6,) or not np.isfinite(start).all():
        raise InputError(f"the start must be six finite joint angles, got {start_joints!r}")
    limits = (limits or Limits()).within(cell.arm)
    opened = np.nan if start_gripper is None else float(start_gripper)
    actions, fault = checked_actions(deltas, step_s, frame, limits)
    if fault is not None:
        return _motion(start[None], np.array([opened]), 1.0, cell, fault)

    joints, verdict = waypoints(start, actions, float(step_s), frame, cell, limits)
    gripper = np.concatenate([[opened], actions[: len(joints) - 1, 6]])
    return _longest_safe(joints, gripper, float(step_s), verdict, cell, limits, held, until_contact=until_contact)


def plan_again(
    motion: MotionPlan,
    first: int,
    held: HeldObject,
    cell: CellConfig,
    limits: Limits | None = None,
    *,
    until_contact: bool = False,
) -> MotionPlan:
    """The same plan with an object in the gripper, which was not known when the plan was made.

    Args:
        motion: result of `plan`.
        first: the present waypoint: `Segment.first` of the segment whose gripper command has just been done.
        held: the object that is held from there on.
        cell, limits, until_contact: as given to `plan`.

    Returns:
        `motion` itself if all the rest of it may be carried out, else one that ends earlier, with the reason.
    """
    if first >= motion.executed:
        return motion
    step_s = float(motion.times_s[1]) / motion.slowdown
    joints, gripper = motion.joints_rad, motion.gripper_open
    limits, joints_left, gripper_left = (limits or Limits()).within(cell.arm), joints[first:], gripper[first:]
    rest = _longest_safe(
        joints_left, gripper_left, step_s, Verdict(), cell, limits, held, first, until_contact=until_contact
    )
    if rest.verdict.ok:
        return motion
    end = first + rest.executed + 1
    return _motion(joints[:end], gripper[:end], step_s, cell, rest.verdict, rest.slowdown)


def segments(motion: MotionPlan) -> list[Segment]:
    """Split a plan where the gripper changes; complete a gripper command before the motion of its segment.

    Segments in which the arm stands still have no trajectory; without a gripper command too they are left out.
    """
    found = []
    for first, last, gripper in gripper_intervals(motion.gripper_open):
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
    segment: Segment, way: JointSpline, cell: CellConfig, limits: Limits, opened: float, held: HeldObject | None = None
) -> Segment:
    """A segment on another planner's way to the same joints, checked like any motion.

    Args:
        segment: a segment that has passed the gate; the way must begin and end where it does.
        way: the other planner's way.
        cell, limits: as given to `plan`.
        opened: opening of the gripper, 0..1.
        held: the object it holds.

    Raises:
        InfrastructureError: the way begins or ends elsewhere, leaves the workspace, comes too near to an obstacle, or
            would have to be slowed down too much: a fault of the other planner, not of the model.
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
    outside = [cell.workspace.outside_m(pose[:3, 3]) for pose in base_from_tcp(joints, cell)]
    if max(outside) > max(WORKSPACE_TOLERANCE_M, outside[0], outside[-1]):
        raise refuse(f"leaves the workspace by {max(outside):.3f} m")
    peak = peaks(joints, speeds, step_s, cell)
    hit, slowdown = needed_slowdown(peak, limits.within(cell.arm))
    if hit is None:
        gripper = np.full(count + 1, opened)
        predictor = Predictor(joints[0], gripper, cell, limits.stopping_margin_m, held)
        hit, _ = predictor.first_hit(joints, gripper, speeds, step_s, peak)
    if hit is not None:
        raise refuse(hit.message)
    times: Array = np.arange(count + 1, dtype=np.float64) * (step_s * slowdown)
    return replace(segment, times_s=times, joints_rad=joints, velocities_rad_s=speeds / slowdown)


def _longest_safe(
    joints: Array,
    gripper: Array,
    step_s: float,
    verdict: Verdict,
    cell: CellConfig,
    limits: Limits,
    held: HeldObject | None,
    first: int = 0,
    *,
    until_contact: bool,
) -> MotionPlan:
    """The longest beginning of the waypoints that can be followed slowly enough and without a collision.

    `verdict` says why there are no more waypoints; `first` is the number of the delta after the first of them.
    """
    predictor = Predictor(joints[0], gripper, cell, limits.stopping_margin_m, held)
    least, slowdown = predictor.clearance_m, 1.0
    # Cutting a motion lets it end at rest earlier, which bends its last piece: so the rest is checked again.
    while len(joints) > 1:
        speeds = velocities(joints, gripper, step_s)
        peak = peaks(joints, speeds, step_s, cell)
        hit, slowdown = needed_slowdown(peak, limits)
        if hit is None:
            hit, least = predictor.first_hit(joints, gripper, speeds, step_s, peak)
        if until_contact and hit is not None and hit.stops:
            break  # the way into the obstacle stays whole, also where it leaves the workspace
        if hit is not None:
            index = first + hit.index
            if verdict.stops and not hit.stops:  # stopping even earlier does not undo the predicted collision
                verdict = replace(verdict, index=index)
            else:
                verdict = replace(hit, index=index, message=f"delta {index} {hit.message}")
        elif verdict.code is not ErrorCode.WORKSPACE or len(joints) == verdict.index + 1:
            break
        count = verdict.index - first + 1
        joints, gripper = joints[:count], gripper[:count]
    if len(joints) == 1:
        least, slowdown = predictor.clearance_m, 1.0
    if verdict.code not in (ErrorCode.COLLISION, ErrorCode.SELF_COLLISION):
        verdict = replace(verdict, clearance_m=least)
    return _motion(joints, gripper, step_s, cell, verdict, slowdown)


def _motion(
    joints: Array, gripper: Array, step_s: float, cell: CellConfig, verdict: Verdict, slowdown: float = 1.0
) -> MotionPlan:
    return MotionPlan(
        times_s=np.arange(len(joints), dtype=np.float64) * (step_s * slowdown),
        joints_rad=joints,
        velocities_rad_s=velocities(joints, gripper, step_s * slowdown),
        gripper_open=gripper,
        base_from_tcp=base_from_tcp(joints, cell),
        executed=len(joints) - 1,
        verdict=verdict,
        slowdown=slowdown,
    )
