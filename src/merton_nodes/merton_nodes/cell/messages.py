"""The messages of every cell, from and to the library's values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from merton_interfaces.msg import CellState, SafetyState
from merton_interfaces.srv import ResetCell
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.execution.braking import braking
from merton.execution.trajectory import JointSpline
from merton.simulation.scene import Scene
from merton.world.cell import ARM_JOINTS
from merton.world.geometry import Array
from merton.world.observation import SceneState
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names

if TYPE_CHECKING:
    # both need MuJoCo, which the lab does not have
    from merton.simulation.cell import Contact
    from merton.simulation.success import Judged


def is_carried_out(request: ResetCell.Request, last_id: str) -> bool:
    """Whether the cell's last reset, `last_id`, was this one, which is asked for again and answered only."""
    return bool(request.id) and request.id == last_id


def cell_state(
    scene: Scene,
    number: int,
    joints: JointState,
    *,
    at_rest: bool,
    objects: SceneState | None = None,
    qpos: Iterable[float] = (),
    judged: Judged | None = None,
) -> CellState:
    """`cell/state` of a scene, which is the `number`-th of this cell; objects and judgement as far as they are known.

    Its stamp is that of the joints.
    """
    return CellState(
        header=Header(stamp=joints.header.stamp, frame_id=names.BASE_FRAME),
        task=scene.task,
        seed=scene.seed,
        scene=number,
        instruction=scene.command.instruction,
        joints=joints,
        qpos=list(qpos),
        objects=convert.scene_objects(objects) if objects is not None else [],
        success=judged is not None and judged.success,
        progress=math.nan if judged is None else judged.progress,
        at_rest=at_rest,
    )


def cell_safety(stamp_ns: int, contact: Contact | None, mode: int = SafetyState.NORMAL, why: str = "") -> SafetyState:
    """`cell/safety_state`: the contact that stopped the arm if there is one, else a mode and the reason for it."""
    message = SafetyState(
        header=convert.header(stamp_ns, names.BASE_FRAME), mode=mode, message=why, clearance=convert.UNKNOWN_M
    )
    if contact is not None:
        message.mode, message.message = SafetyState.COLLISION_STOP, str(contact)
        message.link_a, message.link_b, message.force = contact.link_a, contact.link_b, contact.force_n
    return message


def spline_of(message: JointTrajectory) -> JointSpline:
    """The trajectory of a command with at least one point; raises InputError as `JointSpline`."""
    times_s = [convert.nanoseconds_of(point.time_from_start) / 1e9 for point in message.points]
    joints_rad = [list(point.positions) for point in message.points]
    velocities_rad_s = [list(point.velocities) for point in message.points]
    return JointSpline(times_s, joints_rad, velocities_rad_s if any(velocities_rad_s) else None)


def arm_state_of(message: JointState) -> tuple[Array, Array]:
    """Joints (6,) [rad] and speeds (6,) [rad/s] of the arm, in its own order; speeds that are not told are 0.

    Raises InputError if one is missing or not finite.
    """
    joints_rad = convert.joint_values(message.name, message.position)
    return joints_rad, convert.joint_values(message.name, message.velocity) if message.velocity else np.zeros(6)


def stop_of(
    joints_rad: Array, velocities_rad_s: Array, accelerations_rad_s2: Array | None = None, **timing: float
) -> JointTrajectory:
    """The command that brakes an arm; arguments as of `braking`."""
    return motion_to(*braking(joints_rad, velocities_rad_s, accelerations_rad_s2, **timing))


def motion_to(joints_rad: Array, duration_s: float) -> JointTrajectory:
    """The command of a motion to joints (6,) [rad], at rest there."""
    goal = JointTrajectoryPoint(
        positions=joints_rad.tolist(), velocities=[0.0] * 6, time_from_start=convert.duration_message(duration_s)
    )
    return JointTrajectory(joint_names=list(ARM_JOINTS), points=[goal])
