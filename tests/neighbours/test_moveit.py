"""The real moveit_py, in the process in which arm_node has it: it starts, plans, searches, refuses, and lets go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from merton_interfaces.action import ExecuteActions
from sensor_msgs.msg import JointState

from merton.errors import InfrastructureError
from merton.execution.gate.collision import Guard, HeldObject
from merton.execution.gate.planner import detour, plan, segments
from merton.execution.gate.safety import limits_of_mode
from merton.execution.trajectory import JointSpline
from merton.world.action import checked_chunk
from merton.world.cell import load_cell
from merton.world.geometry import Array
from merton_nodes.arm import moveit_planner
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.arm.moveit_planner import MoveItPlanner, Request
from merton_nodes.cell.mujoco_cell_node import MujocoCellNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from ros import Probe, Ros, up

pytestmark = pytest.mark.needs(
    "moveit_py", "moveit_planners_ompl", "pilz_industrial_motion_planner", "moveit_kinematics"
)

CELL = load_cell()
HOME = CELL.home_joints
LIMITS = limits_of_mode("reduced")
OPENING_M = 0.06
DOWN = [0.0, 0.0, -0.05, 0.0, 0.0, 0.0, 0.5]
"""A delta in `base_link` [m, rad], gripper as it is."""


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """MoveIt may be slow on a machine that does much else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moveit_planner, "START_LIMIT_S", 300.0)
        patch.setattr(moveit_planner, "ANSWER_LIMIT_S", 100.0)
        yield


@pytest.fixture(scope="module")
def planner() -> Iterator[MoveItPlanner]:
    with closing(MoveItPlanner()) as made:
        yield made


def joints_below_home(steps: int) -> Array:
    """Home, and that many steps of 5 cm straight down from it: joints (steps + 1, 6) [rad]."""
    motion = plan(HOME, [DOWN] * steps, 0.5, "base_link", CELL, LIMITS, 0.5)
    assert motion.executed == steps
    return motion.joints_rad


def clearance_m(way: JointSpline) -> float:
    """The least distance of the arm to table, walls and itself on a way [m]."""
    joints = np.array([way.at(time_s)[0] for time_s in np.linspace(0.0, way.duration_s, 200)])
    guard = Guard(CELL)
    found = guard.clearances(joints, OPENING_M) + guard.self_clearances(joints, OPENING_M)
    return min(one.distance_m for one in found)


def as_it_is(way: JointSpline) -> JointSpline:
    """Accepts every way."""
    return way


def with_the_margin(way: JointSpline) -> JointSpline:
    """Accepts a way that keeps the gate's margin; MoveIt's shapes are slimmer than the gate's."""
    if clearance_m(way) < LIMITS.stopping_margin_m:
        raise InfrastructureError("the planned way was refused: it comes too near")
    return way


def test_it_goes_straight_in_joint_space_within_the_limits(planner: MoveItPlanner) -> None:
    goal = joints_below_home(3)[-1]
    way = planner.plan(Request(HOME, goal, OPENING_M, None), as_it_is)
    assert np.allclose(way.joints_rad[[0, -1]], [HOME, goal], atol=1e-4)
    along = (way.joints_rad - HOME) @ (goal - HOME) / np.sum((goal - HOME) ** 2)
    assert np.allclose(way.joints_rad, HOME + along[:, None] * (goal - HOME), atol=1e-4), "a straight line"
    assert way.peak_speeds_rad_s().max() <= LIMITS.peak_joint_speed_rad_s * 1.001


def test_its_ways_pass_the_gate(planner: MoveItPlanner) -> None:
    (segment,) = segments(plan(HOME, [DOWN] * 4, 0.5, "base_link", CELL, LIMITS, 0.5))
    way = planner.plan(Request(segment.joints_rad[0], segment.joints_rad[-1], OPENING_M, None), as_it_is)
    found = detour(segment, way, CELL, LIMITS, 0.5)
    assert np.array_equal(found.joints_rad[[0, -1]], segment.joints_rad[[0, -1]])


def test_a_goal_where_the_arm_is_already_is_a_way(planner: MoveItPlanner) -> None:
    way = planner.plan(Request(HOME, HOME + 5e-4, OPENING_M, None), as_it_is)
    assert np.allclose(way.joints_rad, HOME, atol=1e-3)


def test_it_searches_where_the_straight_way_is_blocked(planner: MoveItPlanner) -> None:
    start = np.array([0.2, -0.9, 0.9, -1.5, -1.5708, -0.245])
    goal = start + np.array([2.5, 0, 0, 0, 0, 0])
    straight = JointSpline([0.0, 1.0], [start, goal])
    assert clearance_m(straight) < -0.05, "through the wall on the left"
    way = planner.plan(Request(start, goal, OPENING_M, None), with_the_margin)
    assert np.allclose(way.joints_rad[[0, -1]], [start, goal], atol=1e-3)
    assert clearance_m(way) >= LIMITS.stopping_margin_m


def test_it_refuses_a_goal_in_the_table(planner: MoveItPlanner) -> None:
    with pytest.raises(InfrastructureError, match="MoveIt found no way"):
        planner.plan(Request(HOME, HOME + np.array([0, 0.9, 0, 0, 0, 0]), OPENING_M, None), as_it_is)


def test_what_is_held_is_in_its_scene_until_it_is_let_go(planner: MoveItPlanner) -> None:
    high, low = joints_below_home(5)[[4, 5]]  # tool at 0.10 m and 0.05 m
    held = HeldObject(OPENING_M, 0.10)
    planner.plan(Request(high, low, OPENING_M, None), as_it_is)
    with pytest.raises(InfrastructureError, match="MoveIt found no way"):
        planner.plan(Request(high, low, OPENING_M, held), as_it_is)
    planner.plan(Request(high, HOME, OPENING_M, held), as_it_is)
    planner.plan(Request(high, low, OPENING_M, None), as_it_is)
    planner.plan(Request(high, HOME, 0.14, None), as_it_is)


def test_an_object_that_stands_on_the_table_is_lifted_and_set_down(planner: MoveItPlanner) -> None:
    low = joints_below_home(5)[-1]
    held = HeldObject(OPENING_M, 0.05)
    planner.plan(Request(low, HOME, OPENING_M, held), as_it_is)
    planner.plan(Request(HOME, low, OPENING_M, held), as_it_is)


def test_it_plans_with_the_linkage_of_the_real_gripper() -> None:
    low = joints_below_home(5)[-1]
    with closing(MoveItPlanner(linkage=True)) as planner:
        for opening_m in (0.0, OPENING_M, 0.14):
            planner.plan(Request(HOME, low, opening_m, None), as_it_is)
        planner.plan(Request(low, HOME, OPENING_M, HeldObject(OPENING_M, 0.05)), as_it_is)


def test_arm_node_carries_out_its_ways_and_starts_it_again_after_its_end(ros: Ros, probe: Probe) -> None:
    cell = up(ros, MujocoCellNode, real_time_factor=0.0).cell
    up(ros, ArmNode, planner="moveit")
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    assert isinstance(arm.planner, MoveItPlanner)
    joints = probe.listen(JointState, names.JOINT_STATES, names.RELIABLE_QOS)
    ros.until(lambda: joints)

    def execute(*deltas: list[float]) -> ExecuteActions.Result:
        chunk = convert.chunk_message(checked_chunk([*deltas], 0.5), 0)
        return ros.act(probe, ExecuteActions, names.EXECUTE, ExecuteActions.Goal(chunk=chunk))

    begin_m = cell.base_from_tcp[2, 3]
    result = execute(*[DOWN] * 3)
    assert (result.error_code, result.executed, result.error_msg) == (0, 3, "")
    assert cell.base_from_tcp[2, 3] == pytest.approx(begin_m - 0.15, abs=2e-3)
    arm.planner._process.kill()
    arm.planner._process.join()
    result = execute([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.5])
    assert (result.error_code, result.executed, result.error_msg) == (0, 1, ""), "MoveIt was started again"
    assert cell.base_from_tcp[2, 3] == pytest.approx(begin_m - 0.10, abs=2e-3)
