"""What the launch files share: the nodes of a graph as launch actions. The list itself is config/graph/<name>.yaml.

Imported by launch files alone: `launch` and `launch_ros` come with a full ROS installation, not with the wheels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import xacro
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
from launch.substitutions import EnvironmentVariable, LaunchConfiguration
from launch_ros.actions import Node

from merton.graph.spec import GraphSpec, load_graph
from merton.resources import resource


def graph_actions(graph: GraphSpec) -> list[Any]:
    """Every node of a graph; one that ends is reported and ends the launch, as with `merton up`."""
    actions: list[Any] = []
    for spec in graph.nodes:
        node = Node(
            package=spec.package,
            executable=spec.executable,
            output="screen",
            parameters=[str(graph.parameter_file), dict(spec.parameters)],
            remappings=list(spec.remappings.items()),
        )
        message = f"{spec.name} has ended, and with it the launch"
        ended = [LogInfo(msg=message), EmitEvent(event=Shutdown(reason=message))]
        actions += [node, RegisterEventHandler(OnProcessExit(target_action=node, on_exit=ended))]
    return actions


def describe(name: str, arguments: Sequence[Any] = (), actions: Sequence[Any] = ()) -> LaunchDescription:
    """The launch description of a graph: its arguments, the environment its nodes need, its nodes, and `actions`."""
    graph = load_graph(name)
    own = [
        DeclareLaunchArgument(argument, default_value="", description=f"sets {target}; empty: as in the parameter file")
        for argument, target in graph.arguments.items()
    ]

    def nodes(context: LaunchContext) -> list[Any]:
        values = {argument: LaunchConfiguration(argument).perform(context) for argument in graph.arguments}
        return graph_actions(graph.with_arguments({key: value for key, value in values.items() if value}))

    profile = str(resource("merton_bringup", "config/dds/fastdds.xml"))
    default_domain = EnvironmentVariable("ROS_DOMAIN_ID", default_value="0")
    return LaunchDescription(
        [
            DeclareLaunchArgument("domain", default_value=default_domain, description="ROS domain"),
            *own,
            *arguments,
            SetEnvironmentVariable("ROS_DOMAIN_ID", LaunchConfiguration("domain")),
            SetEnvironmentVariable(
                "FASTRTPS_DEFAULT_PROFILES_FILE",
                EnvironmentVariable("FASTRTPS_DEFAULT_PROFILES_FILE", default_value=profile),
            ),
            OpaqueFunction(function=nodes),
            *actions,
        ]
    )


def robot_description() -> str:
    """The URDF of the cell."""
    return str(xacro.process_file(str(resource("merton_description", "urdf/cell.urdf.xacro"))).toxml())


def state_publisher(*, use_sim_time: bool, condition: Any = None) -> Node:
    """robot_state_publisher: /tf for RViz and MoveIt."""
    return Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        output="screen",
        parameters=[{"robot_description": robot_description(), "use_sim_time": use_sim_time}],
        condition=condition,
    )
