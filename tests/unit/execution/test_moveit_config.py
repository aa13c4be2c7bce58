"""config/moveit says the same as the URDF, config/cell.yaml and the safety limits; checked without MoveIt."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import xacro
from ruamel.yaml import YAML

from merton.execution.gate.collision import Guard
from merton.execution.gate.safety import limits_of_mode
from merton.simulation.model import urdf
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, load_cell
from merton.world.geometry import Array
from merton.world.linkage import joint_positions

FOLDER = Path(__file__).parents[3] / "config" / "moveit"
URDF = ET.fromstring(urdf())


class Robot:
    """URDF and SRDF of a variant of the gripper."""

    def __init__(self, linkage: bool) -> None:
        self.linkage = linkage
        self.text = urdf(linkage=linkage)
        self.urdf = ET.fromstring(self.text)
        mappings = {"gripper_linkage": str(linkage).lower()}
        self.srdf = ET.fromstring(xacro.process_file(str(FOLDER / "cell.srdf.xacro"), mappings=mappings).toxml())
        self.links = {link.get("name"): link for link in self.urdf.findall("link")}
        self.parents = {
            joint.find("child").get("link"): (joint.find("parent").get("link"), joint.get("type"))  # type: ignore[union-attr]
            for joint in self.urdf.findall("joint")
        }
        pairs = self.srdf.findall("disable_collisions")
        self.allowed = {frozenset((pair.get("link1"), pair.get("link2"))) for pair in pairs}
        assert len(self.allowed) == len(pairs), "a pair is there twice"

    def body(self, link: str) -> str:
        """The first link of the rigid body that a link is part of."""
        while link in self.parents and self.parents[link][1] == "fixed":
            link = self.parents[link][0]
        return link

    def finger_positions(self, opening_m: float) -> dict[str, float]:
        return joint_positions(opening_m) if self.linkage else dict.fromkeys(FINGER_JOINTS, opening_m / 2)


@pytest.fixture(scope="module", params=["sliding", "linkage"])
def robot(request: pytest.FixtureRequest) -> Robot:
    return Robot(request.param == "linkage")


def test_names_are_those_of_the_urdf(robot: Robot) -> None:
    assert robot.srdf.get("name") == robot.urdf.get("name")
    joints = {joint.get("name") for joint in robot.urdf.findall("joint")}
    named = [joint.get("name") for joint in robot.srdf.iter("joint")]
    assert set(named) <= joints
    assert set(robot.finger_positions(0.0)) == {joint.get("name") for joint in robot.srdf.findall("group/joint")}
    (chain,) = robot.srdf.iter("chain")
    assert {chain.get("base_link"), chain.get("tip_link")} <= robot.links.keys()
    for pair in robot.allowed:
        assert len(pair) == 2
        assert pair <= robot.links.keys()
    assert {effector.get("parent_link") for effector in robot.srdf.iter("end_effector")} == {"tool0"}


def test_home_is_that_of_the_cell(robot: Robot) -> None:
    (home,) = robot.srdf.findall("group_state")
    values = {joint.get("name"): float(joint.get("value", "nan")) for joint in home}
    assert values == dict(zip(ARM_JOINTS, load_cell().home_joints.tolist(), strict=True))


def test_collisions_are_ignored_only_within_a_body_across_a_joint_and_within_the_hand(robot: Robot) -> None:
    for one, other in map(sorted, robot.allowed):
        bodies = robot.body(one), robot.body(other)
        across = {robot.body(robot.parents[end][0]) if end in robot.parents else None for end in bodies}
        neighbours = bodies[0] == bodies[1] or bool(across & set(bodies))
        fingers = one.startswith("gripper_") and other.startswith("gripper_")
        # the cranks hold the fingers away from what the hand is fixed to
        hand = robot.linkage and {"wrist_3_link", "camera_wrist_link"} & {one, other} and "gripper_" in one + other
        assert neighbours or fingers or hand, f"{one} and {other} can meet, and may not be ignored"
    for link in ("table", "wall_back", "wall_left"):
        for part in ("upper_arm_link", "forearm_link", "wrist_3_link", "gripper_left_pad"):
            assert frozenset((link, part)) not in robot.allowed


@pytest.fixture(scope="module")
def touching(robot: Robot) -> Callable[[Array, float], set[tuple[str, str]]]:
    """Pairs of links that touch in MoveIt's geometry, and may not: by the joints (6,) [rad] and the opening [m]."""
    model = pin.buildModelFromXML(robot.text)
    geometry = pin.buildGeomFromUrdfString(model, robot.text, pin.GeometryType.COLLISION)
    names = [model.frames[thing.parentFrame].name for thing in geometry.geometryObjects]
    for first, second in itertools.combinations(range(len(names)), 2):
        if names[first] != names[second] and frozenset((names[first], names[second])) not in robot.allowed:
            geometry.addCollisionPair(pin.CollisionPair(first, second))
    assert len(geometry.collisionPairs) > 50
    of_model, of_geometry = model.createData(), geometry.createData()

    def pairs(joints_rad: Array, opening_m: float) -> set[tuple[str, str]]:
        q = pin.neutral(model)
        for name, position in [
            *zip(ARM_JOINTS, joints_rad, strict=True),
            *robot.finger_positions(opening_m).items(),
        ]:
            q[model.joints[model.getJointId(name)].idx_q] = position
        pin.computeCollisions(model, of_model, geometry, of_geometry, q, False)
        return {
            (names[pair.first], names[pair.second])
            for pair, result in zip(geometry.collisionPairs, of_geometry.collisionResults, strict=True)
            if result.isCollision()
        }

    return pairs


def test_nothing_touches_where_the_gate_lets_the_arm_be(
    touching: Callable[[Array, float], set[tuple[str, str]]],
) -> None:
    """Else MoveIt would refuse to start there, or to go there."""
    cell, random = load_cell(), np.random.default_rng(14)
    joints = cell.home_joints + random.normal(scale=0.5, size=(1000, 6))
    joints[0] = cell.home_joints
    openings_m = random.uniform(0.0, cell.gripper.stroke, len(joints))
    guard, margin_m = Guard(cell), limits_of_mode("reduced").stopping_margin_m
    around, within = guard.clearances(joints, openings_m), guard.self_clearances(joints, openings_m)
    allowed = [min(a.distance_m, b.distance_m) >= margin_m for a, b in zip(around, within, strict=True)]
    assert allowed[0]
    assert 300 < sum(allowed) < 1000
    for row, opening_m in zip(joints[allowed], openings_m[allowed], strict=True):
        assert not touching(row, opening_m)
    low = cell.home_joints + np.array([0, 0.9, 0, 0, 0, 0])
    assert any("table" in pair for pair in touching(low, 0.14)), "it sees the table"


def test_limits_of_the_tool_are_those_of_the_reduced_mode() -> None:
    limits = YAML(typ="safe", pure=True).load(FOLDER / "joint_limits.yaml")["cartesian_limits"]
    reduced = limits_of_mode("reduced")
    assert limits["max_trans_vel"] == reduced.peak_tcp_speed_m_s
    assert limits["max_trans_acc"] == -limits["max_trans_dec"] == reduced.peak_tcp_acceleration_m_s2
    assert limits["max_rot_vel"] == reduced.peak_joint_speed_rad_s


def test_the_search_checks_for_collisions_every_3_cm() -> None:
    """MoveIt measures a way by the sum of the joints' turns: JointModelGroup::getMaximumExtent."""
    share = YAML(typ="safe", pure=True).load(FOLDER / "pipelines.yaml")["ompl"]["arm"]["longest_valid_segment_fraction"]
    limits = [one.find("limit") for one in URDF.findall("joint") if one.get("name") in ARM_JOINTS]
    extent_rad = sum(float(one.get("upper")) - float(one.get("lower")) for one in limits)  # type: ignore[union-attr,arg-type]
    assert share * extent_rad * load_cell().workspace.max[0] < 0.03


@pytest.mark.parametrize("joint", ARM_JOINTS)
def test_joint_limits_are_those_of_the_reduced_mode(joint: str) -> None:
    limits = YAML(typ="safe", pure=True).load(FOLDER / "joint_limits.yaml")["joint_limits"][joint]
    reduced = limits_of_mode("reduced")
    assert limits["max_velocity"] == reduced.peak_joint_speed_rad_s
    assert limits["max_acceleration"] == reduced.peak_joint_acceleration_rad_s2
    (own,) = (one for one in URDF.findall("joint") if one.get("name") == joint)
    assert limits["max_velocity"] <= float(own.find("limit").get("velocity"))  # type: ignore[union-attr,arg-type]


def test_pipelines_and_groups_exist(robot: Robot) -> None:
    pipelines = YAML(typ="safe", pure=True).load(FOLDER / "pipelines.yaml")
    for name in pipelines["planning_pipelines"]["pipeline_names"]:
        assert pipelines[name]["planning_plugins"]
    groups = {group.get("name") for group in robot.srdf.findall("group")}
    assert set(YAML(typ="safe", pure=True).load(FOLDER / "kinematics.yaml")) <= groups
