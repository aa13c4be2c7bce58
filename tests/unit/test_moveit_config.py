"""config/moveit says the same as the URDF, config/cell.yaml and the safety limits; checked without MoveIt."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from ruamel.yaml import YAML

from merton.execution.gate.safety import limits_of_mode
from merton.simulation.model import urdf
from merton.world.cell import ARM_JOINTS, load_cell

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


def test_nothing_touches_at_home_that_is_not_ignored() -> None:
    model = pin.buildModelFromXML(urdf())
    geometry = pin.buildGeomFromUrdfString(model, urdf(), pin.GeometryType.COLLISION)
    q = pin.neutral(model)
    for name, angle in zip(ARM_JOINTS, load_cell().home_joints, strict=True):
        q[model.joints[model.getJointId(name)].idx_q] = angle
    names = [model.frames[thing.parentFrame].name for thing in geometry.geometryObjects]
    for first, second in itertools.combinations(range(len(names)), 2):
        if names[first] != names[second] and frozenset((names[first], names[second])) not in ALLOWED:
            geometry.addCollisionPair(pin.CollisionPair(first, second))
    assert len(geometry.collisionPairs) > 50
    data = geometry.createData()
    pin.computeCollisions(model, model.createData(), geometry, data, q, False)
    touching = [
        (names[pair.first], names[pair.second])
        for pair, result in zip(geometry.collisionPairs, data.collisionResults, strict=True)
        if result.isCollision()
    ]
    assert not touching


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
    assert np.isfinite(pipelines["planning_scene_monitor_options"]["wait_for_initial_state_timeout"])
