"""Gazebo Harmonic as the hardware: the world, the robot, its controllers, the bridges; Merton's nodes above it.

ros2 launch merton_bringup gazebo.launch.py headless:=true
ros2 launch merton_bringup gazebo.launch.py headless:=true experiment:=quickstart.yaml
"""

import tempfile
from pathlib import Path

import xacro
from launch.actions import DeclareLaunchArgument, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from merton.files import resource
from merton_nodes.ros.launching import EXPERIMENT_ARGUMENTS, describe, experiment, include, require, state_publisher

ARGUMENTS = [
    DeclareLaunchArgument(
        "headless", default_value="true", choices=["true", "false"], description="false opens Gazebo's window"
    ),
    *EXPERIMENT_ARGUMENTS,
]
CONTROLLERS = ["joint_state_broadcaster", "arm", "gripper_controller"]
SERVICES = [
    "/world/cell/set_pose@ros_gz_interfaces/srv/SetEntityPose",
    "/world/cell/control@ros_gz_interfaces/srv/ControlWorld",
]


def robot(context):
    """robot_state_publisher with the robot as Gazebo needs it: Gazebo creates the robot from its topic."""
    controllers = str(resource("merton_bringup", "config/gazebo/controllers.yaml"))
    return state_publisher(context, hardware="gazebo", controllers=controllers)


def simulator(context):
    """Gazebo with the world, the robot in it, its controllers, and the bridge to ROS."""
    require(
        "ros_gz_sim",
        "ros_gz_bridge",
        "gz_ros2_control",
        "controller_manager",
        "joint_state_broadcaster",
        "joint_trajectory_controller",
        "forward_command_controller",
        "robot_state_publisher",
    )
    world = Path(tempfile.mkdtemp(prefix="merton_gazebo_")) / "cell.sdf"
    source = resource("merton_description", "urdf/worlds/cell.sdf.xacro")
    world.write_text(xacro.process_file(str(source)).toprettyxml(indent="  "), encoding="utf-8")
    server_only = "-s --headless-rendering " if LaunchConfiguration("headless").perform(context) == "true" else ""
    create = Node(package="ros_gz_sim", executable="create", arguments=["-topic", "robot_description", "-name", "cell"])
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        arguments=[*CONTROLLERS, "--controller-manager-timeout", "120"],
    )
    return [
        include("ros_gz_sim", "gz_sim.launch.py", gz_args=f"{server_only}-r {world}", on_exit_shutdown="true"),
        create,
        RegisterEventHandler(OnProcessExit(target_action=create, on_exit=[spawner])),
        Node(
            package="ros_gz_bridge",
            executable="parameter_bridge",
            arguments=SERVICES,
            parameters=[{"config_file": str(resource("merton_bringup", "config/gazebo/bridge.yaml"))}],
        ),
    ]


def generate_launch_description():
    return describe("gazebo", ARGUMENTS, [simulator, robot, experiment])
