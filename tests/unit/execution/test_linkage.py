"""The linkage of the 2F-140: the formula, the robot description, and the cell that has it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import numpy as np
import pinocchio
import pytest
from ruamel.yaml import YAML

from merton.errors import InputError
from merton.execution.gate.collision import Guard
from merton.execution.gate.safety import Limits
from merton.execution.kinematics import ROBOTS
from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, ExperimentSpec, Trial
from merton.experiment.trial import run_trial
from merton.files import resource
from merton.results.records import Outcome, TestCase
from merton.simulation.cell import SimulatedCell
from merton.simulation.model import urdf
from merton.world import linkage
from merton.world.cell import load_cell
from merton.world.geometry import Matrix, from_rpy, inverse

UR5 = ROBOTS["UR5"]

OPENINGS_M = np.linspace(0, linkage.STROKE_M, 10)
DRAWN_M = {0.0: 0.2328, linkage.STROKE_M: 0.2098}
"""Opening to overall length: Robotiq, 2F-85 and 2F-140 instruction manual, mechanical dimensions of the 2F-140."""
CELL = load_cell(linkage=True)
BASE_M = CELL.tool.tcp_from_tool0_z + 0.008 - DRAWN_M[0.0]
"""Height of the gripper's base above `tool0`: the thickness of its coupling, as the cell's tcp implies it."""


@pytest.fixture(scope="module")
def description() -> str:
    return urdf(linkage=True)


@pytest.fixture(scope="module")
def robot(description: str) -> ElementTree.Element:
    return ElementTree.fromstring(description)


class Model:
    """Poses of the hand's links in `tool0`, by Pinocchio."""

    def __init__(self, description: str) -> None:
        self.model = pinocchio.buildModelFromXML(description)
        self.data = self.model.createData()

    def pose(self, link: str, opening_m: float) -> Matrix:
        at = pinocchio.neutral(self.model)
        angle = linkage.joint_rad(opening_m)
        for joint, ratio in {linkage.JOINT: 1, **linkage.MIMICS}.items():
            at[self.model.joints[self.model.getJointId(joint)].idx_q] = ratio * angle
        pinocchio.framesForwardKinematics(self.model, self.data, at)
        base_from_tool0, base_from_link = (
            self.data.oMf[self.model.getFrameId(name)].homogeneous for name in ("tool0", link)
        )
        return inverse(base_from_tool0) @ base_from_link


@pytest.fixture(scope="module")
def model(description: str) -> Model:
    return Model(description)


def test_the_ends_are_those_of_the_drawing() -> None:
    for opening_m, length_m in DRAWN_M.items():
        assert linkage.tip_height_m(opening_m) == pytest.approx(length_m, abs=1e-3)
    assert linkage.joint_rad(linkage.STROKE_M) == 0
    assert linkage.joint_rad(0.0) == linkage.CLOSED_RAD == pytest.approx(0.755, abs=1e-3)


def test_the_pivots_of_robotiqs_model_give_the_same_within_the_stated_uncertainty() -> None:
    """Robotiq's simulation model, joint at zero: crank from (30.601, 54.663) to (97.456, 129.029) mm."""
    assert np.hypot(0.097456 - 0.030601, 0.129029 - 0.054663) == pytest.approx(linkage.CRANK_M, abs=1e-5)
    # its joint closes by 45 degrees: there the crank leans inwards by the overhang
    upright = np.arccos(-linkage.OVERHANG_M / linkage.CRANK_M)
    theirs = np.arctan2(0.129029 - 0.054663, 0.097456 - 0.030601) + np.pi / 4
    assert upright == pytest.approx(theirs, abs=0.01)
    overhang_m = -linkage.CRANK_M * np.cos(theirs)
    rise_m = np.sqrt(linkage.CRANK_M**2 - overhang_m**2) - np.sqrt(linkage.CRANK_M**2 - (0.07 - overhang_m) ** 2)
    assert rise_m == pytest.approx(linkage.tip_behind_m(linkage.STROKE_M), abs=0.7e-3)


def test_openings_come_back_and_tips_only_retreat_while_it_opens() -> None:
    for opening_m in OPENINGS_M:
        assert linkage.opening_m(linkage.joint_rad(opening_m)) == pytest.approx(opening_m, abs=1e-12)
    behind_m = [linkage.tip_behind_m(opening_m) for opening_m in np.linspace(0.012, 0.140, 50)]
    assert (np.diff(behind_m) > 0).all()
    assert linkage.tip_behind_m(0.012) == pytest.approx(-0.2e-3, abs=0.05e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.5, 0.5])
def test_values_that_no_linkage_reaches_are_refused(value: float) -> None:
    for convert in (linkage.joint_rad, linkage.tip_behind_m, linkage.tip_height_m):
        with pytest.raises(InputError, match=r"0 \.\. 0\.14 m"):
            convert(value)
    if value != 0.5:
        with pytest.raises(InputError, match=r"finger_joint must be in 0 \(open\) \.\. 0\.755 rad"):
            linkage.opening_m(value)


def test_pads_of_the_description_are_where_the_formula_and_the_drawing_say(
    model: Model, robot: ElementTree.Element
) -> None:
    thickness, _, height = map(
        float, robot.find("link[@name='gripper_left_pad']/collision/geometry/box").get("size").split()
    )
    for opening_m in OPENINGS_M:
        left, right = (model.pose(f"gripper_{side}_pad", opening_m) for side in ("left", "right"))
        assert left[0, 3] - right[0, 3] - thickness == pytest.approx(opening_m, abs=1e-9)
        assert left[0, 3] == pytest.approx(-right[0, 3], abs=1e-9)
        for pad in (left, right):
            np.testing.assert_allclose(pad[:3, :3], np.eye(3), atol=1e-9)  # parallel, whatever the opening
            assert pad[2, 3] + height / 2 - BASE_M == pytest.approx(linkage.tip_height_m(opening_m), abs=1e-9)
            if opening_m in DRAWN_M:
                assert pad[2, 3] + height / 2 - BASE_M == pytest.approx(DRAWN_M[opening_m], abs=1e-3)


def test_inner_cranks_stay_on_their_parallelogram(model: Model) -> None:
    """The description cuts the loop there: their far ends must keep their place on the finger all the same."""
    for side in ("left", "right"):
        ends = []
        for opening_m in OPENINGS_M:
            knuckle, finger = (model.pose(f"gripper_{side}_{part}", opening_m) for part in ("inner_knuckle", "finger"))
            ends.append((inverse(finger) @ knuckle @ [0, 0, linkage.CRANK_M, 1])[:3])
        np.testing.assert_allclose(ends, [ends[0]] * len(ends), atol=1e-9)


def test_joints_are_named_and_geared_as_in_robotiqs_driver(robot: ElementTree.Element) -> None:
    hand = {
        joint.get("name"): joint
        for joint in robot.findall("joint")
        if joint.get("type") == "revolute" and joint.find("parent").get("link").startswith("gripper_")
    }
    assert set(hand) == {linkage.JOINT, *linkage.MIMICS}
    for name, ratio in linkage.MIMICS.items():
        mimic = hand[name].find("mimic")
        assert (mimic.get("joint"), float(mimic.get("multiplier"))) == (linkage.JOINT, ratio)
    limit = hand[linkage.JOINT].find("limit")
    assert (float(limit.get("lower")), float(limit.get("upper"))) == pytest.approx((0, linkage.CLOSED_RAD), abs=1e-9)
    assert hand[linkage.JOINT].find("mimic") is None


def test_the_tcp_lies_between_the_pads_that_hold_an_object_of_the_cell(model: Model) -> None:
    """Grasp height in the lab: without the correction the pads would close 1.2 mm above it."""
    sliding = load_cell()
    width_m = CELL.objects.cube_edge
    assert width_m == CELL.objects.cylinder_diameter
    pad = model.pose("gripper_left_pad", width_m)[2, 3]
    closed_pad = model.pose("gripper_left_pad", 0.0)[2, 3]
    tcp_from_pad = CELL.tool.tcp_from_tool0_z - closed_pad
    assert CELL.tool0_from_tcp[2, 3] - pad == pytest.approx(tcp_from_pad, abs=1e-9)
    assert sliding.tool0_from_tcp[2, 3] - pad - tcp_from_pad == pytest.approx(1.2e-3, abs=0.1e-3)
    np.testing.assert_allclose(model.pose("tcp", width_m), CELL.tool0_from_tcp, atol=1e-9)


@pytest.mark.parametrize("opening_m", OPENINGS_M)
def test_the_capsules_of_the_gate_hold_the_linkage_at_every_opening(
    model: Model, robot: ElementTree.Element, opening_m: float
) -> None:
    """The gate draws fingers that slide at the length of closed ones: no corner may stick out beyond its margin."""
    joints = np.zeros((1, 6))
    ends, radii = Guard(CELL).capsules(joints, opening_m)
    base_from_tool0 = UR5.forward(joints[0])
    start, axis = ends[0, :, 0], ends[0, :, 1] - ends[0, :, 0]
    worst_m = {}
    for link in robot.findall("link"):
        name = link.get("name")
        if not name.startswith("gripper_"):
            continue
        corners = np.concatenate([corners_of(shape) for shape in link.findall("collision")])
        points = (corners @ (base_from_tool0 @ model.pose(name, opening_m)).T)[:, None, :3]
        along = np.clip(((points - start) * axis).sum(-1) / (axis**2).sum(-1), 0, 1)
        gaps = np.linalg.norm(points - start - along[..., None] * axis, axis=-1) - radii
        worst_m[name] = gaps.min(axis=-1).max()
    assert max(worst_m.values()) < Limits().stopping_margin_m, worst_m


def corners_of(shape: ElementTree.Element) -> np.ndarray:
    """Corners (n, 4) of a collision shape in its link's frame; of a tube, of the box around it, turned by an eighth."""
    origin, solid = shape.find("origin"), shape.find("geometry")[0]
    if solid.tag == "box":
        half = np.array([float(part) for part in solid.get("size").split()]) / 2
    else:
        inscribed = float(solid.get("radius")) / np.sqrt(2)
        half = np.array([inscribed, inscribed, float(solid.get("length")) / 2])
    signs = np.array(np.meshgrid(*[(-1, 1)] * 3)).reshape(3, -1).T
    xyz, rpy = ([float(part) for part in origin.get(key).split()] for key in ("xyz", "rpy"))
    return np.column_stack([signs * half, np.ones(8)]) @ from_rpy(xyz, rpy).T


# The embedded cell with it --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    with LocalPorts(linkage=True) as ports:
        yield ports


@pytest.mark.usefixtures("renders")
def test_the_embedded_cell_moves_the_pads_along_the_arc(ports: LocalPorts) -> None:
    cell = ports.cell
    cell.reset("reach", 0)
    assert cell.gripper_opening_m == pytest.approx(linkage.STROKE_M, abs=1e-6)
    for opening_m in (0.03, 0.10, 0.0, 0.06):
        cell.command_gripper(opening_m)
        cell.advance(10.0)
        assert cell.gripper_opening_m == pytest.approx(opening_m, abs=1e-4)
        for height_m in pad_heights_m(cell):
            assert height_m + 0.0175 - BASE_M == pytest.approx(linkage.tip_height_m(opening_m), abs=1e-4)


def test_the_oracle_grasps_with_it(ports: LocalPorts) -> None:
    """The tcp stands still while the gripper closes, so a policy needs no other heights than for sliding fingers."""
    spec = ExperimentSpec(name="test", agents=(AgentSpec(id="oracle", vla="oracle"),), tasks=("pick",), max_steps=8)
    trial = Trial(spec.agents[0], TestCase("pick", 0, "reference", 0))
    assert run_trial(ports, spec, "id", trial, None, []).record.outcome is Outcome.SUCCESS
    assert ports.cell.gripper_opening_m == pytest.approx(CELL.objects.cube_edge, abs=2e-3)
    sliding_pad_m = load_cell().tool.tcp_from_tool0_z + 0.008 - 0.0175  # of the robot description, at any opening
    for height_m in pad_heights_m(ports.cell):
        behind_tcp_m = CELL.tool0_from_tcp[2, 3] - height_m
        assert behind_tcp_m == pytest.approx(CELL.tool.tcp_from_tool0_z - sliding_pad_m, abs=2e-4), "grasp height"


def pad_heights_m(cell: SimulatedCell) -> list[float]:
    """Centres of both pads along z of `tool0`, as simulated."""
    tool0 = cell.data.body("tool0")
    axis = tool0.xmat.reshape(3, 3)[:, 2]
    return [float(axis @ (cell.data.body(f"gripper_{side}_pad").xpos - tool0.xpos)) for side in ("left", "right")]


def test_the_nodes_of_the_lab_know_the_gripper() -> None:
    parameters = YAML(typ="safe").load(resource("merton_bringup", "config/nodes/lab.yaml"))
    for node in ("arm_node", "experiment_node"):
        assert parameters[f"/**/{node}"]["ros__parameters"]["gripper_linkage"] is True


def test_the_same_cell_with_the_other_gripper() -> None:
    """Also after properties that depend on the gripper were asked for."""
    cells = {kind: load_cell(linkage=kind) for kind in (False, True)}
    for kind, cell in cells.items():
        cell.tool0_from_tcp  # noqa: B018
        other = cell.with_linkage(not kind)
        assert other == cells[not kind]
        assert not np.array_equal(other.tool0_from_tcp, cell.tool0_from_tcp)
        np.testing.assert_array_equal(other.tool0_from_tcp, cells[not kind].tool0_from_tcp)
