"""The operator's screen: RViz on the cell, rqt for diagnostics. Runs beside sim, gazebo or lab.

ros2 launch merton_bringup monitor.launch.py use_sim_time:=true
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from merton.resources import resource


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    config = str(resource("merton_bringup", "config/rviz/merton.rviz"))
    time = {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)}
    return LaunchDescription(
        [
            DeclareLaunchArgument("use_sim_time", default_value="false", description="true beside a simulator"),
            Node(package="rviz2", executable="rviz2", arguments=["-d", config], parameters=[time]),
            Node(package="rqt_robot_monitor", executable="rqt_robot_monitor"),
        ]
    )
