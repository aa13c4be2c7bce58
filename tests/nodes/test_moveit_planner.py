"""MoveIt as a planner: a stand-in takes the calls that moveit_py would get; its ways have to pass the gate."""

from __future__ import annotations

import contextlib
import copy
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from test_faults import UP, Robot, robot_of
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from merton.errors import InfrastructureError, MissingDependencyError
from merton.execution.gate.collision import SET_DOWN_M, HeldObject
from merton.execution.gate.planner import detour, plan, segments
from merton.execution.gate.safety import limits_of_mode
from merton.execution.trajectory import JointSpline
from merton.world.cell import ARM_JOINTS, FINGER_JOINTS, load_cell
from merton.world.linkage import joint_positions
from merton_nodes.arm.arm_node import ArmNode
from merton_nodes.arm.moveit_planner import (
    ATTEMPTS,
    GROUP,
    PLANNERS,
    MoveIt,
    MoveItPlanner,
    Request,
    arrays_of,
    configuration,
    is_installed,
    links_beyond,
)
from merton_nodes.ros import conversions as convert
from ros import Probe, Ros

CELL = load_cell()
HOME = CELL.home_joints
LIMITS = limits_of_mode("reduced")
ASIDE_RAD = 0.05
has_moveit = is_installed()


def way(start: np.ndarray, goal: np.ndarray, aside_rad: float = 0.0, duration_s: float = 2.0) -> tuple[Any, Any, Any]:
    """From start to goal through their middle, with the base turned aside there."""
    middle = (start + goal) / 2 + np.array([aside_rad, 0, 0, 0, 0, 0])
    rest = np.zeros(6)
    return [0.0, duration_s / 2, duration_s], [start, middle, goal], [rest, rest, rest]


# Backends in the planner's process: it imports this file


def aside() -> Any:
    return lambda request: way(request.start_rad, request.goal_rad, ASIDE_RAD)


def into_the_table(request: Request) -> tuple[Any, Any, Any]:
    down = np.array([0, 0.75, 0, 0, 0, 0])
    return [0.0, 2.0, 4.0], [request.start_rad, request.start_rad + down, request.goal_rad], np.zeros((3, 6))


def through_the_table() -> Any:
    return into_the_table


def aside_when_it_searches_again() -> Any:
    """As where MoveIt's shapes are slimmer than the gate's: the straight way and the first search are refused."""
    searches: list[Request] = []

    def plan_something(request: Request) -> Any:
        searches.extend([request] * request.search)
        return into_the_table(request) if len(searches) < 2 else way(request.start_rad, request.goal_rad, ASIDE_RAD)

    return plan_something


def straight_or_aside() -> Any:
    return lambda request: way(request.start_rad, request.goal_rad, ASIDE_RAD * request.search)


def moody() -> Any:
    """Plans with fingers at 0.14 m; at other openings it is one that fails."""

    def plan_something(request: Request) -> Any:
        match request.opening_m:
            case 0.01:
                raise InfrastructureError("MoveIt found no way")
            case 0.02:
                raise ValueError("no such group")
            case 0.03:
                sys.exit(1)
        return way(request.start_rad, request.goal_rad)

    return plan_something


def request(held: HeldObject | None = None, opening_m: float = 0.14) -> Request:
    return Request(HOME, HOME + 0.1, opening_m, held)


def test_ways_and_failures_come_out_of_the_process_and_it_is_started_again() -> None:
    with contextlib.closing(MoveItPlanner(moody)) as one:
        for opening_m, says in ((0.01, "found no way"), (0.02, "ValueError: no such group"), (0.03, "has ended")):
            with pytest.raises(InfrastructureError, match=says):
                one.plan(request(opening_m=opening_m), lambda way: way)
        spline = one.plan(request(), lambda way: way)
        assert np.allclose(spline.joints_rad[[0, -1]], [HOME, HOME + 0.1])
    with pytest.raises(InfrastructureError, match="has ended"):
        one.plan(request(), lambda way: way)


def test_a_way_that_is_refused_is_searched_anew_a_few_times() -> None:
    asked: list[JointSpline] = []

    def refuse(found: JointSpline) -> None:
        asked.append(found)
        raise InfrastructureError(f"way {len(asked)} was refused")

    one = MoveItPlanner(straight_or_aside)
    with contextlib.closing(one), pytest.raises(InfrastructureError, match=f"^way {ATTEMPTS} was refused$"):
        one.plan(request(), refuse)
    turned = [float(found.joints_rad[1, 0] - HOME[0]) for found in asked]
    assert turned == pytest.approx([0.05] + [0.05 + ASIDE_RAD] * (ATTEMPTS - 1)), "straight, then searches"


@pytest.mark.skipif(has_moveit, reason="moveit_py is installed")
@pytest.mark.parametrize("beside", ["nothing", "a_folder_moveit"])
def test_without_moveit_it_says_what_to_install(
    beside: str, ros: Ros, capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalogue of models puts its folder into Python's path, and config has a folder `moveit` of settings."""
    if beside == "a_folder_moveit":
        (tmp_path / "moveit").mkdir()
        monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingDependencyError, match="ros-jazzy-moveit-py"):
        MoveItPlanner()
    node = ros.add(ArmNode, parameter_overrides=[Parameter("planner", value="moveit")])
    assert node.trigger_configure().name == "FAILURE"
    assert "ros-jazzy-moveit-py" in capfd.readouterr().err


class State:
    """A moveit.core.robot_state.RobotState of one: joints, and what is attached to them."""

    def __init__(self, model: Any = None) -> None:
        self._positions: dict[str, float] = {}
        self.attached: dict[str, Any] = {}

    @property
    def joint_positions(self) -> dict[str, float]:
        return self._positions

    @joint_positions.setter
    def joint_positions(self, positions: dict[str, float]) -> None:
        assert {type(value) for value in positions.values()} == {float}, "NumPy 2 ends a moveit_py made for NumPy 1"
        self._positions = positions

    def update(self) -> None:
        pass


class Scene:
    """A moveit.core.planning_scene.PlanningScene of one: an attached object leaves its state for the world."""

    def __init__(self) -> None:
        self.current_state, self.world = State(), set()

    def process_attached_collision_object(self, message: Any) -> bool:
        if message.object.operation == b"\x00":
            self.current_state.attached[message.object.id] = message
        else:
            del self.current_state.attached[message.object.id]
            self.world.add(message.object.id)
        return True


class Component:
    """A moveit.planning.PlanningComponent: plans are its `answers`, in that order."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.tried, self.start, self.goal = answers, [], State(), State()

    def set_start_state(self, robot_state: State) -> None:
        self.start = copy.deepcopy(robot_state)

    def set_goal_state(self, robot_state: State) -> None:
        self.goal = robot_state

    def set_workspace(self, *bounds: float) -> None:
        assert len(bounds) == 6

    def plan(self, single_plan_parameters: str, planning_scene: Scene) -> Any:
        assert not planning_scene.world, "an object that was let go is in the way"
        self.tried.append(single_plan_parameters)
        return self.answers.pop(0)


class Monitor:
    """A moveit.planning.PlanningSceneMonitor."""

    def __init__(self) -> None:
        self.scene = Scene()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[Scene]:
        yield self.scene


def message_class() -> Any:
    return lambda **fields: SimpleNamespace(object=SimpleNamespace(header=SimpleNamespace()), **fields)


@pytest.fixture
def moveit_py(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand-ins with the names of moveit_py 2.12, as `moveit` and the messages it needs."""
    made = SimpleNamespace(component=Component([]), monitor=Monitor(), options={})

    def make(**options: Any) -> Any:
        made.options.update(options)
        return SimpleNamespace(
            get_planning_component=lambda name: made.component,
            get_planning_scene_monitor=lambda: made.monitor,
            get_robot_model=lambda: None,
        )

    parts = {
        "moveit": {},
        "moveit.core": {},
        "moveit.core.robot_state": {"RobotState": State},
        "moveit.planning": {"MoveItPy": make, "PlanRequestParameters": lambda moveit, name: name},
        "moveit_msgs": {},
        "moveit_msgs.msg": {
            "AttachedCollisionObject": message_class(),
            "CollisionObject": SimpleNamespace(ADD=b"\x00", REMOVE=b"\x01"),
        },
        "shape_msgs": {},
        "shape_msgs.msg": {"SolidPrimitive": type("SolidPrimitive", (SimpleNamespace,), {"CYLINDER": 3})},
    }
    for name, content in parts.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("rclpy.init", lambda: None)
    return made


def answer(*times_s: float) -> Any:
    """A plan of moveit_py: from home, its joints in another order than the arm's."""
    found = JointTrajectory(joint_names=list(reversed(ARM_JOINTS)))
    for time_s in times_s:
        found.points.append(
            JointTrajectoryPoint(
                positions=(HOME + 0.1 * time_s)[::-1].tolist(),
                velocities=[0.0] * 6,
                time_from_start=convert.duration_message(time_s),
            )
        )
    message = SimpleNamespace(joint_trajectory=found)
    return SimpleNamespace(trajectory=SimpleNamespace(get_robot_trajectory_msg=lambda: message))


def test_the_calls_that_moveit_py_gets(moveit_py: SimpleNamespace) -> None:
    backend, component = MoveIt(), moveit_py.component
    assert moveit_py.options["config_dict"].keys() == configuration().keys()
    component.answers = [None, answer(0.0, 1.0)]  # the straight way is blocked, the search finds one
    times, joints, _ = backend(request())
    assert times == [0.0, 1.0]
    assert np.allclose(joints, [HOME, HOME + 0.1]), "in the arm's order"
    assert component.tried == list(PLANNERS)
    component.answers = [answer(0.0, 1.0)]
    backend(replace(request(), search=True))
    assert component.tried[2:] == ["search"], "the straight way was refused"
    assert {name: component.goal.joint_positions[name] for name in FINGER_JOINTS} == dict.fromkeys(FINGER_JOINTS, 0.07)
    component.answers = [None, None]
    with pytest.raises(InfrastructureError, match="MoveIt found no way"):
        backend(request())


def test_moveit_gets_all_joints_of_a_linkage(moveit_py: SimpleNamespace) -> None:
    backend, component = MoveIt(linkage=True), moveit_py.component
    assert 'name="finger_joint"' in moveit_py.options["config_dict"]["robot_description"]
    assert 'name="finger_joint"' in moveit_py.options["config_dict"]["robot_description_semantic"]
    component.answers = [answer(0.0, 1.0)]
    backend(request())
    fingers = {name: value for name, value in component.goal.joint_positions.items() if name not in ARM_JOINTS}
    assert fingers == pytest.approx(joint_positions(0.14))


def test_what_is_held_is_in_the_start_and_in_no_later_scene(moveit_py: SimpleNamespace) -> None:
    backend, component = MoveIt(), moveit_py.component
    component.answers = [answer(0.0, 1.0), answer(0.0, 1.0)]
    backend(request(HeldObject(0.045, 0.03)))
    (held,) = component.start.attached.values()
    assert (held.link_name, held.object.header.frame_id) == ("tcp", "tcp")
    assert held.object.primitives[0].dimensions == pytest.approx([0.052, 0.045 / np.sqrt(2)]), "length, radius"
    far_end_m = held.object.primitive_poses[0].position.z + 0.052 / 2
    assert far_end_m == pytest.approx(0.03 - SET_DOWN_M), "so that what stands on the table touches nothing"
    backend(request())
    assert not component.start.attached, "let go"
    assert not moveit_py.monitor.scene.current_state.attached


def test_it_may_touch_what_moves_with_it_and_nothing_else() -> None:
    hand = links_beyond(configuration()["robot_description"], "wrist_3_link")
    assert {"tool0", "tcp", "gripper_base_link", "camera_wrist_link"} <= set(hand)
    assert {f"gripper_{side}_{part}" for side in ("left", "right") for part in ("finger", "pad")} <= set(hand)
    assert not set(hand) & {"wrist_3_link", "forearm_link", "table", "wall_back", "wall_left", "base_link"}


def test_two_points_at_one_time_are_one() -> None:
    trajectory = answer(0.0, 0.7, 0.7999999999, 0.8).trajectory.get_robot_trajectory_msg().joint_trajectory
    times, joints, velocities = arrays_of(trajectory)
    assert times == [0.0, 0.7, 0.8]
    assert np.allclose(JointSpline(times, joints, velocities).joints_rad[-1], HOME + 0.08)


def test_the_configuration_holds_table_and_walls() -> None:
    described = configuration()
    assert all(f'<link name="{name}"' in described["robot_description"] for name in ("table", "wall_back", "wall_left"))
    assert "<collision>" in described["robot_description"]
    assert "<visual>" not in described["robot_description"], "MoveIt warns of a link that has only visual shapes"
    (home,) = ElementTree.fromstring(described["robot_description_semantic"]).findall("group_state")
    assert (home.get("name"), home.get("group")) == ("home", GROUP)
    tried = [described[name]["plan_request_params"]["planning_pipeline"] for name in PLANNERS]
    assert described["planning_pipelines"]["pipeline_names"] == tried


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Parameters of a tree of dictionaries, by the names that rcl gives them."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{name}.{key}" if name else key)
    else:
        yield name, tree


def test_rcl_reads_the_parameters_from_the_file_that_moveit_py_writes(tmp_path: Path) -> None:
    """The dump is that of create_params_file_from_dict in moveit/utils.py of moveit_py 2.12.

    Pilz throws in its constructor unless each number of its cartesian_limits_parameters.yaml is there as a double.
    """
    described = configuration()
    file = tmp_path / "parameters.yaml"
    file.write_text(yaml.dump({"moveit_planner": {"ros__parameters": described}}, default_flow_style=False))
    context = Context()
    context.init(args=["--ros-args", "--params-file", str(file)])
    try:
        node = Node("moveit_planner", context=context, automatically_declare_parameters_from_overrides=True)
        found = {name: node.get_parameter(name).value for name in dict(leaves(described))}
        node.destroy_node()
    finally:
        context.try_shutdown()
    assert found == dict(leaves(described))
    for limit in ("max_trans_vel", "max_trans_acc", "max_trans_dec", "max_rot_vel"):
        assert type(found[f"robot_description_planning.cartesian_limits.{limit}"]) is float
    whole = {f"{name}.plan_request_params.planning_attempts" for name in PLANNERS}
    assert {name for name, value in found.items() if type(value) is int} == whole, "MoveIt's other numbers are doubles"


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
    assert spline.peak_speeds_rad_s().max() <= LIMITS.peak_joint_speed_rad_s + 1e-9
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
    with contextlib.closing(MoveItPlanner(aside)) as arm.runner.planner:
        result = robot.execute(*[UP] * 3)
    assert (result.error_code, result.executed) == (0, 3)
    assert np.allclose(robot.position - begin, [0, 0, 0.06], atol=0.002), "the pose that the chunk asked for"
    turned = max(abs(message.position[0] - HOME[0]) for message in robot.joints[seen:])
    assert turned > 0.6 * ASIDE_RAD, "on a way that was not its own"
    with contextlib.closing(MoveItPlanner(aside_when_it_searches_again)) as arm.runner.planner:
        assert robot.execute(*[UP] * 2).error_code == 0, "the gate refused two ways, and took the third"
    here = robot.position
    with contextlib.closing(MoveItPlanner(through_the_table)) as arm.runner.planner:
        result = robot.execute(*[UP] * 3)
    assert (result.error_code, "the planned way was refused" in result.error_msg) == (404, True)
    assert np.allclose(robot.position, here, atol=1e-6)
    assert not arm.stop.latch.tripped, "no fault of the agent's, and nothing was touched"
    arm.runner.planner = None
    assert robot.execute(UP).error_code == 0
