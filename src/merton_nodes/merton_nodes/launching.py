"""What the launch files share: the nodes of a graph as launch actions. The list itself is config/graph/<name>.yaml.

Imported by launch files alone: `launch` and `launch_ros` come with a full ROS installation, not with the wheels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import xacro
from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import EnvironmentVariable, LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from merton.graph.spec import GraphSpec, load_graph
from merton.graph.supervisor import environment, ros_arguments
from merton.resources import resource


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
        actions += [node, RegisterEventHandler(OnProcessExit(target_action=node, on_exit=_report(spec.name)))]
    return actions


def describe(name: str, arguments: Sequence[Any] = (), actions: Sequence[Any] = ()) -> LaunchDescription:
    """The launch description of a graph: its arguments, the environment its nodes need, its nodes, and `actions`.

    Raises UnknownNameError if there is no such graph.
    """
    graph = load_graph(name)
    own = [
        DeclareLaunchArgument(argument, default_value="", description=f"sets {target}; empty: as in the parameter file")
        for argument, target in graph.arguments.items()
    ]

    def nodes(context: LaunchContext) -> list[Any]:
        values = {argument: LaunchConfiguration(argument).perform(context) for argument in graph.arguments}
        return graph_actions(graph.with_arguments({key: value for key, value in values.items() if value}))

    default_domain = EnvironmentVariable("ROS_DOMAIN_ID", default_value="0")
    return LaunchDescription(
        [
            DeclareLaunchArgument("domain", default_value=default_domain, description="ROS domain"),
            *own,
            *arguments,
            *(SetEnvironmentVariable(key, value) for key, value in environment().items() if key not in os.environ),
            SetEnvironmentVariable("ROS_DOMAIN_ID", LaunchConfiguration("domain")),
            OpaqueFunction(function=nodes),
            *actions,
        ]
    )


def robot_description() -> str:
    """The URDF of the cell."""
    return str(xacro.process_file(str(resource("merton_description", "urdf/cell.urdf.xacro"))).toxml())


def state_publisher(*, use_sim_time: bool) -> OpaqueFunction:
    """robot_state_publisher: /tf for RViz and MoveIt. No node of Merton's needs it, so a machine without it only logs that."""

    def start(context: LaunchContext) -> list[Any]:
        if not is_installed("robot_state_publisher"):
            return [LogInfo(msg="robot_state_publisher is not installed: there will be no /tf")]
        # a URDF is a text, though it may read as YAML
        description = ParameterValue(robot_description(), value_type=str)
        parameters = [{"robot_description": description, "use_sim_time": use_sim_time}]
        return [Node(package="robot_state_publisher", executable="robot_state_publisher", parameters=parameters)]

    return OpaqueFunction(function=start)


def is_installed(package: str) -> bool:
    """Whether a ROS package is in a sourced workspace."""
    try:
        return Path(get_package_prefix(package)).is_dir()
    except PackageNotFoundError:
        return False


def _report(name: str) -> Callable[[ProcessExited, LaunchContext], list[Any]]:
    """What follows when a node ends before it was told to."""

    def ended(event: ProcessExited, context: LaunchContext) -> list[Any]:
        if context.is_shutdown:
            return []
        message = f"{name} has ended with exit code {event.returncode}, and with it the launch"
        return [LogInfo(msg=message), EmitEvent(event=Shutdown(reason=message))]

    return ended
