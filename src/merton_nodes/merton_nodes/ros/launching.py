"""The nodes of a graph as launch actions, for all launch files. The list itself is config/graph/<name>.yaml.

Imported by launch files alone: `launch` and `launch_ros` come with a full ROS installation, not with the wheels.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import xacro
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown, matches_action
from launch.events.process import ProcessExited, SignalProcess
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from merton.errors import InfrastructureError, MissingDependencyError
from merton.experiment.changes import experiment_file
from merton.experiment.run import RunDirectory
from merton.files import resource
from merton.graph.spec import GraphSpec, NodeSpec, load_graph
from merton.graph.supervisor import (
    ORPHANS_END,
    RENEW_CODE,
    claim_domain,
    enclave,
    environment,
    orphan_gets,
    ros_arguments,
    users_domain,
)

Builder: TypeAlias = Callable[[LaunchContext], list[Any]]
"""Makes launch actions once the arguments are known."""
RENEWALS = 3
"""Most renewals of a simulator that hangs, in one launch. Ours: one that hangs more often is to be looked at."""


def describe(
    name: str,
    arguments: Sequence[Any] = (),
    builders: Sequence[Builder] = (),
    change: Callable[[GraphSpec, LaunchContext], GraphSpec] = lambda graph, _: graph,
    apart: Sequence[str] = (),
) -> LaunchDescription:
    """The launch description of a graph: arguments, environment of the nodes, nodes, actions of `builders`.

    `change` makes another variant of the graph once the arguments are known. The nodes named in `apart` are started by
    `builders`, which get them from `graph_node`.

    Everything is built before anything is started: a launch that fails while it starts processes leaves them behind.
    Raises UnknownNameError if there is no such graph.
    """
    graph = load_graph(name)
    own = [
        DeclareLaunchArgument(
            argument, default_value="", description=f"{graph.help[argument]}; empty: {target} of the parameter file"
        )
        for argument, target in graph.arguments.items()
    ]

    def build(context: LaunchContext) -> list[Any]:
        _claim_domain(context)
        values = {argument: LaunchConfiguration(argument).perform(context) for argument in graph.arguments}
        chosen = graph.with_arguments({key: value for key, value in values.items() if value})
        changed = change(chosen, context)
        context.extend_globals({"merton_graph": changed})
        return graph_actions(changed, apart) + [action for builder in builders for action in builder(context)]

    default_domain = EnvironmentVariable("ROS_DOMAIN_ID", default_value="0")
    return LaunchDescription(
        [
            DeclareLaunchArgument("domain", default_value=default_domain, description="ROS domain"),
            *own,
            *arguments,
            *(SetEnvironmentVariable(key, value) for key, value in environment().items() if key not in os.environ),
            SetEnvironmentVariable("ROS_DOMAIN_ID", LaunchConfiguration("domain")),
            end_with_launch(),
            OpaqueFunction(function=build),
        ]
    )


def graph_actions(graph: GraphSpec, apart: Sequence[str] = ()) -> list[Any]:
    """Every node of a graph but those `apart`; one that ends is reported and ends the launch, as with `merton up`."""
    actions: list[Any] = []
    for spec in graph.nodes:
        if spec.name not in apart:
            actions += supervised(_program_of(spec, graph), spec.name, optional=graph.can_do_without(spec.name))
    return actions


def graph_node(name: str, context: LaunchContext) -> Node:
    """A node of the graph that is launched, for a builder of `describe`."""
    graph: GraphSpec = context.locals.merton_graph
    return _program_of(next(spec for spec in graph.nodes if spec.name == name), graph)


def _program_of(spec: NodeSpec, graph: GraphSpec) -> Node:
    return program(spec.package, spec.executable, output="screen", ros_arguments=ros_arguments(spec, graph))


def program(package: str, executable: str, **options: Any) -> Node:
    """A node by the name of its program in the log, where `end_with_launch` would put another."""
    return Node(package=package, executable=executable, exec_name=executable, **options)


def supervised(process: ExecuteProcess, name: str, *, optional: bool = False) -> list[Any]:
    """A process whose end ends the launch with exit code 1; the end of an optional one is a line in the log."""

    def ended(code: int) -> list[Any]:
        if optional:
            return [LogInfo(msg=f"{name} has ended with exit code {code}; the others go on without it")]
        raise InfrastructureError(f"{name} has ended with exit code {code}, and with it the launch")

    return watched(process, ended)


def required(process: ExecuteProcess, name: str, then: Sequence[Any] = ()) -> list[Any]:
    """A process that does one thing: actions that follow its success, or the launch ends with exit code 1."""

    def ended(code: int) -> list[Any]:
        if code:
            raise InfrastructureError(f"{name} has failed with exit code {code}, and with it the launch")
        return list(then)

    return watched(process, ended)


def watched(process: ExecuteProcess, rule: Callable[[int], list[Any]]) -> list[Any]:
    """A process, and a rule for its end: exit code to actions, or an error that ends the launch with exit code 1.

    The rule is not asked while the launch ends.
    """

    def ended(event: ProcessExited, context: LaunchContext) -> list[Any]:
        return [] if context.is_shutdown else rule(event.returncode)

    return [process, RegisterEventHandler(OnProcessExit(target_action=process, on_exit=ended))]


def renewed(
    make: Callable[[int], tuple[ExecuteProcess, ExecuteProcess, Sequence[Any]]], name: str, number: int = 0
) -> list[Any]:
    """A simulator and the node that works with it. If the node ends with `RENEW_CODE`, both are started anew.

    The simulator is killed first, as one that hangs is deaf to other signals. Every other end of one of the two ends
    the launch with exit code 1, as does the last of `RENEWALS`.

    Args:
        make: the node, the simulator and further actions of the start with a number: 0, and one more each time.
        name: of the simulator, in messages.
        number: of this start.
    """
    node, simulator, others = make(number)
    hangs = False

    def node_ended(code: int) -> list[Any]:
        nonlocal hangs
        hangs = code == RENEW_CODE and number < RENEWALS
        if not hangs:
            raise InfrastructureError(f"the node of {name} has ended with exit code {code}, and with it the launch")
        kill = SignalProcess(signal_number=signal.SIGKILL, process_matcher=matches_action(simulator))
        return [LogInfo(msg=f"{name} hangs: it is killed, and another one takes its place"), EmitEvent(event=kill)]

    def simulator_ended(code: int) -> list[Any]:
        if not hangs:
            raise InfrastructureError(f"{name} has ended with exit code {code}, and with it the launch")
        return renewed(make, name, number + 1)

    return [*watched(node, node_ended), *watched(simulator, simulator_ended), *others]


def end_with_launch() -> SetLaunchConfiguration:
    """Every process of the launch gets SIGTERM when the launch is gone, the ones of included launch files, too.

    Ours: `ros2 launch` ends its processes after SIGINT alone; after SIGTERM, SIGHUP and SIGKILL it leaves them behind.
    """
    return SetLaunchConfiguration(
        "launch-prefix", [" ".join(ORPHANS_END), " ", LaunchConfiguration("launch-prefix", default="")]
    )


def killed_with_launch() -> dict[str, Any]:
    """Options of a process that has nothing to save and may be deaf to SIGINT and SIGTERM: it is killed.

    At once when the launch is gone; 1 s after the SIGTERM that follows SIGINT when the launch ends in order.
    """
    prefix = [LaunchConfiguration("launch-prefix", default=""), " ", " ".join(orphan_gets(signal.SIGKILL))]
    return {"prefix": prefix, "sigkill_timeout": "1"}


def _claim_domain(context: LaunchContext) -> None:
    """Hold the ROS domain for as long as the launch runs; raises InfrastructureError if another graph is in it."""
    _, claim = claim_domain(users_domain(LaunchConfiguration("domain").perform(context)))
    context.extend_globals({"merton_domain": claim})  # the context lives as long as the launch


def include(package: str, file: str, **arguments: Any) -> IncludeLaunchDescription:
    """The action that includes a launch file of a package with arguments."""
    path = PathJoinSubstitution([FindPackageShare(package), "launch", file])
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=arguments.items())


def robot_description(**arguments: str) -> str:
    """The URDF of the cell, with arguments of `urdf/cell.urdf.xacro`."""
    source = resource("merton_description", "urdf/cell.urdf.xacro")
    return str(xacro.process_file(str(source), mappings=arguments).toxml())


def state_publisher(_: LaunchContext, *, use_sim_time: bool = True, **arguments: str) -> list[Any]:
    """robot_state_publisher: /tf for RViz and MoveIt. Merton's nodes do not need it; if it is absent, the log says so.

    `arguments` are those of `urdf/cell.urdf.xacro`.
    """
    if not is_installed("robot_state_publisher"):
        return [LogInfo(msg="robot_state_publisher is not installed: there will be no /tf")]
    # a URDF is a text, though it may read as YAML
    description = ParameterValue(robot_description(**arguments), value_type=str)
    # the clock of a cell may stand still: a listener that comes late is to get the transforms of that instant again
    parameters = [{"robot_description": description, "use_sim_time": use_sim_time, "ignore_timestamp": use_sim_time}]
    name = "robot_state_publisher"
    return [program(name, name, parameters=parameters, ros_arguments=enclave(name))]


EXPERIMENT_ARGUMENTS = (
    DeclareLaunchArgument("experiment", default_value="", description="experiment YAML to run; empty: none"),
    DeclareLaunchArgument("runs", default_value="runs", description="directory that takes the run"),
)


def experiment(context: LaunchContext) -> list[Any]:
    """The client that runs the experiment of `EXPERIMENT_ARGUMENTS`, if one is named.

    The launch ends with the client, with exit code 1 if the experiment ended early.
    """
    name = LaunchConfiguration("experiment").perform(context)
    if not name:
        return []
    run = RunDirectory.create(Path(LaunchConfiguration("runs").perform(context)), experiment_file(name))
    client = program(
        "merton_nodes",
        "run_experiment",
        arguments=[str(run.path), *(["--recorded"] if LaunchConfiguration("recording").perform(context) else [])],
        ros_arguments=enclave("run_experiment"),
        output="screen",
    )

    def ended(code: int) -> list[Any]:
        if code:
            raise InfrastructureError(f"the experiment has ended with exit code {code}; its run: {run.path}")
        message = f"the experiment has ended; `merton report {run.path}` writes its report"
        return [LogInfo(msg=message), EmitEvent(event=Shutdown(reason=message))]

    return watched(client, ended)


def rviz(**parameters: Any) -> Node:
    """RViz with the view of the cell, in the enclave of the operator."""
    config = str(resource("merton_bringup", "config/rviz/merton.rviz"))
    return program(
        "rviz2", "rviz2", arguments=["-d", config], parameters=[parameters], ros_arguments=enclave("operator")
    )


def is_installed(package: str) -> bool:
    """Whether a ROS package is in a sourced workspace."""
    try:
        return bool(get_package_prefix(package))
    except PackageNotFoundError:
        return False


def missing(*packages: str) -> str:
    """The ROS packages of these that are missing, and the command that installs them; empty without any."""
    absent = [package for package in packages if not is_installed(package)]
    debian = " ".join("ros-jazzy-" + package.replace("_", "-") for package in absent)
    return f"not installed: {', '.join(absent)}; run: sudo apt-get install {debian}" if absent else ""


def require(*packages: str) -> None:
    """Raises MissingDependencyError for the ROS packages that are not installed, all at once."""
    if sentence := missing(*packages):
        raise MissingDependencyError(sentence)
