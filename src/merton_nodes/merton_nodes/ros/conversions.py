"""Conversions between ROS messages and the library's values; those of a trial's results are in `trial_messages`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Vector3
from merton_interfaces.msg import ActionChunk as ActionChunkMessage
from merton_interfaces.msg import ActionDelta, CellState
from merton_interfaces.msg import CameraView as CameraViewMessage
from merton_interfaces.msg import ImageQuality as QualityMessage
from merton_interfaces.msg import SceneObject as SceneObjectMessage
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import Header

from merton.errors import InputError, InvalidActionError
from merton.execution.gate.image_quality import ImageQuality
from merton.perception.camera import decoding
from merton.world import camera_info
from merton.world import linkage as links
from merton.world.action import ActionChunk, checked_chunk
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS
from merton.world.geometry import Array, Matrix, from_quaternion, quaternion_of
from merton.world.observation import CameraView, Intrinsics, SceneObject, SceneState, millimetres
from merton_nodes.ros import names

GRIPPER_JOINT = FINGER_JOINTS[0]
UNKNOWN_M = float("nan")
"""The clearance of a safety state where it is not known [m]."""


def time_message(nanoseconds: int) -> Time:
    """The message of a time since the epoch [ns]."""
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def nanoseconds_of(message: Time | Duration) -> int:
    """The time or duration of a message [ns]."""
    return int(message.sec) * 1_000_000_000 + int(message.nanosec)


def duration_message(seconds: float) -> Duration:
    """The message of a duration, rounded to nanoseconds."""
    nanoseconds = round(seconds * 1e9)
    return Duration(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def header(nanoseconds: int, frame: str) -> Header:
    """The header of a message of a time [ns] in a frame."""
    return Header(stamp=time_message(nanoseconds), frame_id=frame)


def _bytes(pixels: NDArray) -> memoryview:
    """The array's own memory in the form that rclpy takes without a check of every element; copied when it is sent."""
    return np.ascontiguousarray(pixels).data.cast("B")


def color_message(pixels: NDArray[np.uint8], stamp_ns: int, frame: str) -> Image:
    """An rgb8 image from (height, width, 3) uint8 RGB. It shares their memory: do not change them until it is sent."""
    height, width = pixels.shape[:2]
    message = Image(header=header(stamp_ns, frame), height=height, width=width, encoding="rgb8", step=3 * width)
    message._data = _bytes(pixels)
    return message


def is_same_image(one: Image, other: Image) -> bool:
    """Whether two messages show the same picture of the same instant.

    Equal stamps are not enough: some cameras leave them out. Pixels are compared last, and as bytes: the arrays of a
    message are compared element by element, seven times as slowly.
    """
    if any(getattr(one, field) != getattr(other, field) for field in ("header", "height", "width", "encoding", "step")):
        return False
    return bytes(one.data) == bytes(other.data)


def quality_of(message: QualityMessage) -> ImageQuality:
    """The quality of an image."""
    return ImageQuality(message.value, message.metric, message.best > message.worst)


def mask_message(inside: NDArray[np.bool_], stamp_ns: int, frame: str) -> Image:
    """A mono8 image from (height, width) booleans: 255 where they are true."""
    height, width = inside.shape
    message = Image(header=header(stamp_ns, frame), height=height, width=width, encoding="mono8", step=width)
    message._data = _bytes(np.where(inside, np.uint8(255), np.uint8(0)))
    return message


def mask_array(message: Image) -> NDArray[np.bool_]:
    """(height, width) of a mono8 image, true where it is not black. Raises InputError as `color_array`."""
    if message.encoding != "mono8":
        raise InputError(f"mask encoding {message.encoding!r} is not supported; use mono8")
    return decoding.rows_of(message, 1) > 0


def depth_message(depth_m: NDArray[np.float32], stamp_ns: int, frame: str) -> Image:
    """A 16UC1 image in millimetres, as a D455 gives it, from (height, width) metres; 0 where unknown or beyond 65 m."""
    return millimetre_message(millimetres(depth_m), stamp_ns, frame)


def millimetre_message(depth_mm: NDArray[np.uint16], stamp_ns: int, frame: str) -> Image:
    """A 16UC1 image from (height, width) uint16 millimetres. It shares their memory, as in `color_message`."""
    height, width = depth_mm.shape
    message = Image(header=header(stamp_ns, frame), height=height, width=width, encoding="16UC1", step=2 * width)
    message._data = _bytes(depth_mm.astype("<u2", copy=False))
    return message


def color_array(message: Image) -> NDArray[np.uint8]:
    """As `merton.perception.camera.decoding.color_of`: (height, width, 3) uint8 RGB, without a copy for rgb8."""
    return decoding.color_of(message)


def depth_array(message: Image) -> NDArray[np.float32] | None:
    """As `merton.perception.camera.decoding.depth_m_of`: metres, 0 where unknown; None if the message is empty."""
    return decoding.depth_m_of(message) if message.data else None


def camera_info_message(
    intrinsics: Intrinsics,
    stamp_ns: int,
    frame: str,
    distortion: Sequence[float] = (),
    model: str = camera_info.PLUMB_BOB,
) -> CameraInfo:
    """CameraInfo of a pinhole camera behind a lens: a model of `camera_info.LENS_MODELS` and its coefficients."""
    i = intrinsics
    message = CameraInfo(header=header(stamp_ns, frame), height=i.height, width=i.width, distortion_model=model)
    message.d = list(distortion) or [0.0] * 5
    message.k = [i.fx, 0.0, i.cx, 0.0, i.fy, i.cy, 0.0, 0.0, 1.0]
    message.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    message.p = [i.fx, 0.0, i.cx, 0.0, 0.0, i.fy, i.cy, 0.0, 0.0, 0.0, 1.0, 0.0]
    return message


def intrinsics_of(message: CameraInfo, rectified: bool = False) -> Intrinsics:
    """As `merton.world.camera_info.pinhole_of`: those of a picture that models may take for a pinhole camera's."""
    return camera_info.pinhole_of(message, rectified)


def pose_message(matrix: Matrix) -> Pose:
    """The message of a rigid transform (4, 4) [m]."""
    x, y, z, w = quaternion_of(matrix).tolist()
    px, py, pz = matrix[:3, 3].tolist()
    return Pose(position=Point(x=px, y=py, z=pz), orientation=Quaternion(x=x, y=y, z=z, w=w))


def matrix_of(message: Pose) -> Matrix:
    """A (4, 4) transform from a pose. Raises InputError if it is not finite or the quaternion is zero."""
    p, q = message.position, message.orientation
    quaternion = np.array([q.x, q.y, q.z, q.w])
    if not np.isfinite([p.x, p.y, p.z, *quaternion]).all() or np.linalg.norm(quaternion) < 1e-6:
        raise InputError("a pose must be finite and its quaternion not zero")
    return from_quaternion((p.x, p.y, p.z), quaternion)


def pose_stamped(matrix: Matrix, stamp_ns: int) -> PoseStamped:
    """The message of a pose (4, 4) in `base_link` at a time [ns]."""
    return PoseStamped(header=header(stamp_ns, names.BASE_FRAME), pose=pose_message(matrix))


def chunk_message(chunk: ActionChunk, stamp_ns: int, trial_id: str = "") -> ActionChunkMessage:
    """The message of a chunk decided at `stamp_ns`."""
    message = ActionChunkMessage(
        header=header(stamp_ns, chunk.frame),
        model_id=chunk.model,
        trial_id=trial_id,
        step=duration_message(chunk.step_s),
        latency=duration_message(chunk.latency_s),
        done=chunk.done,
    )
    for tx, ty, tz, rx, ry, rz, gripper in chunk.deltas.tolist():
        message.actions.append(
            ActionDelta(
                header=message.header,
                translation=Vector3(x=tx, y=ty, z=tz),
                rotation=Vector3(x=rx, y=ry, z=rz),
                gripper=gripper,
            )
        )
    return message


def chunk_of(message: ActionChunkMessage) -> ActionChunk:
    """A chunk from its message. Raises InvalidActionError as `checked_chunk`, and if an action names another frame."""
    frame = message.header.frame_id
    for index, action in enumerate(message.actions):
        if action.header.frame_id not in ("", frame):
            raise InvalidActionError(
                f"action {index} is in frame {action.header.frame_id[:40]!r}, its chunk in {frame[:40]!r}: give all "
                f"actions of a chunk the chunk's frame, or none"
            )
    deltas = [
        [a.translation.x, a.translation.y, a.translation.z, a.rotation.x, a.rotation.y, a.rotation.z, a.gripper]
        for a in message.actions
    ]
    return checked_chunk(
        deltas,
        nanoseconds_of(message.step) / 1e9,
        frame=frame,
        model=message.model_id,
        latency_s=nanoseconds_of(message.latency) / 1e9,
        done=message.done,
    )


def view_message(view: CameraView) -> CameraViewMessage:
    """The message of one camera's color, depth and optics."""
    frame = names.optical_frame(view.camera)
    return CameraViewMessage(
        camera=view.camera,
        color=color_message(view.color, view.stamp_ns, frame),
        depth=Image() if view.depth_m is None else depth_message(view.depth_m, view.stamp_ns, frame),
        info=camera_info_message(view.lens, view.stamp_ns, frame),
        base_from_camera=pose_message(view.pose),
    )


def view_of(message: CameraViewMessage) -> CameraView:
    """A camera view from its message. Raises InputError for malformed images."""
    return CameraView(
        message.camera,
        color_array(message.color),
        depth_array(message.depth),
        intrinsics_of(message.info),
        matrix_of(message.base_from_camera),
        nanoseconds_of(message.color.header.stamp),
    )


def joint_state_message(
    stamp_ns: int, joints_rad: Array, velocities: Array, gripper_opening_m: float, *, linkage: bool = False
) -> JointState:
    """Arm joints [rad, rad/s], the left finger's, which has half the opening [m], and with a linkage its own [rad]."""
    fingers = {GRIPPER_JOINT: gripper_opening_m / 2}
    if linkage:
        fingers[links.JOINT] = links.joint_rad(gripper_opening_m)
    message = JointState(header=header(stamp_ns, ""))
    message.name = [*ARM_JOINTS, *fingers]
    message.position = [*joints_rad.tolist(), *fingers.values()]
    message.velocity = [*velocities.tolist(), *[0.0] * len(fingers)]
    return message


def joints_of(message: JointState) -> tuple[NDArray[np.float64], float]:
    """Arm joints (6,) [rad] in the arm's order and the gripper's opening [m]; InputError if one is missing."""
    linked = GRIPPER_JOINT not in message.name and links.JOINT in message.name
    finger = links.JOINT if linked else GRIPPER_JOINT
    values = joint_values(message.name, message.position, (*ARM_JOINTS, finger))
    return values[:-1], links.opening_m(float(values[-1])) if linked else 2 * float(values[-1])


def joint_values(told: Sequence[str], values: Sequence[float], joints: Sequence[str] = ARM_JOINTS) -> Array:
    """Values in the order of `joints` from those in the order told; InputError if one is missing or not finite."""
    by_name = dict(zip(told, values, strict=False))
    if missing := [name for name in joints if name not in by_name]:
        raise InputError(f"joint states lack {', '.join(missing)}")
    found = np.array([by_name[name] for name in joints])
    if not np.isfinite(found).all():
        raise InputError("joint states are not finite")
    return found


def scene_objects(state: SceneState) -> list[SceneObjectMessage]:
    """The messages of the things of a scene; poses are in `base_link`."""
    return [SceneObjectMessage(name=item.name, pose=pose_message(item.base_from_object)) for item in state.objects]


def scene_of(message: CellState) -> SceneState:
    """The things of a scene; the inverse of `scene_objects`."""
    return SceneState(tuple(SceneObject(item.name, matrix_of(item.pose)) for item in message.objects))
