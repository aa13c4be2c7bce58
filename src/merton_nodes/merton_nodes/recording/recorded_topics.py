"""The topics of a recording, their types, and their delivery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diagnostic_msgs.msg import DiagnosticArray
from merton_interfaces.msg import (
    ActionChunk,
    Answer,
    CellState,
    ConfirmationRequest,
    DistortionInfo,
    ExperimentProgress,
    FrameRequest,
    ImageQuality,
    RatingArray,
    SafetyState,
    TrialEvidence,
    TrialResult,
)
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import Float64MultiArray, Header, String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from merton_nodes.ros import names

DIAGNOSTICS = "/diagnostics"
IMAGE_QUEUE = 10
STATE_QUEUE = 100
"""Queue lengths of a topic: a recorder needs more than a reader of the newest message."""


def recorded_topics(cameras: Sequence[str]) -> Iterator[tuple[str, type, QoSProfile]]:
    """Topic, type and delivery of every recorded topic."""
    reliable = names.RELIABLE_QOS
    latched = QoSProfile(depth=STATE_QUEUE, reliability=reliable.reliability, durability=names.LATCHED_QOS.durability)
    sensor = QoSProfile(depth=IMAGE_QUEUE, reliability=names.SENSOR_QOS.reliability)
    yield names.ROBOT_DESCRIPTION, String, latched
    yield names.CELL_SAFETY, SafetyState, latched
    yield names.ARM_SAFETY, SafetyState, latched
    yield names.RATINGS, RatingArray, latched
    yield names.LEADERBOARD, String, latched
    yield names.AWAITING_CONFIRMATION, ConfirmationRequest, latched
    yield names.AWAITING_ARRANGEMENT, ConfirmationRequest, latched
    yield names.PROGRESS, ExperimentProgress, latched
    yield names.CLOCK, Clock, reliable
    yield names.JOINT_STATES, JointState, reliable
    yield names.WANTED_LAYOUT, Image, latched
    yield names.TRAJECTORY, JointTrajectory, reliable
    yield names.DRIVER_TRAJECTORY, JointTrajectory, reliable
    yield names.GRIPPER, Float64MultiArray, reliable
    yield names.CELL_STATE, CellState, reliable
    yield names.FRAME_REQUEST, FrameRequest, reliable
    yield names.HEARTBEAT, Header, reliable
    yield names.ARM_MARKERS, MarkerArray, reliable
    yield names.TRIAL_RESULTS, TrialResult, names.KEPT_QOS
    yield names.TRIAL_EVIDENCE, TrialEvidence, names.KEPT_QOS
    for side in ("reference", "distorted"):
        yield names.answers(side), Answer, names.KEPT_QOS
        yield names.chunks(side), ActionChunk, names.KEPT_QOS
    yield DIAGNOSTICS, DiagnosticArray, reliable
    for camera in cameras:
        yield names.color(camera), Image, sensor
        yield names.color_info(camera), CameraInfo, sensor
        yield names.depth(camera), Image, sensor
        yield names.distorted(camera), Image, sensor
        yield names.distorted_depth(camera), Image, sensor
        yield names.distortion_info(camera), DistortionInfo, sensor
        yield names.quality(camera), ImageQuality, reliable


def type_name(kind: type) -> str:
    """The name of a message type, such as "sensor_msgs/msg/Image"."""
    return f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"


def qos_text(qos: QoSProfile) -> str:
    """The delivery of a topic as rosbag2 writes it, so that players latch a latched topic again."""
    endless = "{sec: 9223372036, nsec: 854775807}"
    return (
        f"- history: {qos.history.short_key}\n  depth: {qos.depth}\n  reliability: {qos.reliability.short_key}\n"
        f"  durability: {qos.durability.short_key}\n  deadline: {endless}\n  lifespan: {endless}\n"
        f"  liveliness: automatic\n  liveliness_lease_duration: {endless}\n  avoid_ros_namespace_conventions: false\n"
    )
