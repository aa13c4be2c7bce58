"""What the launch files share: the nodes of a graph as launch actions. The list itself is config/graph/<name>.yaml.

Imported by launch files alone: `launch` and `launch_ros` come with a full ROS installation, not with the wheels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import xacro
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from merton.errors import InfrastructureError, MissingDependencyError
from merton.graph.spec import GraphSpec, load_graph
from merton.graph.supervisor import environment, ros_arguments
from merton.resources import resource

Builder: TypeAlias = Callable[[LaunchContext], list[Any]]
"""Makes launch actions once the arguments are known."""


def describe(name: str, arguments: Sequence[Any] = (), builders: Sequence[Builder] = ()) -> LaunchDescription:
    """The launch description of a graph: its arguments, the environment of its nodes, the nodes, what `builders` make.

    Everything is built before anything is started: a launch that fails while it starts processes leaves them behind.
    Raises UnknownNameError if there is no such graph.
    """
    graph = load_graph(name)
    own = [
        DeclareLaunchArgument(argument, default_value="", description=f"sets {target}; empty: as in the parameter file")
        for argument, target in graph.arguments.items()
    ]

    def build(context: LaunchContext) -> list[Any]:
        values = {argument: LaunchConfiguration(argument).perform(context) for argument in graph.arguments}
        chosen = graph.with_arguments({key: value for key, value in values.items() if value})
        return graph_actions(chosen) + [action for builder in builders for action in builder(context)]

    default_domain = EnvironmentVariable("ROS_DOMAIN_ID", default_value="0")
    return LaunchDescription(
        [
            DeclareLaunchArgument("domain", default_value=default_domain, description="ROS domain"),
            *own,
            *arguments,
            *(SetEnvironmentVariable(key, value) for key, value in environment().items() if key not in os.environ),
            SetEnvironmentVariable("ROS_DOMAIN_ID", LaunchConfiguration("domain")),
            OpaqueFunction(function=build),
        ]
    )


def graph_actions(graph: GraphSpec) -> list[Any]:
    """Every node of a graph; one that ends is reported and ends the launch, as with `merton up`."""
    actions: list[Any] = []
    for spec in graph.nodes:
        node = Node(
            package=spec.package,
            executable=spec.executable,
            output="screen",
            ros_arguments=ros_arguments(spec, graph),
        )
        actions += [node, RegisterEventHandler(OnProcessExit(target_action=node, on_exit=_end_with(spec.name)))]
    return actions


def include(package: str, file: str, **arguments: Any) -> IncludeLaunchDescription:
    """Another package's launch file."""
    path = PathJoinSubstitution([FindPackageShare(package), "launch", file])
    return IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=arguments.items())


def robot_description() -> str:
    """The URDF of the cell."""
    return str(xacro.process_file(str(resource("merton_description", "urdf/cell.urdf.xacro"))).toxml())


def state_publisher(_: LaunchContext) -> list[Any]:
    """robot_state_publisher: /tf for RViz and MoveIt. Merton's nodes do without; if it is absent, the log says so."""
    if not is_installed("robot_state_publisher"):
        return [LogInfo(msg="robot_state_publisher is not installed: there will be no /tf")]
    # a URDF is a text, though it may read as YAML
    description = ParameterValue(robot_description(), value_type=str)
    parameters = [{"robot_description": description, "use_sim_time": True}]
    return [Node(package="robot_state_publisher", executable="robot_state_publisher", parameters=parameters)]


def rviz(**parameters: Any) -> Node:
    """RViz on the cell."""
    config = str(resource("merton_bringup", "config/rviz/merton.rviz"))
    return Node(package="rviz2", executable="rviz2", arguments=["-d", config], parameters=[parameters])


def is_installed(package: str) -> bool:
    """Whether a ROS package is in a sourced workspace."""
    try:
        return bool(get_package_prefix(package))
    except PackageNotFoundError:
        return False


def require(*packages: str) -> None:
    """Raises MissingDependencyError for the ROS packages that are not installed, all at once."""
    missing = [package for package in packages if not is_installed(package)]
    if missing:
        debian = " ".join("ros-jazzy-" + package.replace("_", "-") for package in missing)
        raise MissingDependencyError(f"not installed: {', '.join(missing)}; run: sudo apt-get install {debian}")


def _end_with(name: str) -> Callable[[ProcessExited, LaunchContext], None]:
    """What follows when a node ends before it was told to: an exception ends a launch, and with exit code 1."""

    def ended(event: ProcessExited, context: LaunchContext) -> None:
        if not context.is_shutdown:
            raise InfrastructureError(f"{name} has ended with exit code {event.returncode}, and with it the launch")

    return ended
