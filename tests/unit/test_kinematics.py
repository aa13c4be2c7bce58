"""Laws and golden values of the UR5's kinematics."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.cell import load_cell
from merton.errors import InputError
from merton.execution.kinematics import BASE_LINK_FROM_BASE, BRANCHES, UR5, base_from_tcp
from merton.resources import resource

Array = NDArray[np.float64]

# Universal Robots, "DH parameters for calculations of kinematics and dynamics": UR5, standard convention.
DH = {
    "a": (0, -0.425, -0.39225, 0, 0, 0),
    "d": (0.089159, 0, 0, 0.10915, 0.09465, 0.0823),
    "alpha": (np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0),
}
# Embodied-IQA (arXiv 2505.16815), Table 3.
PAPER_A, PAPER_ALPHA = (0, 0, -0.425, -0.39225, 0, 0), (0, np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2)


def standard_dh(theta: Array, a: float, d: float, alpha: float) -> Array:
    """Rz(theta) Tz(d) Tx(a) Rx(alpha) for angles (n,)."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    one, zero = np.ones_like(c), np.zeros_like(c)
    rows = [
        [c, -s * ca, s * sa, a * c],
        [s, c * ca, -c * sa, a * s],
        [zero, sa * one, ca * one, d * one],
        [zero, zero, zero, one],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def chain(joints: Array, a: tuple[float, ...], alpha: tuple[float, ...]) -> Array:
    return reduce(np.matmul, (standard_dh(joints[:, i], a[i], DH["d"][i], alpha[i]) for i in range(6)))


def random_joints(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 6))


def wrapped(angles: Array) -> Array:
    return (angles + np.pi) % (2 * np.pi) - np.pi


def assert_branches_reproduce(poses: Array, solutions: Array, tolerance: float = 1e-9) -> None:
    exists = ~np.isnan(solutions).any(axis=-1)
    assert (exists == ~np.isnan(solutions).all(axis=-1)).all(), "a branch is there as a whole or not at all"
    again = UR5.forward(solutions[exists])
    assert np.abs(again - np.repeat(poses[:, None], 8, axis=1)[exists]).max() < tolerance


class TestForward:
    def test_equals_the_published_dh_table(self) -> None:
        joints = random_joints(2000)
        assert np.abs(UR5.forward(joints) - chain(joints, DH["a"], DH["alpha"])).max() < 1e-14

    def test_zero_pose(self) -> None:
        # Sums of the published lengths: x = a2 + a3, y = -(d4 + d6), z = d1 - d5.
        pose = UR5.forward(np.zeros(6))
        assert pose[:3, 3] == pytest.approx((-0.81725, -0.19145, -0.005491), abs=1e-15)
        assert (BASE_LINK_FROM_BASE @ pose)[:3, 3] == pytest.approx((0.81725, 0.19145, -0.005491), abs=1e-15)

    def test_every_frame_turns_about_its_own_z(self) -> None:
        joints = random_joints(50)
        frames = UR5.link_frames(joints)
        assert (frames[:, 0] == np.eye(4)).all()
        assert (frames[:, 6] == UR5.forward(joints)).all()
        for joint in range(6):
            turned = joints.copy()
            turned[:, joint] += 0.4
            after = UR5.link_frames(turned)
            assert np.allclose(after[:, : joint + 1], frames[:, : joint + 1]), "links before the joint stay"
            assert np.allclose(after[:, joint + 1, :3, 2:], frames[:, joint + 1, :3, 2:]), "origin and z axis stay"

    def test_shapes(self) -> None:
        joints = random_joints(6).reshape(2, 3, 6)
        assert UR5.forward(joints).shape == (2, 3, 4, 4)
        assert UR5.link_frames(joints[0, 0]).shape == (7, 4, 4)
        assert UR5.inverse(UR5.forward(joints)).shape == (2, 3, 8, 6)
        with pytest.raises(InputError, match=r"\(\.\.\., 6\)"):
            UR5.forward(np.zeros(5))
        with pytest.raises(InputError, match=r"\(\.\.\., 4, 4\)"):
            UR5.inverse(np.zeros((3, 3)))

    def test_home_points_the_tool_down_over_the_table(self) -> None:
        cell = load_cell(resource("merton_bringup", "config/cell.yaml"))
        pose = base_from_tcp(cell.home_joints, cell.tool0_from_tcp)
        assert pose[:3, 2] == pytest.approx((0, 0, -1), abs=1e-4)
        assert cell.workspace.outside_m(pose[:3, 3]) == 0


def test_jacobian_equals_finite_differences() -> None:
    joints, step = random_joints(300), 1e-6
    pose = UR5.forward(joints)
    expected = np.empty((300, 6, 6))
    for joint in range(6):
        offset = step * np.eye(6)[joint]
        slope = (UR5.forward(joints + offset) - UR5.forward(joints - offset)) / (2 * step)
        spin = slope[:, :3, :3] @ pose[:, :3, :3].transpose(0, 2, 1)
        expected[:, :3, joint] = slope[:, :3, 3]
        expected[:, 3:, joint] = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    assert np.abs(UR5.jacobian(joints) - expected).max() < 1e-8


class TestInverse:
    def test_every_branch_reproduces_the_pose_and_one_is_where_it_came_from(self) -> None:
        joints = random_joints(20_000)
        poses = UR5.forward(joints)
        solutions = UR5.inverse(poses)
        assert_branches_reproduce(poses, solutions, 1e-12)
        distance = np.abs(wrapped(solutions - joints[:, None])).max(axis=-1)
        assert np.nanmin(distance, axis=1).max() < 1e-7
        assert set((~np.isnan(solutions[..., 0])).sum(axis=1)) == {2, 4, 6, 8}

    @pytest.mark.parametrize("offset", [0.0, 1e-15, 1e-12, 1e-11, 1e-10, 1e-8, 1e-6, 1e-4])
    @pytest.mark.parametrize(("joint", "angle"), [(4, 0.0), (4, np.pi), (2, 0.0), (2, np.pi - 1e-4)])
    def test_at_and_near_wrist_and_elbow_singularities(self, joint: int, angle: float, offset: float) -> None:
        joints = random_joints(1000, seed=1)
        joints[:, joint] = angle - offset
        poses = UR5.forward(joints)
        assert_branches_reproduce(poses, UR5.inverse(poses))
        found = [UR5.solve(pose, near) for pose, near in zip(poses, joints, strict=True)]
        assert all(result.success and max(result.residual_m, result.residual_rad) < 1e-9 for result in found)

    @pytest.mark.parametrize("offset", [0.0, 1e-12, 1e-9, 1e-6, 1e-4])
    def test_at_and_near_the_shoulder_singularity(self, offset: float) -> None:
        joints = random_joints(1000, seed=2)
        # The wrist centre is above joint 1's line of reach where a2 c2 + a3 c23 + d5 s234 = 0: choose joint 4 so.
        along = UR5.a2 * np.cos(joints[:, 1]) + UR5.a3 * np.cos(joints[:, 1] + joints[:, 2])
        joints = joints[np.abs(along) < UR5.d5 * 0.99]
        along = along[np.abs(along) < UR5.d5 * 0.99]
        joints[:, 3] = np.arcsin(-along / UR5.d5) - joints[:, 1] - joints[:, 2] + offset
        assert len(joints) > 50
        poses = UR5.forward(joints)
        assert_branches_reproduce(poses, UR5.inverse(poses))
        found = [UR5.solve(pose, near) for pose, near in zip(poses, joints, strict=True)]
        assert all(result.success for result in found)
        if offset == 0:
            assert {result.singular for result in found} == {"shoulder"}

    def test_branches_are_told_apart_by_their_signs(self) -> None:
        solutions = UR5.inverse(UR5.forward(random_joints(2000)))
        signs = np.array(BRANCHES)
        for column, joint in ((1, 4), (2, 2)):
            measured = np.sign(np.sin(solutions[..., joint]))
            assert ((measured == signs[:, column]) | np.isnan(measured)).all()

    def test_free_joint_6_is_kept_at_the_wrist_singularity(self) -> None:
        joints = np.array([0.3, -1.2, 1.4, 0.2, 0.0, 1.1])
        result = UR5.solve(UR5.forward(joints), joints)
        assert result.singular == "wrist"
        assert result.joints == pytest.approx(joints, abs=1e-9)

    def test_singular_pose_is_found_from_elsewhere(self) -> None:
        # With joint 6 fixed at 0, 3.5 % of such poses look unreachable (facts, section 3): solve looks around.
        joints = random_joints(1000, seed=3)
        joints[:, 4] = 0.0
        results = [UR5.solve(pose, np.zeros(6)) for pose in UR5.forward(joints)]
        assert all(result.success and result.residual_m < 1e-9 for result in results)


class TestSolve:
    def test_nearest_image_within_the_limits(self) -> None:
        rng = np.random.default_rng(4)
        limits = np.array(UR5.joint_limits_rad)
        for near in rng.uniform(-limits, limits, (500, 6)):
            result = UR5.solve(UR5.forward(near), near)
            assert result.joints == pytest.approx(near, abs=1e-6)
            assert (np.abs(result.joints) <= limits).all()

    def test_images_beyond_the_limits_are_not_used(self) -> None:
        joints = np.array([0.1, -1.0, 1.0, 0.5, 1.0, 0.2])
        result = UR5.solve(UR5.forward(joints), joints + 6 * np.pi)
        assert result.success
        assert (np.abs(result.joints) <= UR5.joint_limits_rad).all()

    def test_unreachable_says_by_how_much(self) -> None:
        pose = UR5.forward(np.array([0.0, -0.3, 0.1, 0.2, 1.0, 0.0]))
        pose[:3, 3] += (-1.0, 0.0, 0.0)
        result = UR5.solve(pose, np.zeros(6))
        assert not result.success
        assert result.branch == -1
        assert np.isnan(result.joints).all()
        assert "mm beyond the reach" in result.why
        pose = UR5.forward(np.zeros(6))
        pose[:3, 3] = pose[:3, 2] * UR5.d6 + (0.0, 0.01, 0.3)  # wrist centre 10 mm from joint 1's axis, 109.15 needed
        assert "99.2 mm too close to the axis of joint 1" in UR5.solve(pose, np.zeros(6)).why

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e154])
    @pytest.mark.parametrize("entry", [(0, 0), (0, 3), (2, 2), (2, 3)])
    def test_garbage_is_refused_and_never_hangs(self, value: float, entry: tuple[int, int]) -> None:
        pose = UR5.forward(np.ones(6))
        pose[entry] = value
        result = UR5.solve(pose, np.ones(6))
        assert not result.success or result.residual_m > 1e-3 or result.residual_rad > 1e-3
        near = np.ones(6)
        near[entry[1]] = value
        assert UR5.solve(UR5.forward(np.ones(6)), near).joints.shape == (6,)

    def test_wrong_shapes_raise(self) -> None:
        with pytest.raises(InputError, match=r"\(4, 4\)"):
            UR5.solve(np.eye(3), np.zeros(6))


def test_what_the_paper_prints_is_another_robot() -> None:
    """docs/kinematics.md quotes these numbers: equations (1)-(9) with Table 3, against the robot as it is."""
    joints = random_joints(20_000)
    gap = np.linalg.norm(chain(joints, PAPER_A, PAPER_ALPHA)[:, :3, 3] - UR5.forward(joints)[:, :3, 3], axis=1)
    assert gap.mean() == pytest.approx(0.754, abs=0.005)
    # Joints 1 and 2 turn about one axis: only their sum matters.
    shifted = np.add(joints[:100], (0.3, -0.3, 0, 0, 0, 0))
    printed = chain(joints[:100], PAPER_A, PAPER_ALPHA), chain(shifted, PAPER_A, PAPER_ALPHA)
    assert np.allclose(printed[0], printed[1], atol=1e-12)
    # Axes 4 and 6 of a spherical wrist would meet; those of a UR5 pass each other at d5.
    frames = UR5.link_frames(random_joints(100))
    normal = np.cross(frames[:, 4, :3, 2], frames[:, 6, :3, 2])
    between = frames[:, 6, :3, 3] - frames[:, 4, :3, 3]
    distance = np.abs((between * normal).sum(axis=1)) / np.linalg.norm(normal, axis=1)
    assert distance == pytest.approx(np.full(100, 0.09465))
