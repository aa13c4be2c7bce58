"""Laws and golden values of the kinematics of the UR5 and its siblings."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce
from itertools import product

import mujoco
import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton.execution.kinematics import BASE_LINK_FROM_BASE, BRANCHES, ROBOTS, UniversalRobot, base_from_tcp
from merton.world.cell import load_cell
from merton.world.geometry import Array

UR5, UR3e, UR5e, UR16e = (ROBOTS[name] for name in ("UR5", "UR3e", "UR5e", "UR16e"))

# Universal Robots, "DH parameters for calculations of kinematics and dynamics": UR5, standard convention.
DH = {
    "a": (0, -0.425, -0.39225, 0, 0, 0),
    "d": (0.089159, 0, 0, 0.10915, 0.09465, 0.0823),
    "alpha": (np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2, 0),
}
# Embodied-IQA (arXiv 2505.16815), Table 3.
PAPER_A, PAPER_ALPHA = (0, 0, -0.425, -0.39225, 0, 0), (0, np.pi / 2, 0, 0, np.pi / 2, -np.pi / 2)

# Universal_Robots_ROS2_Description (commit 2221ec0f720f), config/<robot>/default_kinematics.yaml: the joint origins of
# the public URDF, with the rounding of their source (1.570796327 for a quarter turn, z of joints 5 and 6 a few
# 1e-11 off). In this order: shoulder z, forearm x, wrist_1 x and z, wrist_2 y and z, wrist_3 y and z.
URDF_ORIGINS = {
    "UR3": (0.1519, -0.24365, -0.21325, 0.11235, -0.08535, -1.750557762378351e-11, 0.0819, -1.679797079540562e-11),
    "UR5": (0.089159, -0.425, -0.39225, 0.10915, -0.09465, -1.941303950897609e-11, 0.0823, -1.688001216681175e-11),
    "UR10": (0.1273, -0.612, -0.5723, 0.163941, -0.1157, -2.373046667922381e-11, 0.0922, -1.891053610911353e-11),
    "UR3e": (0.15185, -0.24355, -0.2132, 0.13105, -0.08535, -1.750557762378351e-11, 0.0921, -1.8890025766262e-11),
    "UR5e": (0.1625, -0.425, -0.3922, 0.1333, -0.0997, -2.044881182297852e-11, 0.0996, -2.042830148012698e-11),
    "UR10e": (0.1807, -0.6127, -0.57155, 0.17415, -0.11985, -2.458164590756244e-11, 0.11655, -2.390480459346185e-11),
    "UR16e": (0.1807, -0.4784, -0.36, 0.17415, -0.11985, -2.458164590756244e-11, 0.11655, -2.390480459346185e-11),
}

# Position of tool0 [m] at GOLDEN_JOINTS, from two programs that are not ours: ur-analytic-ik 0.1.0.post3 (C++, its own
# tables) and roboticstoolbox-python 1.5.0 (given the published DH tables). They agree to 1e-15. The rotation depends on
# the angles alone.
GOLDEN_JOINTS = np.array([0.3, -1.2, 1.4, 0.2, -0.7, 1.1])
GOLDEN_POSITIONS = {
    "UR3": (-0.15411811815, -0.230845985446, 0.278558800723),
    "UR5": (-0.381661881536, -0.298204154622, 0.34081575958),
    "UR10": (-0.583103381418, -0.425795817578, 0.500572936543),
    "UR3e": (-0.140422996631, -0.254349960668, 0.280984406156),
    "UR5e": (-0.358882555609, -0.33028711082, 0.413855389208),
    "UR10e": (-0.558775778661, -0.448451300031, 0.557060651753),
    "UR16e": (-0.314211805133, -0.37279879767, 0.473916299437),
}
GOLDEN_ROTATION = (
    (-0.11263598, -0.59886654, 0.79288839),
    (0.27103376, -0.78622424, -0.55533066),
    (0.95595703, 0.15234931, 0.25087018),
)

EVERY_ROBOT = pytest.mark.parametrize("robot", list(ROBOTS.values()), ids=list(ROBOTS))


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


def assert_branches_reproduce(robot: UniversalRobot, poses: Array, solutions: Array, tolerance: float) -> None:
    """Every branch is there as a whole or not at all, and gives the pose again, in metres and in radians."""
    exists = ~np.isnan(solutions).any(axis=-1)
    assert (exists == ~np.isnan(solutions).all(axis=-1)).all()
    wanted = poses[np.nonzero(exists)[0]]
    again = robot.forward(solutions[exists]) - wanted
    assert np.sqrt((again[:, :3, 3] ** 2).sum(axis=1)).max() < tolerance
    # Two rotations an angle apart differ by 2 sqrt(2) sin(angle / 2) in the Frobenius norm.
    chord = np.sqrt((again[:, :3, :3] ** 2).sum(axis=(1, 2)))
    assert 2 * np.arcsin(chord.max() / np.sqrt(8)) < tolerance


def near_singularity(robot: UniversalRobot, which: str, count: int = 10_000) -> Array:
    """Joints whose sine (shoulder: whose wrist centre [m]) is 0 or +-1e-12 .. +-1e-2 from the singularity."""
    rng = np.random.default_rng(1)
    offset = 10 ** rng.uniform(-12, -2, count) * rng.choice([-1, 0, 1], count, p=[0.45, 0.1, 0.45])
    if which != "shoulder":
        joints = rng.uniform(-np.pi, np.pi, (count, 6))
        joints[:, {"wrist": 4, "elbow": 2}[which]] = offset + rng.choice([0, np.pi], count)
        return wrapped(joints)
    # The wrist centre is over axis 2's own line where a2 c2 + a3 c23 + d5 s234 = 0: choose joint 4 so.
    joints = rng.uniform(-np.pi, np.pi, (40 * count, 6))
    along = robot.lengths.a2 * np.cos(joints[:, 1]) + robot.lengths.a3 * np.cos(joints[:, 1] + joints[:, 2])
    possible = np.abs(along) < 0.85 * robot.lengths.d5
    joints, along = joints[possible][:count], along[possible][:count]
    assert len(joints) == count
    q234 = np.arcsin((offset - along) / robot.lengths.d5)
    q234 = np.where(rng.random(count) < 0.5, q234, np.pi - q234)
    joints[:, 3] = q234 - joints[:, 1] - joints[:, 2]
    return wrapped(joints)


def urdf(name: str) -> str:
    """The chain of the public URDF from `base` to `wrist_3_link` (where `tool0` is), without shapes."""
    shoulder_z, forearm_x, wrist_1_x, wrist_1_z, wrist_2_y, wrist_2_z, wrist_3_y, wrist_3_z = URDF_ORIGINS[name]
    quarter, almost = 1.570796327, 1.570796326589793
    origins = (
        ((0, 0, shoulder_z), (0, 0, 0)),
        ((0, 0, 0), (quarter, 0, 0)),
        ((forearm_x, 0, 0), (0, 0, 0)),
        ((wrist_1_x, 0, wrist_1_z), (0, 0, 0)),
        ((0, wrist_2_y, wrist_2_z), (quarter, 0, 0)),
        ((0, wrist_3_y, wrist_3_z), (almost, np.pi, np.pi)),
    )
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    parts = ['<link name="link_0"/>']
    for i, (xyz, rpy) in enumerate(origins):
        place = f'xyz="{" ".join(map(repr, xyz))}" rpy="{" ".join(map(repr, rpy))}"'
        parts.append(
            f'<joint name="joint_{i}" type="continuous"><parent link="link_{i}"/><child link="link_{i + 1}"/>'
            f'<origin {place}/><axis xyz="0 0 1"/></joint><link name="link_{i + 1}">{inertial}</link>'
        )
    return f'<robot name="{name}">{"".join(parts)}</robot>'


class TestForward:
    def test_equals_the_published_dh_table(self) -> None:
        joints = random_joints(2000)
        assert np.abs(UR5.forward(joints, frame="base") - chain(joints, DH["a"], DH["alpha"])).max() < 1e-14

    def test_zero_pose(self) -> None:
        # Sums of the published lengths: x = a2 + a3, y = -(d4 + d6), z = d1 - d5.
        pose = UR5.forward(np.zeros(6), frame="base")
        assert pose[:3, 3] == pytest.approx((-0.81725, -0.19145, -0.005491), abs=1e-15)
        assert UR5.forward(np.zeros(6))[:3, 3] == pytest.approx((0.81725, 0.19145, -0.005491), abs=1e-15)

    def test_base_link_is_base_turned_by_half_a_turn_to_the_last_bit(self) -> None:
        joints = random_joints(2000)
        in_base = UR5.forward(joints, frame="base")
        poses = UR5.forward(joints)
        assert np.array_equal(poses, BASE_LINK_FROM_BASE @ in_base)
        assert np.array_equal(UR5.link_frames(joints), BASE_LINK_FROM_BASE @ UR5.link_frames(joints, frame="base"))
        turn = np.diag([-1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
        assert np.array_equal(UR5.jacobian(joints), turn @ UR5.jacobian(joints, frame="base"))
        assert np.array_equal(UR5.inverse(poses), UR5.inverse(in_base, frame="base"), equal_nan=True)
        for pose, turned, near in zip(in_base[:50], poses[:50], joints + 0.05, strict=False):
            one, other = UR5.solve(turned, near), UR5.solve(pose, near, frame="base")
            assert np.array_equal(one.joints, other.joints)
            assert (one.branch, one.residual_m, one.residual_rad) == (
                other.branch,
                other.residual_m,
                other.residual_rad,
            )
        with pytest.raises(UnknownNameError, match="unknown frame 'tool0'; choose one of: base, base_link"):
            UR5.forward(joints, frame="tool0")

    def test_every_frame_turns_about_its_z_axis(self) -> None:
        joints = random_joints(50)
        frames = UR5.link_frames(joints)
        assert (frames[:, 0] == BASE_LINK_FROM_BASE).all()
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

    @EVERY_ROBOT
    def test_golden_poses_of_two_other_programs(self, robot: UniversalRobot) -> None:
        pose = robot.forward(GOLDEN_JOINTS, frame="base")
        assert pose[:3, 3] == pytest.approx(GOLDEN_POSITIONS[robot.name], abs=1e-12)
        assert pose[:3, :3] == pytest.approx(np.array(GOLDEN_ROTATION), abs=1e-8)

    @EVERY_ROBOT
    def test_agrees_with_the_public_urdf_through_mujoco(self, robot: UniversalRobot) -> None:
        model = mujoco.MjModel.from_xml_string(urdf(robot.name))
        data = mujoco.MjData(model)
        for joints in random_joints(200, seed=5):
            data.qpos[:] = joints
            mujoco.mj_kinematics(model, data)
            pose = robot.forward(joints, frame="base")
            assert np.abs(data.xpos[-1] - pose[:3, 3]).max() < 1e-9
            assert np.abs(data.xmat[-1].reshape(3, 3) - pose[:3, :3]).max() < 2e-9

    def test_unknown_robot_lists_the_choices(self) -> None:
        assert ROBOTS["UR5"] is UR5
        with pytest.raises(
            UnknownNameError, match="unknown robot 'IRB'; choose one of: UR10, UR10e, UR16e, UR3, UR3e, "
        ):
            ROBOTS["IRB"]

    def test_home_points_the_tool_down_over_the_table(self) -> None:
        cell = load_cell()
        pose = base_from_tcp(cell.home_joints, cell)
        assert pose[:3, 2] == pytest.approx((0, 0, -1), abs=1e-4)
        assert cell.workspace.outside_m(pose[:3, 3]) == 0


@EVERY_ROBOT
def test_jacobian_equals_finite_differences(robot: UniversalRobot) -> None:
    joints, step = random_joints(100_000 if robot is UR5 else 2000), 1e-6
    rotation = robot.forward(joints)[:, :3, :3]
    jacobian = robot.jacobian(joints)
    for joint in range(6):
        offset = step * np.eye(6)[joint]
        slope = (robot.forward(joints + offset) - robot.forward(joints - offset)) / (2 * step)
        assert np.abs(jacobian[:, :3, joint] - slope[:, :3, 3]).max() < 1e-8
        spin = slope[:, :3, :3] @ rotation.transpose(0, 2, 1)
        turning = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        assert np.abs(jacobian[:, 3:, joint] - turning).max() < 1e-8


class TestInverse:
    @EVERY_ROBOT
    def test_every_branch_reproduces_the_pose_and_one_is_the_original_posture(self, robot: UniversalRobot) -> None:
        joints = random_joints(100_000 if robot is UR5 else 10_000)
        poses = robot.forward(joints)
        solutions = robot.inverse(poses)
        assert_branches_reproduce(robot, poses, solutions, 1e-12)
        assert np.nanmax(np.abs(solutions)) <= np.pi + 1e-15
        distance = np.abs(wrapped(solutions - joints[:, None])).max(axis=-1)
        assert np.nanmin(distance, axis=1).max() < 1e-7
        assert set((~np.isnan(solutions[..., 0])).sum(axis=1)) == {2, 4, 6, 8}

    @pytest.mark.parametrize("which", ["shoulder", "elbow", "wrist"])
    @EVERY_ROBOT
    def test_at_and_near_singularities(self, robot: UniversalRobot, which: str) -> None:
        joints = near_singularity(robot, which)
        poses = robot.forward(joints)
        assert_branches_reproduce(robot, poses, robot.inverse(poses), 1e-9)
        found = [robot.solve(pose, near) for pose, near in zip(poses, joints, strict=True)]
        assert all(result.success for result in found)
        assert max(max(result.residual_m, result.residual_rad) for result in found) < 1e-9
        assert sum(result.singular == which for result in found) > 0.4 * len(found), "those nearer than 1e-6"
        # The nearest is where it came from, as exactly as the pose can tell: rounding over the least singular value.
        distance = np.abs(wrapped(np.array([result.joints for result in found]) - joints)).max(axis=1)
        vague = distance > 1e-6
        assert vague.mean() < 0.15
        least = np.linalg.svd(robot.jacobian(joints[vague]), compute_uv=False)[:, -1]
        assert (distance[vague] * least < 1e-12).all()

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

    @EVERY_ROBOT
    def test_every_pose_at_the_wrist_singularity_has_a_solution(self, robot: UniversalRobot) -> None:
        # With joint 6 fixed at 0, 3.5 % of such poses are out of reach.
        joints = random_joints(2000, seed=3)
        joints[:, 4] = np.where(np.arange(2000) % 2, 0.0, np.pi)
        poses = robot.forward(joints)
        for wanted in (0.0, 1.0, -3.0):
            solutions = robot.inverse(poses, wanted)
            assert (~np.isnan(solutions[..., 0])).any(axis=1).all()
            assert_branches_reproduce(robot, poses, solutions, 1e-9)

    def test_free_joint_6_is_the_nearest_with_which_the_arm_reaches(self) -> None:
        joints = random_joints(500, seed=3)
        joints[:, 4] = 0.0
        turned = 0
        for pose in UR5.forward(joints):
            for branch, joint_6 in enumerate(UR5.inverse(pose, 0.0)[:, 5]):
                if np.isnan(joint_6) or np.isnan(UR5.inverse(pose, joint_6)[branch, 5]) or abs(joint_6) < 0.01:
                    continue
                # An angle a little nearer to the wanted 0 is out of reach: it is moved back to the same boundary.
                again = UR5.inverse(pose, joint_6 - np.sign(joint_6) * 0.005)[branch]
                if abs(np.sin(again[4])) < 1e-11:
                    turned += 1
                    assert wrapped(again[5] - joint_6) == pytest.approx(0, abs=1e-7)
        assert turned > 50

    @pytest.mark.parametrize("error", [0.0, 1e-11])
    @EVERY_ROBOT
    def test_boundaries_are_within_reach_for_poses_of_other_programs(self, robot: UniversalRobot, error: float) -> None:
        """Postures at several singularities at once, as other programs compute their poses."""
        rng = np.random.default_rng(8)
        quarters = rng.integers(-2, 3, (2000, 6)) * np.pi / 2
        straight = random_joints(2000, seed=9)
        straight[:, 2], straight[:, 4] = 0.0, rng.choice([0.0, 1.0, np.pi], 2000)
        joints = np.concatenate([quarters, straight, near_singularity(robot, "shoulder", 500)])
        poses = robot.forward(joints)
        # Near the shoulder's singularity, but not at it, the way to frame 4 magnifies an error.
        wrist_centres = poses[:, :2, 3] - robot.lengths.d6 * poses[:, :2, 2]
        off_shoulder = np.abs(np.linalg.norm(wrist_centres, axis=1) - robot.lengths.d4)
        poses = poses[(off_shoulder < 1e-12) | (off_shoulder > 1e-5)]
        turn, shift = rng.normal(size=(2, len(poses), 3))
        turn, shift = (v * error / np.linalg.norm(v, axis=1, keepdims=True) for v in (turn, shift))
        poses[:, :3, :3] += np.cross(turn[:, None, :], poses[:, :3, :3], axisb=1, axisc=1)
        poses[:, :3, 3] += shift
        solutions = robot.inverse(poses)
        assert (~np.isnan(solutions[..., 0])).any(axis=1).all()
        assert_branches_reproduce(robot, poses, solutions, 2e-9)


class TestSolve:
    @EVERY_ROBOT
    def test_nearest_image_within_the_limits(self, robot: UniversalRobot) -> None:
        limits = np.minimum(robot.joint_limits_rad, 10 * np.pi)
        for near in np.random.default_rng(4).uniform(-limits, limits, (500, 6)):
            result = robot.solve(robot.forward(near), near)
            assert result.joints == pytest.approx(near, abs=1e-6)
            assert (np.abs(result.joints) <= limits).all()

    @EVERY_ROBOT
    def test_at_the_limits(self, robot: UniversalRobot) -> None:
        limits = np.minimum(robot.joint_limits_rad, 2 * np.pi)
        assert limits == pytest.approx(np.array([2, 2, 1, 2, 2, 2]) * np.pi)
        inside = np.array([0.1, -1.0, 1.0, 0.5, 1.0, 0.2])
        # The elbow and wrist 2 are singular at their limits: each alone, the others together.
        corners = [
            np.where([i in at_limit for i in range(6)], limits, inside) for at_limit in ((0, 1, 3, 5), (2,), (4,))
        ]
        for corner, signs in product(corners, product((-1, 1), repeat=6)):
            near = corner * signs
            result = robot.solve(robot.forward(near), near)
            assert result.joints == pytest.approx(near, abs=1e-6), "not a whole turn away for the sake of rounding"
            assert (np.abs(result.joints) <= limits).all()

    @pytest.mark.parametrize("turns", [3, -3])
    def test_images_beyond_the_limits_are_not_used(self, turns: int) -> None:
        joints = np.array([0.1, -1.0, 1.0, 0.5, 1.0, 0.2])
        result = UR5.solve(UR5.forward(joints), joints + turns * 2 * np.pi)
        assert result.success
        assert (np.abs(result.joints) <= UR5.joint_limits_rad).all()

    def test_joint_6_of_the_small_ones_turns_without_end(self) -> None:
        joints = np.array([0.1, -1.0, 1.0, 0.5, 1.0, 20 * np.pi])
        assert UR3e.solve(UR3e.forward(joints), joints).joints == pytest.approx(joints, abs=1e-9)
        assert abs(UR5e.solve(UR5e.forward(joints), joints).joints[5]) <= 2 * np.pi

    def test_limits_that_leave_no_solution_are_explained(self) -> None:
        narrow = replace(UR5, joint_limits_rad=(3.0, 3.0, 0.9, 3.0, 3.0, 3.0))
        joints = np.array([0.1, -1.0, 1.0, 0.5, 1.0, 0.2])
        result = narrow.solve(UR5.forward(joints), joints)
        assert not result.success
        assert result.why == "every solution turns a joint beyond its limit, by at least 0.1 rad"
        joints[2] = 0.8
        assert narrow.solve(UR5.forward(joints), joints).joints == pytest.approx(joints, abs=1e-9)

    def test_unreachable_says_by_how_much(self) -> None:
        pose = UR5.forward(np.array([0.0, -0.3, 0.1, 0.2, 1.0, 0.0]))
        pose[:3, 3] += (1.0, 0.0, 0.0)
        result = UR5.solve(pose, np.zeros(6))
        assert not result.success
        assert result.branch == -1
        assert np.isnan(result.joints).all()
        assert "mm beyond the reach" in result.why
        pose = UR5.forward(np.zeros(6))
        pose[:3, 3] = pose[:3, 2] * UR5.lengths.d6 + (
            0.0,
            0.01,
            0.3,
        )  # wrist centre 10 mm from joint 1's axis, 109.15 needed
        assert "99.2 mm too close to the axis of joint 1" in UR5.solve(pose, np.zeros(6)).why

    @pytest.mark.parametrize(
        ("robot", "elbow", "side", "outward"),
        [(robot, 0.0, "beyond the reach", 1) for robot in ROBOTS.values()]
        # With any of the seven, turning the wrist over reaches what is too close: it takes a shorter wrist to see this.
        + [
            (
                replace(UR5, name="short wrist", lengths=replace(UR5.lengths, d5=0.005)),
                np.pi,
                "too close to the shoulder",
                -1,
            )
        ],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_the_stated_distance_is_the_true_one(
        self, robot: UniversalRobot, elbow: float, side: str, outward: int
    ) -> None:
        """An arm stretched (or folded) along a line, then pulled (pushed) along that line."""
        rng, exact, refused = np.random.default_rng(6), 0, 0
        joints = random_joints(300, seed=6)
        joints[:, 2] = elbow
        frames = robot.link_frames(joints)
        for near, frame in zip(joints, frames, strict=True):
            line = frame[4, :3, 3] - frame[2, :3, 3] - robot.lengths.d4 * frame[4, :3, 2]
            shift_m = rng.uniform(1e-4, 0.9 * abs(robot.lengths.a2 - robot.lengths.a3))
            pose = frame[6].copy()
            pose[:3, 3] += outward * shift_m * line / np.linalg.norm(line)
            result = robot.solve(pose, near)
            if result.success:
                continue  # another shoulder or wrist reaches it
            refused += 1
            number = re.fullmatch(r"in this orientation the pose is (\S+) mm (.*)", result.why)
            assert number, result.why
            assert float(number[1]) <= 1000 * shift_m * 1.01, "another branch may be less far away, none farther"
            exact += side == number[2] and float(number[1]) == pytest.approx(1000 * shift_m, rel=0.01)
        assert refused > 3
        assert exact > refused / 6

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e154])
    @pytest.mark.parametrize("entry", [(0, 0), (0, 3), (2, 2), (2, 3)])
    def test_garbage_is_refused_and_never_hangs(self, value: float, entry: tuple[int, int]) -> None:
        pose = UR5.forward(np.ones(6))
        pose[entry] = value
        result = UR5.solve(pose, np.ones(6))
        assert not result.success or result.residual_m > 1e-3 or result.residual_rad > 1e-3
        near = np.ones(6)
        near[entry[1]] = value
        for robot in (UR5, UR3e, UR16e):
            result = robot.solve(robot.forward(np.ones(6)), near)
            assert result.joints.shape == (6,)
            assert result.why == "the joint angles to start from are not within +-1e+06 rad"

    def test_wrong_shapes_raise(self) -> None:
        with pytest.raises(InputError, match=r"\(4, 4\)"):
            UR5.solve(np.eye(3), np.zeros(6))


def test_the_equations_of_the_paper_are_another_robot() -> None:
    """docs/reference/kinematics.md quotes these numbers: equations (1)-(9) with Table 3, against the robot as it is."""
    joints = random_joints(20_000)
    gap = np.linalg.norm(
        chain(joints, PAPER_A, PAPER_ALPHA)[:, :3, 3] - UR5.forward(joints, frame="base")[:, :3, 3], axis=1
    )
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
