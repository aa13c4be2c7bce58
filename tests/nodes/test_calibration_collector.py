"""calibration_collector over real ROS 2: what it saves, and when it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import CameraInfo, Image, JointState

from merton.calibration import read_lens, read_poses
from merton.errors import InfrastructureError, InputError
from merton.perception.camera import d455_intrinsics
from merton.perception.images import read_image
from merton.world.arms import ARMS
from merton_nodes.cameras.calibration_collector import CalibrationCollector
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe

D455 = (-0.055, 0.065, 0.0004, -0.0006, -0.02)
JOINTS = np.array([0.1, -1.5, 1.2, -1.3, -1.6, 0.3])


class CameraAndArm:
    """A camera and an arm that publish 20 times a second; the image's value is the number of the publication."""

    def __init__(self, probe: Probe) -> None:
        self.joints, self.speed, self.count = JOINTS.copy(), 0.0, 0
        self.optics: tuple[Any, ...] = (d455_intrinsics(64, 48), D455)
        self.image = probe.create_publisher(Image, names.color("wrist"), names.SENSOR_QOS)
        self.info = probe.create_publisher(CameraInfo, names.color_info("wrist"), names.SENSOR_QOS)
        self.arm = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
        self.timer = probe.create_timer(0.05, self.publish)

    def publish(self) -> None:
        self.count += 1
        self.joints[0] += self.speed * 0.05
        self.arm.publish(convert.joint_state_message(self.count, self.joints, np.zeros(6), 0.1))
        self.info.publish(convert.camera_info_message(self.optics[0], self.count, "", *self.optics[1:]))
        self.image.publish(convert.color_message(np.full((48, 64, 3), self.count % 256, np.uint8), self.count, ""))


def test_a_picture_is_saved_with_the_pose_and_the_optics(ros: Any, probe: Probe, tmp_path: Path) -> None:
    cell = CameraAndArm(probe)
    node = ros.add(CalibrationCollector, "wrist", tmp_path / "new")
    ros.until(lambda: all(node.counts.values()))
    pressed = cell.count
    first, second = node.save_picture(20.0), node.save_picture(20.0)
    assert (first.name, second.name) == ("0000.png", "0001.png")
    assert pressed < read_image(first)[0, 0, 0] < read_image(second)[0, 0, 0]
    assert read_lens(tmp_path / "new").distortion == pytest.approx(D455)  # type: ignore[union-attr]
    joints_rad: list[np.ndarray] = []
    read_poses(tmp_path / "new", ARMS["UR5"], lambda joints: joints_rad.append(joints) or np.eye(4))
    np.testing.assert_allclose(joints_rad, [JOINTS, JOINTS], atol=1e-8)
    for optics, says in (
        ((d455_intrinsics(64, 48), (0.1, 0.0, 0.0, 0.0), "equidistant"), "the lens of wrist is equidistant"),
        ((d455_intrinsics(128, 96), D455), "its camera_info is for pictures of 128 x 96 px"),
    ):
        cell.optics = optics
        ros.until(lambda since=cell.count: cell.count > since + 5)
        with pytest.raises(InputError, match=says):
            node.save_picture(20.0)
    cell.optics = (d455_intrinsics(64, 48), (*D455, 0.0, 0.0, 0.0), "rational_polynomial")
    ros.until(lambda since=cell.count: cell.count > since + 5)
    node.save_picture(20.0).unlink()
    cell.speed = 0.1
    ros.until(lambda: cell.joints[0] > JOINTS[0] + 0.01)
    with pytest.raises(InputError, match="the arm is moving"):
        node.save_picture(20.0)
    assert len(list((tmp_path / "new").glob("*.png"))) == 2


def test_silence_is_one_sentence(ros: Any, tmp_path: Path) -> None:
    node = ros.add(CalibrationCollector, "wrist", tmp_path)
    with pytest.raises(InfrastructureError, match=r"no joints of wrist within 0\.1 s"):
        node.save_picture(0.1)


def test_a_rectified_camera_is_saved_as_p_describes_it(ros: Any, probe: Probe, tmp_path: Path) -> None:
    """A topic of image_proc, given by remapping; the camera_info beside it is that of the raw picture, too."""
    remapped = ["--ros-args", "-r", f"{names.color('wrist')}:=/cam/image_rect_color"]
    node = ros.add(CalibrationCollector, "wrist", tmp_path, cli_args=remapped)
    image = probe.create_publisher(Image, "/cam/image_rect_color", names.SENSOR_QOS)
    info = probe.create_publisher(CameraInfo, names.color_info("wrist"), names.SENSOR_QOS)
    arm = probe.create_publisher(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    optics = convert.camera_info_message(d455_intrinsics(64, 48), 1, "", (-0.3, 0.1, 0.0, 0.0, 0.0))
    optics.p[0] = optics.p[5] = 30.0

    def publish() -> None:
        arm.publish(convert.joint_state_message(1, JOINTS, np.zeros(6), 0.1))
        info.publish(optics)
        image.publish(convert.color_message(np.zeros((48, 64, 3), np.uint8), 1, ""))

    probe.create_timer(0.05, publish)
    ros.until(lambda: all(node.counts.values()))
    node.save_picture(20.0)
    lens = read_lens(tmp_path)
    assert lens is not None
    assert (lens.intrinsics.fx, lens.intrinsics.cx, any(lens.distortion)) == (30.0, 31.5, False)
