"""Gazebo Harmonic plays the hardware: the world, the robot, the clock; Merton's nodes above it.

ros2 launch merton_bringup gazebo.launch.py headless:=true
"""

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare
from merton_nodes.launching import describe, state_publisher

from merton.resources import resource

ARGUMENTS = [DeclareLaunchArgument("headless", default_value="true", description="false opens Gazebo's window")]


def gazebo(context):
    """The simulator: server only, or with its window."""
    server_only = "-s " if LaunchConfiguration("headless").perform(context) == "true" else ""
    world = resource("merton_description", "urdf/worlds/cell.sdf")
    path = PathJoinSubstitution([FindPackageShare("ros_gz_sim"), "launch", "gz_sim.launch.py"])
    return [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(path), launch_arguments={"gz_args": f"{server_only}-r {world}"}.items()
        )
    ]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    spawn = Node(package="ros_gz_sim", executable="create", arguments=["-topic", "robot_description", "-name", "cell"])
    bridge = Node(
        package="ros_gz_bridge",
        executable="parameter_bridge",
        arguments=["/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock"],
    )
    actions = [OpaqueFunction(function=gazebo), state_publisher(use_sim_time=True), spawn, bridge]
    return describe("gazebo", ARGUMENTS, actions)
