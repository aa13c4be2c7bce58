"""MoveIt as a planner: a stand-in takes the calls that moveit_py would get; its ways have to pass the gate."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from rclpy.parameter import Parameter
from test_faults import UP, Robot, robot_of
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import InfrastructureError, MissingDependencyError
from merton.execution.gate.collision import HeldObject
from merton.execution.gate.planner import detour, plan, segments
from merton.execution.gate.safety import limits_of_mode
from merton.execution.trajectory import JointSpline
from merton.world.cell import ARM_JOINTS, load_cell
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.arm.moveit_planner import PIPELINES, MoveIt, MoveItPlanner, Request, configuration
from merton_nodes.ros import conversions as convert
from ros import Probe, Ros

CELL = load_cell()
HOME = CELL.home_joints
LIMITS = limits_of_mode("reduced")
ASIDE_RAD = 0.05
has_moveit = importlib.util.find_spec("moveit") is not None


def way(start: np.ndarray, goal: np.ndarray, aside_rad: float = 0.0, duration_s: float = 2.0) -> tuple[Any, Any, Any]:
    """From start to goal through their middle, with the base turned aside there."""
    middle = (start + goal) / 2 + np.array([aside_rad, 0, 0, 0, 0, 0])
    rest = np.zeros(6)
    return [0.0, duration_s / 2, duration_s], [start, middle, goal], [rest, rest, rest]


# Backends in the planner's process: it imports this file


def aside() -> Any:
    return lambda request: way(request.start_rad, request.goal_rad, ASIDE_RAD)


def through_the_table() -> Any:
    down = np.array([0, 0.75, 0, 0, 0, 0])
    return lambda r: ([0.0, 2.0, 4.0], [r.start_rad, r.start_rad + down, r.goal_rad], np.zeros((3, 6)))


def lost() -> Any:
    return lambda request: "MoveIt found no way"


def broken() -> Any:
    def plan_nothing(request: Request) -> Any:
        raise ValueError("no such group")

    return plan_nothing


def dying() -> Any:
    return lambda request: sys.exit(1)


@contextlib.contextmanager
def planner(make_backend: Any) -> Iterator[MoveItPlanner]:
    made = MoveItPlanner(make_backend)
    try:
        yield made
    finally:
        made.close()


def request(held: HeldObject | None = None) -> Request:
    return Request(HOME, HOME + 0.1, 0.14, held)


def test_ways_and_failures_come_out_of_the_process() -> None:
    with planner(aside) as one:
        spline = one.plan(request())
    assert np.allclose(spline.joints_rad[[0, -1]], [HOME, HOME + 0.1])
    for backend, says in ((lost, "found no way"), (broken, "ValueError: no such group"), (dying, "did not answer")):
        with planner(backend) as one, pytest.raises(InfrastructureError, match=says):
            one.plan(request())


@pytest.mark.skipif(has_moveit, reason="moveit_py is installed")
def test_without_moveit_it_says_what_to_install(ros: Ros, capfd: Any) -> None:
    with pytest.raises(MissingDependencyError, match="ros-jazzy-moveit-py"):
        MoveItPlanner()
    node = ros.add(ArmNode, parameter_overrides=[Parameter("planner", value="moveit")])
    assert node.trigger_configure().name == "FAILURE"
    assert "ros-jazzy-moveit-py" in capfd.readouterr().err


def test_the_calls_that_moveit_py_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names as in moveit_py of Jazzy: MoveItPy, PlanRequestParameters, PlanningComponent, RobotState, PlanningScene."""
    answer = JointTrajectory(joint_names=list(reversed(ARM_JOINTS)))
    for time_s in (0.0, 1.0):
        answer.points.append(
            JointTrajectoryPoint(
                positions=(HOME + 0.1 * time_s)[::-1].tolist(),
                velocities=[0.0] * 6,
                time_from_start=convert.duration_message(time_s),
            )
        )
    arm, scene, moveit = MagicMock(), MagicMock(), MagicMock()
    moveit.get_planning_component.return_value = arm
    moveit.get_planning_scene_monitor.return_value.read_write.return_value.__enter__.return_value = scene
    result = SimpleNamespace(
        trajectory=SimpleNamespace(get_robot_trajectory_msg=lambda: SimpleNamespace(joint_trajectory=answer))
    )
    arm.plan.side_effect = [None, result]  # the straight way is blocked, the search finds one
    made: dict[str, Any] = {}

    def make(**options: Any) -> MagicMock:
        made.update(options)
        return moveit

    class AttachedCollisionObject(SimpleNamespace):
        def __init__(self, **values: Any) -> None:
            super().__init__(object=SimpleNamespace(header=SimpleNamespace()), **values)

    parts = {
        "moveit": {},
        "moveit.core": {},
        "moveit.core.robot_state": {"RobotState": MagicMock()},
        "moveit.planning": {"MoveItPy": make, "PlanRequestParameters": lambda moveit, name: SimpleNamespace()},
        "moveit_msgs": {},
        "moveit_msgs.msg": {
            "AttachedCollisionObject": AttachedCollisionObject,
            "CollisionObject": SimpleNamespace(ADD=b"\x00", REMOVE=b"\x01"),
        },
        "shape_msgs": {},
        "shape_msgs.msg": {"SolidPrimitive": type("SolidPrimitive", (SimpleNamespace,), {"BOX": 1})},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("rclpy.init", lambda: None)

    backend = MoveIt()
    assert made["config_dict"].keys() == configuration().keys()
    answered = backend(request(HeldObject(0.045, 0.02)))
    assert not isinstance(answered, str)
    times, joints, _ = answered
    assert times == [0.0, 1.0]
    assert np.allclose(joints, [HOME, HOME + 0.1]), "in the arm's order"
    tried = [call.kwargs["single_plan_parameters"] for call in arm.plan.call_args_list]
    assert [(one.planning_pipeline, one.planner_id) for one in tried] == list(PIPELINES)
    (attached,) = scene.process_attached_collision_object.call_args.args
    assert (attached.object.operation, attached.link_name) == (b"\x00", "tcp")
    assert attached.object.primitives[0].dimensions == [0.045, 0.045, 0.04]
    arm.plan.side_effect = [None, None]
    assert backend(request()) == "MoveIt found no way"
    assert scene.process_attached_collision_object.call_args.args[0].object.operation == b"\x01", "let go"


def test_the_configuration_holds_table_and_walls() -> None:
    described = configuration()
    assert all(f'<link name="{name}"' in described["robot_description"] for name in ("table", "wall_back", "wall_left"))
    assert 'state name="home"' in described["robot_description_semantic"].replace("group_", "")
    assert described["planning_pipelines"]["pipeline_names"] == [name for name, _ in PIPELINES]


# The gate


def a_segment() -> Any:
    (segment,) = segments(plan(HOME, [UP] * 3, 0.2, "base_link", CELL, LIMITS, 1.0))
    return segment


def test_a_way_that_passes_the_gate_is_slowed_down_to_its_limits() -> None:
    segment = a_segment()
    start, goal = segment.joints_rad[[0, -1]]
    found = detour(segment, JointSpline(*way(start, goal, ASIDE_RAD, 0.05)), CELL, LIMITS, 1.0)
    assert np.array_equal(found.joints_rad[[0, -1]], [start, goal])
    assert not np.any(found.velocities_rad_s[[0, -1]])
    assert found.times_s[-1] > 0.05
    spline = JointSpline(found.times_s, found.joints_rad, found.velocities_rad_s)
    assert spline.peak_speed_rad_s() <= LIMITS.peak_joint_speed_rad_s + 1e-9
    assert (found.deltas, found.first) == (segment.deltas, segment.first)


def test_ways_that_do_not_pass_the_gate_are_refused() -> None:
    segment = a_segment()
    start, goal = segment.joints_rad[[0, -1]]
    for spline, says in (
        (JointSpline(*way(start, goal + 0.01)), "does not lead"),
        (JointSpline(*way(start + 0.01, goal)), "does not lead"),
        (JointSpline([0, 2, 4], [start, start + np.array([0, 0.75, 0, 0, 0, 0]), goal]), "within|workspace"),
        (JointSpline(*way(start, goal, ASIDE_RAD, 1e-4)), "times slower"),
    ):
        with pytest.raises(InfrastructureError, match=says):
            detour(segment, spline, CELL, LIMITS, 1.0)


@pytest.fixture
def robot(ros: Ros, probe: Probe) -> Robot:
    return robot_of(ros, probe, 0.0)


def test_the_arm_goes_the_planned_way_to_the_same_pose_and_nowhere_if_it_is_refused(robot: Robot, ros: Ros) -> None:
    arm = next(node for node in ros.nodes if isinstance(node, ArmNode))
    begin, seen = robot.position, len(robot.joints)
    with planner(aside) as arm.runner.planner:
        result = robot.execute(*[UP] * 3)
    assert (result.error_code, result.executed) == (0, 3)
    assert np.allclose(robot.position - begin, [0, 0, 0.06], atol=0.002), "the pose that the chunk asked for"
    turned = max(abs(message.position[0] - HOME[0]) for message in robot.joints[seen:])
    assert turned > 0.6 * ASIDE_RAD, "on a way that was not its own"
    here = robot.position
    with planner(through_the_table) as arm.runner.planner:
        result = robot.execute(*[UP] * 3)
    assert (result.error_code, "the planned way was refused" in result.error_msg) == (404, True)
    assert np.allclose(robot.position, here, atol=1e-6)
    assert not arm.stop.latch.tripped, "no fault of the agent's, and nothing was touched"
    arm.runner.planner = None
    assert robot.execute(UP).error_code == 0
