"""Launch files, graphs, parameter files and node programs name the same things.

The tests that construct a launch description need `launch_ros`, which the wheels do not have; all others run
everywhere.
"""

from __future__ import annotations

import configparser
import re
import runpy
from pathlib import Path

import pytest
import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from ruamel.yaml import YAML

from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton.execution.gate.safety import Limits
from merton.graph.lab import lab_variant
from merton.graph.spec import GraphSpec, graph_names, load_graph
from merton.graph.supervisor import claim_domain, ros_arguments

CHECKOUT = Path(__file__).parents[2]
NODES = CHECKOUT / "src" / "merton_nodes"
GRAPHS = ("gazebo", "lab", "replay", "sim")
LAUNCH_FILES = (*GRAPHS, "monitor")
NO_LAUNCH = "launch_ros comes with a ROS installation, not with the wheels"


def programs() -> dict[str, str]:
    """The programs of setup.cfg: executable to module."""
    config = configparser.ConfigParser()
    config.read(NODES / "setup.cfg")
    lines = config["options.entry_points"]["console_scripts"].split("\n")
    return {
        name.strip(): target.split(":")[0].strip()
        for name, _, target in (line.partition("=") for line in lines if line)
    }


def source(executable: str) -> str:
    return (NODES / f"{programs()[executable].replace('.', '/')}.py").read_text(encoding="utf-8")


def declared(executable: str) -> list[str]:
    """Patterns of the parameters a program declares; a field in braces stands for any one name."""
    text = source(executable)
    if "(ModelNode" in text:  # what vlm_node and vla_node have in common
        text += (NODES / "merton_nodes/models/model_node.py").read_text(encoding="utf-8")
    if "CameraWatch(" in text:
        text += (NODES / "merton_nodes/arm/camera_watch.py").read_text(encoding="utf-8")
    if "LiveStopRule(" in text:
        text += (NODES / "merton_nodes/arm/chunk_runner.py").read_text(encoding="utf-8")
    if "ImageGate(" in text:
        text += (NODES / "merton_nodes/arm/image_gate.py").read_text(encoding="utf-8")
    if "declared_cell(" in text:
        text += (NODES / "merton_nodes/ros/declared_cell.py").read_text(encoding="utf-8")
    names = re.findall(r'\bparameter\(\s*f?"([^"]+)"', text)
    return ["autostart", *(re.sub(r"\\\{\w+\\\}", r"\\w+", re.escape(name)) for name in names)]


def flat(parameters: dict, prefix: str = "") -> dict[str, object]:
    """Nested parameters under dotted names."""
    result: dict[str, object] = {}
    for key, value in parameters.items():
        result.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value})
    return result


def parameter_file(graph: GraphSpec) -> dict[str, dict[str, object]]:
    """Node to its parameters."""
    tree = YAML(typ="safe").load(graph.parameter_file)
    return {node.removeprefix("/**/"): flat(entry["ros__parameters"]) for node, entry in tree.items()}


@pytest.fixture(params=GRAPHS)
def graph(request) -> GraphSpec:
    return load_graph(request.param)


def test_there_is_a_launch_file_for_every_graph():
    assert tuple(graph_names()) == GRAPHS
    assert {file.name for file in (CHECKOUT / "launch").iterdir() if file.suffix == ".py"} == {
        f"{name}.launch.py" for name in LAUNCH_FILES
    }


@pytest.mark.parametrize("name", LAUNCH_FILES)
def test_launch_files_compile(name):
    file = CHECKOUT / "launch" / f"{name}.launch.py"
    compile(file.read_text(encoding="utf-8"), str(file), "exec")


def test_every_node_has_a_program_of_its_name(graph):
    for node in graph.nodes:
        assert node.package == "merton_nodes"
        assert node.executable in programs(), f"setup.cfg does not install {node.executable}"
        assert f'super().__init__("{node.name}"' in source(node.executable), f"{node.executable} has another name"


def test_parameter_files_set_what_nodes_declare(graph):
    executables = {node.name: node.executable for node in (*graph.nodes, *graph.optional)}
    for node, parameters in parameter_file(graph).items():
        assert node in executables, f"{graph.parameter_file.name} names {node}, which is not in the graph"
        for name in parameters:
            patterns = declared(executables[node])
            assert any(re.fullmatch(pattern, name) for pattern in patterns), f"{node} does not declare {name}"


def test_safety_limits_in_parameter_files_exist(graph):
    limits = {name for name in parameter_file(graph).get("arm_node", {}) if name.startswith("limits.")}
    assert limits <= {f"limits.{name}" for name in vars(Limits())}


def test_only_simulated_cells_wait_for_a_busy_machine():
    """Before a real robot every limit of wall time is short: nothing may move that is not commanded and watched."""
    lab, sim = (parameter_file(load_graph(name)) for name in ("lab", "sim"))
    assert lab["ur_robot_node"]["heartbeat_timeout_s"] == 0.2
    assert lab["arm_node"]["camera_timeout_s"] == 0.2
    assert lab["arm_node"]["watch_cameras"] == ["wrist", "top", "side"]
    assert lab["arm_node"]["max_observation_age_s"] == 5.0
    assert lab["arm_node"]["patience_s"] == 2.0
    assert lab["experiment_node"]["deadline_s"] == 60.0
    assert sim["arm_node"]["patience_s"] == sim["experiment_node"]["deadline_s"] == 120.0


def test_parameters_hold_in_a_namespace_too(graph):
    """Without them an arm in the lab would move at full speed, and its stop not survive a restart."""
    assert all(key.startswith("/**/") for key in YAML(typ="safe").load(graph.parameter_file))
    context = rclpy.Context()
    arguments = ["--ros-args", "--params-file", str(graph.parameter_file)]
    rclpy.init(args=arguments, context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = Node("vlm_node", namespace="/lab/one", context=context)
    try:
        assert node.declare_parameter("preload", [""]).value == parameter_file(graph)["vlm_node"]["preload"]
    finally:
        node.destroy_node()
        context.try_shutdown()


def test_arguments_set_parameters_of_the_parameter_file(graph):
    parameters = parameter_file(graph)
    assert graph.help.keys() == graph.arguments.keys()
    for argument, target in graph.arguments.items():
        for part in target.split(", "):
            node, _, name = part.partition(".")
            assert node in {spec.name for spec in (*graph.nodes, *graph.optional)}, (
                f"{argument} sets a parameter of {node}, which is not in the graph"
            )
            assert name in parameters.get(node, {}), f"{argument} sets {part}, which has no value in the parameter file"


def test_an_argument_may_set_several_nodes_and_start_one():
    graph = load_graph("sim").with_arguments({"min_image_quality": "0.5"})
    found = {node.name: node.parameters for node in graph.nodes}
    assert found["arm_node"] == found["quality_node"] == {"min_image_quality": 0.5}
    assert "quality_node" not in {node.name for node in load_graph("sim").nodes}
    assert graph.can_do_without("quality_node")
    assert not graph.that_needs("quality_node").can_do_without("quality_node")


def test_arguments_take_the_type_of_their_parameter():
    chosen = load_graph("replay").with_arguments({"folder": "2024", "distortion": "lens_blur", "level": "3"})
    camera, distortion = chosen.nodes[0], chosen.nodes[1]
    assert camera.parameters == {"folder": "2024"}
    assert distortion.parameters == {"name": "lens_blur", "level": 3.0}
    assert ros_arguments(camera, chosen)[-1] == 'folder:="2024"'
    assert ros_arguments(distortion, chosen)[-4:] == ["-p", 'name:="lens_blur"', "-p", "level:=3.0"]
    cell = load_graph("sim").with_arguments({"real_time_factor": "1"}).nodes[0]
    assert ros_arguments(cell, load_graph("sim"))[-1] == "real_time_factor:=1.0"


def test_wrong_arguments_are_refused():
    with pytest.raises(InputError, match="level must be a number, got 'three'"):
        load_graph("replay").with_arguments({"level": "three"})
    with pytest.raises(UnknownNameError, match="distortion, folder, level"):
        load_graph("replay").with_arguments({"blur": "3"})


def described(name: str, **values: str) -> list:
    """The actions of a launch file with default arguments."""
    from launch import LaunchContext
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    domain, claim = claim_domain()
    claim.close()
    context = LaunchContext()
    context.launch_configurations.update({"domain": str(domain), "robot_ip": "192.0.2.10", **values})
    actions = []
    file = CHECKOUT / "launch" / f"{name}.launch.py"
    for entity in runpy.run_path(str(file))["generate_launch_description"]().entities:
        if isinstance(entity, DeclareLaunchArgument):
            entity.execute(context)
        elif isinstance(entity, OpaqueFunction):
            actions += entity.execute(context)
    return actions


def nodes_of(actions: list) -> set[tuple[str, str]]:
    from launch_ros.actions import Node

    return {(action.node_package, action.node_executable) for action in actions if isinstance(action, Node)}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_launch_file_starts_every_node_of_its_graph(name, monkeypatch):
    pytest.importorskip("launch_ros", reason=NO_LAUNCH)
    monkeypatch.setattr("merton_nodes.ros.launching.is_installed", lambda package: True)
    started = nodes_of(described(name))
    assert {(node.package, node.executable) for node in load_graph(name).nodes} <= started
    assert (("robot_state_publisher", "robot_state_publisher") in started) == (name in ("sim", "gazebo", "lab"))


def test_monitor_opens_both_windows_and_the_page(monkeypatch):
    pytest.importorskip("launch_ros", reason=NO_LAUNCH)
    monkeypatch.setattr("merton_nodes.ros.launching.is_installed", lambda package: True)
    started = {("rviz2", "rviz2"), ("rqt_gui", "rqt_gui"), ("merton_nodes", "monitor_node")}
    assert nodes_of(described("monitor")) == started


def test_monitor_serves_the_page_where_no_window_can_be_opened(monkeypatch):
    pytest.importorskip("launch_ros", reason=NO_LAUNCH)
    from launch.actions import LogInfo

    monkeypatch.setattr("merton_nodes.ros.launching.is_installed", lambda package: package == "rqt_gui")
    actions = described("monitor")
    assert nodes_of(actions) == {("merton_nodes", "monitor_node")}
    said = ["".join(part.text for part in action.msg) for action in actions if isinstance(action, LogInfo)]
    assert [sentence.partition(":")[0] for sentence in said] == ["no RViz", "no rqt"]
    assert "ros-jazzy-rqt-image-view" in said[1]


def test_sim_does_without_a_state_publisher(monkeypatch):
    pytest.importorskip("launch_ros", reason=NO_LAUNCH)
    monkeypatch.setattr("merton_nodes.ros.launching.is_installed", lambda package: False)
    assert {package for package, _ in nodes_of(described("sim"))} == {"merton_nodes"}


@pytest.mark.parametrize(
    ("name", "package", "values"),
    [
        ("lab", "ur_robot_driver", {"arm": "ros2_control"}),
        ("lab", "ros-jazzy-moveit-py ros-jazzy-moveit-planners-ompl ros-jazzy-pilz-", {"arm": "moveit"}),
        ("gazebo", "ros_gz_sim", {}),
        ("monitor", "rviz2", {"page": "false"}),
    ],
)
def test_missing_packages_are_named_before_any_start(name, package, values, monkeypatch):
    pytest.importorskip("launch_ros", reason=NO_LAUNCH)
    monkeypatch.setattr("merton_nodes.ros.launching.is_installed", lambda package: False)
    with pytest.raises(MissingDependencyError, match=package):
        described(name, **values)


def test_the_lab_has_variants_of_its_arm_and_gripper():
    lab = load_graph("lab").with_arguments({"robot_ip": "192.0.2.10"})
    assert lab_variant(lab) == lab
    driven = {node.name: node for node in lab_variant(lab, "ros2_control").nodes}
    assert "ur_robot_node" not in driven
    assert driven["ur_driver_node"].parameters == {"gripper_hostname": "192.0.2.10"}
    assert "planner" not in driven["arm_node"].parameters
    planned = {node.name: node for node in lab_variant(lab, "moveit", "sim").nodes}
    assert planned["ur_driver_node"].parameters == {"gripper_hostname": "127.0.0.1"}
    assert planned["arm_node"].parameters == {"planner": "moveit"}
    simulated = {node.name: node for node in lab_variant(lab, gripper="sim").nodes}["ur_robot_node"]
    assert simulated.parameters == {"hostname": "192.0.2.10", "gripper_hostname": "127.0.0.1"}
    for node in lab_variant(lab, "moveit").nodes:
        assert set(node.parameters) <= set(declared(node.executable)), f"{node.name} does not declare them"
    with pytest.raises(UnknownNameError, match="moveit, ros2_control, rtde"):
        lab_variant(lab, "kuka")
    with pytest.raises(InputError, match="choose one of the two"):
        lab_variant(lab.with_arguments({"gripper_ip": "192.0.2.11"}), gripper="sim")
