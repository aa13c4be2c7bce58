"""Distances to table and walls, codes and limits."""

from __future__ import annotations

import numpy as np
import pytest

from merton.errors import ErrorCode, InputError, UnknownNameError
from merton.execution.gate.capsules import capsules_of, self_pairs
from merton.execution.gate.collision import HELD, LONGEST_HELD_M, SET_DOWN_M, Guard, HeldObject, held_object
from merton.execution.gate.safety import MODES, Limits, limits_of_mode
from merton.execution.kinematics import ROBOTS
from merton.execution.robots.gripper import Gripper
from merton.world.cell import CellConfig, load_cell
from merton.world.geometry import Array, from_rpy, inverse

UR5 = ROBOTS["UR5"]


@pytest.fixture(scope="module")
def cell() -> CellConfig:
    return load_cell()


def straight_down(cell: CellConfig, x: float, y: float, z: float) -> Array:
    """Joints that put the tool centre point at (x, y, z) in `base_link`, pointing down."""
    base_from_tool0 = from_rpy((x, y, z), (np.pi, 0, 0)) @ inverse(cell.tool0_from_tcp)
    result = UR5.solve(base_from_tool0, cell.home_joints)
    assert result.success
    return result.joints


class TestGuard:
    @pytest.mark.parametrize("z", [0.01, 0.018, 0.02, 0.05, 0.3])
    def test_fingertips_reach_8_mm_below_the_tcp(self, cell: CellConfig, z: float) -> None:
        clearance = Guard(cell).clearance(straight_down(cell, 0.5, 0.1, z))
        assert clearance.distance_m == pytest.approx(z - 0.008, abs=1e-6)
        assert clearance.link_a.startswith("gripper_")
        assert clearance.link_b == "table"

    def test_a_grasp_keeps_the_margin_and_contact_does_not(self, cell: CellConfig) -> None:
        guard, margin = Guard(cell), Limits().stopping_margin_m
        for opening_m in (0.0, 0.045, 0.140):
            assert guard.clearance(straight_down(cell, 0.5, 0.0, 0.018), opening_m).distance_m > margin
            assert guard.clearance(straight_down(cell, 0.5, 0.0, 0.010), opening_m).distance_m < margin

    def test_open_fingers_take_more_room(self, cell: CellConfig) -> None:
        # The fingers slide along x of tool0, here x of base_link, towards the back wall, whose face is at x = 1.05.
        joints = straight_down(cell, 0.7, 0.0, 0.3)
        guard = Guard(cell)
        reach = []
        for opening_m in (0.0, 0.10, 0.14):
            ends, radii = guard.capsules(joints[None], np.array([opening_m]))
            reach.append((np.abs(ends[0, ..., 0] - 0.7).max(axis=1) + radii)[-8:].max())
            assert guard.clearance(joints, opening_m).distance_m <= 1.06 - 0.01 - 0.7 - reach[-1] + 1e-9
        assert np.diff(reach) == pytest.approx((0.05, 0.02), abs=1e-6)

    def test_walls_are_named(self, cell: CellConfig) -> None:
        near = cell.model_copy(
            update={"walls": tuple(box.model_copy(update={"center": (0.65, 0.0, 0.45)}) for box in cell.walls[:1])}
        )
        clearance = Guard(near).clearance(straight_down(cell, 0.5, 0.0, 0.4), 0.0)
        assert clearance.link_b == "back"
        assert 0 < clearance.distance_m < 0.14

    def test_without_walls_only_the_table_counts(self, cell: CellConfig) -> None:
        bare = cell.model_copy(update={"walls": ()})
        assert Guard(bare).clearance(cell.home_joints).link_b == "table"

    def test_many_equal_one_by_one(self, cell: CellConfig) -> None:
        guard = Guard(cell)
        joints = np.random.default_rng(0).uniform(-np.pi, np.pi, (50, 6))
        together = guard.clearances(joints, np.full(50, 0.05))
        assert together == [guard.clearance(one, 0.05) for one in joints]

    def test_distances_are_those_between_the_drawn_capsules(self, cell: CellConfig) -> None:
        """Both from `capsules`, by points along their axes, and from the collision library, which places its own."""
        rng, guard, shapes = np.random.default_rng(1), Guard(cell), capsules_of(cell)
        joints, openings = rng.uniform(-np.pi, np.pi, (25, 6)), rng.uniform(0, 0.14, 25)
        ends, radii = guard.capsules(joints, openings)
        points = ends[:, :, :1] + np.linspace(0, 1, 101)[:, None] * (ends[:, :, 1:] - ends[:, :, :1])
        to_table = np.where([shape.meets_table for shape in shapes], points[..., 2].min(axis=2), np.inf)
        to_walls = [
            np.linalg.norm(np.maximum(np.abs(points - box.center) - np.array(box.size) / 2, 0), axis=-1).min(axis=2)
            for box in cell.walls
        ]
        around = (np.minimum.reduce([to_table, *to_walls]) - radii).min(axis=1)
        pairs = self_pairs(shapes)
        within = np.min(
            [
                np.linalg.norm(points[:, one, :, None] - points[:, other, None], axis=-1).min(axis=(1, 2))
                - radii[one]
                - radii[other]
                for one, other in pairs
            ],
            axis=0,
        )
        for sampled, found in (
            (around, guard.clearances(joints, openings)),
            (within, guard.self_clearances(joints, openings)),
        ):
            exact = np.array([item.distance_m for item in found])
            apart = exact > 0
            assert apart.sum() > 5
            assert (exact <= sampled + 1e-9).all()
            assert np.abs(exact - sampled)[apart].max() < 5e-4

    def test_the_arm_can_meet_itself(self, cell: CellConfig) -> None:
        guard = Guard(cell)
        folded = cell.home_joints.copy()
        folded[2:4] = np.radians(165), np.radians(-70)  # the elbow almost closed
        at_home, folded_up = guard.self_clearances(np.stack([cell.home_joints, folded]))
        assert at_home.distance_m > 0.02
        assert folded_up.distance_m < 0


class TestHeldObject:
    def test_fingers_that_stopped_early_hold_something(self) -> None:
        pose, gripper = from_rpy((0.5, 0.0, 0.022), (np.pi, 0, 0)), Gripper()
        taken = held_object(gripper, 0.0, 0.045, pose)
        assert taken is not None
        assert (taken.width_m, taken.beyond_tcp_m) == pytest.approx((0.045, 0.022))
        assert held_object(gripper, 0.0, 0.002, pose) is None
        assert held_object(gripper, 1.0, 0.139, pose) is None
        assert held_object(gripper, 1.0, 0.100, pose) is None, "stopped while opening: it holds nothing"

    @pytest.mark.parametrize(("z", "roll"), [(0.4, np.pi), (0.022, 0.0), (0.022, np.pi / 2)])
    def test_its_length_is_bounded(self, z: float, roll: float) -> None:
        taken = held_object(Gripper(), 0.0, 0.045, from_rpy((0.5, 0.0, z), (roll, 0, 0)))
        assert taken is not None
        assert taken.beyond_tcp_m == LONGEST_HELD_M

    def test_a_held_object_is_shortened_so_that_it_can_be_set_down(self, cell: CellConfig) -> None:
        joints = straight_down(cell, 0.5, 0.1, 0.08)
        (clearance,) = Guard(cell, HeldObject(0.045, 0.060)).held_clearances(joints[None])
        assert (clearance.link_a, clearance.link_b) == (HELD, "table")
        assert clearance.distance_m == pytest.approx(0.08 - 0.060 + SET_DOWN_M, abs=1e-6)

    def test_it_takes_room_beside_the_hand(self, cell: CellConfig) -> None:
        # As wide as 0.2 m, it reaches 0.2 / sqrt(2) to every side of the tool; the back wall's face is at x = 1.05.
        joints = straight_down(cell, 0.7, 0.0, 0.3)
        guard = Guard(cell, HeldObject(0.2, 0.05))
        (clearance,) = guard.held_clearances(joints[None])
        assert (clearance.link_a, clearance.link_b) == (HELD, "back")
        assert clearance.distance_m == pytest.approx(1.05 - 0.7 - 0.2 / np.sqrt(2), abs=1e-6)
        assert guard.clearance(joints, 0.0) == Guard(cell).clearance(joints, 0.0)
        assert guard.clearance(joints, 0.0).distance_m > clearance.distance_m + 0.01
        assert Guard(cell).held_clearances(joints[None])[0].distance_m == np.inf

    @pytest.mark.parametrize("size", [(0.0, 0.1), (0.1, -1.0), (np.nan, 0.1), (0.1, np.inf)])
    def test_sizes_are_positive_numbers(self, size: tuple[float, float]) -> None:
        with pytest.raises(InputError, match="held object"):
            HeldObject(*size)


def test_codes_fall_into_their_hundreds() -> None:
    # 0 none, 1xx model, 2xx kinematics, 3xx safety: as records and messages document them.
    names = [[code.name for code in ErrorCode if code // 100 == hundred] for hundred in range(4)]
    assert names[:3] == [
        ["OK"],
        ["MODEL_FAILED", "INVALID_ACTION", "NO_ANSWER", "NO_END"],
        ["UNREACHABLE", "BRANCH_FLIP"],
    ]
    assert {"COLLISION", "STOPPED", "STALE"} < set(names[3])


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_limits_are_positive_numbers(value: float) -> None:
    with pytest.raises(InputError, match="tcp_speed_m_s"):
        Limits(tcp_speed_m_s=value)


def test_modes_differ_in_motion_limits_and_not_in_action_limits(cell: CellConfig) -> None:
    normal, reduced = limits_of_mode("normal"), limits_of_mode("reduced")
    assert normal == Limits() == MODES["normal"]
    for name, value in vars(normal).items():
        if name.startswith("peak_"):
            assert getattr(reduced, name) < value
        else:
            assert getattr(reduced, name) == value
    assert reduced.peak_tcp_speed_m_s == 0.25  # ISO 10218-1, reduced speed
    with pytest.raises(UnknownNameError, match="normal, reduced"):
        limits_of_mode("ludicrous")


def test_the_slowest_is_not_faster_than_asked() -> None:
    with pytest.raises(InputError, match="most_slowdown"):
        Limits(most_slowdown=0.5)
