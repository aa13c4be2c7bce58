"""config/moveit says the same as the URDF, config/cell.yaml and the safety limits; checked without MoveIt."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from ruamel.yaml import YAML

from merton.execution.gate.collision import Guard
from merton.execution.gate.safety import limits_of_mode
from merton.simulation.model import urdf
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, load_cell
from merton.world.geometry import Array

FOLDER = Path(__file__).parents[2] / "config" / "moveit"
SRDF = ET.parse(FOLDER / "cell.srdf").getroot()
URDF = ET.fromstring(urdf())
LINKS = {link.get("name"): link for link in URDF.findall("link")}
PARENTS = {
    joint.find("child").get("link"): (joint.find("parent").get("link"), joint.get("type"))  # type: ignore[union-attr]
    for joint in URDF.findall("joint")
}
ALLOWED = {frozenset((pair.get("link1"), pair.get("link2"))) for pair in SRDF.findall("disable_collisions")}


def body(link: str) -> str:
    """The first link of the rigid body that a link is part of."""
    while link in PARENTS and PARENTS[link][1] == "fixed":
        link = PARENTS[link][0]
    return link


def test_names_are_those_of_the_urdf() -> None:
    assert SRDF.get("name") == URDF.get("name")
    joints = {joint.get("name") for joint in URDF.findall("joint")}
    named = [joint.get("name") for joint in SRDF.iter("joint")]
    assert set(named) <= joints
    (chain,) = SRDF.iter("chain")
    assert {chain.get("base_link"), chain.get("tip_link")} <= LINKS.keys()
    for pair in ALLOWED:
        assert len(pair) == 2
        assert pair <= LINKS.keys()
    assert {effector.get("parent_link") for effector in SRDF.iter("end_effector")} == {"tool0"}


def test_home_is_that_of_the_cell() -> None:
    (home,) = SRDF.findall("group_state")
    values = {joint.get("name"): float(joint.get("value", "nan")) for joint in home}
    assert values == dict(zip(ARM_JOINTS, load_cell().home_joints.tolist(), strict=True))


def test_collisions_are_ignored_only_within_a_body_across_a_joint_and_between_the_fingers() -> None:
    for one, other in map(sorted, ALLOWED):
        across = {body(PARENTS[end][0]) if end in PARENTS else None for end in (body(one), body(other))}
        neighbours = body(one) == body(other) or bool(across & {body(one), body(other)})
        fingers = one.startswith("gripper_") and other.startswith("gripper_")
        assert neighbours or fingers, f"{one} and {other} can meet, and may not be ignored"
    for link in ("table", "wall_back", "wall_left"):
        for part in ("upper_arm_link", "forearm_link", "wrist_3_link", "gripper_left_pad"):
            assert frozenset((link, part)) not in ALLOWED


@pytest.fixture(scope="module")
def touching() -> Callable[[Array, float], set[tuple[str, str]]]:
    """Pairs of links that touch in MoveIt's geometry, and may not: by the joints (6,) [rad] and the opening [m]."""
    model = pin.buildModelFromXML(urdf())
    geometry = pin.buildGeomFromUrdfString(model, urdf(), pin.GeometryType.COLLISION)
    names = [model.frames[thing.parentFrame].name for thing in geometry.geometryObjects]
    for first, second in itertools.combinations(range(len(names)), 2):
        if names[first] != names[second] and frozenset((names[first], names[second])) not in ALLOWED:
            geometry.addCollisionPair(pin.CollisionPair(first, second))
    assert len(geometry.collisionPairs) > 50
    of_model, of_geometry = model.createData(), geometry.createData()

    def pairs(joints_rad: Array, opening_m: float) -> set[tuple[str, str]]:
        q = pin.neutral(model)
        for name, position in [
            *zip(ARM_JOINTS, joints_rad, strict=True),
            *dict.fromkeys(FINGER_JOINTS, opening_m / 2).items(),
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
    limits = YAML(typ="safe").load(FOLDER / "joint_limits.yaml")["cartesian_limits"]
    reduced = limits_of_mode("reduced")
    assert limits["max_trans_vel"] == reduced.peak_tcp_speed_m_s
    assert limits["max_trans_acc"] == -limits["max_trans_dec"] == reduced.peak_tcp_acceleration_m_s2
    assert limits["max_rot_vel"] == reduced.peak_joint_speed_rad_s


def test_the_search_checks_for_collisions_every_3_cm() -> None:
    """MoveIt measures a way by the sum of the joints' turns: JointModelGroup::getMaximumExtent."""
    share = YAML(typ="safe").load(FOLDER / "pipelines.yaml")["ompl"]["arm"]["longest_valid_segment_fraction"]
    limits = [one.find("limit") for one in URDF.findall("joint") if one.get("name") in ARM_JOINTS]
    extent_rad = sum(float(one.get("upper")) - float(one.get("lower")) for one in limits)  # type: ignore[union-attr,arg-type]
    assert share * extent_rad * load_cell().workspace.max[0] < 0.03


@pytest.mark.parametrize("joint", ARM_JOINTS)
def test_joint_limits_are_those_of_the_reduced_mode(joint: str) -> None:
    limits = YAML(typ="safe").load(FOLDER / "joint_limits.yaml")["joint_limits"][joint]
    reduced = limits_of_mode("reduced")
    assert limits["max_velocity"] == reduced.peak_joint_speed_rad_s
    assert limits["max_acceleration"] == reduced.peak_joint_acceleration_rad_s2
    (own,) = (one for one in URDF.findall("joint") if one.get("name") == joint)
    assert limits["max_velocity"] <= float(own.find("limit").get("velocity"))  # type: ignore[union-attr,arg-type]


def test_pipelines_and_groups_exist() -> None:
    pipelines = YAML(typ="safe").load(FOLDER / "pipelines.yaml")
    for name in pipelines["planning_pipelines"]["pipeline_names"]:
        assert pipelines[name]["planning_plugins"]
    groups = {group.get("name") for group in SRDF.findall("group")}
    assert set(YAML(typ="safe").load(FOLDER / "kinematics.yaml")) <= groups
