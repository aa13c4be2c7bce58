"""The embedded cell and everything above it.

ros2 launch merton_bringup sim.launch.py                                    the graph alone
ros2 launch merton_bringup sim.launch.py experiment:=quickstart.yaml        and an experiment in it
"""

from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration

from merton_nodes.ros.launching import EXPERIMENT_ARGUMENTS, describe, experiment, require, rviz, state_publisher

ARGUMENTS = [
    DeclareLaunchArgument("headless", default_value="true", choices=["true", "false"], description="false opens RViz"),
    *EXPERIMENT_ARGUMENTS,
]


def window(context):
    """RViz, unless headless."""
    if LaunchConfiguration("headless").perform(context) == "true":
        return []
    require("rviz2")
    return [rviz(use_sim_time=True)]


def generate_launch_description():
    return describe("sim", ARGUMENTS, [state_publisher, window, experiment])
