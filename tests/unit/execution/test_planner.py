"""From deltas to motions: composition, limits, refusals, and that nothing gets past the gate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation

from merton.errors import ErrorCode, InputError
from merton.execution.gate.collision import HELD, Guard, HeldObject
from merton.execution.gate.peaks import ADDED_TO_ACCELERATION, ADDED_TO_SPEED, peaks
from merton.execution.gate.planner import MotionPlan, plan, plan_again, segments
from merton.execution.gate.safety import MODES, Limits
from merton.execution.kinematics import ROBOTS, base_from_tcp
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Array, rotation_vector_of

UR5 = ROBOTS["UR5"]

STEP_S = 0.2
START = np.array([-0.2450, -1.6559, 1.3857, -1.3006, -1.5708, -0.2450])
"""Tool pointing down, tool centre point 0.3 m above the table at (0.45, 0) in `base_link`."""


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell()


@pytest.fixture(scope="module")
def roomy(cell: CellConfig) -> CellConfig:
    """The cell without walls and without a workspace."""
    everywhere = cell.workspace.model_copy(update={"min": (-9, -9, -9), "max": (9, 9, 9)})
    return cell.model_copy(update={"workspace": everywhere, "walls": ()})


def deltas(count: int, gripper: float = 1.0, **columns: float) -> Array:
    """`count` equal deltas; columns x, y, z [m] and a, b, c (rotation vector) [rad]."""
    array = np.zeros((count, 7))
    for name, value in columns.items():
        array[:, "xyzabc".index(name)] = value
    array[:, 6] = gripper
    return array


def to_height(cell: CellConfig, z: float, count: int = 10) -> Array:
    """Deltas straight down from the start to a height of the tool centre point."""
    return deltas(count, z=(z - base_from_tcp(START, cell)[2, 3]) / count)


def run(cell: CellConfig, actions: object, frame: str = "base_link", **options: object) -> MotionPlan:
    return plan(START, actions, STEP_S, frame, cell, **options)  # type: ignore[arg-type]


class TestComposition:
    def test_base_link_translation_is_added_and_rotation_turns_about_the_tcp(self, cell: CellConfig) -> None:
        start = base_from_tcp(START, cell)
        motion = run(cell, deltas(4, x=0.02, y=-0.01, z=-0.03, c=0.1))
        assert motion.verdict.ok
        assert motion.executed == 4
        end = motion.base_from_tcp[-1]
        assert end[:3, 3] - start[:3, 3] == pytest.approx((0.08, -0.04, -0.12), abs=1e-9)
        assert rotation_vector_of(end @ np.linalg.inv(start)) == pytest.approx((0, 0, 0.4), abs=1e-9)

    def test_tcp_frame_is_applied_from_the_right(self, cell: CellConfig) -> None:
        start = base_from_tcp(START, cell)
        delta = np.eye(4)
        delta[:3, :3] = Rotation.from_rotvec((0.0, 0.0, 0.3)).as_matrix()
        delta[:3, 3] = (0.03, 0.0, 0.02)
        motion = run(cell, deltas(3, x=0.03, z=0.02, c=0.3), "tcp")
        assert motion.verdict.ok
        assert motion.base_from_tcp[-1] == pytest.approx(start @ delta @ delta @ delta, abs=1e-9)
        assert motion.base_from_tcp[-1][2, 3] < start[2, 3], "z of the tool points down"

    def test_waypoints_are_where_the_joints_are(self, cell: CellConfig) -> None:
        motion = run(cell, deltas(5, x=0.02, a=0.1))
        assert motion.base_from_tcp == pytest.approx(base_from_tcp(motion.joints_rad, cell))
        assert motion.joints_rad[0] == pytest.approx(START, abs=0)
        assert motion.times_s == pytest.approx(np.arange(6) * STEP_S)

    def test_velocities_are_central_differences_at_rest_at_both_ends(self, cell: CellConfig) -> None:
        motion = run(cell, deltas(5, x=0.02))
        slopes = np.diff(motion.joints_rad, axis=0) / STEP_S
        turns_back = slopes[1:] * slopes[:-1] <= 0
        inner = np.where(turns_back, 0.0, (slopes[1:] + slopes[:-1]) / 2)
        assert motion.velocities_rad_s[1:-1] == pytest.approx(inner)
        assert not motion.velocities_rad_s[[0, -1]].any()

    def test_nothing_to_do(self, cell: CellConfig) -> None:
        choices: tuple[object, ...] = ([], np.empty((0, 7)))
        for nothing in choices:
            motion = run(cell, nothing)
            assert motion.verdict.ok
            assert motion.executed == 0
            assert segments(motion) == []

    def test_the_objects_are_all_within_reach(self, cell: CellConfig) -> None:
        start = base_from_tcp(START, cell)[:3, 3]
        low, high = cell.objects.area.min, cell.objects.area.max
        for x in (low[0], high[0]):
            for y in (low[1], 0.0, high[1]):
                way = (np.array([x, y, 0.02]) - start) / 10
                for yaw in (-np.pi / 40, np.pi / 40):
                    motion = run(cell, deltas(10, x=way[0], y=way[1], z=way[2], c=yaw))
                    assert motion.verdict.ok, motion.verdict.message


class TestRefusals:
    @pytest.mark.parametrize(
        "bad",
        [
            np.nan,
            np.inf,
            -np.inf,
            1e300,
            np.zeros(7),
            np.zeros((3, 6)),
            np.zeros((0, 3)),
            np.zeros((5, 0)),
            np.zeros((2, 2, 7)),
            "nonsense",
            None,
            [[1, 2], [3]],
            deltas(2, gripper=1.5),
            deltas(2, gripper=-0.1),
            deltas(2, x=0.81),
            deltas(2, b=-3.6),
            deltas(1000, x=1e-6),
            10**400,
            1j * deltas(1),
            np.full((2, 7), "0"),
        ],
    )
    def test_what_is_no_action_moves_nothing(self, cell: CellConfig, bad: object) -> None:
        if isinstance(bad, float):
            actions = deltas(4, x=0.01)
            actions[2, 1] = bad
            bad = actions
        motion = run(cell, bad)
        assert motion.verdict.code is ErrorCode.INVALID_ACTION
        assert motion.verdict.message
        assert not motion.verdict.stops
        assert motion.executed == 0
        assert len(motion.joints_rad) == 1

    @pytest.mark.parametrize("step_s", [0.0, -1.0, np.nan, np.inf, None, 1e-9, 1e9, "soon"])
    def test_a_step_needs_a_positive_time(self, cell: CellConfig, step_s: float) -> None:
        motion = plan(START, deltas(1, x=0.01), step_s, "base_link", cell)
        assert motion.verdict.code is ErrorCode.INVALID_ACTION
        assert "world" in run(cell, deltas(1), "world").verdict.message

    def test_a_bad_start_is_the_callers_fault(self, cell: CellConfig) -> None:
        for start in (np.zeros(5), np.full(6, np.nan)):
            with pytest.raises(InputError, match="six finite"):
                plan(start, deltas(1), STEP_S, "base_link", cell)

    @pytest.mark.parametrize(
        ("last", "code"),
        [
            ({"x": 0.09}, ErrorCode.STEP_LIMIT),
            ({"c": 0.36}, ErrorCode.STEP_LIMIT),
            ({"y": 0.079}, ErrorCode.OK),
        ],
    )
    def test_step_limits_cut_there(self, cell: CellConfig, last: dict[str, float], code: ErrorCode) -> None:
        motion = run(cell, np.r_[deltas(3, x=0.01), deltas(1, **last), deltas(2, x=0.01)])
        assert motion.verdict.code is code
        assert (motion.executed, motion.verdict.index) == ((6, -1) if code is ErrorCode.OK else (3, 3))

    def test_speed_limits(self, cell: CellConfig) -> None:
        actions = deltas(3, x=0.05)
        assert plan(START, actions, 0.1, "base_link", cell).verdict.ok
        assert plan(START, actions, 0.08, "base_link", cell).verdict.code is ErrorCode.SPEED_LIMIT
        slow_joints = Limits(joint_speed_rad_s=0.1)
        assert run(cell, actions, limits=slow_joints).verdict.code is ErrorCode.SPEED_LIMIT

    def test_leaving_the_workspace_cuts_without_a_stop(self, cell: CellConfig) -> None:
        motion = run(cell, deltas(20, y=0.04))
        assert motion.verdict.code is ErrorCode.WORKSPACE
        assert not motion.verdict.stops
        assert motion.executed == motion.verdict.index
        assert 0.04 * motion.executed <= cell.workspace.max[1] < 0.04 * (motion.executed + 1)
        assert cell.workspace.outside_m(motion.base_from_tcp[-1, :3, 3]) == 0
        assert not motion.velocities_rad_s[-1].any()

    def test_out_of_reach_cuts_without_a_stop(self, roomy: CellConfig) -> None:
        motion = plan(START, deltas(20, x=0.06), 2.0, "base_link", roomy)
        assert motion.verdict.code is ErrorCode.UNREACHABLE
        assert not motion.verdict.stops
        assert 0 < motion.executed == motion.verdict.index

    def test_a_jump_to_another_branch_is_refused(self, roomy: CellConfig) -> None:
        start = START.copy()
        start[4] = -1e-3  # axes 4 and 6 almost on one line; turning about x of frame 4 swings both by a quarter turn
        around = 0.1 * UR5.link_frames(start)[4, :3, 0]
        motion = plan(start, deltas(1, a=around[0], b=around[1], c=around[2]), STEP_S, "base_link", roomy)
        assert motion.verdict.code is ErrorCode.BRANCH_FLIP
        assert motion.executed == 0


class TestCollision:
    @pytest.mark.parametrize(("z", "stops"), [(0.018, False), (0.020, False), (0.010, True), (0.0, True), (-0.1, True)])
    def test_into_the_table(self, cell: CellConfig, z: float, stops: bool) -> None:
        motion = run(cell, to_height(cell, z))
        assert motion.verdict.stops is stops
        if stops:
            assert motion.verdict.code is ErrorCode.COLLISION
            assert motion.verdict.link_b == "table"
            assert motion.verdict.link_a.startswith("gripper")
            assert motion.executed == motion.verdict.index < 10
        clearance = min(item.distance_m for item in Guard(cell).clearances(motion.joints_rad))
        assert clearance >= Limits().stopping_margin_m

    def test_into_a_wall(self, roomy: CellConfig, cell: CellConfig) -> None:
        wall = next(box for box in cell.walls if box.name == "left").model_copy(update={"center": (0.45, 0.4, 0.45)})
        motion = run(roomy.model_copy(update={"walls": (wall,)}), deltas(20, y=0.06))
        assert motion.verdict.code is ErrorCode.COLLISION
        assert motion.verdict.link_b == "left"

    def test_a_finger_hits_though_the_tcp_does_not_sink(self, cell: CellConfig) -> None:
        # Tilting the open gripper lowers one finger: the tool centre point stays where it is, high enough.
        motion = run(cell, np.r_[to_height(cell, 0.03), deltas(4, a=0.3)])
        assert motion.verdict.code is ErrorCode.COLLISION
        assert motion.executed >= 10

    def test_the_arm_into_itself_cuts_without_a_stop(self, roomy: CellConfig) -> None:
        motion = plan(START, deltas(20, y=0.03, a=-0.15, b=0.15, c=0.15), 0.5, "base_link", roomy)
        assert motion.verdict.code is ErrorCode.SELF_COLLISION
        assert not motion.verdict.stops

    def test_closer_than_the_margin_only_away(self, cell: CellConfig) -> None:
        near = run(cell, to_height(cell, 0.012), limits=Limits(stopping_margin_m=0.001)).joints_rad[-1]
        assert plan(near, deltas(3, z=0.02), STEP_S, "base_link", cell).verdict.ok
        assert plan(near, deltas(3, gripper=0.0), STEP_S, "base_link", cell).verdict.ok
        assert plan(near, deltas(1, z=-0.002), STEP_S, "base_link", cell).verdict.stops


class TestSegments:
    def test_the_arm_rests_until_the_gripper_is_done(self, cell: CellConfig) -> None:
        actions = np.r_[deltas(3, x=0.02), deltas(2, gripper=0.0), deltas(3, z=0.02, gripper=0.0)]
        motion = run(cell, actions)
        parts = segments(motion)
        assert [part.gripper for part in parts] == [1.0, 0.0]
        assert [len(part.times_s) for part in parts] == [4, 6]
        for part in parts:
            assert part.moves
            assert part.times_s[0] == 0
            assert not part.velocities_rad_s[[0, -1]].any()
        assert (parts[0].joints_rad[-1] == parts[1].joints_rad[0]).all()
        assert not motion.velocities_rad_s[3].any()

    def test_known_gripper_is_not_commanded_again(self, cell: CellConfig) -> None:
        actions = deltas(3, x=0.02, gripper=0.5)
        assert segments(run(cell, actions, start_gripper=0.5))[0].gripper is None
        assert segments(run(cell, actions, start_gripper=0.0))[0].gripper == 0.5
        assert segments(run(cell, actions))[0].gripper == 0.5

    def test_ripple_is_no_command_but_drift_is(self, cell: CellConfig) -> None:
        actions = deltas(20, x=0.005)
        actions[:, 6] = 0.5 + 0.01 * (-1.0) ** np.arange(20)
        assert len(segments(run(cell, actions, start_gripper=0.5))) == 1
        actions[:, 6] = np.linspace(0.5, 1.0, 20)
        assert len(segments(run(cell, actions, start_gripper=0.5))) > 5

    def test_without_motion_there_is_no_trajectory(self, cell: CellConfig) -> None:
        (closing,) = segments(run(cell, deltas(5, gripper=0.0), start_gripper=1.0))
        assert closing.gripper == 0.0
        assert not closing.moves
        assert closing.joints_rad.shape == closing.velocities_rad_s.shape == (0, 6)
        assert segments(run(cell, deltas(5), start_gripper=1.0)) == []


class TestPace:
    """Too fast or too abrupt a motion is slowed down; its path stays."""

    def test_a_motion_within_the_limits_is_unchanged(self, cell: CellConfig) -> None:
        motion = run(cell, deltas(5, x=0.04))
        assert motion.slowdown == 1.0
        assert motion.times_s.tolist() == (np.arange(6) * STEP_S).tolist()

    @pytest.mark.parametrize(
        ("field", "order"),
        [
            ("peak_tcp_speed_m_s", 1),
            ("peak_joint_speed_rad_s", 1),
            ("peak_tcp_acceleration_m_s2", 2),
            ("peak_joint_acceleration_rad_s2", 2),
        ],
    )
    def test_each_limit_slows_the_whole_motion_down(self, cell: CellConfig, field: str, order: int) -> None:
        actions = deltas(5, x=0.03, y=0.02, z=-0.02)
        free = run(cell, actions)
        peak = peaks(free.joints_rad, free.velocities_rad_s, STEP_S, cell)
        reached = getattr(peak, field.removeprefix("peak_").rsplit("_m_s")[0].rsplit("_rad_s")[0]).max()
        added = ADDED_TO_SPEED if order == 1 else ADDED_TO_ACCELERATION
        slow = run(cell, actions, limits=Limits(**{field: added * reached / 2**order}))
        assert slow.verdict.ok
        assert slow.slowdown == pytest.approx(2.0)
        assert (slow.joints_rad == free.joints_rad).all()
        assert (slow.base_from_tcp == free.base_from_tcp).all()
        assert slow.times_s == pytest.approx(2 * free.times_s)
        assert slow.velocities_rad_s == pytest.approx(free.velocities_rad_s / 2)

    def test_reduced_mode_goes_the_same_way_at_250_mm_per_second(self, cell: CellConfig) -> None:
        actions = np.r_[deltas(3, x=0.06), deltas(1, gripper=0.0), deltas(3, z=-0.06, gripper=0.0)]
        normal, reduced = (run(cell, actions, limits=limits) for limits in MODES.values())
        assert normal.verdict.ok
        assert reduced.verdict.ok
        assert (reduced.joints_rad == normal.joints_rad).all()
        assert reduced.slowdown > 1.2 * normal.slowdown == 1.2
        for part in segments(reduced):
            spline = CubicHermiteSpline(part.times_s, part.joints_rad, part.velocities_rad_s)
            times = np.linspace(0, part.times_s[-1], 2000)
            tcp = base_from_tcp(spline(times), cell)[:, :3, 3]
            assert np.linalg.norm(np.gradient(tcp, times, axis=0), axis=1).max() <= 0.25 + 1e-6

    def test_a_motion_beyond_the_largest_slowdown_is_refused(self, cell: CellConfig) -> None:
        actions = np.r_[deltas(3, x=0.0005), deltas(1, x=0.03), deltas(3, x=0.0005)]
        limits = Limits(most_slowdown=1.2, peak_tcp_acceleration_m_s2=1.0)
        motion = run(cell, actions, limits=limits)
        assert motion.verdict.code is ErrorCode.ACCELERATION_LIMIT
        assert not motion.verdict.stops
        # The neighbour is bent by the long step too; the rest is gentle.
        assert motion.executed == motion.verdict.index in (2, 3)
        assert motion.slowdown <= 1.2
        fast = run(cell, actions, limits=Limits(most_slowdown=1.5, peak_tcp_speed_m_s=0.05))
        assert fast.verdict.code is ErrorCode.SPEED_LIMIT

    def test_a_collision_stays_one_if_stopping_before_it_is_too_abrupt(self, roomy: CellConfig) -> None:
        """Faster and faster down, then slower and slower, the table in between: only the stop before it is abrupt."""
        actions = deltas(24)
        actions[:, 2] = -0.003 * np.minimum(np.arange(1, 25), np.arange(24, 0, -1))
        free = run(roomy, actions)
        motion = run(roomy, actions, limits=Limits(most_slowdown=1.0, peak_tcp_acceleration_m_s2=1.0))
        assert free.verdict.code is motion.verdict.code is ErrorCode.COLLISION
        assert motion.executed == motion.verdict.index < free.executed

    def test_the_arm_does_not_swing_lower_than_its_waypoints(self, cell: CellConfig) -> None:
        """Down, level, up: a spline through central differences would go on downwards between the level waypoints."""
        above = to_height(cell, 0.075)
        swing = np.r_[above, deltas(1, z=-0.06), deltas(1, z=1e-4), deltas(1, z=0.06)]
        motion = run(cell, swing)
        assert motion.verdict.ok
        assert motion.verdict.clearance_m == pytest.approx(run(cell, swing[:11]).verdict.clearance_m, abs=1e-5)


class TestHeldObject:
    CUBE = HeldObject(0.045, 0.022)

    def test_it_may_be_set_down_but_not_pressed_into_the_table(self, cell: CellConfig) -> None:
        for z, ok in ((0.025, True), (0.022, True), (0.0195, True), (0.0175, False)):
            motion = run(cell, to_height(cell, z)[:, :] * (1, 1, 1, 1, 1, 1, 0), start_gripper=0.3, held=self.CUBE)
            assert motion.verdict.ok is ok, z
        assert motion.verdict.code is ErrorCode.COLLISION
        assert motion.verdict.stops
        assert (motion.verdict.link_a, motion.verdict.link_b) == (HELD, "table")
        assert run(cell, to_height(cell, 0.0175)).verdict.ok, "the fingers alone may go there"

    def test_it_may_be_drawn_along_the_table_and_lifted(self, cell: CellConfig) -> None:
        low = run(cell, to_height(cell, 0.022)).joints_rad[-1]
        for actions in (deltas(3, gripper=0.0, y=0.03), deltas(3, gripper=0.0, z=0.05)):
            assert plan(low, actions, STEP_S, "base_link", cell, None, 0.3, self.CUBE).verdict.ok

    def test_it_must_not_be_swept_into_a_wall(self, cell: CellConfig) -> None:
        ledge = cell.walls[0].model_copy(update={"center": (0.61, 0.0, 0.26), "size": (0.02, 0.06, 0.04)})
        close = cell.model_copy(update={"walls": (ledge,)})
        actions = deltas(4, gripper=0.0, x=0.02)
        assert run(close, actions, start_gripper=0.85).verdict.ok, "the fingers alone have room"
        motion = run(close, actions, start_gripper=0.85, held=HeldObject(0.12, 0.05))
        assert (motion.verdict.code, motion.verdict.link_a) == (ErrorCode.COLLISION, HELD)
        assert motion.executed == 3

    def test_a_released_object_no_longer_counts(self, cell: CellConfig) -> None:
        long = HeldObject(0.045, 0.10)
        down = to_height(cell, 0.05)
        assert not run(cell, down * (1, 1, 1, 1, 1, 1, 0), start_gripper=0.3, held=long).verdict.ok
        assert run(cell, down, start_gripper=0.3, held=long).verdict.ok, "the first command opens the gripper"

    def test_the_rest_of_a_plan_is_checked_again_once_an_object_is_held(self, cell: CellConfig) -> None:
        actions = np.r_[to_height(cell, 0.1), deltas(1, gripper=0.0), deltas(4, gripper=0.0, z=-0.015)]
        motion = run(cell, actions, start_gripper=1.0)
        assert motion.verdict.ok
        first = segments(motion)[1].first
        assert first == 10
        assert plan_again(motion, first, self.CUBE, cell) is motion
        assert plan_again(motion, motion.executed, self.CUBE, cell) is motion
        shorter = plan_again(motion, first, HeldObject(0.045, 0.08), cell)
        assert (shorter.verdict.code, shorter.verdict.link_a) == (ErrorCode.COLLISION, HELD)
        assert first < shorter.executed == shorter.verdict.index < motion.executed
        assert (shorter.joints_rad == motion.joints_rad[: shorter.executed + 1]).all()
        assert not shorter.velocities_rad_s[-1].any()
        assert [part.gripper for part in segments(shorter)] == [part.gripper for part in segments(motion)]
