"""An arm with the calibration of its own: one chain for the description, the simulator, the gate and the solutions."""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
import pinocchio
import pytest
from calibrated import calibrated_cell

from merton.errors import FileError, InputError
from merton.execution.gate.collision import Guard
from merton.execution.gate.planner import plan
from merton.execution.kinematics import ROBOTS, CalibratedRobot, base_from_tcp, kinematics_of
from merton.execution.kinematics.calibrated_robot import calibrated
from merton.simulation.model import build_model, urdf
from merton.world.arms import ARMS
from merton.world.cell import ARM_JOINTS, CellConfig, load_cell
from merton.world.geometry import Array
from merton.world.kinematic_calibration import nominal

EXACT = 1e-9
"""Metres and radians."""


@pytest.fixture(scope="module", params=list(ARMS))
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calibrated_cell(request.param, tmp_path_factory.mktemp("cell"))


@pytest.fixture(scope="module")
def cell(file: Path) -> CellConfig:
    return load_cell(file)


@pytest.fixture(scope="module")
def arm(cell: CellConfig) -> CalibratedRobot:
    found = kinematics_of(cell)
    assert isinstance(found, CalibratedRobot)
    return found


def postures(count: int, seed: int = 44) -> Array:
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 6))


def far_from_singular(joints: Array, arm: CalibratedRobot) -> Array:
    """Postures whose joints are well defined by the pose: wrist, elbow and shoulder are bent."""
    along = [abs(arm._along_m(row)) for row in joints]
    bent = (np.abs(np.sin(joints[:, 4])) > 0.1) & (np.abs(np.sin(joints[:, 2])) > 0.3) & (np.array(along) > 0.1)
    return joints[bent]


def apart(some: Array, others: Array) -> Array:
    """The largest difference of a joint [rad], whole turns aside."""
    return np.abs((some - others + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)


def test_the_tool_is_where_another_program_has_it_on_the_calibrated_description(
    file: Path, arm: CalibratedRobot
) -> None:
    model = pinocchio.buildModelFromXML(urdf(file))
    data, tool0 = model.createData(), model.getFrameId("tool0")
    columns = [model.joints[model.getJointId(name)].idx_v for name in ARM_JOINTS]
    joints = postures(2000)
    for row, pose, jacobian in zip(joints, arm.forward(joints), arm.jacobian(joints), strict=True):
        configuration = np.r_[row, np.zeros(model.nq - 6)]
        pinocchio.framesForwardKinematics(model, data, configuration)
        assert np.abs(data.oMf[tool0].homogeneous - pose).max() < EXACT
        theirs = pinocchio.computeFrameJacobian(model, data, configuration, tool0, pinocchio.LOCAL_WORLD_ALIGNED)
        assert np.abs(theirs[:, columns] - jacobian).max() < EXACT
    drawn = ROBOTS[arm.name].forward(joints)
    moved_mm = 1e3 * np.linalg.norm(drawn[:, :3, 3] - arm.forward(joints)[:, :3, 3], axis=1)
    assert 1 < moved_mm.mean() < 10, "the size that calibrations have"


def test_a_pose_in_base_is_half_a_turn_from_that_in_base_link(arm: CalibratedRobot) -> None:
    joints = postures(50)
    turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    assert np.array_equal(arm.link_frames(joints), turn @ arm.link_frames(joints, frame="base") + 0.0)
    pose = arm.forward(joints[0], frame="base")
    assert np.array_equal(arm.inverse(pose, frame="base"), arm.inverse(turn @ pose + 0.0), equal_nan=True)
    assert arm.solve(pose, joints[0], frame="base").joints == pytest.approx(arm.solve(turn @ pose, joints[0]).joints)


def test_every_branch_of_the_arm_as_drawn_is_there_and_reaches_the_pose(arm: CalibratedRobot) -> None:
    joints = far_from_singular(postures(1500), arm)
    poses = arm.forward(joints)
    drawn, found = ROBOTS[arm.name].inverse(poses), arm.inverse(poses)
    wrist = np.nanmin(np.abs(np.sin(drawn[..., 4])), axis=1) > 0.1
    clear = wrist & (np.nanmin(np.abs(np.sin(drawn[..., 2])), axis=1) > 0.3)
    assert clear.sum() > 200
    there = clear[:, None] & ~np.isnan(drawn[..., 0])
    assert not np.isnan(found[there]).any(), "no branch is lost"
    assert apart(drawn[there], found[there]).max() < 0.2, "each is the branch that its row says"
    exists = ~np.isnan(found[..., 0])
    reached = arm.forward(found[exists])
    assert np.abs(reached - np.repeat(poses, exists.sum(axis=1), axis=0)).max() < EXACT
    assert (np.nanmin(apart(found, joints[:, None]), axis=1) < 1e-6).all(), "one is the posture it came from"


def test_solve_follows_a_motion_through_singularities_with_a_residual_below_a_nanometre(arm: CalibratedRobot) -> None:
    joints = np.random.default_rng(1).uniform(-3, 3, (3000, 6))
    joints[:1000, 4] *= 1e-2  # the wrist nearly straight
    joints[1000:2000, 2] *= 1e-2  # the elbow nearly straight
    poses, lost = arm.forward(joints), 0
    for row, pose in zip(joints, poses, strict=True):
        found = arm.solve(pose, row + 1e-3)
        assert found.success
        assert max(found.residual_m, found.residual_rad) < EXACT
        assert np.abs(arm.forward(found.joints) - pose).max() < 2 * EXACT
        lost += bool(apart(found.joints, row) > 0.05)
    assert lost <= 60, "a wrist as straight as the drawing's error may turn to the neighbouring solution"


def test_a_calibration_without_a_difference_is_the_arm_as_drawn(arm: CalibratedRobot) -> None:
    drawn = ROBOTS[arm.name]
    same = calibrated(drawn, nominal(drawn.lengths))
    joints = far_from_singular(postures(200), arm)
    poses = drawn.forward(joints)
    assert np.abs(same.forward(joints) - poses).max() < 1e-14
    there = ~np.isnan(drawn.inverse(poses)[..., 0])
    assert apart(same.inverse(poses)[there], drawn.inverse(poses)[there]).max() < 1e-6


def test_a_pose_out_of_reach_says_why(arm: CalibratedRobot) -> None:
    pose = arm.forward(np.array([0.1, -1.2, 1.4, -1.8, -1.5, 0.2]))
    far = pose.copy()
    far[0, 3] += 3.0
    assert re.search(r"\d mm beyond the reach", arm.solve(far, np.zeros(6)).why)
    assert arm.solve(np.full((4, 4), np.nan), np.zeros(6)).why == "the pose is not finite"
    narrow = CalibratedRobot(arm.name, arm.lengths, (0.01,) * 6, arm.calibration)
    assert "every solution turns a joint beyond its limit" in narrow.solve(pose, np.zeros(6)).why


def test_the_simulator_the_gate_and_the_motion_have_the_same_chain(file: Path, cell: CellConfig) -> None:
    arm, home = kinematics_of(cell), cell.home_joints
    model = build_model(cell_config=file)
    data = mujoco.MjData(model)
    data.qpos[:6] = home
    mujoco.mj_kinematics(model, data)
    assert np.abs(data.body("tool0").xpos - arm.forward(home)[:3, 3]).max() < EXACT
    as_drawn = cell.model_copy(update={"kinematic_calibration": None})
    assert Guard(cell).clearance(home).distance_m != Guard(as_drawn).clearance(home).distance_m
    motion = plan(home, np.tile([0.01, 0, -0.005, 0, 0, 0.02, 1.0], (5, 1)), 0.2, "base_link", cell)
    assert motion.executed == 5
    wanted = base_from_tcp(home, cell)[:3, 3] + [0.05, 0, -0.025]
    assert base_from_tcp(motion.joints_rad[-1], cell)[:3, 3] == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(
    ("written", "found", "message"),
    [
        ("", "", r"my_arm\.yaml: must be a mapping with the keys kinematics"),
        (r"z: [\d.e-]+", "z: .nan", r"my_arm\.yaml, line \d+: kinematics\.shoulder\.z: must be a finite number"),
        ("wrist_3", "wrist_4", r"my_arm\.yaml, line \d+: kinematics\.wrist_3: is missing"),
        ("roll: 0.0", "roll: 1.5", r"is not of a UR5: its shoulder is 0\.\d mm and 1\.\d+ rad from its place"),
    ],
)
def test_a_calibration_that_is_none_is_refused(tmp_path: Path, written: str, found: str, message: str) -> None:
    cell = calibrated_cell("UR5", tmp_path)
    file = tmp_path / "my_arm.yaml"
    file.write_text(re.sub(written, found, file.read_text(), count=1) if written else "[]", encoding="utf-8")
    with pytest.raises(FileError, match=message):
        load_cell(cell)


def test_one_of_another_model_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    cell = calibrated_cell("UR10e", tmp_path)
    cell.write_text(cell.read_text().replace("UR10e", "UR5"), encoding="utf-8")
    with pytest.raises(InputError, match=r"cell\.yaml: robot\.calibration: the calibration is not of a UR5: its sh"):
        load_cell(cell)
    (tmp_path / "my_arm.yaml").unlink()
    with pytest.raises(FileError, match=r"robot\.calibration: cannot read .*my_arm\.yaml: No such file"):
        load_cell(cell)
