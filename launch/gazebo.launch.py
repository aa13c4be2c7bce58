"""Gazebo Harmonic plays the hardware: the world, the robot, the clock; Merton's nodes above it.

ros2 launch merton_bringup gazebo.launch.py headless:=true
"""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from merton.resources import resource
from merton_nodes.launching import describe, include, require, state_publisher

ARGUMENTS = [
    DeclareLaunchArgument(
        "headless", default_value="true", choices=["true", "false"], description="false opens Gazebo's window"
    )
]


def simulator(context):
    """Gazebo with the world, the robot in it, and the bridge to ROS."""
    require("ros_gz_sim", "ros_gz_bridge", "robot_state_publisher")
    server_only = "-s " if LaunchConfiguration("headless").perform(context) == "true" else ""
    world = resource("merton_description", "urdf/worlds/cell.sdf")
    return [
        include("ros_gz_sim", "gz_sim.launch.py", gz_args=f"{server_only}-r {world}"),
        Node(package="ros_gz_sim", executable="create", arguments=["-topic", "robot_description", "-name", "cell"]),
        Node(
            package="ros_gz_bridge",
            executable="parameter_bridge",
            arguments=["/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock"],
        ),
    ]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    return describe("gazebo", ARGUMENTS, [simulator, state_publisher])
