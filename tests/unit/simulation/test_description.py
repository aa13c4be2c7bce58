"""The robot description: the xacro must be the robot that the rest of Merton computes with."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import xacro
from scipy.spatial.transform import Rotation

from merton.errors import InputError, MissingDependencyError
from merton.files import resource
from merton.simulation.model import build_model, urdf
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, CellConfig, cell_file, load_cell
from merton.world.geometry import Matrix, from_rpy, inverse, transform

# Universal Robots' published DH parameters of the UR5 (standard convention): d, a, alpha.
DH = (
    (0.089159, 0.0, np.pi / 2),
    (0.0, -0.425, 0.0),
    (0.0, -0.39225, 0.0),
    (0.10915, 0.0, np.pi / 2),
    (0.09465, 0.0, -np.pi / 2),
    (0.0823, 0.0, 0.0),
)


@pytest.fixture(scope="module")
def robot() -> ElementTree.Element:
    return ElementTree.fromstring(urdf())


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell()


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split()]


def pose(robot: ElementTree.Element, link: str, positions: dict[str, float]) -> Matrix:
    """Pose of a link in base_link, by walking the URDF's tree; written apart from everything it is compared with."""
    parents = {joint.find("child").get("link"): joint for joint in robot.findall("joint")}
    result = np.eye(4)
    while link != "base_link":
        joint = parents[link]
        origin = joint.find("origin")
        xyz, rpy = (numbers(origin.get(key, "0 0 0")) if origin is not None else [0.0] * 3 for key in ("xyz", "rpy"))
        step = from_rpy(xyz, rpy)
        value = positions.get(joint.get("name"), 0.0)
        if joint.get("type") == "revolute":
            axis = np.array(numbers(joint.find("axis").get("xyz")))
            step = step @ transform(rotation=Rotation.from_rotvec(value * axis))
        elif joint.get("type") == "prismatic":
            step = step @ transform(value * np.array(numbers(joint.find("axis").get("xyz"))))
        result = step @ result
        link = joint.find("parent").get("link")
    return result


def dh_product(joints: np.ndarray) -> Matrix:
    result = np.eye(4)
    for theta, (d, a, alpha) in zip(joints, DH, strict=True):
        result = result @ transform((0, 0, d), Rotation.from_euler("z", theta))
        result = result @ transform((a, 0, 0), Rotation.from_euler("x", alpha))
    return result


def test_tool0_is_a_half_turn_times_the_dh_product(robot: ElementTree.Element) -> None:
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    for joints in np.random.default_rng(1).uniform(-np.pi, np.pi, (50, 6)):
        found = pose(robot, "tool0", dict(zip(ARM_JOINTS, joints, strict=True)))
        np.testing.assert_allclose(found, half_turn @ dh_product(joints), atol=1e-12)


def test_frames_around_the_arm(robot: ElementTree.Element, cell: CellConfig) -> None:
    np.testing.assert_allclose(pose(robot, "base", {}), np.diag([-1.0, -1.0, 1.0, 1.0]), atol=1e-12)
    joints = dict(zip(ARM_JOINTS, cell.home_joints, strict=True))
    tool0 = pose(robot, "tool0", joints)
    np.testing.assert_allclose(inverse(tool0) @ pose(robot, "tcp", joints), cell.tool0_from_tcp, atol=1e-12)
    # REP 199: x points out of the flange.
    np.testing.assert_allclose(pose(robot, "flange", joints)[:3, 0], tool0[:3, 2], atol=1e-12)
    tcp = pose(robot, "tcp", joints)
    np.testing.assert_allclose(tcp[:3, 3], [0.45, 0.0, 0.30], atol=1e-3)
    np.testing.assert_allclose(tcp[:3, 2], [0, 0, -1], atol=1e-4)


def test_cameras_stand_where_the_configuration_says(robot: ElementTree.Element, cell: CellConfig) -> None:
    joints = dict(zip(ARM_JOINTS, [0.3, -1.4, 1.2, -1.0, -1.5, 0.7], strict=True))
    tool0 = pose(robot, "tool0", joints)
    for name in cell.camera_names:
        found = pose(robot, f"camera_{name}_color_optical_frame", joints)
        np.testing.assert_allclose(found, cell.base_from_camera(name, tool0), atol=1e-9)


def test_pads_meet_at_the_tcp_when_closed_and_are_a_stroke_apart_when_open(
    robot: ElementTree.Element, cell: CellConfig
) -> None:
    thickness = numbers(robot.find("link[@name='gripper_left_pad']/collision/geometry/box").get("size"))[0]
    for finger, opening in ((0.0, 0.0), (cell.gripper.stroke / 2, cell.gripper.stroke)):
        positions = dict.fromkeys(FINGER_JOINTS, finger)
        tool = inverse(pose(robot, "tool0", positions))
        left, right = (tool @ pose(robot, f"gripper_{side}_pad", positions) for side in ("left", "right"))
        assert left[0, 3] - right[0, 3] - thickness == pytest.approx(opening, abs=1e-12)
        assert left[0, 3] + right[0, 3] == pytest.approx(0.0, abs=1e-12)


def test_joints_have_the_names_limits_and_the_mimic_of_the_real_ones(robot: ElementTree.Element) -> None:
    moving = {joint.get("name"): joint for joint in robot.findall("joint") if joint.get("type") != "fixed"}
    assert tuple(moving) == ARM_JOINTS + FINGER_JOINTS
    limits = {name: float(joint.find("limit").get("upper")) for name, joint in moving.items()}
    assert limits["elbow_joint"] == pytest.approx(np.pi)
    assert all(limits[name] == pytest.approx(2 * np.pi) for name in ARM_JOINTS if name != "elbow_joint")
    assert moving[FINGER_JOINTS[1]].find("mimic").get("joint") == FINGER_JOINTS[0]


def test_no_meshes_and_a_total_mass_of_a_ur5(robot: ElementTree.Element) -> None:
    assert robot.find(".//mesh") is None
    arm = ["shoulder_link", "upper_arm_link", "forearm_link", "wrist_1_link", "wrist_2_link", "wrist_3_link"]
    masses = [float(robot.find(f"link[@name='{name}']/inertial/mass").get("value")) for name in ["base_link", *arm]]
    assert 18.4 < sum(masses) < 21.5  # the maker's data sheet says 18.4 kg, its dynamic model 21


def test_colours_of_the_cell_are_not_mistaken_for_objects(robot: ElementTree.Element) -> None:
    for material in robot.findall("material"):
        rgb = numbers(material.find("color").get("rgba"))[:3]
        assert 1 - min(rgb) / max(rgb) < 0.25, material.get("name")  # saturation; that of the objects is above 0.75


def test_the_xacro_finds_the_configuration_by_itself_and_takes_another(tmp_path: Path) -> None:
    source = resource("merton_description", "urdf/cell.urdf.xacro")
    assert xacro.process_file(str(source)).toprettyxml(indent="  ") == urdf()
    other = tmp_path / "cell.yaml"
    other.write_text(cell_file().read_text().replace("tcp_from_tool0_z: 0.235", "tcp_from_tool0_z: 0.300"))
    tree = ElementTree.fromstring(urdf(other))
    assert pose(tree, "tcp", {})[:3, 3] == pytest.approx((pose(tree, "tool0", {}) @ transform((0, 0, 0.3)))[:3, 3])


def test_a_fourth_camera_is_configuration(tmp_path: Path) -> None:
    lines = cell_file().read_text(encoding="utf-8").splitlines(keepends=True)
    side = next(index for index, line in enumerate(lines) if line.startswith("  side: {parent"))
    lines.insert(side, lines[side].replace("side:", "back:"))
    config = tmp_path / "cell.yaml"
    config.write_text("".join(lines), encoding="utf-8")
    model = build_model(cell_config=config)
    assert [model.camera(index).name for index in range(model.ncam)] == ["wrist", "top", "back", "side"]


def test_resources_come_from_an_installed_prefix_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "share" / "merton_bringup" / "config" / "cell.yaml"
    installed.parent.mkdir(parents=True)
    installed.write_text("{}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'empty'}:{tmp_path}")
    assert resource("merton_bringup", "config/cell.yaml") == installed.resolve()
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert resource("merton_bringup", "config/cell.yaml") == Path(__file__).resolve().parents[3] / "config/cell.yaml"


def test_a_resource_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingDependencyError, match=r"config/nothing\.yaml"):
        resource("merton_bringup", "config/nothing.yaml")
    with pytest.raises(InputError, match="merton_description, merton_bringup"):
        resource("merton_nodes", "urdf")
    with pytest.raises(InputError, match="installs only urdf"):
        resource("merton_description", "config/cell.yaml")


UR_DESCRIPTION = """<robot name="ur" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="ur_type" default="urXe"/>
  <link name="world"/><link name="base_link"/><link name="tool0"/>
  <joint name="base_joint" type="fixed"><parent link="world"/><child link="base_link"/></joint>
  <joint name="arm" type="fixed"><parent link="base_link"/><child link="tool0"/></joint>
  <ros2_control name="$(arg ur_type)" type="system"/>
</robot>"""
"""The frames on which the description of the UR ROS 2 driver and Merton's agree."""


def test_the_arm_of_the_ur_driver_has_the_gripper_and_the_cameras_of_the_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = tmp_path / "share" / "ur_robot_driver" / "urdf"
    marker = tmp_path / "share" / "ament_index" / "resource_index" / "packages" / "ur_robot_driver"
    for file, text in ((share / "ur.urdf.xacro", UR_DESCRIPTION), (marker, "")):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path), prepend=":")
    source = resource("merton_description", "urdf/ur_driver.urdf.xacro")
    driven = ElementTree.fromstring(xacro.process_file(str(source), mappings={"ur_type": "ur5"}).toxml())
    own = ElementTree.fromstring(urdf(linkage=True))
    arm = {"base", "flange", *(f"{part}_link" for part in ("shoulder", "upper_arm", "forearm"))}
    arm |= {"base_link_inertia", *(f"wrist_{number}_link" for number in (1, 2, 3))}
    assert {link.get("name") for link in driven.findall("link")} == {
        link.get("name") for link in own.findall("link")
    } - arm
    assert driven.find("ros2_control").get("name") == "ur5", "the driver's arguments are passed on"
    parents = {joint.find("child").get("link"): joint.find("parent").get("link") for joint in driven.findall("joint")}
    for link in ("tcp", "gripper_left_pad", "camera_wrist_color_optical_frame"):
        chain = [link]
        while chain[-1] in parents:
            chain.append(parents[chain[-1]])
        assert "tool0" in chain
        assert chain[-1] == "world"
