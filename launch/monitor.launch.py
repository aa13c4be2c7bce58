"""The operator's screen: RViz on the cell, rqt for diagnostics. Runs beside sim, gazebo or lab.

ros2 launch merton_bringup monitor.launch.py use_sim_time:=true
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from merton_nodes.launching import require, rviz


def screen(context):
    """Both windows."""
    require("rviz2", "rqt_robot_monitor")
    use_sim_time = LaunchConfiguration("use_sim_time").perform(context) == "true"
    return [rviz(use_sim_time=use_sim_time), Node(package="rqt_robot_monitor", executable="rqt_robot_monitor")]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    time = DeclareLaunchArgument(
        "use_sim_time", default_value="false", choices=["true", "false"], description="true beside a simulator"
    )
    return LaunchDescription([time, OpaqueFunction(function=screen)])
