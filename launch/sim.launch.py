"""The embedded cell and everything above it.

ros2 launch merton_bringup sim.launch.py                                    the graph alone
ros2 launch merton_bringup sim.launch.py experiment:=quickstart.yaml        and an experiment in it
"""

from pathlib import Path

from launch.actions import DeclareLaunchArgument, EmitEvent, LogInfo, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from merton.errors import InfrastructureError
from merton.experiment.run import RunDirectory
from merton.resources import resource
from merton_nodes.launching import describe, require, rviz, state_publisher

ARGUMENTS = [
    DeclareLaunchArgument("headless", default_value="true", choices=["true", "false"], description="false opens RViz"),
    DeclareLaunchArgument("experiment", default_value="", description="experiment YAML to run; empty: none"),
    DeclareLaunchArgument("runs", default_value="runs", description="directory that takes the run"),
]


def window(context):
    """RViz, unless headless."""
    if LaunchConfiguration("headless").perform(context) == "true":
        return []
    require("rviz2")
    return [rviz(use_sim_time=True)]


def experiment(context):
    """The client that runs the experiment; the launch ends when it does, with exit code 1 if it ended early."""
    name = LaunchConfiguration("experiment").perform(context)
    if not name:
        return []
    file = Path(name) if Path(name).exists() else resource("merton_bringup", "config/experiments") / name
    run = RunDirectory.create(Path(LaunchConfiguration("runs").perform(context)), file)
    client = Node(package="merton_nodes", executable="run_experiment", arguments=[str(run.path)], output="screen")

    def ended(event, context):
        if context.is_shutdown:
            return []
        if event.returncode:
            raise InfrastructureError(
                f"the experiment has ended with exit code {event.returncode}; its run: {run.path}"
            )
        message = f"the experiment has ended; `merton report {run.path}` writes its report"
        return [LogInfo(msg=message), EmitEvent(event=Shutdown(reason=message))]

    return [client, RegisterEventHandler(OnProcessExit(target_action=client, on_exit=ended))]


def generate_launch_description():
    """Entry point of `ros2 launch`."""
    return describe("sim", ARGUMENTS, [state_publisher, window, experiment])
