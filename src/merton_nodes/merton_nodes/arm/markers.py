"""Markers for RViz."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Point, Pose, Vector3
from merton_interfaces.msg import SafetyState
from numpy.typing import ArrayLike, NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from merton.execution.gate.collision import Guard
from merton.execution.gate.contact import point_of_contact
from merton.execution.gate.planner import MotionPlan
from merton.world.cell import CellConfig
from merton.world.geometry import Matrix
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names

ALLOWED = ColorRGBA(r=0.1, g=0.7, b=0.3, a=1.0)
REFUSED = ColorRGBA(r=0.9, g=0.2, b=0.1, a=1.0)
SHAPE = ColorRGBA(r=0.2, g=0.5, b=0.9, a=0.25)
PATH_WIDTH_M = 0.006
CONTACT_SIZE_M = 0.03
TEXT_SIZE_M, TEXT_HEIGHT_M = 0.06, 1.15
"""Letters above the arm, which reaches 1 m up."""
MODES = {
    SafetyState.NORMAL: "normal",
    SafetyState.REDUCED: "reduced",
    SafetyState.COLLISION_STOP: "COLLISION STOP",
    SafetyState.EMERGENCY_STOP: "EMERGENCY STOP",
    SafetyState.FAULT: "FAULT",
}


def motion_markers(motion: MotionPlan, cell: CellConfig) -> MarkerArray:
    """The path the tool is about to take, green, or red if the gate cut it short, and the arm's shape at its end."""
    line = _marker("path", 0, Marker.LINE_STRIP, ALLOWED if motion.verdict.ok else REFUSED, Pose())
    line.scale.x = PATH_WIDTH_M
    line.points = [Point(x=x, y=y, z=z) for x, y, z in motion.base_from_tcp[:, :3, 3].tolist()]
    joints, opened = motion.joints_rad[-1], motion.gripper_open[-1]
    opening_m = float(np.nan_to_num(opened, nan=1.0)) * cell.gripper.stroke
    verdict = motion.verdict
    contact = contact_marker(joints, opening_m, verdict.link_a, verdict.link_b, cell)
    return MarkerArray(markers=[line, *capsule_markers(joints, opening_m, cell), contact])


def stop_markers(state: SafetyState, joints_rad: ArrayLike, opening_m: float, cell: CellConfig) -> MarkerArray:
    """The shape of the arm after a stop, and the point of contact if there was one."""
    contact = contact_marker(joints_rad, opening_m, state.link_a, state.link_b, cell)
    return MarkerArray(markers=[*capsule_markers(joints_rad, opening_m, cell), contact])


def safety_marker(state: SafetyState) -> Marker:
    """The safety state in words, above the arm: red if it is stopped."""
    stopped = state.mode not in (SafetyState.NORMAL, SafetyState.REDUCED)
    marker = _marker("safety", 0, Marker.TEXT_VIEW_FACING, REFUSED if stopped else ALLOWED, Pose())
    marker.pose.position.z, marker.scale.z = TEXT_HEIGHT_M, TEXT_SIZE_M
    marker.text = MODES[state.mode] + (f": {state.message}" if stopped and state.message else "")
    return marker


def capsule_markers(joints_rad: ArrayLike, opening_m: float, cell: CellConfig) -> list[Marker]:
    """The capsules the gate checks, each a cylinder between two spheres; joints (6,) [rad]."""
    ends, radii = Guard(cell).capsules(np.reshape(np.asarray(joints_rad, float), (1, 6)), opening_m)
    markers = []
    for index, ((start, end), radius) in enumerate(zip(ends[0], radii.tolist(), strict=True)):
        length = float(np.linalg.norm(end - start))
        cylinder = _marker("capsules", 3 * index, Marker.CYLINDER, SHAPE, convert.pose_message(_along(start, end)))
        cylinder.scale = Vector3(x=2 * radius, y=2 * radius, z=max(length, 1e-4))
        markers.append(cylinder)
        for which, point in enumerate((start, end), start=1):
            markers.append(_ball("capsules", 3 * index + which, SHAPE, point, 2 * radius))
    return markers


def contact_marker(joints_rad: ArrayLike, opening_m: float, link_a: str, link_b: str, cell: CellConfig) -> Marker:
    """The point where two bodies met or would have met; removes the last one if there is none."""
    point = point_of_contact(cell, joints_rad, link_a, link_b, opening_m) if link_a else None
    marker = _ball("contact", 0, REFUSED, np.zeros(3) if point is None else point, CONTACT_SIZE_M)
    if point is None:
        marker.action = Marker.DELETE
    return marker


def _ball(group: str, number: int, color: ColorRGBA, point: NDArray[np.float64], size_m: float) -> Marker:
    """A sphere of a diameter [m] at a point (3,) [m]."""
    x, y, z = point.tolist()
    marker = _marker(group, number, Marker.SPHERE, color, Pose(position=Point(x=x, y=y, z=z)))
    marker.scale = Vector3(x=size_m, y=size_m, z=size_m)
    return marker


def _marker(group: str, number: int, kind: int, color: ColorRGBA, pose: Pose) -> Marker:
    marker = Marker(ns=group, id=number, type=kind, action=Marker.ADD, color=color, pose=pose)
    marker.header.frame_id = names.BASE_FRAME
    return marker


def _along(start: NDArray[np.float64], end: NDArray[np.float64]) -> Matrix:
    """The pose (4, 4) in the middle of two points, with z from one to the other."""
    axis = end - start
    length = np.linalg.norm(axis)
    z = axis / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    helper = np.eye(3)[np.abs(z).argmin()]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, 3] = (start + end) / 2
    pose[:3, :3] = np.column_stack([x, np.cross(z, x), z])
    return pose
