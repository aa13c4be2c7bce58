"""The contract of an arm: every entry of `merton.world.arms`, its xacro, and all that is computed from the two."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from itertools import product
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
import xacro

from merton.errors import InputError
from merton.execution.gate.collision import Guard
from merton.execution.gate.planner import plan
from merton.execution.gate.safety import Limits
from merton.execution.kinematics import ROBOTS, base_from_tcp, kinematics_of
from merton.files import resource
from merton.simulation.model import build_model, urdf
from merton.world.arms import ARMS, Arm
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, CellConfig, cell_file, load_cell
from merton.world.geometry import Array, Matrix, from_rpy, inverse
from sources import ROOT

LINKS = tuple(f"{name}_link" for name in ("shoulder", "upper_arm", "forearm", "wrist_1", "wrist_2", "wrist_3"))
"""The links that move with frames 1 to 6."""
POSTURES = 10_000
EXACT = 1e-9
"""Metres and radians by which two programs may differ in the pose of a posture."""


def cell_with(model: str, folder: Path) -> Path:
    """A copy of config/cell.yaml with another arm: one line."""
    text = cell_file().read_text(encoding="utf-8")
    changed = re.sub(r"(?m)^  model: \S+", f"  model: {model}", text)
    file = folder / "cell.yaml"
    file.write_text(changed, encoding="utf-8")
    return file


@pytest.fixture(scope="module", params=list(ARMS))
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a cell with each arm in turn."""
    return cell_with(request.param, tmp_path_factory.mktemp("cell"))


@pytest.fixture(scope="module")
def cell(file: Path) -> CellConfig:
    return load_cell(file)


@pytest.fixture(scope="module")
def robot(file: Path) -> ElementTree.Element:
    return ElementTree.fromstring(urdf(file))


class Pinocchio:
    """The arm as another program reads it from its description."""

    def __init__(self, description: str) -> None:
        self.model = pinocchio.buildModelFromXML(description)
        self.data = self.model.createData()

    def placed(self, joints: Array, frame: str) -> Matrix:
        """Pose (4, 4) of a frame in `base_link` for joints (6,) [rad], the gripper closed."""
        pinocchio.framesForwardKinematics(self.model, self.data, np.r_[joints, np.zeros(self.model.nq - 6)])
        return np.asarray(self.data.oMf[self.model.getFrameId(frame)].homogeneous)


@pytest.fixture(scope="module")
def other(file: Path) -> Pinocchio:
    return Pinocchio(urdf(file))


def postures(count: int) -> Array:
    return np.random.default_rng(38).uniform(-np.pi, np.pi, (count, 6))


def test_an_arm_is_named_as_it_is_registered_and_has_a_description() -> None:
    assert all(name == arm.name for name, arm in ARMS.items())
    assert {ROOT / arm.xacro for arm in ARMS.values()} == set((ROOT / "urdf" / "arms").iterdir())


def test_joints_and_links_have_the_names_of_every_arm(robot: ElementTree.Element) -> None:
    moving = [joint.get("name") for joint in robot.findall("joint") if joint.get("type") != "fixed"]
    assert tuple(moving) == ARM_JOINTS + FINGER_JOINTS
    assert {"base_link", "base", "flange", "tool0", "tcp", *LINKS} <= {link.get("name") for link in robot.iter("link")}
    assert robot.find(".//mesh") is None


def test_limits_of_the_description_are_those_of_the_entry(robot: ElementTree.Element, cell: CellConfig) -> None:
    limits = [robot.find(f"joint[@name='{name}']/limit") for name in ARM_JOINTS]
    for end, sign in (("lower", -1), ("upper", 1)):
        assert [sign * float(limit.get(end)) for limit in limits] == pytest.approx(cell.arm.joint_limits_rad)
    assert [float(limit.get("velocity")) for limit in limits] == pytest.approx(cell.arm.joint_speeds_rad_s)


def test_forward_kinematics_are_those_of_the_description(cell: CellConfig, other: Pinocchio) -> None:
    joints = postures(POSTURES)
    found = kinematics_of(cell).forward(joints)
    wanted = np.array([other.placed(row, "tool0") for row in joints])
    assert np.abs(found - wanted).max() < EXACT
    frames = kinematics_of(cell).link_frames(joints[:100])
    for number, link in enumerate(LINKS, start=1):
        assert np.abs(frames[:, number] - [other.placed(row, link) for row in joints[:100]]).max() < EXACT
    tcp = base_from_tcp(joints[:100], cell)
    assert np.abs(tcp - [other.placed(row, "tcp") for row in joints[:100]]).max() < EXACT


def test_inverse_kinematics_lead_back_to_the_pose_of_the_description(cell: CellConfig, other: Pinocchio) -> None:
    """The solution nearest to the posture is the posture, and has its pose by the other program, too."""
    kinematics = kinematics_of(cell)
    limits = np.minimum(cell.arm.joint_limits_rad, np.pi)
    for joints in np.clip(postures(POSTURES), -limits, limits):
        wanted = other.placed(joints, "tool0")
        found = kinematics.solve(wanted, joints)
        assert found.success, found.why
        assert np.abs(other.placed(found.joints, "tool0") - wanted).max() < EXACT


def test_the_capsules_hold_the_drawn_links(robot: ElementTree.Element, cell: CellConfig) -> None:
    """No corner of a shape sticks out of the capsules of arm and gripper further than the stopping margin."""
    joints = postures(20)
    ends, radii = Guard(cell).capsules(joints, np.zeros(20))
    start, axis = ends[:, :, 0], ends[:, :, 1] - ends[:, :, 0]
    frames = kinematics_of(cell).link_frames(joints)
    worst = {}
    for link, frame, offset in _moving_links(robot):
        for points in _corners(robot, link):
            world = np.einsum("nij,pj->npi", frames[:, frame] @ offset, points)[..., None, :3]
            along = np.clip(((world - start[:, None]) * axis[:, None]).sum(-1) / (axis[:, None] ** 2).sum(-1), 0, 1)
            gaps = np.linalg.norm(world - start[:, None] - along[..., None] * axis[:, None], axis=-1) - radii
            worst[link] = max(worst.get(link, 0.0), float(gaps.min(axis=-1).max()))
    assert set(worst) >= set(LINKS)
    assert max(worst.values()) < Limits().stopping_margin_m, worst


def test_no_capsule_is_much_wider_than_its_link(robot: ElementTree.Element, cell: CellConfig) -> None:
    """By at most 10 mm than the widest shape of the link: a guard must not refuse what the arm can do."""
    for capsule in cell.arm.capsules:
        shapes = robot.findall(f"link[@name='{capsule.link}']/collision/geometry/cylinder")
        assert capsule.radius_m < max(float(shape.get("radius")) for shape in shapes) + 0.010, capsule


def test_home_is_free_and_over_the_table_and_that_of_the_description(file: Path, cell: CellConfig) -> None:
    pose = base_from_tcp(cell.home_joints, cell)
    assert pose[:3, 3] == pytest.approx((0.45, 0.0, 0.30), abs=1e-3)
    assert pose[:3, 2] == pytest.approx((0, 0, -1), abs=1e-3)
    assert abs(pose[1, 0]) == pytest.approx(1, abs=1e-3), "the fingers open along y"
    guard, home = Guard(cell), cell.home_joints[None]
    assert guard.clearances(home)[0].distance_m > 0.1
    assert guard.self_clearances(home)[0].distance_m > 0.02
    source = str(resource("merton_description", "urdf/cell.urdf.xacro"))
    mappings = {"cell_config": str(file), "hardware": "gazebo"}
    gazebo = ElementTree.fromstring(xacro.process_file(source, mappings=mappings).toxml())
    starts = [
        gazebo.findtext(f"ros2_control/joint[@name='{name}']/state_interface[@name='position']/param")
        for name in ARM_JOINTS
    ]
    assert [float(start) for start in starts] == pytest.approx(cell.arm.home_joints_rad)


def test_it_reaches_every_place_where_a_scene_puts_things(cell: CellConfig) -> None:
    """With the tool pointing down and turned any way, from the table to above a thing that is carried over others."""
    kinematics, guard, area = kinematics_of(cell), Guard(cell), cell.objects.area
    places = product(np.linspace(area.min[0], area.max[0], 4), np.linspace(area.min[1], area.max[1], 5), (0.02, 0.25))
    for (x, y, z), yaw in product(places, (0.0, np.pi / 4, np.pi / 2)):
        pose = from_rpy((x, y, z), (np.pi, 0, yaw)) @ inverse(cell.tool0_from_tcp)
        found = kinematics.solve(pose, cell.home_joints)
        assert found.success, (x, y, z, found.why)
        assert guard.clearance(found.joints).distance_m > Limits().stopping_margin_m, (x, y, z)
        assert guard.self_clearances(found.joints[None])[0].distance_m > Limits().stopping_margin_m, (x, y, z)


def test_every_solid_link_has_a_possible_inertia(robot: ElementTree.Element) -> None:
    for link in robot.findall("link"):
        inertial = link.find("inertial")
        if inertial is None:
            assert link.find("collision") is None, f"{link.get('name')} can be touched but weighs nothing"
            continue
        assert float(inertial.find("mass").get("value")) > 0
        values = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}
        rows = [("ixx", "ixy", "ixz"), ("ixy", "iyy", "iyz"), ("ixz", "iyz", "izz")]
        moments = np.linalg.eigvalsh([[values[key] for key in row] for row in rows])
        assert moments[0] > 0, link.get("name")
        assert moments[0] + moments[1] >= moments[2] * (1 - 1e-12), link.get("name")


def test_the_simulator_has_the_same_arm_and_holds_it_at_home(file: Path, cell: CellConfig) -> None:
    model = build_model(cell_config=file)
    data = mujoco.MjData(model)
    for joints in postures(100):
        data.qpos[:6] = joints
        mujoco.mj_kinematics(model, data)
        assert np.abs(data.body("tool0").xpos - kinematics_of(cell).forward(joints)[:3, 3]).max() < EXACT
    data.qpos[:6] = data.ctrl[:6] = cell.home_joints
    data.qpos[6:8] = data.ctrl[6] = cell.gripper.stroke / 2
    mujoco.mj_step(model, data, 500)
    assert np.abs(data.qpos[:6] - cell.home_joints).max() < 1e-3, "a second at rest"


def test_the_gate_asks_no_joint_for_more_than_it_can_do(cell: CellConfig) -> None:
    assert Limits().within(cell.arm).peak_joint_speed_rad_s <= min(cell.arm.joint_speeds_rad_s)
    slow = Limits(peak_joint_speed_rad_s=0.1)
    assert slow.within(cell.arm) == slow


def test_a_motion_is_slowed_down_for_a_slow_joint(cell: CellConfig) -> None:
    """One turn of the hand from rest to rest, whose peak is 1.5 times its mean; acceleration does not limit it."""
    limits = Limits(peak_joint_acceleration_rad_s2=1e4, peak_tcp_acceleration_m_s2=1e4)
    motion = plan(cell.home_joints, [[0, 0, 0, 0, 0, 0.3, 1.0]], 0.158, "base_link", cell, limits, 1.0)
    assert motion.verdict.ok, motion.verdict.message
    turn = motion.joints_rad[-1] - motion.joints_rad[0]
    peaks = 1.5 * np.abs(turn) / motion.times_s[-1]
    assert (peaks < cell.arm.joint_speeds_rad_s).all()
    assert peaks.max() * 1.05 <= limits.within(cell.arm).peak_joint_speed_rad_s * (1 + 1e-9)
    assert (motion.slowdown > 1) == (min(cell.arm.joint_speeds_rad_s) < 3.0)


def test_the_ur5_keeps_the_limits_that_its_scores_were_made_with() -> None:
    assert Limits().within(ARMS["UR5"]) == Limits()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "model: UR5 ",
            "model: UR6 ",
            "robot.model: unknown arm 'UR6'; did you mean 'UR5'? choose one of: UR10e, UR5, UR5e",
        ),
        ("tool: robotiq_2f_140", "tool: hand", "robot.tool: unknown tool 'hand'; choose one of: robotiq_2f_140"),
        (
            "  tool: rob",
            "  joints: [0]\n  tool: rob",
            "robot.joints: unknown key; did you mean 'home_joints'? valid keys are: model, tool, home_joints",
        ),
    ],
)
def test_an_unknown_name_is_one_sentence_with_the_choices(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(cell_file().read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_cell(file)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cell_may_have_a_home_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    line = "  home_joints: [0.1, -1.6, 1.4, -1.3, -1.5, 0.2]\n"
    file.write_text(cell_file().read_text(encoding="utf-8").replace("  tool:", f"{line}  tool:"), encoding="utf-8")
    assert load_cell(file).home_joints.tolist() == [0.1, -1.6, 1.4, -1.3, -1.5, 0.2]


def test_the_arm_of_the_page_is_an_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry and the xacro of docs/use/adding_a_robot.md, as a lab would copy them."""
    page = (ROOT / "docs/use/adding_a_robot.md").read_text(encoding="utf-8")
    (entry,), (drawing,) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "xml"))
    monkeypatch.setattr(ARMS, "_entries", dict(ARMS))
    exec(entry, {})
    arm: Arm = list(ARMS.values())[-1]
    share = tmp_path / "share" / "merton_description"
    shutil.copytree(ROOT / "urdf", share / "urdf")
    (share / arm.xacro).write_text(drawing, encoding="utf-8")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path), prepend=":")
    file = cell_with(arm.name, tmp_path)
    cell, other = load_cell(file), Pinocchio(urdf(file))
    assert cell.arm is arm
    kinematics = ROBOTS[arm.name]
    joints = postures(100)
    assert np.abs(kinematics.forward(joints) - [other.placed(row, "tool0") for row in joints]).max() < EXACT
    test_home_is_free_and_over_the_table_and_that_of_the_description(file, cell)
    test_the_capsules_hold_the_drawn_links(ElementTree.fromstring(urdf(file)), cell)
    test_it_reaches_every_place_where_a_scene_puts_things(cell)


def _moving_links(robot: ElementTree.Element) -> list[tuple[str, int, Array]]:
    """Links of the arm and the closed gripper with collision shapes, each as (name, link frame, pose in that frame)."""
    frames = {link: index for index, link in enumerate(LINKS, start=1)}
    found = [(link, frame, np.eye(4)) for link, frame in frames.items()]
    for link, frame, pose in found:  # grows while it is read
        for joint in robot.findall("joint"):
            parent, child, origin = joint.find("parent"), joint.find("child"), joint.find("origin")
            assert parent is not None
            assert child is not None
            if parent.get("link") == link and child.get("link") not in frames:
                found.append((str(child.get("link")), frame, pose @ _pose(origin)))
    return [entry for entry in found if robot.find(f"link[@name='{entry[0]}']/collision") is not None]


def _pose(origin: ElementTree.Element | None) -> Array:
    if origin is None:
        return np.eye(4)
    return from_rpy(*([float(x) for x in origin.get(key, "0 0 0").split()] for key in ("xyz", "rpy")))


def _corners(robot: ElementTree.Element, link: str) -> list[Array]:
    """Corners of boxes and rims of cylinders of a link, (points, 4) in the link's frame."""
    shapes = []
    for collision in robot.findall(f"link[@name='{link}']/collision"):
        box, cylinder = collision.find("geometry/box"), collision.find("geometry/cylinder")
        if box is not None:
            half = np.array([float(x) for x in box.get("size", "").split()]) / 2
            points = np.array(list(product((-1, 1), repeat=3))) * half
        elif cylinder is not None:
            radius, length = float(cylinder.get("radius", "")), float(cylinder.get("length", ""))
            turn = np.linspace(0, 2 * np.pi, 24)
            rim = np.c_[radius * np.cos(turn), radius * np.sin(turn), np.full(24, length / 2)]
            points = np.r_[rim, rim * (1, 1, -1)]
        else:
            continue
        shapes.append(np.c_[points, np.ones(len(points))] @ _pose(collision.find("origin")).T)
    return shapes
