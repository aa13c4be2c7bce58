"""Units, rotations, gripper and normalisation of every family of policies, by numbers worked out by hand."""

from __future__ import annotations

import json
from math import pi
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from merton.decision.models.arms import PANDA, UR5E, VIPERX_300, Arm, from_modified_dh
from merton.decision.models.conventions import CONVENTIONS, Statistics, moving_arm, pose_deltas, rotation_vectors
from merton.errors import InputError, InvalidActionError
from merton.execution.kinematics import ROBOTS
from merton.world.geometry import transform

UR5 = ROBOTS["UR5"]

QUARTER = pi / 2


# Arms -----------------------------------------------------------------------------------------------------------------


def test_the_flange_of_panda_follows_from_its_lengths() -> None:
    """At zero: 0.333 + 0.316 + 0.384 up, 0.088 out, 0.107 down again; the flange points down."""
    flange = PANDA.forward(np.zeros(7))
    assert flange[:3, 3] == pytest.approx([0.088, 0.0, 0.333 + 0.316 + 0.384 - 0.107])
    np.testing.assert_allclose(flange[:3, :3], np.diag([1.0, -1.0, -1.0]), atol=1e-12)


def test_panda_in_its_ready_pose() -> None:
    """Joint 2 at -45 degrees, 4 at -135, 6 at 90: upper arm up and back, lower arm up and out, hand down."""
    flange = PANDA.forward([0.0, -pi / 4, 0.0, -3 * pi / 4, 0.0, pi / 2, 0.0])
    diagonal = np.sqrt(0.5)
    elbow = np.array([-0.316 * diagonal, 0.333 + 0.316 * diagonal]) + 0.0825 * np.array([diagonal, diagonal])
    # After the elbow the lower arm is level: its offset of 0.0825 points up again, its 0.384 out.
    wrist = elbow + np.array([0.0, 0.0825]) + np.array([0.384, 0.0])
    assert flange[[0, 2], 3] == pytest.approx(np.add(wrist, [0.088, -0.107]))
    assert flange[1, 3] == pytest.approx(0.0)


def test_viperx_has_the_published_screws() -> None:
    """Space screws (axis, moment) of Interbotix' class vx300s."""
    moments = -np.cross(VIPERX_300.axes, VIPERX_300.points_m)
    np.testing.assert_allclose(moments[1], [-0.12705, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(moments[2], [-0.42705, 0.0, 0.05955], atol=1e-12)
    np.testing.assert_allclose(moments[3], [0.0, 0.42705, 0.0], atol=1e-12)
    np.testing.assert_allclose(moments[4], [-0.42705, 0.0, 0.35955], atol=1e-12)
    np.testing.assert_allclose(moments[5], [0.0, 0.42705, 0.0], atol=1e-12)


def test_viperx_bends_where_its_joints_are() -> None:
    """Shoulder at 90 degrees: the part above it (0.30) now lies ahead, the part ahead (0.536494) points down."""
    hand = VIPERX_300.forward([0.0, QUARTER, 0.0, 0.0, 0.0, 0.0])
    assert hand[:3, 3] == pytest.approx([0.30, 0.0, 0.12705 - 0.536494])
    wrist = VIPERX_300.forward([0.0, 0.0, 0.0, 0.0, -QUARTER, 0.0])
    assert wrist[:3, 3] == pytest.approx([0.35955, 0.0, 0.42705 + 0.536494 - 0.35955])
    turned = VIPERX_300.forward([QUARTER, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert turned[:3, 3] == pytest.approx([0.0, 0.536494, 0.42705])


def test_ur5e_at_zero_is_stretched_out() -> None:
    """Universal Robots' parameters: 0.425 + 0.3922 out, 0.1333 + 0.0996 aside, 0.1625 - 0.0997 up; x forward."""
    assert UR5E.forward(np.zeros(6))[:3, 3] == pytest.approx([0.8172, 0.2329, 0.0628])


def test_modified_dh_rows_give_the_arm_that_the_cell_has() -> None:
    """The UR5 of `merton.execution`, which has its own kinematics, agrees over 100 postures."""
    rows = ((0, 0.089159, 0), (0, 0, QUARTER), (-0.425, 0, 0), (-0.39225, 0.10915, 0), (0, 0.09465, QUARTER),
            (0, 0.0823, -QUARTER))  # fmt: skip
    arm = from_modified_dh("UR5", rows, 0.0, (0.0,) * 6, "facts, section 3")
    joints = np.random.default_rng(0).uniform(-pi, pi, (100, 6))
    for posture, pose in zip(joints, arm.forward(joints), strict=True):
        np.testing.assert_allclose(pose, UR5.forward(posture, frame="base"), atol=1e-9)


@pytest.mark.parametrize("arm", [PANDA, VIPERX_300, UR5E], ids=lambda arm: arm.name)
def test_forward_kinematics_gives_rigid_poses(arm: Arm) -> None:
    joints = np.random.default_rng(1).uniform(-pi, pi, (4, 5, len(arm.axes)))
    poses = arm.forward(joints)
    assert poses.shape == (4, 5, 4, 4)
    turns = poses[..., :3, :3]
    np.testing.assert_allclose(turns @ turns.swapaxes(-1, -2), np.broadcast_to(np.eye(3), turns.shape), atol=1e-9)
    np.testing.assert_allclose(arm.forward(joints[2, 3]), poses[2, 3], atol=1e-12)


# Rotations ------------------------------------------------------------------------------------------------------------


def test_roll_pitch_yaw_is_composed() -> None:
    """Roll 90 then yaw 90 about fixed axes turns x to y to z to x: 120 degrees about (1, 1, 1)."""
    turned = rotation_vectors([[QUARTER, 0.0, QUARTER]])[0]
    assert turned == pytest.approx(np.full(3, 2 * pi / 3 / np.sqrt(3)))
    assert rotation_vectors([[0.0, 0.3, 0.0]])[0] == pytest.approx([0.0, 0.3, 0.0])


def test_copying_angles_would_be_wrong() -> None:
    wrong = np.abs(rotation_vectors([[0.25, 0.25, 0.25]])[0] - 0.25).max()
    assert 0.03 < wrong < 0.04


def test_pose_deltas_lead_along_the_poses() -> None:
    """A delta adds its translation and turns from the left, as the planner applies it."""
    rng = np.random.default_rng(2)
    poses = np.array([transform(rng.normal(size=3), Rotation.random(random_state=rng)) for _ in range(6)])
    deltas = pose_deltas(poses, np.ones(5))
    position, turn = poses[0][:3, 3], poses[0][:3, :3]
    for delta, pose in zip(deltas, poses[1:], strict=True):
        position, turn = position + delta[:3], Rotation.from_rotvec(delta[3:6]).as_matrix() @ turn
        np.testing.assert_allclose(position, pose[:3, 3], atol=1e-12)
        np.testing.assert_allclose(turn, pose[:3, :3], atol=1e-12)


# Families -------------------------------------------------------------------------------------------------------------


def test_bridge_is_metres_and_angles_and_one_is_open() -> None:
    chunk = CONVENTIONS["bridge"].chunk([0.01, -0.02, 0.03, QUARTER, 0.0, QUARTER, 0.996], model="m")
    third = 2 * pi / 3 / np.sqrt(3)
    assert chunk.deltas[0] == pytest.approx([0.01, -0.02, 0.03, third, third, third, 0.996])
    assert (chunk.step_s, chunk.frame, chunk.model) == (0.2, "base_link", "m")


def test_the_gripper_ends_at_its_ends() -> None:
    rows = [[0.0] * 6 + [1.02], [0.0] * 6 + [-0.01]]
    assert CONVENTIONS["bridge"].chunk(rows).deltas[:, 6].tolist() == [1.0, 0.0]


def test_the_environment_of_libero_closes_with_plus_one() -> None:
    raw = [[1.0, -0.5, 3.0, 1.0, 0.0, -2.0, -1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]
    deltas = CONVENTIONS["libero_env"].chunk(raw).deltas
    assert deltas[0] == pytest.approx([0.05, -0.025, 0.05, 0.5, 0.0, -0.5, 1.0]), "-1 is open, as in openpi's main.py"
    assert deltas[1] == pytest.approx([0.0] * 7)


def test_an_integer_beyond_float_range_is_an_invalid_action() -> None:
    with pytest.raises(InvalidActionError, match="not numeric"):
        CONVENTIONS["bridge"].chunk([10**400, 0, 0, 0, 0, 0, 0])


def test_libero_is_controller_units_and_a_rotation_vector() -> None:
    """The gripper is open above a half and closed below, as OpenVLA's evaluation sends it."""
    chunk = CONVENTIONS["libero"].chunk([1.0, -0.5, 3.0, 1.0, 0.0, -2.0, 0.49])
    assert chunk.deltas[0] == pytest.approx([0.05, -0.025, 0.05, 0.5, 0.0, -0.5, 0.0])
    assert chunk.step_s == 0.05


def test_cogact_opens_above_a_half() -> None:
    rows = [[0.0] * 6 + [0.51], [0.0] * 6 + [0.49]]
    assert CONVENTIONS["cogact"].chunk(rows).deltas[:, 6].tolist() == [1.0, 0.0]


def test_octo_is_standardised() -> None:
    """Twice the deviation above the mean; the gripper is not normalised."""
    statistics = Statistics.of({"mean": [0.001] * 6 + [0.5], "std": [0.01] * 6 + [0.3], "mask": [True] * 6 + [False]})
    chunk = CONVENTIONS["octo"].chunk([[2.0, 0, 0, 0, 0, -0.1, 0.8]] * 4, statistics=statistics)
    assert chunk.deltas.shape == (4, 7)
    assert chunk.deltas[0, :3] == pytest.approx([0.021, 0.001, 0.001])
    assert chunk.deltas[0, 3:6] == pytest.approx([0.001, 0.001, 0.0], abs=2e-6)
    assert chunk.deltas[0, 6] == 0.8


def test_rt_1_x_counts_closedness() -> None:
    chunk = CONVENTIONS["rt1x"].chunk([1.75, -0.875, 0.0, 0.0, 0.0, 1.4, -1.0])
    assert chunk.deltas[0] == pytest.approx([0.05, -0.025, 0.0, 0.0, 0.0, 0.25, 1.0])
    assert CONVENTIONS["rt1x"].chunk([0.0] * 6 + [1.0]).deltas[0, 6] == 0.0
    assert CONVENTIONS["rt1x"].chunk([0.0] * 6 + [0.5]).deltas[0, 6] == 0.25


def test_aloha_takes_the_arm_that_moves_more() -> None:
    """The left waist turns by 0.1 rad, the right one by 0.2: the right hand swings, and its gripper counts."""
    aloha = CONVENTIONS["aloha"]
    still = np.array(aloha.rest)
    moved = still.copy()
    moved[0], moved[7], moved[6], moved[13] = 0.1, 0.2, 0.9, 0.25
    chunk = aloha.chunk(np.tile(moved, (50, 1)))
    hand = VIPERX_300.forward(VIPERX_300.rest_rad)[:3, 3]
    swing = hand[0] * np.array([np.cos(0.2) - 1.0, np.sin(0.2)])
    assert chunk.deltas.shape == (50, 7)
    assert chunk.deltas[0] == pytest.approx([*swing, 0.0, 0.0, 0.0, 0.2, 0.25])
    assert np.abs(chunk.deltas[1:, :6]).max() < 1e-12
    assert chunk.step_s == 0.02


def test_of_two_arms_the_one_with_the_larger_range() -> None:
    deltas = np.zeros((4, 7))
    left, right, turning = deltas.copy(), deltas.copy(), deltas.copy()
    left[:, 0] = [0.05, -0.05, 0.05, -0.05]  # a long way, but to and fro within 5 cm
    right[:, 1] = 0.02
    turning[:, 3:6], turning[:, 6] = 1.0, 1.0
    assert moving_arm([left, right]) == 1
    assert moving_arm([right, left]) == 0
    assert moving_arm([turning, right]) == 1  # turning in place is no movement range
    assert moving_arm([deltas, deltas]) == 0


def test_aloha_counts_the_range_and_not_the_way() -> None:
    """The left waist goes to and fro by 0.1 rad, the right one once by 0.15: half the way, but the larger range."""
    aloha = CONVENTIONS["aloha"]
    rows = np.tile(aloha.rest, (4, 1))
    rows[:, 0], rows[:, 7], rows[:, 13] = [0.1, 0.0, 0.1, 0.0], 0.15, 0.25
    assert (aloha.chunk(rows).deltas[:, 6] == 0.25).all()


def test_aloha_at_rest_moves_nothing() -> None:
    aloha = CONVENTIONS["aloha"]
    assert np.abs(aloha.chunk(aloha.rest).deltas[:, :6]).max() < 1e-12


@pytest.mark.parametrize("columns", [7, 32])
def test_pi0_base_is_a_ur5e_whose_gripper_counts_backwards(columns: int) -> None:
    base = CONVENTIONS["pi0_base"]
    row = np.zeros(columns)
    row[:6] = UR5E.rest_rad
    row[0], row[6] = 0.1, 1.0
    chunk = base.chunk([row])
    x, y = UR5E.forward(UR5E.rest_rad)[:2, 3]
    swing = [x * np.cos(0.1) - y * np.sin(0.1) - x, x * np.sin(0.1) + y * np.cos(0.1) - y, 0.0]
    assert chunk.deltas[0] == pytest.approx([*swing, 0.0, 0.0, 0.1, 0.0])


def test_pi0_base_starts_from_the_state_that_was_sent() -> None:
    base = CONVENTIONS["pi0_base"]
    elsewhere = np.array([0.3, -1.2, 1.1, -1.4, -1.5, 0.2, 0.5])
    assert np.abs(base.chunk(elsewhere, state=elsewhere).deltas[0, :6]).max() < 1e-12
    assert np.abs(base.chunk(elsewhere).deltas[0, :6]).max() > 0.1


def test_droid_integrates_velocities() -> None:
    """Full speed of joint 1 is 0.2 rad a step; two steps make 0.4, and more than full speed is full speed."""
    droid = CONVENTIONS["droid"]
    row = [1.0, 0, 0, 0, 0, 0, 0, 0.0]
    chunk = droid.chunk([row, [2.0, *row[1:7], 1.0]])
    x = PANDA.forward(PANDA.rest_rad)[0, 3]
    ends = x * np.array([[np.cos(angle), np.sin(angle)] for angle in (0.0, 0.2, 0.4)])
    assert chunk.deltas[:, :2] == pytest.approx(np.diff(ends, axis=0))
    assert chunk.deltas[:, 5] == pytest.approx([0.2, 0.2])
    assert chunk.deltas[:, 6].tolist() == [1.0, 0.0], "0 is open for DROID"
    assert chunk.step_s == pytest.approx(1 / 15)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_convention_refuses_invalid_output(name: str) -> None:
    convention = CONVENTIONS[name]
    width = convention.columns[0]
    fine = convention.chunk(np.zeros((3, width)) if not convention.rest else np.tile(convention.rest, (3, 1)))
    assert fine.deltas.shape == (3, 7)
    for bad, why in (
        (np.full((2, width), np.nan), "row 0 .* not finite"),
        (np.full((2, width), np.inf), "not finite"),
        (np.zeros((2, width + 1)), "rows of"),
        (np.zeros((0, width)), "rows of"),
        (np.zeros((1, 2, width)), "rows of"),
        (np.float64(1.0), "rows of"),
        ("stop", "not numeric"),
        ([[0.0] * width, [0.0]], "not numeric"),
        (None, "not numeric|rows of"),
    ):
        with pytest.raises(InvalidActionError, match=why):
            convention.chunk(bad)


def test_a_state_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(InputError, match="needs a state of 8 numbers"):
        CONVENTIONS["droid"].chunk(np.zeros((1, 8)), state=np.zeros(7))


# Statistics -----------------------------------------------------------------------------------------------------------


def test_quantiles_are_undone_under_the_mask(tmp_path: Path) -> None:
    """-1 is q01, 1 is q99, 0 halfway between; columns outside the mask stay."""
    action = {"q01": [-0.02] * 7, "q99": [0.04] * 7, "mask": [True] * 6 + [False], "mean": [0] * 7, "std": [1] * 7}
    path = tmp_path / "dataset_statistics.json"
    path.write_text(json.dumps({"bridge_orig": {"action": action}}), encoding="utf-8")
    statistics = Statistics.read(path, "bridge_orig")
    assert statistics.from_quantiles([-1, 1, 0, 0.5, -0.5, 0, 0.7]) == pytest.approx(
        [-0.02, 0.04, 0.01, 0.025, -0.005, 0.01, 0.7]
    )
    chunk = CONVENTIONS["bridge"].chunk([1.0, 0, 0, -1 / 3, -1 / 3, -1 / 3, 1.0], statistics=statistics)
    assert chunk.deltas[0] == pytest.approx([0.04, 0.01, 0.01, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(InputError, match="no statistics of 'fractal'; choose one of: bridge_orig"):
        Statistics.read(path, "fractal")
    with pytest.raises(InputError, match="cannot read statistics"):
        Statistics.read(tmp_path / "none.json", "fractal")


def test_statistics_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="q01 and q99, or mean and std"):
        Statistics.of({"q01": [0.0] * 7})
    with pytest.raises(InputError, match="all of one length"):
        Statistics.of({"q01": [0.0] * 7, "q99": [1.0] * 6})
    only = Statistics.of({"mean": [0.0] * 7, "std": [1.0] * 7})
    with pytest.raises(InputError, match="no q01"):
        only.from_quantiles(np.zeros(7))
    with pytest.raises(InputError, match="takes no statistics"):
        CONVENTIONS["rt1x"].chunk(np.zeros(7), statistics=only)
